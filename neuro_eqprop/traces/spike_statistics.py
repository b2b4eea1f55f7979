"""Statistics of spike trains, and the energy along settling.

ISI CV and Fano factor are computed by Elephant if it is installed, else by this module;
`computed_by` names the package. Tests show that both agree. The van Rossum distance, also tested
against Elephant, is always computed by this module, which is fifty times as fast.

For a layer in a phase, over its units and samples:

    mean rate    spikes per second
    ISI CV       standard deviation of the intervals between spikes / their mean, of each unit in
                 each sample with three spikes or more; their mean. 0 is regular, 1 is Poisson
    Fano factor  variance / mean of the spike counts of a unit over the repeats of a stimulus; mean
                 over units that fired and stimuli. None without repeats
    noise        Pearson correlation of the counts of two units over the repeats of a stimulus; mean
                 of all pairs that vary and of the stimuli with three repeats or more
    signal       the same over stimuli, of the mean counts: the similarity of tuning, with three
                 stimuli or more
    balance      -I / E, the sum of input through negative weights over that through positive ones
    van Rossum   sqrt(int (f - g)^2 dt / tau) of two trains filtered by exp(-t / tau) (van Rossum
                 2001), of each unit in each sample; their mean over the pairs that are not both
                 silent
    SPIKE        distance of two trains (Kreuz et al. 2013), averaged over time; mean as above
    lag          time by which the second trace fires later: the largest cross-correlation of the
                 trains, summed over units and samples

Samples with the same input are repeats of a stimulus.

No interval spans two samples. Intervals are taken within a phase.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import Array, Bits, Ints
from neuro_eqprop.dynamics.energy import energy
from neuro_eqprop.simulators.recordings import TraceData
from neuro_eqprop.training.trained import TrainedNetwork

LEAST_SPIKES = 3
"""Smallest number of spikes of a train whose ISI CV is computed."""
MAX_UNITS = 200
"""Largest number of units of a layer whose counts are correlated."""


@dataclass(frozen=True, slots=True)
class SpikeStatistics:
    """Statistics of a layer in a phase; None where a value is not defined."""

    layer: str
    phase: str
    mean_rate: float
    """In hertz."""
    isi_cv: float | None
    fano_factor: float | None
    noise_correlation: float | None
    signal_correlation: float | None
    balance: float | None
    computed_by: str
    """The package of ISI CV and Fano factor: "elephant" with its version, or "neuro_eqprop"."""

    def to_json(self) -> dict[str, Any]:
        """Fields as JSON."""
        return asdict(self)


@cache
def elephant() -> ModuleType | None:
    """Elephant's statistics; None where it is not installed or cannot be imported."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return import_module("elephant.statistics")
    except ImportError:
        return None


def computed_by() -> str:
    """The package that computes ISI CV and Fano factor."""
    return "neuro_eqprop" if elephant() is None else f"elephant {version('elephant')}"


def spike_statistics(trace: TraceData) -> list[SpikeStatistics]:
    """Statistics of every layer with recorded spikes in every phase."""
    return [
        layer_statistics(trace, layer, phase.name)
        for layer in trace.spikes
        for phase in trace.schedule
    ]


def layer_statistics(trace: TraceData, layer: str, phase: str) -> SpikeStatistics:
    """Statistics of a layer in a phase."""
    start, _, stop = trace.span(phase)
    fired = raster(trace, layer)[:, start:stop]
    counts, stimuli = fired.sum(axis=1), repeats(trace.inputs)
    seconds = (stop - start) * trace.step_seconds
    return SpikeStatistics(
        layer,
        phase,
        float(counts.mean() / seconds),
        mean_or_none(interval_variation(fired)),
        mean_or_none(np.concatenate([fano_factors(counts[rows]) for rows in stimuli])),
        mean_or_none(
            np.array([r for rows in stimuli if (r := count_correlation(counts[rows])) is not None])
        ),
        count_correlation(np.stack([counts[rows].mean(axis=0) for rows in stimuli])),
        balance(trace, layer, phase),
        computed_by(),
    )


def raster(trace: TraceData, layer: str) -> Ints:
    """Whether each unit fired in each step (samples, steps, units)."""
    train = trace.spikes[layer]
    found: Ints = np.zeros((len(trace.index) * trace.steps, train.size), dtype=np.int64)
    found[np.asarray(train.step), np.asarray(train.unit)] = 1
    return found.reshape(len(trace.index), trace.steps, train.size)


