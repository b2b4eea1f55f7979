"""Recording of rates and spikes: the request, the recording of a sample, and the whole trace.

A backend fills a `Recording` per sample and passes it to a `Sink`; a `RecordingPlan`
fixes before the first step what the run records; `TraceData` holds the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints, NamedDict, UnknownNameError, type_name
from neuro_eqprop.common.equality import Comparable
from neuro_eqprop.dynamics.schedules import DT, Schedule
from neuro_eqprop.simulators.synapse_recording import (
    COLUMNS,
    HEBBIAN,
    NO_SNAPSHOTS,
    Snapshots,
    Synapse,
    SynapseLog,
    Weights,
    check_synapse,
    concatenate,
    parse_synapses,
)
from neuro_eqprop.spiking.activity import ActivityKind

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, slots=True)
class Counts:
    """Event counts of a population in a phase, summed over the samples of a run."""

    steps: int = 0
    """Steps run, summed over samples."""
    spikes: int = 0
    """Binary or graded spikes sent."""
    synops: int = 0
    """Synaptic operations: spikes times the nonzero weights they reach."""
    updates_active: int = 0
    """Neuron updates that sent a spike."""
    updates_idle: int = 0
    """Neuron updates that sent none."""
    host_macs: int = 0
    """Multiply-accumulates on the host to compute the input currents."""
    weight_updates: int = 0
    """Weights into the population that learning changed."""
    tag_updates: int = 0
    """Tags of such weights that learning changed."""
    trace_updates: int = 0
    """Activity traces that learning changed."""

    def __add__(self, other: Counts) -> Counts:
        sums = (getattr(self, f.name) + getattr(other, f.name) for f in fields(self))
        return Counts(*sums)


@dataclass(frozen=True, slots=True)
class Record:
    """Variables to record: spikes by population, signals by (population, variable), synapses.

    Variables: `drive` of any population, `voltage` of a spiking one, `state` of a graded one,
    `rate` of a layer of rates. `hebbian` lists, by connection, the synapses whose history is kept.
    """

    spikes: frozenset[str] = frozenset()
    signals: frozenset[tuple[str, str]] = frozenset()
    hebbian: Mapping[str, tuple[Synapse, ...]] = field(default_factory=dict)


NOTHING = Record()

ALIASES = {"current": "drive"}
"""Other names of variables: the drive is the total current into a unit."""


def split_request(request: str, kinds: Mapping[str, ActivityKind]) -> tuple[str, str]:
    """Name and variable of a request `name:variable`."""
    if not isinstance(request, str):
        raise TypeError(f"record holds {request!r}; give strings such as 'hidden:drive'")
    name, colon, variable = request.rpartition(":")
    if not colon:
        known = [f"{each}:{v}" for each, kind in kinds.items() for v in kind.variables]
        raise UnknownNameError("signal to record (population:variable)", request, known)
    return name, ALIASES.get(variable, variable)


def check_requests(record: Iterable[str]) -> tuple[str, ...]:
    """What to record, in a tuple; a TypeError if it is no collection."""
    if isinstance(record, str) or not isinstance(record, Iterable):
        raise TypeError(f"record is {type_name(record)}; give a list such as ['hidden:drive']")
    return tuple(record)


def parse_record(
    requests: Iterable[str],
    kinds: Mapping[str, ActivityKind],
    weights: Mapping[str, Array] | None = None,
) -> Record:
    """The record that `requests` add to what the rates of all populations need.

    A request is `population:variable`, or `connection:hebbian` for a connection in `weights`.
    """
    chosen = {(name, kind.variables[0]) for name, kind in kinds.items()}
    synapses: dict[str, dict[Synapse, None]] = {}
    for request in check_requests(requests):
        name, variable = split_request(request, kinds)
        if "->" in name:
            if variable != HEBBIAN:
                raise UnknownNameError(f"variable of {name!r}", variable, (HEBBIAN,))
            connection, pairs = parse_synapses(name, weights or {})
            synapses.setdefault(connection, {}).update(dict.fromkeys(pairs))
            continue
        if name not in kinds:
            raise UnknownNameError("population to record (population:variable)", request, kinds)
        if variable == "voltage" and kinds[name].graded:
            variable = (
                "state"  # the integrated variable of a graded unit, which corresponds to a voltage
            )
        if variable == "rate":
            variable = kinds[name].variables[0]  # the rate of spikes is computed from them
        if variable not in kinds[name].variables:
            raise UnknownNameError(f"variable of {name!r}", variable, kinds[name].variables)
        chosen.add((name, variable))
    spikes = frozenset(name for name, variable in chosen if variable == "spikes")
    signals = frozenset(pair for pair in chosen if pair[1] != "spikes")
    return Record(spikes, signals, {name: tuple(pairs) for name, pairs in synapses.items()})


@dataclass(frozen=True, slots=True)
class Recording:
    """Recording of one sample: arrays (steps, units); spikes hold payloads, 0 for no spike."""

    spikes: Mapping[str, Array]
    signals: Mapping[tuple[str, str], Array]
    hebbian: Mapping[str, SynapseLog] = field(default_factory=dict)
    """By connection, the histories of the recorded synapses."""


class Sink(Protocol):
    """Receives the recordings of a run, sample by sample and in order."""

    def sample(self, index: int, recording: Recording) -> None:
        """Store the recording of sample `index`."""
        ...


@dataclass(frozen=True, slots=True)
class MemorySink:
    """A sink that keeps everything in a list."""

    recordings: list[Recording] = field(default_factory=list)

    def sample(self, index: int, recording: Recording) -> None:
        """Append the recording."""
        if index != len(self.recordings):
            raise ValueError(f"sample {index} arrived where {len(self.recordings)} was expected")
        self.recordings.append(recording)


@dataclass(frozen=True, slots=True)
class Origin:
    """Provenance of a trace."""

    backend: str
    network_hash: str
    versions: Mapping[str, str]
    seed: int
    created: str
    command: str
    step_seconds: float = DT
    """Duration of a step in seconds; a value recorded at step k has the time (k + 1/2) of it."""
    steps_per_spike: float = 1.0
    """Steps between spikes of a unit whose rate is one; above 1 if steps are finer."""
    rate_ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """By layer, the rates that stand for firing never and in every step, if not 0 and 1."""

    def __post_init__(self) -> None:
        for name in ("step_seconds", "steps_per_spike"):
            value = getattr(self, name)
            if not 0.0 < value < np.inf:
                raise ValueError(f"{name} is {value}; it must be above zero and finite")


@dataclass(frozen=True, slots=True)
class SpikeTrain:
    """Spikes of a population ordered by step; steps are numbered across samples."""

    step: Ints
    unit: Ints
    value: Array
    """Payload of each spike: 1 where binary."""
    size: int
    """Number of units of the population."""

    def __len__(self) -> int:
        return len(self.step)


RECORDED = {
    "spikes": "layer with recorded spikes",
    "signals": "recorded signal",
    "counts": "layer and phase",
    "weights": "connection with recorded weights",
    "hebbian": "connection with recorded synapses",
    "epochs": "metric of an epoch",
}
"""The mappings of a trace, and what their keys are."""


@dataclass(frozen=True, eq=False)
class TraceData(Comparable):
    """Recorded arrays of a run and the rates computed from them.

    Sample k occupies the steps k T to (k + 1) T, where T is the number of steps of all phases.
    """

    origin: Origin
    schedule: Schedule
    kinds: Mapping[str, ActivityKind]
    """By layer, how its rate is computed."""
    connections: tuple[str, ...]
    """Names "source->target"; a source that is not a recorded layer is the input."""
    index: Ints
    """Position of each sample in its data set."""
    label: Ints
    inputs: Array
    """Input data (samples, features)."""
    spikes: Mapping[str, SpikeTrain]
    signals: Mapping[tuple[str, str], Array]
    """Values (steps over all samples, units) by layer and variable."""
    counts: Mapping[tuple[str, str], Counts]
    """Event counts by layer and phase."""
    complete: bool = True
    """Whether the run ended normally; if not, the trace holds the samples finished so far."""
    weights: Mapping[str, Weights] = field(default_factory=dict)
    """By connection, before the run and after it."""
    hebbian: Mapping[str, SynapseLog] = field(default_factory=dict)
    """By connection, the histories of recorded synapses (steps over all samples, synapses)."""
    epochs: Mapping[str, Array] = field(default_factory=dict)
    """Metrics of a training run, one value per epoch; it records the same samples every epoch."""
    targets: Array | None = None
    """Targets (samples, classes) of the nudged phases; None if unknown."""
    snapshots: Snapshots = NO_SNAPSHOTS
    """Weights at chosen moments of a run that learns."""
    rule: Mapping[str, Array] = field(default_factory=dict)
    """Of a run that learns, the values of `RULE`."""

    def __post_init__(self) -> None:
        for name, kind in RECORDED.items():
            if type(found := getattr(self, name)) is dict:
                object.__setattr__(self, name, NamedDict(kind, found))

    @classmethod
    def from_recordings(
        cls,
        plan: RecordingPlan,
        recordings: Sequence[Recording],
        counts: Mapping[tuple[str, str], Counts],
        after: Mapping[str, Array] | None = None,
    ) -> Self:
        """Build a trace from recordings kept in memory; `after` holds the weights after the run."""
        spikes: dict[str, SpikeTrain] = {}
        for name in sorted(plan.record.spikes):
            each = [spike_train(r.spikes[name], k * plan.steps) for k, r in enumerate(recordings)]
            step, unit = (np.concatenate([getattr(t, f) for t in each]) for f in ("step", "unit"))
            value = np.concatenate([t.value for t in each])
            spikes[name] = SpikeTrain(step, unit, value, plan.sizes[name])
        signals = {
            key: np.concatenate([r.signals[key] for r in recordings])
            for key in sorted(plan.record.signals)
        }
        hebbian = {
            name: concatenate([r.hebbian[name] for r in recordings]) for name in plan.record.hebbian
        }
        return cls(
            plan.origin,
            plan.schedule,
            plan.kinds,
            plan.connections,
            plan.index,
            plan.label,
            plan.inputs,
            spikes,
            signals,
            counts,
            weights={n: Weights(w, (after or {}).get(n)) for n, w in plan.weights.items()},
            hebbian=hebbian,
            targets=plan.targets,
            rule=plan.rule,
        )

    def __len__(self) -> int:
        return len(self.index)

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the recorded layers (populations), from input to output."""
        return tuple(self.kinds)

    @property
    def phases(self) -> tuple[str, ...]:
        """Names of the phases in their order, such as free, negative, positive."""
        return tuple(phase.name for phase in self.schedule)

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.index)

    @property
    def steps(self) -> int:
        """Number of steps of one sample, over all phases."""
        return sum(phase.steps for phase in self.schedule)

    @property
    def step_seconds(self) -> float:
        """Duration of a step in seconds."""
        return self.origin.step_seconds

    @property
    def max_rate(self) -> float:
        """Firing rate in hertz of a unit whose rate is one."""
        return 1.0 / (self.origin.step_seconds * self.origin.steps_per_spike)

    @property
    def time(self) -> Array:
        """Middle of each step in seconds from the start of its sample, of shape (steps,)."""
        return (np.arange(self.steps, dtype=np.float64) + 0.5) * self.step_seconds

    @property
    def sizes(self) -> Mapping[str, int]:
        """Number of units of every layer with recorded spikes or signals."""
        found = {name: train.size for name, train in self.spikes.items()}
        found |= {name: values.shape[1] for (name, _), values in self.signals.items()}
        return {name: found[name] for name in self.kinds if name in found}

    def span(self, phase: str) -> tuple[int, int, int]:
        """First step of a phase within a sample, first step of its window, and its end."""
        start = 0
        for each in self.schedule:
            stop = start + each.steps
            if each.name == phase:
                return start, stop - each.window, stop
            start = stop
        raise UnknownNameError("phase", phase, self.phases)

    @property
    def layers_with_rates(self) -> tuple[str, ...]:
        """Layers whose rate can be computed from what was recorded."""
        rates = {name for name, variable in self.signals if variable == "rate"}
        return tuple(
            name
            for name, kind in self.kinds.items()
            if name in (self.spikes if kind.spikes else rates)
        )

    def time_course(self, layer: str) -> Array:
        """Activity of a layer at every step.

        Parameters
        ----------
        layer : str
            Name of a layer, one of `layers_with_rates`.

        Returns
        -------
        Array of shape (samples, steps, units)
            The rate, the spikes (0 or 1), or the running sum of graded spikes.

        """
        kind = self._kind(layer)
        if not kind.spikes:
            if (layer, "rate") not in self.signals:
                raise ValueError(f"the rate of {layer!r} was not recorded in this trace")
            values = self.signals[layer, "rate"]
            return values.reshape(len(self.index), self.steps, values.shape[-1])
        if layer not in self.spikes:
            raise ValueError(f"the spikes of {layer!r} were not recorded in this trace")
        train = self.spikes[layer]
        raster = np.zeros((len(self.index) * self.steps, train.size))
        raster[train.step, train.unit] = train.value
        return kind.course(raster.reshape(len(self.index), self.steps, train.size))

    def _kind(self, layer: str) -> ActivityKind:
        if layer not in self.kinds:
            raise UnknownNameError("layer", layer, self.kinds)
        return self.kinds[layer]

    def recording(self, sample: int) -> Recording:
        """Everything recorded of one sample, by its position in this trace."""
        first, stop = sample * self.steps, (sample + 1) * self.steps
        spikes: dict[str, Array] = {}
        for name, train in self.spikes.items():
            here = slice(*np.searchsorted(train.step, (first, stop)))
            spikes[name] = np.zeros((self.steps, train.size))
            spikes[name][train.step[here] - first, train.unit[here]] = train.value[here]
        hebbian = {name: log.part(slice(first, stop)) for name, log in self.hebbian.items()}
        return Recording(spikes, {key: v[first:stop] for key, v in self.signals.items()}, hebbian)

    def rate(self, layer: str, phase: str | None = None) -> Array:
        """Rate of every unit of a layer in a phase.

        Parameters
        ----------
        layer : str
            Name of a layer, one of `layers_with_rates`.
        phase : str, optional
            Name of a phase; the first one (free) unless given.

        Returns
        -------
        Array of shape (samples, units)
            For rates the last value of the phase; for spikes their mean over the window, the last
            part of the phase, times the steps from spike to spike at rate one (usually one); for
            graded spikes the mean of their running sum over the window.

        """
        kind = self._kind(layer)
        _, window, stop = self.span(phase or self.phases[0])
        course = self.time_course(layer)
        if not kind.spikes:
            return np.asarray(course[:, stop - 1])
        mean = course[:, window:stop].mean(axis=1)
        return self.decoded(layer, np.asarray(mean * self._scale(kind)))

    def running_rate(self, layer: str, phase: str) -> Array:
        """Rate as if the phase had ended at each of its steps (samples, steps, units)."""
        kind = self._kind(layer)
        start, window, stop = self.span(phase)
        course = self.time_course(layer)[:, start:stop]
        least = round(self.origin.steps_per_spike)
        running = running_rate(course, kind, stop - window, least)
        return self.decoded(layer, running * self._scale(kind))

    def decoded(self, layer: str, firing: Array) -> Array:
        """Rates of a layer from its firing rates, where those do not lie in the same range."""
        if layer not in self.origin.rate_ranges:
            return firing
        low, high = self.origin.rate_ranges[layer]
        return low + (high - low) * firing

    def _scale(self, kind: ActivityKind) -> float:
        """Factor from the mean of the recorded activity to the rate."""
        return self.origin.steps_per_spike if kind.binary else 1.0


