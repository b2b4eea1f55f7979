"""Evaluate a model on labelled samples, as rates or as spikes on a simulator."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import ArgumentError, Array, Ints, UnknownNameError
from neuro_eqprop.common.compile_time import compile_timer
from neuro_eqprop.common.html import html_table
from neuro_eqprop.data import Split
from neuro_eqprop.dynamics.inference import Inference, infer_in_chunks
from neuro_eqprop.networks import ops as array_ops
from neuro_eqprop.networks.network import Network, Role
from neuro_eqprop.networks.operators import Dense
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.networks.ops.protocol import Ops
from neuro_eqprop.runs.event_stats import EVENTS, event_stats, warnings_of
from neuro_eqprop.runs.request_size import rate_deadline
from neuro_eqprop.runs.simulation import Simulation, run_spikes
from neuro_eqprop.runs.simulation_settings import SimulationSettings
from neuro_eqprop.simulators.base import Backend, Feature
from neuro_eqprop.simulators.registry import BACKENDS, load_backend
from neuro_eqprop.spiking.codes import Code
from neuro_eqprop.spiking.input_coding import InputCoding
from neuro_eqprop.spiking.lowered import LoweredNetwork, lower_network
from neuro_eqprop.training.trained import TrainedNetwork

RATES = ("rate", "numpy")
"""Values of `on` for rates: torch in float32, as in training, or NumPy in float64."""

ON_RATES = SimulationSettings(on="rate")


def check_rates(on: object, code: object, bits: int | None) -> None:
    """Raise ArgumentError if a spike code or bits are given for rates."""
    if code is not None:
        raise ArgumentError(
            f"code={str(code)!r} is for spikes, and on={on!r} settles rates; name a simulator, for "
            "example on='emulator', or leave out `code`"
        )
    if bits is not None:
        raise ArgumentError(f"`bits` is for spikes, and on={on!r} settles rates; use on='emulator'")


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Accuracy of a model on labelled samples, and its agreement with the float64 rates.

    `agreement` is the fraction of samples with the same predicted class as the float64 rates.
    `pearson`, `rmse` and `p999` (the 99.9th percentile of the absolute error) compare the rates,
    pooled over samples and all units except the input. A large network is evaluated in parts;
    `pearson` and `p999` are then those of the first part. Fields of spikes are None for rates.
    Event counts per sample are defined in `neuro_eqprop.runs.event_stats`.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> data = ne.load_data("digits")
    >>> model = ne.train("layered", data, hidden=(16,), epochs=1)
    >>> found = model.evaluate(data.test.take(slice(20)), on="emulator", code="graded", steps=16)
    >>> found.samples, found.code, found.agreement > 0.9
    (20, 'graded', True)
    """

    on: str
    code: str | None
    bits: int | None
    samples: int
    steps: int | None
    accuracy: float
    rate_accuracy: float
    agreement: float
    pearson: float | None
    rmse: float
    p999: float
    input: str | None
    spikes_per_neuron: float | None
    synops_per_sample: float | None
    input_spikes_per_sample: float | None
    input_synops_per_sample: float | None
    host_macs_per_sample: float | None
    dense_macs: float | None
    work_to_dense: float | None
    error_to_reference: float | None
    """Mean absolute error of the firing rates; None for simulators that equal the reference."""
    overflows: int | None
    warnings: list[str]
    seconds: float
    """Wall-clock time of the run, without compilation and comparison."""
    compile_seconds: float
    """Compilation time of the simulator; zero if its code is in the cache on disk."""

    def __repr__(self) -> str:
        how = "" if self.code is None else f", code {self.code}, {self.steps} steps"
        return (
            f"Evaluation(accuracy {self.accuracy:.4f}, agreement {self.agreement:.4f}, "
            f"{self.samples} samples on {self.on}{how})"
        )

    def _repr_html_(self) -> str:
        return html_table("Evaluation", {k: v for k, v in self.to_dict().items() if v is not None})

    @property
    def drop(self) -> float:
        """Accuracy of the float64 rates minus `accuracy`."""
        return self.rate_accuracy - self.accuracy

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return asdict(self)