def interval_variation(fired: Ints) -> Array:
    """Coefficient of variation of the intervals of every train with enough spikes."""
    trains = [
        np.flatnonzero(sample[:, unit])
        for sample in fired
        for unit in np.flatnonzero(sample.sum(axis=0) >= LEAST_SPIKES)
    ]
    if not trains:
        return np.zeros(0)
    # All trains at once: rows of spike times, filled up with NaN.
    times = np.full((len(trains), max(map(len, trains))), np.nan)
    for row, train in zip(times, trains, strict=True):
        row[: len(train)] = train
    theirs = elephant()
    if theirs is not None:
        return np.asarray(theirs.cv(theirs.isi(times, axis=1), axis=1, nan_policy="omit"))
    gaps = np.diff(times, axis=1)
    return np.asarray(np.nanstd(gaps, axis=1) / np.nanmean(gaps, axis=1))


def repeats(inputs: Array) -> list[Ints]:
    """The samples with the same input, for each input."""
    _, stimulus = np.unique(np.asarray(inputs), axis=0, return_inverse=True)
    return [np.flatnonzero(stimulus.ravel() == k) for k in range(int(stimulus.max()) + 1)]


def fano_factors(counts: Ints) -> Array:
    """Fano factor of every unit that fired, over the repeats of a stimulus."""
    mean = counts.mean(axis=0)
    active = mean > 0
    if len(counts) < 2:
        return np.zeros(0)
    theirs = elephant()
    if theirs is not None:  # it takes spike trains, of which it uses only the lengths
        trains = [[range(count) for count in unit] for unit in counts.T[active]]
        return np.array([theirs.fanofactor(each) for each in trains])
    return np.asarray(counts.var(axis=0)[active] / mean[active])


def count_correlation(counts: Array | Ints) -> float | None:
    """Mean correlation over rows of the counts of all pairs of units that vary."""
    varying = counts[:, counts.std(axis=0) > 0][:, :MAX_UNITS]
    if len(counts) < 3 or varying.shape[1] < 2:
        return None
    pairs = np.corrcoef(varying.T)[np.triu_indices(varying.shape[1], 1)]
    return float(pairs.mean())


def balance(trace: TraceData, layer: str, phase: str) -> float | None:
    """-I / E of the synaptic input of a layer from layers with recorded rates, and the input."""
    excitation = inhibition = 0.0
    for name, weights in trace.weights.items():
        source, target = name.split("->")
        if target != layer or weights.before.ndim != 2:
            continue
        if source in trace.layers_with_rates:
            pre = trace.rate(source, phase)
        elif trace.inputs.shape[1] == weights.before.shape[1]:
            pre = trace.inputs
        else:
            continue
        excitation += float((pre @ np.maximum(weights.before, 0).T).sum())
        inhibition += float((pre @ np.minimum(weights.before, 0).T).sum())
    return -inhibition / excitation if excitation > 0 else None


def mean_or_none(values: Array) -> float | None:
    """The mean; None without values."""
    return float(values.mean()) if len(values) else None


@dataclass(frozen=True, slots=True)
class TrainAgreement:
    """How the trains of a layer differ in two traces; None where both are silent."""

    layer: str
    van_rossum: float | None
    spike_distance: float | None
    lag: float | None
    """In seconds; above zero if the second trace fires later."""
    pairs: int
    """Trains compared: of each unit in each sample."""
    silent: int
    """Further pairs that are silent in both traces, which are left out."""

    def to_json(self) -> dict[str, Any]:
        """Fields as JSON."""
        return asdict(self)


def compare_trains(a: TraceData, b: TraceData, layer: str, *, tau: float) -> TrainAgreement:
    """Distances and lag of the trains of a layer in two traces; tau in seconds."""
    if layer not in a.spikes or layer not in b.spikes:
        raise ValueError(f"the spikes of {layer!r} are not in both traces")
    pairs = list(zip(spike_times(a, layer), spike_times(b, layer), strict=True))
    firing = [(p, q) for p, q in pairs if len(p) or len(q)]
    stop = min(a.steps, b.steps) * a.step_seconds
    distances = np.array([train_distance(p, q, tau) for p, q in firing])
    dissimilar = np.array([spike_distance(p, q, stop) for p, q in firing])
    return TrainAgreement(
        layer,
        mean_or_none(distances),
        mean_or_none(dissimilar),
        lag(raster(a, layer), raster(b, layer), a.step_seconds) if firing else None,
        len(firing),
        len(pairs) - len(firing),
    )


