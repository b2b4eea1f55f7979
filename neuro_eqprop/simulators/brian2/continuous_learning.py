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
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.simulators.base import BackendError, zeros
from neuro_eqprop.simulators.brian2 import BIOLOGY
from neuro_eqprop.simulators.brian2.continuous import BASE, groups_and_synapses, potentials_of
from neuro_eqprop.simulators.brian2.learning import EVERY_PHASE
from neuro_eqprop.simulators.brian2.membrane import Biology
from neuro_eqprop.simulators.brian2.options import biology, parse_options
from neuro_eqprop.simulators.brian2.setup import run_network, settings, simulator
from neuro_eqprop.simulators.brian2.step_callbacks import StepRecorder, noise
from neuro_eqprop.simulators.learning import (
    SYNAPSE_VARIABLES,
    Learned,
    Learner,
    LearningFeature,
    LearningLog,
)
from neuro_eqprop.simulators.learning_rules import FloatRule
from neuro_eqprop.simulators.recordings import NOTHING
from neuro_eqprop.spiking.plasticity import PlasticNetwork, TrainingSamples, with_weights

if TYPE_CHECKING:
    from typing_extensions import Self

IN_FLOATS = "learns in floating point: learn without bits"


@dataclass(frozen=True, slots=True)
class Brian2BiologyLearner(Learner):
    """Brian2 learner in continuous time; the samples of a batch run side by side."""

    biology: Biology = BASE
    name: str = BIOLOGY.name
    cannot: ClassVar[Mapping[LearningFeature, str]] = {
        LearningFeature.MARGIN: EVERY_PHASE,
        LearningFeature.INTEGERS: IN_FLOATS,
        LearningFeature.ENGINE: IN_FLOATS,
        LearningFeature.GRADED: "learns with binary spikes: use code rate",
        LearningFeature.RUN_ON: "starts every sample from rest: learn without run_on",
        LearningFeature.GAINS: "has no nonidealities of synapses; use the emulator",
    }

    @property
    def step_seconds(self) -> float:
        """Seconds of a step of the rule."""
        return self.biology.step

    def with_options(self, options: str) -> Self:
        """The learner of a biology, as `tau_m=20ms,noise=0.1,neuron=adex`."""
        return replace(self, biology=biology(**parse_options(options)).biology)

    def check(self, plastic: PlasticNetwork, training: TrainingSamples) -> None:
        """Raise an error for a network or a biology that it cannot learn."""
        Learner.check(self, plastic, training)
        if self.biology.dale:
            raise BackendError(f"{self.name} learns weights of both signs; leave out dale")
        if self.biology.substeps != 1 and self.biology.record_dt is not None:
            raise BackendError(f"{self.name} records a value a step while it learns; no record_dt")
        if self.biology.substeps != 1 and self.biology.neuron == "lif":
            raise BackendError(f"{self.name}: neurons that fire twice in a step cannot learn")

    def run(self, log: LearningLog) -> Learned:
        """Learn from all samples."""
        if log.record.activity != NOTHING and self.biology.substeps != 1:
            raise BackendError(
                f"neuron {self.biology.neuron!r} can fire twice in a step, and a trace of learning "
                "has a value a step; learn without a trace, and simulate the finished run"
            )
        rule = FloatRule(log)
        for part in log.parts(log.plastic.rule.batch):
            recorder = run_batch(self.biology, rule, part)
            for name in rule.tags:
                rule.tags[name] = recorder.tags[name].sum(axis=0)
            rule.commit(part.stop - 1, 0)
            read(rule, part, recorder)
        return rule.result()


def run_batch(biology: Biology, rule: FloatRule, part: slice) -> TraceRecorder:
    """Run the samples of a batch, from rest and with the weights as they are."""
    log, weights = rule.log, {name: w.weight for name, w in rule.plastic_weights.items()}
    network, schedule = with_weights(rule.plastic, weights).network, rule.rule.schedule
    stimulus = log.training.stimulus.take(part.start, part.stop)
    first = log.training.first + part.start
    brian2 = simulator()
    with settings(brian2):
        clock = brian2.Clock(dt=biology.dt * brian2.second)
        groups, paths = groups_and_synapses(brian2, biology, network, stimulus, clock)
        sizes = {p.name: p.size for p in network.populations}
        recorder = TraceRecorder(
            biology,
            groups,
            schedule,
            zeros(network, stimulus.samples, len(schedule)),
            log.record.activity,
            noise(biology, sizes, range(first, first + stimulus.samples)),
            limits=potentials_of(brian2, biology),
            rule=rule,
        )
        each = brian2.NetworkOperation(recorder.tick, clock=clock, when="start")
        whole = brian2.Network(*groups.values(), *paths, each)
        steps = len(recorder.places)
        run_network(brian2, whole, steps * biology.ticks * clock.dt)
        recorder.trace_tick()
        recorder.next_step(steps)
    return recorder