def equilibria(
    network: Network,
    params: Mapping[str, Array],
    x: Array,
    *,
    damping: float = 1.0,
    ops: Ops | None = None,
) -> Inference:
    """Return the free equilibrium of the rates in float64, the reference for spikes.

    Small problems settle in NumPy, so that torch is not imported; both agree up to rounding.
    """
    ops = float64_ops(network, params, len(x)) if ops is None else ops
    exact = {name: ops.from_numpy(value) for name, value in params.items()}
    return infer_in_chunks(ops, network, exact, x, damping=damping)


SMALL = 2**24
"""Parameters times samples up to which settling in NumPy takes less time than importing torch."""


def float64_ops(network: Network, params: Mapping[str, Array], samples: int) -> Ops:
    """Return NumPy for few samples of a network with dense connections only, else torch."""
    dense = all(isinstance(connection.operator, Dense) for connection in network.connections)
    if dense and samples * sum(value.size for value in params.values()) <= SMALL:
        return NumpyOps()
    import torch

    return array_ops.TorchOps(torch.float64)


def agreement(
    network: Network,
    first: tuple[Mapping[str, Array], Array],
    second: tuple[Mapping[str, Array], Array],
) -> dict[str, Any]:
    """Return `agreement`, `pearson`, `rmse` and `p999` of two pairs (rates by layer, drive)."""
    (rates_a, drive_a), (rates_b, drive_b) = first, second
    names = [layer.name for layer in network.layers if layer.role is not Role.INPUT]
    a = np.concatenate([np.ravel(rates_a[name]) for name in names])
    b = np.concatenate([np.ravel(rates_b[name]) for name in names])
    error = np.abs(a - b)
    # In place, to save memory: a convolutional network has 10^8 rates on a test set.
    a -= a.mean()
    b -= b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return {
        "agreement": float((drive_a.argmax(axis=1) == drive_b.argmax(axis=1)).mean()),
        "pearson": float(a @ b) / size if size > 0 else None,
        "rmse": float(np.sqrt(np.mean(error**2))),
        "p999": float(np.quantile(error, 0.999)),
    }


def error_to_reference(run: Simulation, x: Array, backend: Backend) -> float | None:
    """Return the mean absolute error of the rates against the emulator; None if exact."""
    if Feature.EXACT in backend.support:
        return None
    exact = run_spikes(run.spiking, x, SimulationSettings(steps=run.steps))
    gaps = [np.abs(run.rates[name] - rates).ravel() for name, rates in exact.rates.items()]
    return float(np.concatenate(gaps).mean())


def accuracy_of(drive: Array, y: Ints) -> float:
    """Return the fraction of samples whose largest drive is that of their class."""
    return float((drive.argmax(axis=1) == y).mean())


def rates_on(model: TrainedNetwork, on: str, x: Array) -> tuple[Mapping[str, Array], Array]:
    """Return the rates by layer and the drive of the output, computed by torch or NumPy."""
    network, damping = model.network, model.damping
    if on == "numpy":
        found = equilibria(network, model.params, x, damping=damping, ops=NumpyOps())
    else:
        ops = array_ops.TorchOps()
        params = {name: ops.from_numpy(value) for name, value in model.params.items()}
        found = infer_in_chunks(ops, network, params, x, damping=damping)
    return found.state, found.drive


def no_spikes() -> dict[str, Any]:
    """Return the fields of an evaluation that only spikes have, all empty."""
    names = ("code", "bits", "steps", "input", *EVENTS, "error_to_reference", "overflows")
    return {**dict.fromkeys(names), "warnings": []}


@dataclass(frozen=True, slots=True)
class Outputs:
    """Rates by layer and drive of the output, by a rate network or a simulator."""

    on: str
    rates: Mapping[str, Array]
    drive: Array
    seconds: float
    """Wall-clock time without compilation."""
    compile_seconds: float = 0.0
    spikes: Mapping[str, Any] = field(default_factory=no_spikes)
    """Fields of the evaluation that only spikes have."""


def rate_outputs(model: TrainedNetwork, on: str, x: Array) -> Outputs:
    """Return the outputs of the rate network, computed by torch or NumPy."""
    began = time.perf_counter()
    rates, drive = rates_on(model, on, x)
    return Outputs(on, rates, drive, time.perf_counter() - began)


