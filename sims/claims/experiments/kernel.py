"""CPU time of the phases of one batch and their update: NumPy against torch.

The two alternate in one process on one thread, so that other load on the machine affects both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.field import field
from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.networks.ops.protocol import Ops
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.rules.hebbian import hebbian
from neuro_eqprop.training.rules.phases import SWEEPS, relax
from sims.claims.claim import Json
from sims.claims.experiments.common import data_of, study_of, training_batch


def prepare_step(
    ops: Ops, network: Network, params: Mapping[str, Array], x: Array, y: Array, schedule: Schedule
) -> Callable[[], dict[str, Any]]:
    """A function that settles one batch in all phases and returns the Hebbian update."""
    values = {name: ops.from_numpy(value) for name, value in params.items()}
    inputs, target = ops.from_numpy(x), ops.from_numpy(y)

    def run() -> dict[str, Any]:
        phases = relax(field(ops, network, values, inputs), target, schedule, SWEEPS)
        states = {name: settled.state for name, settled in phases.items()}
        return hebbian(ops, network, inputs, states=states, schedule=schedule)

    return run


def cpu_seconds(run: Callable[[], object], times: int) -> float:
    """Mean CPU seconds of a run, over `times` runs."""
    began = time.process_time()
    for _ in range(times):
        run()
    return (time.process_time() - began) / times


def interleaved_times(
    runs: Mapping[str, Callable[[], object]], *, rounds: int, times: int
) -> dict[str, float]:
    """Median CPU seconds of each run, measured in turns after a warm-up."""
    for run in runs.values():
        run()
    measured: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            measured[name].append(cpu_seconds(run, times))
    return {name: float(np.median(each)) for name, each in measured.items()}


def relative_difference(one: Mapping[str, Array], other: Mapping[str, torch.Tensor]) -> float:
    """The largest difference of two updates, relative to the largest entry of a parameter."""
    return max(
        float(np.abs(one[name] - other[name].numpy()).max() / np.abs(one[name]).max())
        for name in one
    )


@torch.no_grad()
def times(arguments: Mapping[str, Any], seed: int) -> Json:
    """CPU seconds of NumPy, torch and BPTT, and whether the updates of the first two agree."""
    from sims.claims.experiments.cost import bptt, prepare_gradient

    data, study = data_of(arguments), study_of(arguments, seed)
    network, schedule = study.network(data), study.rule.schedule()
    params = initialize(network, np.random.default_rng(seed))
    x, y = training_batch(data, study.training.batch, seed)
    numpy_run = prepare_step(NumpyOps(np.float32), network, params, x, y, schedule)
    torch_run = prepare_step(TorchOps(), network, params, x, y, schedule)
    difference = relative_difference(numpy_run(), torch_run())
    graph = prepare_gradient(network, params, x, y, study.rule.free_steps, bptt)
    found = interleaved_times(
        {"numpy": numpy_run, "torch": torch_run, "autograd": graph},
        rounds=arguments["rounds"],
        times=arguments["times"],
    )
    # Rounding differs between processors, so only the comparison is stored.
    return {"close": difference < 1e-3, **{n: {"seconds": s} for n, s in found.items()}}