def lag(a: Ints, b: Ints, step: float) -> float | None:
    """Time by which b fires later, by the largest sum of the trains' cross-correlations."""
    steps = min(a.shape[1], b.shape[1])
    size = 2 * steps
    sides = [np.fft.rfft(fired[:, :steps], n=size, axis=1) for fired in (a, b)]
    correlation = np.fft.irfft((np.conj(sides[0]) * sides[1]).sum(axis=(0, 2)), n=size)
    if not np.rint(correlation).any():
        return None
    best = int(np.argmax(np.rint(np.fft.fftshift(correlation)))) - steps
    if np.rint(correlation[0]) == np.rint(correlation).max():
        best = 0
    return float(best * step)


def spike_distance(p: Array, q: Array, stop: float, points: int = 200) -> float:
    """SPIKE distance of two trains of spike times from 0 to `stop`, averaged over time.

    At a time t, the spikes before and after it in each train have distances d to the nearest spike
    of the other train. With x the time from t to each of them and nu the interval between them,
    S_p = (d_before x_after + d_after x_before) / nu_p, and the distance is
    (S_p nu_q + S_q nu_p) / (2 mean(nu_p, nu_q)^2). Both ends of the time count as spikes.
    """
    times = (np.arange(points) + 0.5) * stop / points
    trains = [np.unique(np.r_[0.0, train, stop]) for train in (p, q)]
    parts, intervals = [], []
    for own, other in (trains, trains[::-1]):
        nearest = np.abs(own[:, None] - other[None, :]).min(axis=1)
        after = np.clip(np.searchsorted(own, times, side="right"), 1, len(own) - 1)
        before = after - 1
        interval = own[after] - own[before]
        weighted = nearest[before] * (own[after] - times) + nearest[after] * (times - own[before])
        parts.append(weighted / interval)
        intervals.append(interval)
    mean = (intervals[0] + intervals[1]) / 2
    return float(np.mean((parts[0] * intervals[1] + parts[1] * intervals[0]) / (2 * mean**2)))


def spike_times(trace: TraceData, layer: str) -> list[Array]:
    """Times of the spikes of every unit in every sample, in seconds from its start."""
    fired = raster(trace, layer)
    return [trace.time[sample[:, unit] != 0] for sample in fired for unit in range(sample.shape[1])]


def train_distance(p: Array, q: Array, tau: float) -> float:
    """Van Rossum distance of two trains of spike times, in seconds."""

    def overlap(x: Array, y: Array) -> float:
        return float(np.exp(-np.abs(x[:, None] - y[None, :]) / tau).sum())

    # With Elephant's normalisation, a train of one spike is at the distance 1 from silence.
    squared = overlap(p, p) + overlap(q, q) - 2 * overlap(p, q)
    return float(np.sqrt(max(0.0, squared)))


def counted_steps(trace: TraceData) -> Bits:
    """The steps in which rates are known: in later phases, spikes are counted over a window."""
    known = np.ones(trace.steps, dtype=bool)
    if any(kind.binary for kind in trace.kinds.values()):
        for phase in trace.schedule[1:]:
            start, _, _ = trace.span(phase.name)
            known[start : start + phase.window - 1] = False
    return known


def settling_energy(model: TrainedNetwork, trace: TraceData) -> Array:
    """E of the network at every step of every sample (samples, steps), for rates and spikes.

    The state is the recorded rate, or for spikes the rate as if the phase had ended there. E is
    that of `neuro_eqprop.dynamics.energy`, without the nudge.
    """
    layers = [layer.name for layer in model.network.moving]
    lacking = [name for name in layers if name not in trace.layers_with_rates]
    if lacking:
        raise ValueError(f"the trace lacks the rates of {', '.join(lacking)}")
    states: Mapping[str, Array] = {
        name: np.concatenate([trace.running_rate(name, p) for p in trace.phases], axis=1)
        for name in layers
    }
    params = {name: np.asarray(value, dtype=np.float64) for name, value in model.params.items()}
    shapes = {layer.name: layer.shape for layer in model.network.moving}
    limits = {name: 1.0 if trace.kinds[name].spikes else np.inf for name in layers}
    steps = []
    for step in range(trace.steps):
        state = {
            name: np.clip(values[:, step], -limits[name], limits[name]).reshape(-1, *shapes[name])
            for name, values in states.items()
        }
        steps.append(energy(model.network, params, np.asarray(trace.inputs), state))
    return np.stack(steps, axis=1)
