"""Run samples through the phases of a schedule, as spikes or as rates, and record them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.data import one_hot
from neuro_eqprop.dynamics.field import Field, State, field
from neuro_eqprop.dynamics.schedules import DT, Schedule, free_only, tail, three_phase
from neuro_eqprop.dynamics.solve import Damped
from neuro_eqprop.files.deadlines import check as check_deadline
from neuro_eqprop.networks.architectures.normalized import folded
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.operators import Dense
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.runs import checkpoint
from neuro_eqprop.runs.environment import versions
from neuro_eqprop.runs.event_stats import warnings_of
from neuro_eqprop.runs.request_size import (
    check_rates,
    check_simulation,
    rate_deadline,
    simulation_deadline,
)
from neuro_eqprop.runs.simulation import add_counts, total_steps
from neuro_eqprop.runs.simulation_settings import (
    FREE_IN_MEMORY,
    ON_EMULATOR,
    RecordingSettings,
    SampleCallback,
    SimulationSettings,
    no_progress,
)
from neuro_eqprop.runs.workers import has_random_spikes, run_shards, shard_size
from neuro_eqprop.simulators.base import (
    Result,
    TimedPhases,
    concatenate,
    kinds,
    step_seconds,
    tally,
)
from neuro_eqprop.simulators.recordings import (
    Counts,
    MemorySink,
    Origin,
    Record,
    Recording,
    RecordingPlan,
    Sink,
    parse_record,
)
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.spiking.activity import ActivityKind
from neuro_eqprop.spiking.lowered import LoweredNetwork
from neuro_eqprop.traces.file import Writer
from neuro_eqprop.traces.lazy import read
from neuro_eqprop.traces.synapse_history import SynapseRecorder
from neuro_eqprop.traces.trace import Trace
from neuro_eqprop.training.trained import TrainedNetwork

if TYPE_CHECKING:
    from neuro_eqprop.runs.update_fidelity import ConnectionFidelity

RATE_DAMPING = 0.5
"""Damping factor of recorded rates: all layers move at once, as spikes do."""
EVERYWHERE_0_TO_1: Mapping[str, tuple[float, float]] = {}
"""Ranges of rates where firing never and in every step stand for 0 and 1 in all layers."""
RATE_STEPS = 64
"""Default steps of each phase of recorded rates."""


@dataclass(frozen=True, repr=False)
class RecordedRun:
    """A finished recording, in memory or in a file."""

    plan: RecordingPlan
    recordings: tuple[Recording, ...]
    counts: Mapping[tuple[str, str], Counts]
    input_counts: Counts
    """Events of the input populations, which are not part of the trace."""
    path: Path | None
    seconds: float
    spiking: LoweredNetwork | None = None
    """None for rates."""
    fidelity: tuple[ConnectionFidelity, ...] = ()
    """Cosines of the updates of a run with nudged phases."""

    def __repr__(self) -> str:
        phases = ", ".join(phase.name for phase in self.plan.schedule)
        where = "in memory" if self.path is None else f"in {self.path}"
        return (
            f"RecordedRun({len(self.plan.index)} samples on {self.plan.origin.backend}, "
            f"{phases}, {self.steps} steps each, {where})"
        )

    @property
    def steps(self) -> int:
        """Steps of the free phase."""
        return int(self.plan.schedule[0].steps / self.plan.origin.steps_per_spike)

    def to_json(self) -> dict[str, Any]:
        """Return the fields of `simulate --json`."""
        spiking, path = self.spiking, self.path
        return {
            "traces": None if path is None else str(path),
            "on": self.plan.origin.backend,
            "code": None if spiking is None else spiking.code,
            "bits": None if spiking is None else spiking.bits,
            "samples": len(self.plan.index),
            "steps": self.steps,
            "phases": [phase.name for phase in self.plan.schedule],
            "recorded": self.recorded,
            "most_bytes": self.plan.most_bytes,
            "input": None if spiking is None else spiking.input.name,
            "input_spikes": self.input_counts.spikes,
            "input_synops": self.input_counts.synops,
            "fidelity": [each.to_json() for each in self.fidelity],
            "warnings": [] if spiking is None else warnings_of(spiking, self.steps),
            "bytes": None if path is None else path.stat().st_size,
            "seconds": self.seconds,
        }

    @cached_property
    def trace(self) -> Trace:
        """The trace, read from the file if there is one."""
        if self.path is not None:
            return read(self.path)
        return Trace.from_recordings(self.plan, self.recordings, self.counts)

    @property
    def recorded(self) -> list[str]:
        """Recorded variables, sorted: "hidden:spikes", "hidden->output[3,17]:hebbian"."""
        record = self.plan.record
        synapses = {
            name: ";".join(f"{target},{source}" for target, source in each)
            for name, each in record.hebbian.items()
        }
        return sorted(
            [f"{name}:spikes" for name in record.spikes]
            + [f"{name}:{variable}" for name, variable in record.signals]
            + [f"{name}[{each}]:hebbian" for name, each in synapses.items()]
        )


Work = Callable[[Sink], Mapping[tuple[str, str], Counts]]
"""Runs the samples, passes recordings to the sink, and returns the counts of all populations."""


def record_spikes(
    model: TrainedNetwork,
    spiking: LoweredNetwork,
    x: npt.ArrayLike,
    y: npt.ArrayLike | None = None,
    recording: RecordingSettings = FREE_IN_MEMORY,
    settings: SimulationSettings = ON_EMULATOR,
) -> RecordedRun:
    """Record samples of a model as spikes on a simulator, see `SpikingModel.record`."""
    settings.check()
    backend, shared = load_backend(settings.on), settings.shared
    spiking = spiking.with_nudge() if recording.phases else spiking
    network, rows = spiking.network, model.samples(x)
    realise = getattr(backend, "realise", None)
    network = network if realise is None else realise(network)
    schedule = spiking.schedule(settings.steps, beta=model.beta if recording.phases else None)
    if recording.phases and settings.steps is None and isinstance(backend, TimedPhases):
        lengths = backend.phase_lengths()
        steps = lengths.settle + lengths.window
        part = lengths.window / steps
        schedule = three_phase(beta=model.beta, free=steps, nudged=steps, part=part)
    work = len(rows) * total_steps(schedule)
    check_simulation(backend.name, network, len(rows), total_steps(schedule))
    substeps = int(getattr(backend, "substeps", 1))
    outside, known = spiking.input_populations, kinds(network)
    chosen = {str(request).rpartition(":")[0] for request in recording.record}
    outside = outside - chosen  # the input is recorded on request
    sizes = {p.name: p.size for p in network.populations if p.name not in outside}
    lowered: dict[str, Array] = {}
    for projection in network.projections:
        lowered.setdefault(projection.name, projection.weight)
    plan = make_plan(
        model,
        (rows, classes_of(model, rows, y)),
        refined(schedule, substeps),
        {name: known[name] for name in sizes},
        origin=origin_of(
            backend.name,
            seed=model.seed,
            digest=network.digest,
            seconds=step_seconds(backend, network),
            substeps=substeps,
            ranges=spiking.rate_ranges,
        ),
        sizes=sizes,
        weights={n: lowered.get(n, spiking.params[n]) for n in dense_connections(spiking.rate)},
        record=recording.record,
    )
    target = one_hot(plan.label, model.network.output.size) if recording.phases else None
    stimulus = spiking.encode(rows, target)
    # In this process the samples run at once, and random spikes depend on their place in a shard.
    shared = shared.here(backend) if has_random_spikes(network) else shared
    whole = shared.in_process(backend)
    size = len(rows) if whole else shard_size(backend, network, len(rows), shared)
    parts = [stimulus.take(start, start + size) for start in range(0, len(rows), size)]

    results: list[Result] = []

    def run_samples(sink: Sink) -> Mapping[tuple[str, str], Counts]:
        counts: dict[tuple[str, str], Counts] = {}
        with simulation_deadline(backend.name, network, work, settings.deadline):
            for part, result in run_shards(
                backend, network, schedule, parts, shared=shared, record=plan.record, sink=sink
            ):
                add_counts(counts, tally(network, part, schedule, result))
                results.append(result)
        return counts

    recorded = carry_out(plan, run_samples, recording, settings.progress)
    fidelity: tuple[ConnectionFidelity, ...] = ()
    if target is not None:
        # Settles rates with rules that import torch, which a free phase does not need.
        from neuro_eqprop.runs.update_fidelity import update_fidelity

        whole_result = concatenate(results)
        samples = (rows, target)
        fidelity = update_fidelity(spiking, whole_result, samples, schedule, backend=backend)
    return replace(recorded, spiking=spiking, fidelity=fidelity)


def refined(schedule: Schedule, substeps: int) -> Schedule:
    """Return the schedule with each step divided into `substeps` recorded steps."""
    return tuple(
        replace(phase, steps=phase.steps * substeps, window=phase.window * substeps)
        for phase in schedule
    )


def record_rates(
    model: TrainedNetwork,
    x: npt.ArrayLike,
    y: npt.ArrayLike | None = None,
    recording: RecordingSettings = FREE_IN_MEMORY,
    *,
    steps: int | None = None,
    tail_fraction: float | None = None,
    progress: SampleCallback | None = None,
) -> RecordedRun:
    """Record samples as rates that settle step by step, see `Model.record`.

    `tail_fraction` is the fraction of a phase that the trace marks as its window. It does not
    change the rate of a phase, which is that of its last step.
    """
    network, rows = model.network, model.samples(x)
    params = {name: value.astype(np.float64) for name, value in model.params.items()}
    # A normalization is part of the weights, as in spikes: synapses then see the recorded input.
    network, params = folded(network, params) or (network, params)
    beta, steps = model.beta if recording.phases else None, RATE_STEPS if steps is None else steps
    plan = make_plan(
        model,
        (rows, classes_of(model, rows, y)),
        rate_schedule(steps, beta, tail_fraction),
        {layer.name: ActivityKind.RATE for layer in network.moving},
        origin=origin_of("rate", seed=model.seed, digest=checkpoint.digest(model)),
        sizes={layer.name: layer.size for layer in network.moving},
        weights={name: params[name] for name in dense_connections(network)},
        record=recording.record,
    )
    target = one_hot(plan.label, network.output.size)

    def settle_samples(sink: Sink) -> Mapping[tuple[str, str], Counts]:
        free = field(NumpyOps(), network, params, plan.inputs)
        with rate_deadline(None):
            for k, seen in enumerate(settle(free, target, plan.schedule, plan.record)):
                sink.sample(k, seen)
        return {}

    return carry_out(plan, settle_samples, recording, progress)


def rate_schedule(steps: int, beta: float | None, part: float | None = None) -> Schedule:
    """Return a free phase and, if `beta` is given, two nudged phases of the same length."""
    keywords = {} if part is None else {"part": part}
    if beta is None:
        return free_only(steps=steps, window=tail(steps, **keywords))
    return three_phase(beta=beta, free=steps, nudged=steps, **keywords)


def classes_of(model: TrainedNetwork, x: Array, y: npt.ArrayLike | None) -> Ints:
    """Check and return the class numbers y (samples,); predict them if y is None."""
    if y is None:
        return model.predict(x)
    labels, classes = np.asarray(y), model.network.output.size
    if labels.shape != (len(x),) or labels.dtype.kind not in "iu":
        raise ValueError(f"y has shape {labels.shape}, type {labels.dtype}; give {len(x)} integers")
    if len(labels) and not 0 <= labels.min() <= labels.max() < classes:
        raise ValueError(f"y holds labels outside 0..{classes - 1}")
    return labels.astype(np.int64)


def make_plan(
    model: TrainedNetwork,
    samples: tuple[Array, Ints],
    schedule: Schedule,
    activity: Mapping[str, ActivityKind],
    *,
    origin: Origin,
    sizes: Mapping[str, int],
    weights: Mapping[str, Array],
    record: Iterable[str],
) -> RecordingPlan:
    """Plan the contents of the trace before the run."""
    x, label = samples
    if not len(x):
        raise ValueError("x holds no samples; a recording needs at least one")
    check_rates(len(x), total_steps(schedule), sum(sizes.values()))
    requests = (record,) if isinstance(record, str) else record
    return RecordingPlan(
        origin,
        schedule,
        activity,
        sizes,
        tuple(weights),
        np.arange(len(x)),
        label,
        x,
        parse_record(requests, activity, ranking_weights(model.network, weights, x)),
        weights,
        targets=one_hot(label, model.network.output.size),
    )


def carry_out(
    plan: RecordingPlan, work: Work, recording: RecordingSettings, progress: SampleCallback | None
) -> RecordedRun:
    """Run the samples of a plan, and store the recordings in memory or in a file."""
    began, path = time.perf_counter(), None if recording.out is None else Path(recording.out)
    recording.announce(plan)
    memory, progress = MemorySink(), progress or no_progress
    if path is None:
        counts = work(SynapseRecorder(CountingSink(memory, progress), plan))
    else:
        with Writer(path, plan, overwrite=recording.force) as writer:
            counts = work(SynapseRecorder(CountingSink(writer, progress), plan))
            writer.counts({key: each for key, each in counts.items() if key[0] in plan.sizes})
    inside = {key: each for key, each in counts.items() if key[0] in plan.sizes}
    outside = sum((each for key, each in counts.items() if key not in inside), Counts())
    seconds = time.perf_counter() - began
    return RecordedRun(plan, tuple(memory.recordings), inside, outside, path, seconds)


@dataclass(frozen=True, slots=True)
class CountingSink:
    """Sink that calls `progress` after each sample."""

    sink: Sink
    progress: SampleCallback

    def sample(self, index: int, recording: Recording) -> None:
        """Pass the recording to the wrapped sink."""
        self.sink.sample(index, recording)
        self.progress(1)


def origin_of(
    on: str,
    *,
    seed: int,
    digest: str,
    seconds: float = DT,
    substeps: int = 1,
    ranges: Mapping[str, tuple[float, float]] = EVERYWHERE_0_TO_1,
) -> Origin:
    """Return the provenance of a trace that is recorded now.

    A recorded step takes `seconds`; a unit with rate one fires once per `substeps` steps, and
    `ranges` are those of layers whose rates do not lie in 0..1.
    """
    return Origin(
        backend=on,
        network_hash=digest,
        versions=versions(),
        seed=seed,
        created=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        command=" ".join(["neuro-eqprop", *sys.argv[1:]]),
        step_seconds=seconds,
        steps_per_spike=float(substeps),
        rate_ranges=ranges,
    )


def ranking_weights(
    network: Network, weights: Mapping[str, Array], inputs: Array
) -> dict[str, Array]:
    """Return the weights by which the strongest synapses are chosen for recording.

    Input weights are scaled by the standard deviation of each feature, so that synapses from
    constant features are not chosen.
    """
    spread = inputs.std(axis=0)
    from_input = {c.name for c in network.connections if c.source == network.input.name}
    return {
        name: weight * spread if name in from_input and weight.ndim == 2 else weight
        for name, weight in weights.items()
    }


def dense_connections(network: Network) -> list[str]:
    """Return the names of the dense connections."""
    return [c.name for c in network.connections if isinstance(c.operator, Dense)]


def settle(free: Field, target: Array, schedule: Schedule, record: Record) -> list[Recording]:
    """Settle the rates through the phases, and record every step of each sample."""
    seen: dict[tuple[str, str], list[Array]] = {key: [] for key in record.signals}
    state = free.zero_state()
    for phase in schedule:
        nudged = free.nudged(target, phase.beta) if phase.beta else free
        for _ in range(phase.steps):
            check_deadline()
            state = Damped(RATE_DAMPING).step(nudged, state)
            append_signals(nudged, state, record, seen)
    courses = {key: np.stack(steps, axis=1) for key, steps in seen.items()}
    return [
        Recording({}, {key: course[k] for key, course in courses.items()})
        for k in range(free.batch)
    ]


def append_signals(
    at: Field, state: State, record: Record, seen: dict[tuple[str, str], list[Array]]
) -> None:
    """Append the recorded signals of a state to `seen`."""
    for name, variable in record.signals:
        value = state[name] if variable == "rate" else at.drive(name, state)
        seen[name, variable].append(np.reshape(value, (at.batch, -1)))