def read(rule: FloatRule, part: slice, recorder: TraceRecorder) -> None:
    """Add what a batch counted and recorded to the log; its commit has changed the weights."""
    log, network = rule.log, rule.plastic.network
    log.drives[part] = recorder.result.drive[network.output][:, 0]
    for name, messages in recorder.result.messages.items():
        log.sent[name][:-1] += messages.sum(axis=0)
    sizes = {p.name: p.size for p in network.populations}
    for k, recording in enumerate(recorder.recordings(sizes)):
        for (name, variable), course in log.activity.items():
            spikes = variable == "spikes"
            course[part.start + k] = (
                recording.spikes[name] if spikes else recording.signals[name, variable]
            )
    chosen = [rule.plastic_weights[name].weight[i, j] for name, i, j in log.record.synapses]
    log.record_batch(part, recorder.history, np.array(chosen))


@dataclass(slots=True, kw_only=True)
class TraceRecorder(StepRecorder):
    """Step recorder that also integrates traces and tags in every dt."""

    rule: FloatRule
    """The weights during this batch."""
    traces: dict[str, Array] = field(default_factory=dict)
    seen: dict[str, Array] = field(default_factory=dict)
    """Spikes counted at the last dt."""
    tags: dict[str, Array] = field(default_factory=dict)
    gates: list[float] = field(default_factory=list)
    """The third factor of each step."""
    history: Array = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        StepRecorder.__post_init__(self)
        for name, messages in self.result.messages.items():
            shape = messages[:, 0].shape
            self.traces[name], self.seen[name] = np.zeros(shape), np.zeros(shape)
        samples = len(messages)
        self.gates = [step.gate for step in self.rule.rule.episode]
        self.tags = {name: np.zeros((samples, *tag.shape)) for name, tag in self.rule.tags.items()}
        chosen = len(self.rule.log.record.synapses)
        self.history = np.zeros((samples, len(self.places), chosen, len(SYNAPSE_VARIABLES)))

    def tick(self) -> None:
        """Run before each integration step."""
        if self.ticks:
            self.trace_tick()
        StepRecorder.tick(self)

    def trace_tick(self) -> None:
        """Update the traces by the last dt, and the tags if it lies in a window."""
        rule, ticks = self.rule.rule, self.biology.ticks
        step, within = divmod(self.ticks - 1, ticks)
        keep = np.exp(-1.0 / (rule.tau * ticks))
        for name, group in self.groups.items():
            sent = np.array(group.variables["sent"].get_value()).reshape(self.seen[name].shape)
            spikes = sent - (self.seen[name] if within else 0.0)
            self.seen[name] = sent
            self.traces[name] = keep * self.traces[name] + spikes / rule.tau
        gate = self.gates[step]
        if gate:
            for name in self.tags:
                pre, post = self.ends(name)
                self.tags[name] += gate / ticks * post[:, :, None] * pre[:, None, :]
        if within == ticks - 1:
            for k, (name, target, source) in enumerate(self.rule.log.record.synapses):
                part, weights = self.rule.plastic.part_of(name), self.rule.plastic_weights[name]
                row, column = (target, source) if name == part.name else (source, target)
                pre, post = self.ends(name)
                self.history[:, step, k, 0] = pre[:, source]
                self.history[:, step, k, 1] = post[:, target]
                self.history[:, step, k, 2] = self.tags[part.name][:, row, column]
                self.history[:, step, k, 3] = weights.weight[target, source]

    def ends(self, name: str) -> tuple[Array, Array]:
        """The traces of the sources and of the targets of a projection."""
        projection = self.rule.plastic.projection(name)
        return self.traces[projection.source], self.traces[projection.target]
