"""The rule of `neuro_eqprop.spiking.plasticity` in continuous time.

A neuron has a trace r of its spikes. A synapse has a tag m, which grows at the end of every step of
1 / rmax in the window of a phase:

    dr/dt = -r / tau_r            on a spike: r = r + 1 / (rmax tau_r)
    m = m + f r_pre r_post

f is the third factor of the phase, and tau_r = tau / rmax the time constant of the trace (`tau` of
the rule is in steps). A neuron that fires at rmax has a mean trace of one. At the end of a batch
the weights change as in discrete time, w = w + eta m. The samples of a batch run side by side, from
rest.

The read-out `drive` replaces the trace of spikes by that of the drive, clip(q, 0, 1) with
dq/dt = (d - q) / tau_r; `mixed` does so for the postsynaptic neuron alone, as rules of plasticity
that depend on the postsynaptic voltage do.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from neuro_eqprop.common.arrays import Array, Bits, Ints
from neuro_eqprop.simulators.base import BackendError, zeros
from neuro_eqprop.simulators.biology import BIOLOGY
from neuro_eqprop.simulators.biology.network import ContinuousNetwork, continuous
from neuro_eqprop.simulators.biology.options import make_biology, parse_options
from neuro_eqprop.simulators.biology.recorder import IntervalRecorder
from neuro_eqprop.simulators.biology.settings import BASE, Biology
from neuro_eqprop.simulators.biology.simulator import run_cells
from neuro_eqprop.simulators.learning import (
    SYNAPSE_VARIABLES,
    Learned,
    Learner,
    LearningFeature,
    LearningLog,
)
from neuro_eqprop.simulators.learning_rules import FloatRule
from neuro_eqprop.spiking.plasticity import PlasticNetwork, TrainingSamples, with_weights

if TYPE_CHECKING:
    from typing_extensions import Self

IN_FLOATS = "learns in floating point: learn without bits"


@dataclass(frozen=True, slots=True)
class ContinuousLearner(Learner):
    """A learner in continuous time; the samples of a batch run side by side."""

    biology: Biology = BASE
    name: str = ""
    cannot: ClassVar[Mapping[LearningFeature, str]] = {
        LearningFeature.MARGIN: "runs every phase of a sample: learn with margin 0, or on the "
        "emulator",
        LearningFeature.INTEGERS: IN_FLOATS,
        LearningFeature.ENGINE: IN_FLOATS,
        LearningFeature.GRADED: "learns with binary spikes: use code rate",
        LearningFeature.RUN_ON: "starts every sample from rest: learn without run_on",
        LearningFeature.GAINS: "has no nonidealities of synapses; use the emulator",
    }

    @abstractmethod
    def simulate(self, network: ContinuousNetwork, recorder: IntervalRecorder) -> None:
        """Run the samples of a network, and call the recorder before every interval."""

    @property
    def step_seconds(self) -> float:
        """Seconds of a step of the rule."""
        return self.biology.step

    def with_options(self, options: str) -> Self:
        """The learner of a biology, as `tau_m=20ms,noise=0.1,neuron=adex`."""
        return replace(self, biology=make_biology(**parse_options(options)))

    def check(self, plastic: PlasticNetwork, training: TrainingSamples) -> None:
        """Raise an error for a network or a biology that it cannot learn."""
        Learner.check(self, plastic, training)
        if self.biology.dale:
            raise BackendError(f"{self.name} learns weights of both signs; leave out dale")
        if self.biology.record_dt is not None:
            raise BackendError(f"{self.name} records a value a step while it learns; no record_dt")

    def run(self, log: LearningLog) -> Learned:
        """Learn from all samples."""
        rule = FloatRule(log)
        for part in log.parts(log.plastic.rule.batch):
            recorder = self.run_batch(rule, part)
            rule.tags.update(recorder.tags)
            rule.commit(part.stop - 1, 0)
            read(rule, part, recorder)
        return rule.result()

    def run_batch(self, rule: FloatRule, part: slice) -> TraceRecorder:
        """Run the samples of a batch, from rest and with the weights as they are."""
        log, weights = rule.log, {name: w.weight for name, w in rule.plastic_weights.items()}
        network = with_weights(rule.plastic, weights).network
        made = continuous(self.biology, network, log.training.stimulus.take(part.start, part.stop))
        recorder = TraceRecorder(
            made,
            rule.rule.schedule,
            zeros(made.network, made.stimulus.samples, len(rule.rule.schedule)),
            log.record.activity,
            first=log.training.first + part.start,
            substeps=1,
            rule=rule,
        )
        self.simulate(made, recorder)
        return recorder


@dataclass(frozen=True, slots=True)
class BiologyLearner(ContinuousLearner):
    """The compiled learner."""

    name: str = BIOLOGY.name

    def simulate(self, network: ContinuousNetwork, recorder: IntervalRecorder) -> None:
        """Advance all samples, step by step."""
        run_cells(network, recorder)


def read(rule: FloatRule, part: slice, recorder: TraceRecorder) -> None:
    """Add what a batch counted and recorded to the log; its commit has changed the weights."""
    log, network = rule.log, rule.plastic.network
    log.drives[part] = recorder.result.drive[network.output][:, 0]
    for name, messages in recorder.result.messages.items():
        log.sent[name][:-1] += messages.sum(axis=0)
    log.counted[:2] += recorder.counted[:2]
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
class TraceRecorder(IntervalRecorder):
    """Recorder that also integrates traces and tags."""

    rule: FloatRule
    """The weights during this batch."""
    traces: dict[str, Array] = field(default_factory=dict)
    drives: dict[str, Array] = field(default_factory=dict)
    """The low-passed drive q of each neuron."""
    tags: dict[str, Array] = field(default_factory=dict)
    """Summed over the samples of the batch."""
    gates: list[float] = field(default_factory=list)
    """The third factor of each step."""
    history: Array = field(default_factory=lambda: np.zeros(0))
    ticks: int = 0
    """Steps of integration done."""
    counted: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Updates of traces and tags, as `LearningLog.counted`."""

    def __post_init__(self) -> None:
        IntervalRecorder.__post_init__(self)
        for name, messages in self.result.messages.items():
            self.traces[name] = np.zeros(messages[:, 0].shape)
            self.drives[name] = np.zeros(messages[:, 0].shape)
        samples = len(messages)
        self.gates = [step.gate for step in self.rule.rule.episode]
        self.tags = {name: np.zeros_like(tag) for name, tag in self.rule.tags.items()}
        chosen = len(self.rule.log.record.synapses)
        self.history = np.zeros((samples, len(self.places), chosen, len(SYNAPSE_VARIABLES)))
        self.counted = np.zeros_like(self.rule.log.counted)

    def beta_at(self, step: int) -> float:
        """Beta in a step: that of its phase, or of the rhythm."""
        return self.rule.rule.episode[step].beta

    def advanced(self, fired: Mapping[str, Bits]) -> None:
        """Update the traces by the spikes of some dt, and the tags at the end of a step."""
        rule, per_step = self.rule.rule, self.biology.ticks
        keep = np.exp(-1.0 / (rule.tau * per_step))
        done = len(next(iter(fired.values())))
        for name, spikes in fired.items():
            trace = self.traces[name]
            for now in spikes:
                trace = keep * trace + now / rule.tau
            self.traces[name] = trace
        self.ticks += done
        if not self.ticks % per_step:
            self.end_step(self.ticks // per_step - 1)

    def end_step(self, step: int) -> None:
        """Update the low-passed drives and the tags."""
        keep, gate, phase = self.rule.rule.keep, self.gates[step], self.places[step].phase
        for column, name in enumerate(self.drives):
            drive = self.neurons.read(name, "received")
            self.drives[name] = keep * self.drives[name] + (1.0 - keep) * drive
            self.counted[0, phase, column] += np.count_nonzero(self.traces[name])
        if gate:
            for part in self.rule.plastic.plastic:
                pre, post = self.ends(part.name)
                grown = gate * (post.T @ pre)
                self.tags[part.name] += grown
                self.rule.log.count(
                    self.counted[1, phase],
                    part,
                    int(np.count_nonzero(post, axis=1) @ np.count_nonzero(pre, axis=1)),
                )
        for k, (name, target, source) in enumerate(self.rule.log.record.synapses):
            part, weights = self.rule.plastic.part_of(name), self.rule.plastic_weights[name]
            pre, post = self.ends(part.name)
            if name != part.name:  # a mirror reads the same product from its other end
                pre, post = post, pre
            rows = self.history[:, step, k]
            rows[:, 0], rows[:, 1] = pre[:, source], post[:, target]
            before = self.history[:, step - 1, k, 2] if step else 0.0
            rows[:, 2] = before + gate * rows[:, 0] * rows[:, 1]
            rows[:, 3] = weights.weight[target, source]

    def ends(self, name: str) -> tuple[Array, Array]:
        """What a synapse reads of the sources and of the targets of a projection."""
        projection, readout = self.rule.plastic.projection(name), self.biology.readout

        def drive(population: str) -> Array:
            return np.clip(self.drives[population], 0.0, 1.0)

        source, target = projection.source, projection.target
        pre = drive(source) if readout == "drive" else self.traces[source]
        return pre, self.traces[target] if readout == "spikes" else drive(target)