Selected = TypeVar("Selected", bound=TraceData)


RULE = {
    "tau": ("step", "time constant of the traces of spiking units"),
    "batch": ("sample", "samples that share a commit"),
    "contrast": ("1", "of each phase, the factor c of its products"),
    "factor": ("1", "of each step, the factor of its product in the tag"),
    "rate": ("1", "learning rate of each sample"),
    "commit": ("1", "of each sample, whether the weights change after it (1 or 0)"),
    "eta": ("1", "of each sample: at a commit, w = keep w + eta tag"),
    "keep": ("1", "of each sample: below one if weights decay at a commit"),
}
"""What a learning run states of its rule: unit and meaning. `eta` and `keep` have a value for each
connection, under `eta/C`."""
FIXED_RULE = ("tau", "batch", "contrast", "factor")
"""Values of `RULE` that do not differ by sample."""


def rule_of(rule: Mapping[str, Array], rows: Ints | slice) -> dict[str, Array]:
    """The values of the rule for some samples."""
    return {
        name: np.asarray(values if name in FIXED_RULE else values[rows])
        for name, values in rule.items()
    }


def select_samples(trace: Selected, rows: Sequence[int]) -> Selected:
    """A trace in memory restricted to some samples, in the given order."""
    places = np.asarray(rows, dtype=np.int64)
    if np.array_equal(places, np.arange(len(trace.index))):
        return trace

    def kept(values: Array) -> Array:
        shaped = values.reshape(len(trace.index), trace.steps, -1)[places]
        return shaped.reshape(len(places) * trace.steps, -1)

    def spikes(train: SpikeTrain) -> SpikeTrain:
        limits = np.searchsorted(train.step, trace.steps * np.arange(len(trace.index) + 1))
        parts = [slice(limits[row], limits[row + 1]) for row in places]
        moved = [
            train.step[part] + trace.steps * (k - row)
            for k, (part, row) in enumerate(zip(parts, places, strict=True))
        ]
        unit, value = (
            np.concatenate([getattr(train, name)[part] for part in parts] or [np.zeros(0)])
            for name in ("unit", "value")
        )
        return SpikeTrain(np.concatenate(moved or [np.zeros(0)]), unit, value, train.size)

    return replace(
        trace,
        index=trace.index[places],
        label=trace.label[places],
        inputs=trace.inputs[places],
        targets=None if trace.targets is None else trace.targets[places],
        rule=rule_of(trace.rule, places),
        spikes={name: spikes(train) for name, train in trace.spikes.items()},
        signals={key: kept(values) for key, values in trace.signals.items()},
        hebbian={
            name: SynapseLog(log.synapses, *(kept(getattr(log, c)) for c in COLUMNS))
            for name, log in trace.hebbian.items()
        },
    )


