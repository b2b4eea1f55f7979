"""Judge a run on the test set, as rates or on a simulator, both sides read in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from neuro_eqprop.arrays import Array, Ints, UnknownNameError
from neuro_eqprop.backends.base import Feature, tally
from neuro_eqprop.backends.registry import BACKENDS, load_backend
from neuro_eqprop.data import Split
from neuro_eqprop.experiments.event_stats import EVENTS, dense_macs, events, too_few
from neuro_eqprop.experiments.run_folder import Run
from neuro_eqprop.networks import Network, Role
from neuro_eqprop.ops.numpy import NumpyOps
from neuro_eqprop.ops.protocol import Ops
from neuro_eqprop.rate.inference import Inference, infer_in_chunks
from neuro_eqprop.schedules import Schedule, free_only, tail
from neuro_eqprop.spiking.codes import Code, Coding
from neuro_eqprop.spiking.input_coding import InputCoding, encode_input, outer, with_input
from neuro_eqprop.spiking.ir import SpikingNetwork
from neuro_eqprop.spiking.lower import lower, rates_of
from neuro_eqprop.spiking.quantize import quantise
from neuro_eqprop.spiking.rounding import Rounding, round_weight
from neuro_eqprop.traces import NOTHING, Counts, MemorySink

RATES = ("rate", "numpy")
"""Where rates are settled: by torch as in training, or by NumPy in float64."""

DT = 1e-3
"""Seconds a step stands for; it matters only where a simulator or chip has a clock."""

Watch = Callable[[int], None]
"""Told how many more samples are done."""


@dataclass(frozen=True, slots=True)
class Spikes:
    """What a simulator made of the samples in the free phase: arrays (samples, units)."""

    on: str
    network: SpikingNetwork
    schedule: Schedule
    firing: Mapping[str, Array]
    """By layer."""
    drive: Array
    """Of the output."""
    counts: Mapping[tuple[str, str], Counts]
    overflows: int
    """In fixed point, how often a current wrapped or a voltage was cut off."""


def samples_of(run: Run, samples: int | None) -> Split:
    """The first so many test samples, or all."""
    test = run.data.test
    if samples is not None and samples < 1:
        raise ValueError(f"{samples} samples are none to judge by; ask for one at least")
    if samples is not None and samples > len(test):
        raise ValueError(f"{run.study.dataset!r} has {len(test)} test samples, not {samples}")
    return test if samples is None else test.take(slice(0, samples))


def equilibria(
    network: Network,
    params: Mapping[str, Array],
    x: Array,
    *,
    damping: float = 1.0,
    ops: Ops | None = None,
) -> Inference:
    """Where the rates settle, in float64: what spikes are compared with."""
    if ops is None:
        import torch

        from neuro_eqprop.ops.torch import TorchOps

        ops = TorchOps(torch.float64)
    exact = {name: ops.from_numpy(value) for name, value in params.items()}
    return infer_in_chunks(ops, network, exact, x, damping=damping)


def spiking(
    run: Run, coding: Coding, nudged: bool, entry: InputCoding = InputCoding.CURRENT
) -> tuple[SpikingNetwork, dict[str, Array]]:
    """The run's network as spikes, and the parameters it was made from."""
    params = {name: value.astype(np.float64) for name, value in run.model.params.items()}
    network = run.model.network
    made = lower(network, params, dt=DT, coding=coding, nudged=nudged)
    return with_input(network, params, made, coding=coding, entry=entry), params


def rounded(
    run: Run,
    coding: Coding,
    bits: int,
    entry: InputCoding = InputCoding.CURRENT,
    *,
    nudged: bool = False,
) -> tuple[SpikingNetwork, dict[str, Array]]:
    """The run's network in fixed point; the input weights of the host have so many bits too."""
    rounding, params = Rounding(bits), dict(run.model.params)
    for connection in run.model.network.connections:
        exact = params[connection.name].astype(np.float64)
        params[connection.name] = round_weight(exact, rounding, finest=coding.grid).weight
    model = replace(run.model, params=params)
    network, params = spiking(replace(run, model=model), coding, nudged, entry)
    return quantise(network, rounding)[0], params


def spike(
    run: Run,
    split: Split,
    *,
    on: str,
    code: Code,
    steps: int,
    watch: Watch,
    bits: int | None = None,
    entry: InputCoding = InputCoding.CURRENT,
) -> Spikes:
    """Run the samples on a simulator, freely; with `bits` in fixed point."""
    coding, backend, rate = Coding(code), load_backend(on), run.model.network
    network, params = (
        spiking(run, coding, False, entry) if bits is None else rounded(run, coding, bits, entry)
    )
    schedule = free_only(steps=steps, window=tail(steps, coding.tail))
    firing: dict[str, list[Array]] = {population.name: [] for population in network.populations}
    drive, overflows = list[Array](), 0
    counts: dict[tuple[str, str], Counts] = {}
    chunk = BACKENDS[on].chunk
    for start in range(0, len(split), chunk):
        part = split.take(slice(start, start + chunk))
        stimulus = encode_input(rate, params, part.x, target=None, coding=coding, entry=entry)
        result = backend.run(network, stimulus, schedule, record=NOTHING, sink=MemorySink())
        for key, more in tally(network, stimulus, schedule, result).items():
            counts[key] = counts.get(key, Counts()) + more
        # Copies, so that the rest of a result, several times as large, is not kept with them.
        for name, parts in firing.items():
            parts.append(result.firing[name][:, 0].copy())
        drive.append(result.drive[network.output][:, 0].copy())
        overflows += sum(o.wraps + o.saturations for o in result.overflows.values())
        watch(len(part))
    whole = {name: np.concatenate(parts) for name, parts in firing.items()}
    rates = rates_of(rate, whole, coding)
    return Spikes(on, network, schedule, rates, np.concatenate(drive), counts, overflows)


