"""Run samples through the phases of a schedule, as spikes or as rates, and record them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import tee
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, Ints, check_callback
from neuro_eqprop.data import one_hot
from neuro_eqprop.dynamics.field import Field, State, field
from neuro_eqprop.dynamics.schedules import DT, Schedule, free_only, tail, three_phase
from neuro_eqprop.dynamics.solve import Damped
from neuro_eqprop.files.deadlines import check as check_deadline
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
from neuro_eqprop.runs.simulation import Simulation
from neuro_eqprop.runs.workers import (
    ALONE,
    Shared,
    has_random_spikes,
    run_shards,
    shard_size,
)
from neuro_eqprop.simulators.base import Backend, kinds, step_seconds, tally
from neuro_eqprop.simulators.recordings import (
    Counts,
    MemorySink,
    Origin,
    Plan,
    Record,
    Recording,
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

RATE_DAMPING = 0.5
"""Damping factor of recorded rates: all layers move at once, as spikes do."""
RATE_STEPS = 64
"""Default steps of each phase of recorded rates."""

SampleCallback = Callable[[int], None]
"""Called with the number of samples done since the last call."""
AnnounceCallback = Callable[[Plan], None]
"""Called with the recording plan before the first step."""


def no_progress(_: int) -> None:
    """No-op sample callback."""


def no_announcement(_: Plan) -> None:
    """No-op plan callback."""


def run_spikes(
    spiking: LoweredNetwork,
    x: Array,
    *,
    on: str | Backend,
    steps: int | None = None,
    progress: SampleCallback | None = None,
    shared: Shared = ALONE,
    deadline: float | None = None,
) -> Simulation:
    """Run samples (samples, features) in a free phase on a simulator, see `SpikingModel.run`."""
    shared.check()
    check_callback("progress", progress)
    began, backend, network = time.perf_counter(), load_backend(on), spiking.network
    schedule = spiking.schedule(steps)
    if not len(x):
        raise ValueError("x holds no samples; a run needs at least one")
    check_simulation(backend.name, network, len(x), total_steps(schedule))
    firing: dict[str, list[Array]] = {population.name: [] for population in network.populations}
    drive, overflows = list[Array](), 0
    counts: dict[tuple[str, str], Counts] = {}
    chunk = shard_size(backend, network, len(x), shared)
    stimuli, encoded = tee(spiking.encode(x[k : k + chunk]) for k in range(0, len(x), chunk))
    work = len(x) * total_steps(schedule)
    with simulation_deadline(backend.name, network, work, deadline):
        results = run_shards(backend, network, schedule, encoded, shared=shared)
        for stimulus, (result, _) in zip(stimuli, results, strict=True):
            add_counts(counts, tally(network, stimulus, schedule, result))
            # Copies, because a view would keep the whole result in memory.
            for name, parts in firing.items():
                parts.append(result.firing[name][:, 0].copy())
            drive.append(result.drive[network.output][:, 0].copy())
            overflows += sum(o.wraps + o.saturations for o in result.overflows.values())
            (progress or no_progress)(stimulus.samples)
            check_deadline()
    rates = spiking.layer_rates({name: np.concatenate(parts) for name, parts in firing.items()})
    return Simulation(
        spiking,
        backend.name,
        schedule,
        rates,
        np.concatenate(drive),
        counts,
        overflows,
        time.perf_counter() - began,
        x,
    )


def add_counts(
    counts: dict[tuple[str, str], Counts], more: Mapping[tuple[str, str], Counts]
) -> None:
    """Add the counts of further samples to `counts`."""
    for key, each in more.items():
        counts[key] = counts.get(key, Counts()) + each


@dataclass(frozen=True, slots=True)
class TraceOutput:
    """Destination and callbacks of a recording."""

    path: str | Path | None = None
    """Trace file, `.h5`; None keeps the recording in memory."""
    overwrite: bool = False
    progress: SampleCallback = no_progress
    announce: AnnounceCallback = no_announcement


IN_MEMORY = TraceOutput()
"""Keep the recording in memory, without callbacks."""


@dataclass(frozen=True, repr=False)
class RecordedRun:
    """A finished recording, in memory or in a file."""

    plan: Plan
    recordings: tuple[Recording, ...]
    counts: Mapping[tuple[str, str], Counts]
    input_counts: Counts
    """Events of the input populations, which are not part of the trace."""
    path: Path | None
    seconds: float
    spiking: LoweredNetwork | None = None
    """None for rates."""

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


def record_spikes(  # noqa: PLR0913 - those of `SpikingModel.record`
    model: TrainedNetwork,
    spiking: LoweredNetwork,
    x: npt.ArrayLike,
    y: npt.ArrayLike | None = None,
    *,
    on: str | Backend,
    steps: int | None = None,
    phases: bool = False,
    record: Iterable[str] = (),
    output: TraceOutput = IN_MEMORY,
    shared: Shared = ALONE,
    deadline: float | None = None,
) -> RecordedRun:
    """Record samples of a model as spikes on a simulator, see `SpikingModel.record`."""
    shared.check()
    backend = load_backend(on)
    spiking = spiking.with_nudge() if phases else spiking
    network, rows = spiking.network, model.samples(x)
    realise = getattr(backend, "realise", None)
    network = network if realise is None else realise(network)
    schedule = spiking.schedule(steps, beta=model.beta if phases else None)
    check_simulation(backend.name, network, len(rows), total_steps(schedule))
    substeps = int(getattr(backend, "substeps", 1))
    outside = spiking.input_populations
    sizes = {p.name: p.size for p in network.populations if p.name not in outside}
    known = kinds(network)
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
        ),
        sizes=sizes,
        weights={n: lowered.get(n, spiking.params[n]) for n in dense_connections(model.network)},
        record=record,
    )
    target = one_hot(plan.label, model.network.output.size) if phases else None
    stimulus = spiking.encode(rows, target)

    def work(sink: Sink) -> Mapping[tuple[str, str], Counts]:
        with simulation_deadline(
            backend.name, network, len(rows) * total_steps(schedule), deadline
        ):
            if shared.in_process(backend) or has_random_spikes(network):
                one = shared.threaded(backend)
                result = one.run(network, stimulus, schedule, record=plan.record, sink=sink)
                return tally(network, stimulus, schedule, result)
            return run_recorded(sink)

    def run_recorded(sink: Sink) -> Mapping[tuple[str, str], Counts]:
        counts: dict[tuple[str, str], Counts] = {}
        size = shard_size(backend, network, len(rows), shared)
        starts = range(0, len(rows), size)
        parts = [stimulus.take(start, start + size) for start in starts]
        results = run_shards(backend, network, schedule, parts, shared=shared, record=plan.record)
        for start, part, (result, recordings) in zip(starts, parts, results, strict=True):
            for k, recording in enumerate(recordings):
                sink.sample(start + k, recording)
            add_counts(counts, tally(network, part, schedule, result))
        return counts

    return replace(carry_out(plan, work, output), spiking=spiking)


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
    *,
    steps: int | None = None,
    phases: bool = False,
    record: Iterable[str] = (),
    part: float | None = None,
    output: TraceOutput = IN_MEMORY,
) -> RecordedRun:
    """Record samples as rates that settle step by step, see `Model.record`.

    `part` is the fraction of a phase that the trace marks as its window. It does not change the
    rate of a phase, which is that of its last step.
    """
    network, rows = model.network, model.samples(x)
    params = {name: value.astype(np.float64) for name, value in model.params.items()}
    plan = make_plan(
        model,
        (rows, classes_of(model, rows, y)),
        rate_schedule(RATE_STEPS if steps is None else steps, model.beta if phases else None, part),
        {layer.name: ActivityKind.RATE for layer in network.moving},
        origin=origin_of("rate", seed=model.seed, digest=checkpoint.digest(model)),
        sizes={layer.name: layer.size for layer in network.moving},
        weights={name: params[name] for name in dense_connections(network)},
        record=record,
    )
    target = one_hot(plan.label, network.output.size)

    def work(sink: Sink) -> Mapping[tuple[str, str], Counts]:
        free = field(NumpyOps(), network, params, plan.inputs)
        with rate_deadline(None):
            for k, recording in enumerate(settle(free, target, plan.schedule, plan.record)):
                sink.sample(k, recording)
        return {}

    return carry_out(plan, work, output)


def total_steps(schedule: Schedule) -> int:
    """Return the number of steps of all phases."""
    return sum(phase.steps for phase in schedule)


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
) -> Plan:
    """Plan the contents of the trace before the run."""
    x, label = samples
    if not len(x):
        raise ValueError("x holds no samples; a recording needs at least one")
    check_rates(len(x), total_steps(schedule), sum(sizes.values()))
    requests = (record,) if isinstance(record, str) else record
    return Plan(
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


def carry_out(plan: Plan, work: Work, output: TraceOutput) -> RecordedRun:
    """Run the samples of a plan, and store the recordings in memory or in a file."""
    began, path = time.perf_counter(), None if output.path is None else Path(output.path)
    output.announce(plan)
    memory = MemorySink()
    if path is None:
        counts = work(recorder(memory, plan, output.progress))
    else:
        with Writer(path, plan, overwrite=output.overwrite) as writer:
            counts = work(recorder(writer, plan, output.progress))
            writer.counts({key: each for key, each in counts.items() if key[0] in plan.sizes})
    inside = {key: each for key, each in counts.items() if key[0] in plan.sizes}
    outside = sum((each for key, each in counts.items() if key not in inside), Counts())
    seconds = time.perf_counter() - began
    return RecordedRun(plan, tuple(memory.recordings), inside, outside, path, seconds)


def recorder(sink: Sink, plan: Plan, progress: SampleCallback) -> Sink:
    """Wrap a sink so that it adds synapse histories and reports progress."""
    return SynapseRecorder(CountingSink(sink, progress), plan)


@dataclass(frozen=True, slots=True)
class CountingSink:
    """Sink that calls `progress` after each sample."""

    sink: Sink
    progress: SampleCallback

    def sample(self, index: int, recording: Recording) -> None:
        """Pass the recording to the wrapped sink."""
        self.sink.sample(index, recording)
        self.progress(1)


def origin_of(on: str, *, seed: int, digest: str, seconds: float = DT, substeps: int = 1) -> Origin:
    """Return the provenance of a trace that is recorded now.

    A recorded step takes `seconds`; a unit with rate one fires once per `substeps` steps.
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
    )


def ranking_weights(
    network: Network, weights: Mapping[str, Array], inputs: Array
) -> dict[str, Array]:
    """Return the weights by which the strongest synapses are chosen for recording.

    Input weights are scaled by the standard deviation of each feature, so that synapses from
    constant features are not chosen.
    """
    name, spread = network.input.name, inputs.std(axis=0)
    return {
        connection.name: weights[connection.name] * spread
        if connection.source == name and weights[connection.name].ndim == 2
        else weights[connection.name]
        for connection in network.connections
        if connection.name in weights
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
