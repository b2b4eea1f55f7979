"""The rule of `neuro_eqprop.spiking.plasticity` in continuous time.

A neuron has a trace r of its spikes. A synapse has a tag m, which changes in the window of a phase:

    dr/dt = -r / tau_r            on a spike: r = r + 1 / (rmax tau_r)
    dm/dt = rmax f r_pre r_post

f is the third factor of the phase, and tau_r = tau / rmax the time constant of the trace (`tau` of
the rule is in steps). A neuron that fires at rmax has a mean trace of one. At the end of a batch
the weights change as in discrete time, w = w + eta m. The samples of a batch run side by side, from
rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.simulators.base import BackendError, zeros
from neuro_eqprop.simulators.brian2 import BIOLOGY
from neuro_eqprop.simulators.brian2.continuous import (
    BASE,
    groups_and_synapses,
    potentials_of,
)
from neuro_eqprop.simulators.brian2.membrane import Biology
from neuro_eqprop.simulators.brian2.setup import run_network, settings, simulator
from neuro_eqprop.simulators.brian2.step_callbacks import StepRecorder, noise
from neuro_eqprop.simulators.learning import (
    SYNAPSE_VARIABLES,
    Events,
    Learned,
    ProgressCallback,
    Synapses,
    empty_history,
    refuse_margin,
    tally_learning,
)
from neuro_eqprop.simulators.recordings import NOTHING, Recording
from neuro_eqprop.spiking.ir import Spiking
from neuro_eqprop.spiking.plasticity import PlasticNetwork, TrainingSamples, with_weights


@dataclass(frozen=True, slots=True)
class Brian2BiologyLearner:
    """Brian2 learner in continuous time; the samples of a batch run side by side."""

    biology: Biology = BASE
    name: str = BIOLOGY.name

    @property
    def step_seconds(self) -> float:
        """Seconds of a step of the rule."""
        return self.biology.step

    def check(self, plastic: PlasticNetwork, training: TrainingSamples) -> None:
        """Raise an error for a network that it cannot learn, or samples that do not fit it."""
        training.stimulus.check(plastic.network)
        refuse_margin(self.name, plastic)
        if plastic.rule.numbers is not None:
            raise BackendError(f"{self.name} learns in floating point: learn without bits")
        if not all(isinstance(p.neuron, Spiking) for p in plastic.network.populations):
            raise BackendError(f"{self.name} learns with binary spikes: use code rate")
        if not plastic.rule.fresh:
            raise BackendError(f"{self.name} starts every sample from rest: learn without run_on")
        if plastic.gains:
            raise BackendError(f"{self.name} has no nonidealities of synapses; use the emulator")
        if self.biology.dale:
            raise BackendError(f"{self.name} learns weights of both signs; leave out dale")
        if self.biology.substeps != 1 and self.biology.record_dt is not None:
            raise BackendError(f"{self.name} records a value a step while it learns; no record_dt")
        if self.biology.substeps != 1 and self.biology.neuron == "lif":
            raise BackendError(f"{self.name}: neurons that fire twice in a step cannot learn")

    def learn(
        self,
        plastic: PlasticNetwork,
        training: TrainingSamples,
        *,
        synapses: Synapses,
        progress: ProgressCallback,
    ) -> Learned:
        """Learn from all samples."""
        self.check(plastic, training)
        if synapses.activity != NOTHING and self.biology.substeps != 1:
            raise BackendError(
                f"neuron {self.biology.neuron!r} can fire twice in a step, and a trace of learning "
                "has a value a step; learn without a trace, and simulate the finished run"
            )
        run = LearningRun(self.biology, plastic, training, synapses)
        batch = plastic.rule.batch
        for start in range(0, training.stimulus.samples, batch):
            stop = min(start + batch, training.stimulus.samples)
            run.learn(start, stop)
            progress(stop - start)
        return run.result()


class LearningRun:
    """The weights and results of a run; each batch is one Brian2 run."""

    def __init__(
        self,
        biology: Biology,
        plastic: PlasticNetwork,
        training: TrainingSamples,
        wanted: Synapses,
    ) -> None:
        self.biology, self.plastic, self.training, self.wanted = biology, plastic, training, wanted
        network, rule, samples = plastic.network, plastic.rule, training.stimulus.samples
        self.weights = {n: plastic.projection(n).weight.copy() for n in plastic.learns}
        self.tags = {p.name: np.zeros_like(self.weights[p.name]) for p in plastic.plastic}
        self.drives = np.zeros((samples, network[network.output].size))
        rows, names = len(rule.schedule) + 1, [p.name for p in network.populations]
        self.sent = {p.name: np.zeros((rows, p.size), dtype=np.int64) for p in network.populations}
        self.changed: Ints = np.zeros((rows, len(names)), dtype=np.int64)
        self.clipped = 0
        self.history = empty_history(wanted, samples, rule.steps)
        self.recordings: list[Recording] = []

    def learn(self, start: int, stop: int) -> None:
        """Run the samples of a batch, then change the weights."""
        rule, stimulus = self.plastic.rule, self.training.stimulus.take(start, stop)
        network = with_weights(self.plastic, self.weights).network
        result = zeros(network, stimulus.samples, len(rule.schedule))
        first = self.training.first + start
        brian2, biology = simulator(), self.biology
        with settings(brian2):
            clock = brian2.Clock(dt=biology.dt * brian2.second)
            groups, paths = groups_and_synapses(brian2, biology, network, stimulus, clock)
            sizes = {p.name: p.size for p in network.populations}
            drawn = noise(biology, sizes, range(first, first + stimulus.samples))
            recorder = TraceRecorder(
                biology,
                groups,
                rule.schedule,
                result,
                self.wanted.activity,
                drawn,
                limits=potentials_of(brian2, biology),
                plastic=self.plastic,
                samples=stimulus.samples,
                wanted=self.wanted,
                held=self.weights,
            )
            each = brian2.NetworkOperation(recorder.tick, clock=clock, when="start")
            whole = brian2.Network(*groups.values(), *paths, each)
            steps = sum(phase.steps for phase in rule.schedule)
            run_network(brian2, whole, steps * biology.ticks * clock.dt)
            recorder.trace_tick()
            recorder.next_step(steps)
        self.drives[start:stop] = result.drive[network.output][:, 0]
        for name, messages in result.messages.items():
            self.sent[name][:-1] += messages.sum(axis=0)
        self.recordings += list(recorder.recordings(sizes))
        self.commit(start, stop, recorder)

    def commit(self, start: int, stop: int, recorder: TraceRecorder) -> None:
        """Change the weights by the tags of a batch, and store the histories of synapses."""
        names = [p.name for p in self.plastic.network.populations]
        rate = float(self.training.rates[stop - 1])
        for part in self.plastic.plastic:
            tag = recorder.tags[part.name].sum(axis=0)
            self.tags[part.name] = tag
            before = self.weights[part.name]
            wanted = before + self.plastic.eta(part, rate, stop - start) * tag
            after = np.clip(wanted, -part.limit, part.limit)
            self.clipped += int(np.count_nonzero(after != wanted))
            self.weights[part.name] = after
            projection = self.plastic.projection(part.name)
            ends = [projection.target, *([projection.source] if part.mirror else [])]
            for end in ends:
                self.changed[-1, names.index(end)] += int(np.count_nonzero(after != before))
            if part.mirror is not None:
                self.weights[part.mirror] = part.mirrored * after.T
        if self.wanted.chosen:
            carried = np.cumsum(recorder.history[:, -1, :, 2], axis=0)
            self.history[start:stop, :-1] = recorder.history
            self.history[start + 1 : stop, :-1, :, 2] += carried[:-1, None]
            self.history[start:stop, -1] = self.history[start:stop, -2]
            for k, (name, target, source) in enumerate(self.wanted.chosen):
                self.history[stop - 1, -1, k, 3] = self.weights[name][target, source]

    def result(self) -> Learned:
        """The result of the run."""
        nothing = np.zeros_like(self.changed)
        events = Events(self.sent, nothing, nothing, self.changed)
        saturated = {
            name: int(np.count_nonzero(np.abs(self.weights[part.name]) >= part.limit))
            for part in self.plastic.plastic
            for name in (part.name, part.mirror)
            if name is not None
        }
        return Learned(
            self.weights,
            self.tags,
            self.drives,
            tally_learning(self.plastic, self.training, events),
            saturated,
            self.clipped,
            history=self.history,
            activity=tuple(self.recordings),
        )


@dataclass(slots=True, kw_only=True)
class TraceRecorder(StepRecorder):
    """Step recorder that also integrates traces and tags in every dt."""

    plastic: PlasticNetwork
    samples: int
    wanted: Synapses
    held: Mapping[str, Array]
    """The weights during this batch."""
    traces: dict[str, Array] = field(default_factory=dict)
    seen: dict[str, Array] = field(default_factory=dict)
    """Spikes counted at the last dt."""
    tags: dict[str, Array] = field(default_factory=dict)
    history: Array = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        StepRecorder.__post_init__(self)
        network = self.plastic.network
        for population in network.populations:
            self.traces[population.name] = np.zeros((self.samples, population.size))
            self.seen[population.name] = np.zeros((self.samples, population.size))
        for part in self.plastic.plastic:
            shape = self.plastic.projection(part.name).weight.shape
            self.tags[part.name] = np.zeros((self.samples, *shape))
        steps = sum(phase.steps for phase in self.schedule)
        chosen = len(self.wanted.chosen)
        self.history = np.zeros((self.samples, steps, chosen, len(SYNAPSE_VARIABLES)))

    def tick(self) -> None:
        """Run before each integration step."""
        if self.ticks:
            self.trace_tick()
        StepRecorder.tick(self)

    def trace_tick(self) -> None:
        """Update the traces by the last dt, and the tags if it lies in a window."""
        rule, ticks = self.plastic.rule, self.biology.ticks
        step, within = divmod(self.ticks - 1, ticks)
        phase, in_window = self.places[step]
        keep = np.exp(-1.0 / (rule.tau * ticks))
        for name, group in self.groups.items():
            sent = np.array(group.variables["sent"].get_value()).reshape(self.samples, -1)
            spikes = sent - (self.seen[name] if within else 0.0)
            self.seen[name] = sent
            self.traces[name] = keep * self.traces[name] + spikes / rule.tau
        gate = rule.gates[phase] if in_window else 0.0
        if gate:
            for part in self.plastic.plastic:
                projection = self.plastic.projection(part.name)
                pre, post = self.traces[projection.source], self.traces[projection.target]
                self.tags[part.name] += gate / ticks * post[:, :, None] * pre[:, None, :]
        if within == ticks - 1:
            for k, (name, target, source) in enumerate(self.wanted.chosen):
                self.history[:, step, k] = self.synapse(name, target, source)

    def synapse(self, name: str, target: int, source: int) -> Array:
        """Traces at both ends, tag and weight of a synapse (samples, variables)."""
        part = self.plastic.part_of(name)
        row, column = (target, source) if name == part.name else (source, target)
        projection = self.plastic.projection(name)
        return np.stack(
            [
                self.traces[projection.source][:, source],
                self.traces[projection.target][:, target],
                self.tags[part.name][:, row, column],
                np.full(self.samples, self.held[name][target, source]),
            ],
            axis=-1,
        )