def agreement(
    network: Network,
    answer_a: tuple[Mapping[str, Array], Array],
    other: tuple[Mapping[str, Array], Array],
) -> dict[str, float | None]:
    """Two sides, each rates by layer and the output's drive: how well they agree.

    Pooled over samples and all units but the input's.
    """
    (rates_a, drive_a), (rates_b, drive_b) = answer_a, other
    names = [layer.name for layer in network.layers if layer.role is not Role.INPUT]
    a = np.concatenate([np.ravel(rates_a[name]) for name in names])
    b = np.concatenate([np.ravel(rates_b[name]) for name in names])
    error = np.abs(a - b)
    # In place: a convolutional network has a hundred million rates on a test set.
    a -= a.mean()
    b -= b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return {
        "agreement": float((drive_a.argmax(axis=1) == drive_b.argmax(axis=1)).mean()),
        "pearson": float(a @ b) / size if size > 0 else None,
        "rmse": float(np.sqrt(np.mean(error**2))),
        "p999": float(np.quantile(error, 0.999)),
    }


def error_to_reference(
    run: Run, split: Split, made: Spikes, *, code: Code, entry: InputCoding
) -> float | None:
    """Of a simulator that is not exact, by how much its firing is off on average."""
    if Feature.EXACT in load_backend(made.on).support:
        return None
    steps = made.schedule[0].steps
    exact = spike(run, split, on="emulator", code=code, steps=steps, watch=no_progress, entry=entry)
    gaps = [np.abs(made.firing[name] - rates).ravel() for name, rates in exact.firing.items()]
    return float(np.concatenate(gaps).mean())


def no_progress(_: int) -> None:
    """Watches nothing."""


def accuracy_of(drive: Array, y: Ints) -> float:
    """The share of samples answered right."""
    return float((drive.argmax(axis=1) == y).mean())


def rates_on(run: Run, on: str, x: Array) -> tuple[Mapping[str, Array], Array]:
    """The run's rates and the output's drive, by torch or by NumPy."""
    network, damping = run.model.network, run.study.damping
    if on == "numpy":
        found = equilibria(network, run.model.params, x, damping=damping, ops=NumpyOps())
    else:
        from neuro_eqprop.ops.torch import TorchOps

        ops = TorchOps()
        params = {name: ops.from_numpy(value) for name, value in run.model.params.items()}
        found = infer_in_chunks(ops, network, params, x, damping=damping)
    return found.state, found.drive


def evaluate(
    run: Run,
    *,
    on: str,
    code: Code,
    steps: int,
    samples: int | None,
    watch: Watch,
    bits: int | None = None,
    entry: InputCoding = InputCoding.CURRENT,
) -> dict[str, Any]:
    """What `evaluate --json` shows."""
    if on not in RATES and on not in BACKENDS:
        raise UnknownNameError("backend", on, (*RATES, *BACKENDS))
    if on in RATES and bits is not None:
        raise ValueError(f"{on!r} has rates, which have no bits; run spikes with --on emulator")
    split, network = samples_of(run, samples), run.model.network
    exact = equilibria(network, run.model.params, split.x, damping=run.study.damping)
    began, rates = time.perf_counter(), on in RATES
    if rates:
        side = rates_on(run, on, split.x)
        watch(len(split))
        counted: dict[str, Any] = dict.fromkeys((*EVENTS, "error_to_reference"))
    else:
        made = spike(run, split, on=on, code=code, steps=steps, watch=watch, bits=bits, entry=entry)
        side = made.firing, made.drive
        counted = events(run, made.network, made.counts, samples=len(split))
        off = error_to_reference(run, split, made, code=code, entry=entry)
        counted = {**counted, "error_to_reference": off}
    return {
        "run": str(run.path),
        "on": on,
        "code": None if rates else code.name,
        "bits": bits,
        "samples": len(split),
        "steps": None if rates else steps,
        "accuracy": accuracy_of(side[1], split.y),
        "rate_accuracy": accuracy_of(exact.drive, split.y),
        **agreement(network, (exact.state, exact.drive), side),
        "input": None if rates else entry.name,
        **counted,
        "overflows": None if bits is None else made.overflows,
        "warnings": [] if rates else too_few(run, Coding(code), steps, entry),
        "seconds": time.perf_counter() - began,
    }


@dataclass(frozen=True, slots=True)
class CountedRun:
    """Events of inference, counted on the emulator."""

    network: SpikingNetwork
    counts: Mapping[tuple[str, str], Counts]
    samples: int
    steps: int
    input_coding: str
    dense_macs: int
    """Multiplications of one dense feed-forward pass, for comparison."""
    outside: frozenset[str]
    """The populations that bring the input."""
    accuracy: float


def count_events(
    run: Run,
    *,
    samples: int,
    steps: int,
    code: Code,
    watch: Watch,
    bits: int | None = None,
    entry: InputCoding = InputCoding.CURRENT,
) -> CountedRun:
    """Run inference on at most `samples` test samples and count; with `bits` in fixed point."""
    split = samples_of(run, min(samples, len(run.data.test)))
    made = spike(
        run, split, on="emulator", code=code, steps=steps, watch=watch, bits=bits, entry=entry
    )
    outside = outer(run.model.network) & {p.name for p in made.network.populations}
    told = (len(split), steps, entry.name, dense_macs(run))
    return CountedRun(made.network, made.counts, *told, outside, accuracy_of(made.drive, split.y))
