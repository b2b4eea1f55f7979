"""The rule of `neuro_eqprop.spiking.plasticity`, in NumPy: slow, and the definition of right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from neuro_eqprop.arrays import Array
from neuro_eqprop.backends.learning import (
    SYNAPSE_VARIABLES,
    Events,
    Learned,
    Synapses,
    Watch,
    tally_learning,
)
from neuro_eqprop.backends.reference.learning_rules import Tags
from neuro_eqprop.backends.reference.loihi_engine import rule_of
from neuro_eqprop.spiking.fixed_point import weights as integer_weights
from neuro_eqprop.spiking.ir import Gain, Graded, Projection, Stimulus
from neuro_eqprop.spiking.neurons import neurons_of
from neuro_eqprop.spiking.plasticity import PlasticNetwork, TrainingSamples


class Populations:
    """The neurons of all populations, for one sample at a time."""

    def __init__(self, plastic: PlasticNetwork, stimulus: Stimulus) -> None:
        self.network, self.stimulus = plastic.network, stimulus
        self.neurons = {p.name: neurons_of(self.network, p) for p in self.network.populations}
        self.messages = {p.name: np.zeros(p.size) for p in self.network.populations}

    def rest(self) -> None:
        """Put every neuron at rest."""
        for population in self.network.populations:
            self.neurons[population.name].rest((population.size,))

    def step(self, sample: int, arriving: Mapping[tuple[str, Gain], Array], beta: float) -> None:
        """One step of every population."""
        dtype = np.float64 if self.network.fixed is None else np.int64
        for name, neurons in self.neurons.items():
            current, pull = self.stimulus.current.get(name), self.stimulus.pull.get(name)
            outside = neurons.outside(
                None if current is None else current[sample],
                None if pull is None else pull[sample],
                beta,
            )
            one, by_beta = (arriving[name, gain].astype(dtype) for gain in Gain)
            self.messages[name] = neurons.advance(one, by_beta, beta, outside).astype(np.float64)

    def sent(self, name: str) -> Array:
        """The sum of the messages of each unit of a graded population."""
        return self.neurons[name].firing()

    def drive(self, name: str) -> Array:
        """The drive of each unit."""
        return self.neurons[name].values()["drive"]

    @property
    def overflows(self) -> int:
        """Wraps and saturations of all populations so far."""
        return sum(int(neurons.overflows.sum()) for neurons in self.neurons.values())


def arrive(total: Array, weight: Array, message: Array) -> Array:
    """total + weight @ message, source by source in their order, which fixes the last digits."""
    sources = np.flatnonzero(message)
    brought = (weight[:, sources] * message[sources]).T
    # A reduction would pair terms up where there is but one target.
    return np.asarray(np.add.accumulate(np.concatenate([total[None], brought]), axis=0)[-1])


@dataclass(slots=True)
class Passing:
    """What a projection passes on: its weights, and in integers what one of them counts."""

    projection: Projection
    weight: Array
    gain: Array | float


def passings(plastic: PlasticNetwork) -> list[Passing]:
    """The projections as they are before the first sample."""
    network, found = plastic.network, []
    scales = {n: p.scale for p in plastic.plastic for n in (p.name, p.mirror) if n}
    for projection in network.projections:
        learns = projection.gain is Gain.ONE and projection.name in plastic.learns
        if network.fixed is None:
            gain = plastic.gains.get(projection.name, 1.0) if projection.gain is Gain.ONE else 1.0
            found.append(Passing(projection, projection.weight.copy(), gain))
            continue
        whole = integer_weights(network, projection)
        if not learns:
            found.append(Passing(projection, whole.astype(float), 1.0))
            continue
        source = network[projection.source].neuron
        theta = source.theta if isinstance(source, Graded) else 1.0
        step = scales[projection.name]
        one = step * theta / network.fixed.units[projection.target]
        found.append(Passing(projection, projection.weight / step, one))
    return found


@dataclass(frozen=True, slots=True)
class ReferenceLearner:
    """One sample after the other, in float64 or in integers."""

    name: str = "reference"

    def check(self, plastic: PlasticNetwork, lessons: TrainingSamples) -> None:
        """Refuse samples that do not fit the network."""
        lessons.stimulus.check(plastic.network)

    def learn(
        self, plastic: PlasticNetwork, lessons: TrainingSamples, *, synapses: Synapses, watch: Watch
    ) -> Learned:
        """Learn from all samples."""
        self.check(plastic, lessons)
        course = LearningRun(plastic, lessons, synapses)
        for sample in range(lessons.stimulus.samples):
            course.lesson(sample)
            watch(1)
        return course.learned()


class LearningRun:
    """Samples under way."""

    def __init__(
        self, plastic: PlasticNetwork, lessons: TrainingSamples, synapses: Synapses
    ) -> None:
        self.plastic, self.lessons, self.synapses = plastic, lessons, synapses
        network, rule = plastic.network, plastic.rule
        self.populations = Populations(plastic, lessons.stimulus)
        self.passings = passings(plastic)
        self.tags: Tags = rule_of(plastic, self.passings, lessons)
        self.names = [p.name for p in network.populations]
        rows, shape = len(rule.schedule) + 1, (len(rule.schedule) + 1, len(self.names))
        sent = {p.name: np.zeros((rows, p.size), dtype=np.int64) for p in network.populations}
        counted = np.zeros((3, *shape), dtype=np.int64)
        self.events = Events(sent, counted[0], counted[1], counted[2])
        self.drives = np.zeros((lessons.stimulus.samples, network[network.output].size))
        places = (
            lessons.stimulus.samples,
            rule.steps,
            len(synapses.chosen),
            len(SYNAPSE_VARIABLES),
        )
        self.story = np.zeros(places if synapses.chosen else (0, 0, 0, len(SYNAPSE_VARIABLES)))

    def lesson(self, sample: int) -> None:
        """All phases of a sample, and the commit."""
        rule, output, t = self.plastic.rule, self.plastic.network.output, 0
        silent = {n: np.zeros(self.plastic.network[n].size) for n in self.names}
        if rule.fresh and sample:
            self.populations.rest()
        self.under_way = silent
        step = (self.lessons.first + sample) * rule.steps
        for row, (phase, gate) in enumerate(zip(rule.schedule, rule.gates, strict=True)):
            for tick in range(phase.steps):
                self.populations.step(sample, self.arriving(), phase.beta)
                self.under_way = dict(self.populations.messages)
                for name, message in self.under_way.items():
                    self.events.sent[name][row] += message != 0
                inside = tick >= phase.steps - phase.window
                if row == 0 and inside:
                    self.drives[sample] += self.populations.drive(output)
                self.tags.trace(self.populations, self.under_way, step + t, self.events.traces[row])
                factor = gate if inside else 0.0
                self.tags.gather(factor, step + t, sample, self.events.tags[row])
                self.record_synapses(sample, t)
                t += 1
        self.commit(sample, step + t, silent)
        self.record_synapses(sample, t)

    def commit(self, sample: int, step: int, silent: Mapping[str, Array]) -> None:
        """The last step of a sample."""
        rule, samples = self.plastic.rule, self.lessons.stimulus.samples
        self.tags.trace(None, silent, step, self.events.traces[-1])
        done = sample % rule.batch + 1
        if done == rule.batch or sample == samples - 1:
            self.tags.commit(sample, step, done, self.events)
        if rule.fresh:
            self.tags.forget()

    def arriving(self) -> dict[tuple[str, Gain], Array]:
        """What reaches each population in this step."""
        size = {name: self.plastic.network[name].size for name in self.names}
        found = {(name, gain): np.zeros(size[name]) for name in self.names for gain in Gain}
        for passing in self.passings:
            projection = passing.projection
            message, key = self.under_way[projection.source], (projection.target, projection.gain)
            found[key] = arrive(found[key], passing.weight * passing.gain, message)
        return found

    def record_synapses(self, sample: int, t: int) -> None:
        """Note the history of the chosen synapses."""
        for k, (name, target, source) in enumerate(self.synapses.chosen):
            self.story[sample, t, k] = self.tags.synapse_values(name, target, source)

    def learned(self) -> Learned:
        """What there is in the end."""
        return Learned(
            self.tags.weights(),
            self.tags.last(),
            self.drives / self.plastic.rule.schedule[0].window,
            tally_learning(self.plastic, self.lessons, self.events),
            self.tags.saturated(),
            self.tags.clipped,
            self.populations.overflows,
            self.story,
        )