def spike_outputs(spiking: LoweredNetwork, x: Array, settings: SimulationSettings) -> Outputs:
    """Return the outputs of a simulator, and what only spikes have."""
    backend, began = load_backend(settings.on), time.perf_counter()
    with compile_timer() as compilation:
        run = run_spikes(spiking, x, settings)
    seconds = time.perf_counter() - began - compilation.seconds
    spikes = {
        "code": spiking.code,
        "bits": spiking.bits,
        "steps": run.steps,
        "input": spiking.input.name,
        **event_stats(run),
        "error_to_reference": error_to_reference(run, x, backend),
        "overflows": None if spiking.bits is None else run.overflows,
        "warnings": warnings_of(spiking, run.steps),
    }
    return Outputs(backend.name, run.rates, run.drive, seconds, compilation.seconds, spikes)


def evaluate(
    model: TrainedNetwork,
    split: Split,
    settings: SimulationSettings = ON_RATES,
    *,
    code: str | Code = "rate",
    bits: int | None = None,
    input: str | InputCoding = "current",  # noqa: A002
) -> Evaluation:
    """Evaluate a model on a split, see `Model.evaluate`."""
    on = settings.on
    if isinstance(on, str) and on not in RATES and on not in BACKENDS:
        raise UnknownNameError("backend", on, (*RATES, *BACKENDS))
    spiking = None
    if isinstance(on, str) and on in RATES:
        check_rates(on, None, bits)
    else:
        settings = replace(settings, on=load_backend(on))
        spiking = lower_network(model.network, model.params, code=code, bits=bits, input=input)
    parts = split.parts(samples_compared(model.network))
    with nullcontext() if spiking else rate_deadline(settings.deadline):
        return join([evaluate_part(model, spiking, part, settings) for part in parts])


def evaluate_part(
    model: TrainedNetwork, spiking: LoweredNetwork | None, part: Split, settings: SimulationSettings
) -> Evaluation:
    """Evaluate samples that are compared with the float64 rates at once."""
    exact = equilibria(model.network, model.params, part.x, damping=model.damping)
    if spiking is None:
        outputs = rate_outputs(model, str(settings.on), part.x)
        settings.report(len(part))
    else:
        outputs = spike_outputs(spiking, part.x, settings)
    return Evaluation(
        on=outputs.on,
        samples=len(part),
        accuracy=accuracy_of(outputs.drive, part.y),
        rate_accuracy=accuracy_of(exact.drive, part.y),
        **agreement(model.network, (exact.state, exact.drive), (outputs.rates, outputs.drive)),
        **outputs.spikes,
        seconds=outputs.seconds,
        compile_seconds=outputs.compile_seconds,
    )


RATES_COMPARED = 20_000_000
"""Most rates that are compared with those in float64 at once, to limit memory."""
AVERAGED = ("accuracy", "rate_accuracy", "agreement", "error_to_reference", *EVENTS)
"""Fields of an evaluation that are means over samples."""


def samples_compared(network: Network) -> int:
    """Return the number of samples whose rates are compared at once."""
    return max(16, RATES_COMPARED // sum(layer.size for layer in network.moving))


def join(parts: Sequence[Evaluation]) -> Evaluation:
    """Merge the evaluations of parts; `pearson` and `p999` are those of the first."""
    if len(parts) == 1:
        return parts[0]
    sizes = [part.samples for part in parts]
    first, samples = parts[0], sum(sizes)

    def mean(values: Sequence[float]) -> float:
        return sum(n * value for n, value in zip(sizes, values, strict=True)) / samples

    means: dict[str, Any] = {
        key: mean([getattr(part, key) for part in parts])
        for key in AVERAGED
        if getattr(first, key) is not None
    }
    return replace(
        first,
        samples=samples,
        rmse=mean([part.rmse**2 for part in parts]) ** 0.5,
        overflows=None if first.overflows is None else sum(p.overflows or 0 for p in parts),
        seconds=sum(part.seconds for part in parts),
        compile_seconds=sum(part.compile_seconds for part in parts),
        **means,
    )
