"""The rule of `neuro_eqprop.spiking.plasticity`, in NumPy: slow, and the definition of right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.backends.learning import STORY, Events, Learned, Synapses, Watch, tally_learning
from neuro_eqprop.backends.reference import fixed_point, simulator
from neuro_eqprop.backends.reference.learning_rules import Tags
from neuro_eqprop.backends.reference.loihi_engine import rule_of
from neuro_eqprop.spiking.fixed_point import SpikingIntegers, integers, nearest, scale, twelve
from neuro_eqprop.spiking.fixed_point import weights as whole_weights
from neuro_eqprop.spiking.ir import Gain, Graded, Projection, Stimulus
from neuro_eqprop.spiking.plasticity import PlasticNetwork, TrainingSamples


class RealCells:
    """The neurons of one sample in real numbers."""

    def __init__(self, plastic: PlasticNetwork, stimulus: Stimulus) -> None:
        self.network, self.stimulus = plastic.network, stimulus
        self.overflows = 0
        self.rest()

    def rest(self) -> None:
        """Put every neuron at rest."""
        self.states = {p.name: simulator.rest(p, 1) for p in self.network.populations}

    def step(self, sample: int, arriving: Mapping[tuple[str, Gain], Array], beta: float) -> None:
        """One step of every population."""
        for population in self.network.populations:
            name, neuron, state = population.name, population.neuron, self.states[population.name]
            nothing = np.zeros((self.stimulus.samples, population.size))
            current = self.stimulus.current.get(name, nothing)[sample]
            pull = self.stimulus.pull.get(name, nothing)[sample]
            outside = population.bias + current + beta * pull
            one, by_beta = arriving[name, Gain.ONE][None], arriving[name, Gain.BETA][None]
            if isinstance(neuron, Graded):
                simulator.step_graded(
                    neuron, state, one, by_beta=by_beta, beta=beta, outside=outside
                )
            else:
                simulator.step_spiking(neuron, state, one + beta * by_beta, outside)

    def message(self, name: str) -> Array:
        """What each unit of a population sent in the last step."""
        return np.asarray(self.states[name].message[0])

    def sent(self, name: str) -> Array:
        """What each unit of a graded population has sent in sum."""
        return np.asarray(self.states[name].sent[0])

    def drive(self, name: str) -> Array:
        """What each unit received."""
        return np.asarray(self.states[name].drive[0])


class WholeCells:
    """The neurons of one sample in whole numbers."""

    def __init__(self, plastic: PlasticNetwork, stimulus: Stimulus) -> None:
        network = plastic.network
        self.neurons = {p.name: integers(network, p) for p in network.populations}
        self.current: dict[str, Ints] = {}
        self.pull: dict[str, Ints] = {}
        for name, neuron in self.neurons.items():
            nothing = np.zeros((stimulus.samples, neuron.bias.size))
            self.current[name] = nearest(stimulus.current.get(name, nothing), neuron.unit)
            self.pull[name] = nearest(stimulus.pull.get(name, nothing), neuron.unit)
        self.overflows = 0
        self.states: dict[str, fixed_point.IntegerState] = {}
        self.rest()

    def rest(self) -> None:
        """Put every neuron at rest."""
        self.overflows += sum(s.wraps + s.saturations for s in self.states.values())
        for name, neuron in self.neurons.items():
            self.states[name] = fixed_point.rest((1, neuron.bias.size))
            if isinstance(neuron, SpikingIntegers):
                self.states[name].v += neuron.threshold >> 1

    def step(self, sample: int, arriving: Mapping[tuple[str, Gain], Array], beta: float) -> None:
        """One step of every population."""
        part = twelve(beta)
        for name, neuron in self.neurons.items():
            state = self.states[name]
            one, by_beta = (arriving[name, gain][None].astype(np.int64) for gain in Gain)
            outside = (
                neuron.bias + self.current[name][sample] + scale(self.pull[name][sample], part)
            )
            if isinstance(neuron, SpikingIntegers):
                arrived = one + scale(by_beta, part)
                fixed_point.step_spiking(neuron, state, arrived, outside)
            else:
                fixed_point.step_graded(
                    neuron, state, one, by_beta=by_beta, beta=part, outside=outside
                )

    def message(self, name: str) -> Array:
        """What each unit sent in the last step: spikes, or whole thetas."""
        return np.asarray(self.states[name].message[0].astype(float))

    def sent(self, name: str) -> Array:
        """What each unit of a graded population has sent in sum, in real numbers."""
        return np.asarray(self.states[name].sent[0] * self.neurons[name].unit)

    def drive(self, name: str) -> Array:
        """What each unit received, in real numbers."""
        return np.asarray(self.states[name].drive[0] * self.neurons[name].shown)


def arrive(total: Array, weight: Array, message: Array) -> Array:
    """total + weight @ message, source by source in their order, which fixes the last digits."""
    sources = np.flatnonzero(message)
    brought = (weight[:, sources] * message[sources]).T
    # A reduction would pair terms up where there is but one target.
    return np.asarray(np.add.accumulate(np.concatenate([total[None], brought]), axis=0)[-1])


@dataclass(slots=True)
class Passing:
    """What a projection passes on: its weights, and in whole numbers what one of them counts."""

    projection: Projection
    weight: Array
    gain: Array | float


def passings(plastic: PlasticNetwork) -> list[Passing]:
    """The projections as they are before the first lesson."""
    network, found = plastic.network, []
    scales = {n: p.scale for p in plastic.plastic for n in (p.name, p.mirror) if n}
    for projection in network.projections:
        learns = projection.gain is Gain.ONE and projection.name in plastic.learns
        if network.fixed is None:
            gain = plastic.gains.get(projection.name, 1.0) if projection.gain is Gain.ONE else 1.0
            found.append(Passing(projection, projection.weight.copy(), gain))
            continue
        whole = whole_weights(network, projection)
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
    """One lesson after the other, in float64 or in whole numbers."""

    name: str = "reference"

    def check(self, plastic: PlasticNetwork, lessons: TrainingSamples) -> None:
        """Refuse lessons that do not fit the network."""
        lessons.stimulus.check(plastic.network)

    def learn(
        self, plastic: PlasticNetwork, lessons: TrainingSamples, *, synapses: Synapses, watch: Watch
    ) -> Learned:
        """Learn from all lessons."""
        self.check(plastic, lessons)
        course = LearningRun(plastic, lessons, synapses)
        for sample in range(lessons.stimulus.samples):
            course.lesson(sample)
            watch(1)
        return course.learned()


class LearningRun:
    """Lessons under way."""

    def __init__(
        self, plastic: PlasticNetwork, lessons: TrainingSamples, synapses: Synapses
    ) -> None:
        self.plastic, self.lessons, self.synapses = plastic, lessons, synapses
        network, rule = plastic.network, plastic.rule
        make = RealCells if network.fixed is None else WholeCells
        self.cells: RealCells | WholeCells = make(plastic, lessons.stimulus)
        self.passings = passings(plastic)
        self.tags: Tags = rule_of(plastic, self.passings, lessons)
        self.names = [p.name for p in network.populations]
        rows, shape = len(rule.schedule) + 1, (len(rule.schedule) + 1, len(self.names))
        sent = {p.name: np.zeros((rows, p.size), dtype=np.int64) for p in network.populations}
        counted = np.zeros((3, *shape), dtype=np.int64)
        self.events = Events(sent, counted[0], counted[1], counted[2])
        self.drives = np.zeros((lessons.stimulus.samples, network[network.output].size))
        places = (lessons.stimulus.samples, rule.steps, len(synapses.chosen), len(STORY))
        self.story = np.zeros(places if synapses.chosen else (0, 0, 0, len(STORY)))

    def lesson(self, sample: int) -> None:
        """All phases of a sample, and the commit."""
        rule, output, t = self.plastic.rule, self.plastic.network.output, 0
        silent = {n: np.zeros(self.plastic.network[n].size) for n in self.names}
        if rule.fresh and sample:
            self.cells.rest()
        self.under_way = silent
        step = (self.lessons.first + sample) * rule.steps
        for row, (phase, gate) in enumerate(zip(rule.schedule, rule.gates, strict=True)):
            for tick in range(phase.steps):
                self.cells.step(sample, self.arriving(), phase.beta)
                self.under_way = {name: self.cells.message(name) for name in self.names}
                for name, message in self.under_way.items():
                    self.events.sent[name][row] += message != 0
                inside = tick >= phase.steps - phase.window
                if row == 0 and inside:
                    self.drives[sample] += self.cells.drive(output)
                self.tags.trace(self.cells, self.under_way, step + t, self.events.traces[row])
                factor = gate if inside else 0.0
                self.tags.gather(factor, step + t, sample, self.events.tags[row])
                self.tell(sample, t)
                t += 1
        self.commit(sample, step + t, silent)
        self.tell(sample, t)

    def commit(self, sample: int, step: int, silent: Mapping[str, Array]) -> None:
        """The last step of a lesson."""
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

    def tell(self, sample: int, t: int) -> None:
        """Note the story of the chosen synapses."""
        for k, (name, target, source) in enumerate(self.synapses.chosen):
            self.story[sample, t, k] = self.tags.look(name, target, source)

    def learned(self) -> Learned:
        """What there is in the end."""
        if isinstance(self.cells, WholeCells):
            self.cells.rest()
        return Learned(
            self.tags.weights(),
            self.tags.last(),
            self.drives / self.plastic.rule.schedule[0].window,
            tally_learning(self.plastic, self.lessons, self.events),
            self.tags.saturated(),
            self.tags.clipped,
            self.cells.overflows,
            self.story,
        )