def running_rate(course: Array, kind: ActivityKind, window: int, least: int = 1) -> Array:
    """Rate as if the phase had ended at each of its steps (samples, steps, units).

    Spikes are averaged over `least` steps or more: those in which a unit of rate one fires once.
    """
    if not kind.spikes:
        return course
    steps = course.shape[1]
    sums = np.concatenate([np.zeros_like(course[:, :1]), np.cumsum(course, axis=1)], axis=1)
    ends = np.arange(1, steps + 1)
    # Integer division, so that the last width equals the window exactly.
    widths = -(-ends * window // steps)
    over = np.maximum(widths, min(least, window))[:, None]
    return np.asarray((sums[:, ends] - sums[:, ends - widths]) / over)


LAYOUT_BYTES = 2**17
"""Upper bound of the size in bytes of a trace file without recorded data."""


@dataclass(frozen=True, slots=True)
class RecordingPlan:
    """Plan of a recording, fixed before the first step; fields as in `TraceData`."""

    origin: Origin
    schedule: Schedule
    kinds: Mapping[str, ActivityKind]
    sizes: Mapping[str, int]
    """Number of units of each population."""
    connections: tuple[str, ...]
    index: Ints
    label: Ints
    inputs: Array
    record: Record
    weights: Mapping[str, Array] = field(default_factory=dict)
    """By connection, before the run."""
    learns: bool = False
    """Whether the run changes the weights."""
    epochs: Mapping[str, str] = field(default_factory=dict)
    """Units of the metrics that a training run records every epoch, by name."""
    n_epochs: int = 0
    """Number of epochs of the training run."""
    targets: Array | None = None
    """Target values (samples, classes) of the nudged phases."""
    snapshots: tuple[int, ...] = ()
    """Numbers of learned samples after which all weights are recorded."""
    rule: Mapping[str, Array] = field(default_factory=dict)
    """Of a run that learns, the values of `RULE`."""

    def __post_init__(self) -> None:
        if set(self.kinds) != set(self.sizes):
            raise ValueError(f"kinds {sorted(self.kinds)} and sizes {sorted(self.sizes)} differ")
        names = [phase.name for phase in self.schedule]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"a trace needs phases, each with its own name, not {names}")
        if self.inputs.ndim != 2 or not len(self.index) == len(self.label) == len(self.inputs):
            raise ValueError("every sample needs an index, a label and a row of inputs")
        if self.targets is not None and self.targets.shape[:1] != self.index.shape:
            raise ValueError("every sample needs a row of targets")
        for name in {*self.record.spikes, *(name for name, _ in self.record.signals)}:
            if name not in self.kinds:
                raise UnknownNameError("population to record", name, self.kinds)
        for name, synapses in self.record.hebbian.items():
            if name not in self.weights:
                raise UnknownNameError("connection to record", name, self.weights)
            for synapse in synapses:
                check_synapse(name, synapse, self.weights[name])

    @property
    def steps(self) -> int:
        """Steps of one sample, over all phases."""
        return sum(phase.steps for phase in self.schedule)

    def event_types(self, population: str) -> dict[str, str]:
        """Smallest integer types that hold the spikes: compression time grows with the bytes."""
        return {
            "step": "i4" if self.steps * len(self.index) < 2**31 else "i8",
            "unit": "i2" if self.sizes[population] <= 2**15 else "i4",
            "value": "i1" if self.kinds[population].binary else "f8",
        }

    @property
    def fixed_bytes(self) -> int:
        """Size of what is written before the first sample: inputs, targets and weights."""
        weights = sum((1 + self.learns) * weight.nbytes for weight in self.weights.values())
        given = self.inputs.nbytes + (0 if self.targets is None else self.targets.nbytes)
        return LAYOUT_BYTES + given + weights + 8 * self.steps

    @property
    def most_bytes(self) -> int:
        """Upper bound of the uncompressed size: every unit sends a spike at every step."""
        cells = sum(8 * self.sizes[name] for name, _ in self.record.signals)
        events = sum(
            self.sizes[name] * sum(np.dtype(t).itemsize for t in self.event_types(name).values())
            for name in self.record.spikes
        )
        synapses = sum(40 * len(each) for each in self.record.hebbian.values())
        snapshots = len(self.snapshots) * sum(weight.nbytes for weight in self.weights.values())
        rows = (cells + events + synapses) * self.steps * len(self.index)
        return self.fixed_bytes + snapshots + rows


def spike_train(payload: Array, first: int) -> SpikeTrain:
    """Spikes of one sample, from payloads (steps, units); its first step is number `first`."""
    # Ten times as fast as np.nonzero of a two-dimensional float array; int32 divides faster than
    # int64.
    place, size = np.flatnonzero(payload != 0), payload.shape[1]
    short = place.astype(np.int32) if payload.size < 2**31 else place
    step = short // size
    unit = short - step * size
    return SpikeTrain(step.astype(np.int64) + first, unit, payload.ravel()[place], size)
