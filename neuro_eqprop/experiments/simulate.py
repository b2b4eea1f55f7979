"""Run samples of a run through a schedule, as rates or as spikes, and record a trace."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.analysis.synapse_history import SynapseRecorder
from neuro_eqprop.arrays import Array, UnknownNameError
from neuro_eqprop.backends.base import kinds, tally
from neuro_eqprop.backends.registry import BACKENDS, load_backend
from neuro_eqprop.data import one_hot
from neuro_eqprop.experiments.environment import versions
from neuro_eqprop.experiments.evaluate import Watch, rounded, samples_of, spiking
from neuro_eqprop.experiments.event_stats import too_few
from neuro_eqprop.experiments.run_folder import MODEL, Run
from neuro_eqprop.io.trace.file import Writer
from neuro_eqprop.networks import Network
from neuro_eqprop.operators import Dense
from neuro_eqprop.ops.numpy import NumpyOps
from neuro_eqprop.rate.field import Field, State, field
from neuro_eqprop.schedules import Schedule, free_only, tail, three_phase
from neuro_eqprop.solve import Damped
from neuro_eqprop.spiking.codes import Code, Coding
from neuro_eqprop.spiking.input_coding import InputCoding, encode_input, outer
from neuro_eqprop.spiking.ir import SpikingNetwork
from neuro_eqprop.synapse_recording import Synapse
from neuro_eqprop.traces import (
    ActivityKind,
    Counts,
    Origin,
    Plan,
    Record,
    Recording,
    Sink,
    parse_record,
)

RATE_DAMPING = 0.5
"""Of the recorded settling of rates: all layers move at once, as spikes do."""


@dataclass(frozen=True, slots=True)
class SimulationConfig:
    """What to run and what to record."""

    on: str
    samples: int
    steps: int
    code: Code
    phases: bool
    """Whether nudged phases follow the free one."""
    record: tuple[str, ...]
    entry: InputCoding = InputCoding.CURRENT
    """How data enter; the populations that bring them are counted, but not part of the trace."""
    bits: int | None = None
    """Of weights in fixed point; none for floating point."""


AnnounceCallback = Callable[[Plan], None]
"""Told what is going to be recorded, before the first step."""


def no_announcement(_: Plan) -> None:
    """Tell nobody."""


def schedule_of(simulation: SimulationConfig, beta: float) -> Schedule:
    """The phases, all of the same length."""
    steps, part = simulation.steps, Coding(simulation.code).tail
    if simulation.phases:
        return three_phase(beta=beta, free=steps, nudged=steps, part=part)
    return free_only(steps=steps, window=tail(steps, part))


def origin_of(on: str, *, seed: int, digest: str) -> Origin:
    """Where a trace that is made now comes from."""
    return Origin(
        backend=on,
        network_hash=digest,
        versions=versions(),
        seed=seed,
        created=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        command=" ".join(["neuro-eqprop", *sys.argv[1:]]),
    )


def simulate(
    run: Run,
    simulation: SimulationConfig,
    path: Path,
    *,
    force: bool,
    watch: Watch,
    tell: AnnounceCallback = no_announcement,
) -> dict[str, Any]:
    """Record a trace; what `simulate --json` shows."""
    if simulation.on != "rate" and simulation.on not in BACKENDS:
        raise UnknownNameError("backend", simulation.on, ("rate", *BACKENDS))
    if simulation.on == "rate" and simulation.bits is not None:
        raise ValueError("rates have no bits; run spikes in fixed point with --on emulator")
    began, schedule = time.perf_counter(), schedule_of(simulation, run.study.rule.beta)
    make = plan_rates if simulation.on == "rate" else plan_spikes
    plan, work = make(run, simulation, schedule)
    tell(plan)
    with Writer(path, plan, overwrite=force) as writer:
        brought = work(writer, SynapseRecorder(Counted(writer, watch), plan))
    return {
        "run": str(run.path),
        "traces": str(path),
        "on": simulation.on,
        "code": None if simulation.on == "rate" else simulation.code.name,
        "bits": simulation.bits,
        "samples": simulation.samples,
        "steps": simulation.steps,
        "phases": [phase.name for phase in schedule],
        "recorded": sorted(
            [f"{name}:spikes" for name in plan.record.spikes]
            + [f"{name}:{variable}" for name, variable in plan.record.signals]
            + [f"{name}[{pairs(each)}]:hebbian" for name, each in plan.record.hebbian.items()]
        ),
        "most_bytes": plan.most_bytes,
        "input": None if simulation.on == "rate" else simulation.entry.name,
        "input_spikes": brought.spikes,
        "input_synops": brought.synops,
        "warnings": []
        if simulation.on == "rate"
        else too_few(run, Coding(simulation.code), simulation.steps, simulation.entry),
        "bytes": path.stat().st_size,
        "seconds": time.perf_counter() - began,
    }


def pairs(synapses: tuple[Synapse, ...]) -> str:
    """Synapses as they are named on the command line."""
    return ";".join(f"{target},{source}" for target, source in synapses)


Work = Callable[[Writer, Sink], Counts]
"""Does the run: recordings go to the sink, what is known at its end to the writer; returned is what
the way in of the data took."""


def plan_of(
    run: Run,
    simulation: SimulationConfig,
    schedule: Schedule,
    *,
    sizes: Mapping[str, int],
    how: Mapping[str, ActivityKind],
    digest: str,
    weights: Mapping[str, Array],
) -> Plan:
    """What the trace is going to hold."""
    split = samples_of(run, simulation.samples)
    return Plan(
        origin_of(simulation.on, seed=run.study.seed, digest=digest),
        schedule,
        how,
        sizes,
        tuple(weights),
        np.arange(len(split)),
        split.y,
        split.x,
        parse_record(simulation.record, how, strengths(run.model.network, weights, split.x)),
        weights,
    )


def strengths(network: Network, weights: Mapping[str, Array], inputs: Array) -> dict[str, Array]:
    """Weights by which synapses are picked; those from inputs that never change are not."""
    name, spread = network.input.name, inputs.std(axis=0)
    return {
        connection.name: weights[connection.name] * spread
        if connection.source == name and weights[connection.name].ndim == 2
        else weights[connection.name]
        for connection in network.connections
        if connection.name in weights
    }


@dataclass(frozen=True, slots=True)
class Counted:
    """A sink that tells how far it is."""

    sink: Sink
    watch: Watch

    def sample(self, index: int, recording: Recording) -> None:
        """Hand the recording on."""
        self.sink.sample(index, recording)
        self.watch(1)


def within(run: Run, network: SpikingNetwork) -> dict[str, int]:
    """The populations of the run's layers, with their sizes: those a trace is of."""
    bring = outer(run.model.network)
    return {p.name: p.size for p in network.populations if p.name not in bring}


