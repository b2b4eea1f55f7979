"""CPU time of one episode and its update: NumPy against torch, the same equations in both.

The two take turns in one process on one thread, so that a busy machine slows both alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from neuro_eqprop.arrays import Array
from neuro_eqprop.claims.claim import Json
from neuro_eqprop.claims.experiments.common import data_of, study_of
from neuro_eqprop.data import one_hot
from neuro_eqprop.initialise import initialise
from neuro_eqprop.networks import Network
from neuro_eqprop.ops.numpy import NumpyOps
from neuro_eqprop.ops.protocol import Ops
from neuro_eqprop.ops.torch import TorchOps
from neuro_eqprop.rate.field import field
from neuro_eqprop.schedules import Schedule
from neuro_eqprop.training.relax import SWEEPS, relax
from neuro_eqprop.training.rules.hebbian import hebbian


def step(
    ops: Ops, network: Network, params: Mapping[str, Array], x: Array, y: Array, plan: Schedule
) -> Callable[[], dict[str, Any]]:
    """One episode, ready to be run: settle through all phases and ask for the changes."""
    ready = {name: ops.from_numpy(value) for name, value in params.items()}
    given, target = ops.from_numpy(x), ops.from_numpy(y)

    def run() -> dict[str, Any]:
        phases = relax(field(ops, network, ready, given), target, plan, SWEEPS)
        states = {name: settled.state for name, settled in phases.items()}
        return hebbian(ops, network, given, states=states, schedule=plan)

    return run


def spent(run: Callable[[], object], times: int) -> float:
    """CPU seconds of one run, over so many."""
    began = time.process_time()
    for _ in range(times):
        run()
    return (time.process_time() - began) / times


def interleaved(
    runs: Mapping[str, Callable[[], object]], *, rounds: int, times: int
) -> dict[str, float]:
    """The median CPU seconds of each, taken in turns after a run to warm up."""
    for run in runs.values():
        run()
    measured: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            measured[name].append(spent(run, times))
    return {name: float(np.median(each)) for name, each in measured.items()}


def apart(one: Mapping[str, Array], other: Mapping[str, torch.Tensor]) -> float:
    """The largest difference of two updates, over the largest entry of that parameter's."""
    return max(
        float(np.abs(one[name] - other[name].numpy()).max() / np.abs(one[name]).max())
        for name in one
    )


@torch.no_grad()
def times(arguments: Mapping[str, Any], seed: int) -> Json:
    """Seconds of each, and how far their updates are apart; beside them autograd's, by BPTT."""
    from neuro_eqprop.claims.experiments.cost import bptt, ready

    data, study = data_of(arguments), study_of(arguments, seed)
    network, plan = study.network(data), study.recipe().schedule()
    params = initialise(network, np.random.default_rng(seed))
    rows = np.random.default_rng([seed, 1]).integers(0, len(data.train), study.training.batch)
    x, y = data.train.x[rows], one_hot(data.train.y[rows], data.classes)
    numpy_run = step(NumpyOps(np.float32), network, params, x, y, plan)
    torch_run = step(TorchOps(), network, params, x, y, plan)
    distance = apart(numpy_run(), torch_run())
    graph = ready(network, params, x, y, study.rule.free_steps, bptt)
    found = interleaved(
        {"numpy": numpy_run, "torch": torch_run, "autograd": graph},
        rounds=arguments["rounds"],
        times=arguments["times"],
    )
    # Rounding differs between processors, so the bound is what is kept, not the digits.
    return {"close": distance < 1e-3, **{name: {"seconds": s} for name, s in found.items()}}