def dense(network: Network) -> list[str]:
    """The connections that a synapse of a matrix can be picked from."""
    return [c.name for c in network.connections if isinstance(c.operator, Dense)]


def plan_spikes(run: Run, simulation: SimulationConfig, schedule: Schedule) -> tuple[Plan, Work]:
    """The samples as spikes, on a simulator."""
    coding, backend, entry = Coding(simulation.code), load_backend(simulation.on), simulation.entry
    if simulation.bits is None:
        network, params = spiking(run, coding, simulation.phases, entry)
    else:
        network, params = rounded(run, coding, simulation.bits, entry, nudged=simulation.phases)
    held: dict[str, Array] = {}
    for projection in network.projections:
        held.setdefault(projection.name, projection.weight)
    sizes, known = within(run, network), kinds(network)
    plan = plan_of(
        run,
        simulation,
        schedule,
        sizes=sizes,
        how={name: known[name] for name in sizes},
        digest=network.digest,
        weights={name: held.get(name, params[name]) for name in dense(run.model.network)},
    )
    target = one_hot(plan.label, run.data.classes) if simulation.phases else None
    rate = run.model.network
    stimulus = encode_input(rate, params, plan.inputs, target=target, coding=coding, entry=entry)

    def work(writer: Writer, sink: Sink) -> Counts:
        result = backend.run(network, stimulus, schedule, record=plan.record, sink=sink)
        counts = tally(network, stimulus, schedule, result)
        writer.counts({key: each for key, each in counts.items() if key[0] in sizes})
        return sum((each for key, each in counts.items() if key[0] not in sizes), Counts())

    return plan, work


def plan_rates(run: Run, simulation: SimulationConfig, schedule: Schedule) -> tuple[Plan, Work]:
    """The samples as rates, settling step by step."""
    network = run.model.network
    params = {k: v.astype(np.float64) for k, v in run.model.params.items()}
    plan = plan_of(
        run,
        simulation,
        schedule,
        sizes={layer.name: layer.size for layer in network.moving},
        how={layer.name: ActivityKind.RATE for layer in network.moving},
        digest=digest_of(run),
        weights={name: params[name] for name in dense(network)},
    )
    target = one_hot(plan.label, run.data.classes)

    def work(_: Writer, sink: Sink) -> Counts:
        free = field(NumpyOps(), network, params, plan.inputs)
        for k, recording in enumerate(settle(free, target, schedule, plan.record)):
            sink.sample(k, recording)
        return Counts()

    return plan, work


def settle(free: Field, target: Array, schedule: Schedule, record: Record) -> list[Recording]:
    """Of each sample, the rates on their way through the phases."""
    seen: dict[tuple[str, str], list[Array]] = {key: [] for key in record.signals}
    state = free.zero_state()
    for phase in schedule:
        nudged = free.nudged(target, phase.beta) if phase.beta else free
        for _ in range(phase.steps):
            state = Damped(RATE_DAMPING).step(nudged, state)
            note(nudged, state, record, seen)
    courses = {key: np.stack(steps, axis=1) for key, steps in seen.items()}
    return [
        Recording({}, {key: course[k] for key, course in courses.items()})
        for k in range(free.batch)
    ]


def note(at: Field, state: State, record: Record, seen: dict[tuple[str, str], list[Array]]) -> None:
    """Keep what is to be recorded of a state."""
    for name, variable in record.signals:
        value = state[name] if variable == "rate" else at.drive(name, state)
        seen[name, variable].append(np.reshape(value, (at.batch, -1)))


def digest_of(run: Run) -> str:
    """A hash of the trained network as it lies on the disk, in its folder or in a NIR file."""
    from hashlib import sha256

    path = run.path / MODEL if run.path.is_dir() else run.path
    return sha256(path.read_bytes()).hexdigest()
