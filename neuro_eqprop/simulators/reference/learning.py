"""The rule of `neuro_eqprop.spiking.plasticity` in NumPy, the reference for all other learners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.files.deadlines import check as check_deadline
from neuro_eqprop.simulators.learning import (
    Events,
    Learned,
    ProgressCallback,
    Synapses,
    empty_history,
    recordings,
    tally_learning,
)
from neuro_eqprop.simulators.reference.learning_rules import Tags
from neuro_eqprop.simulators.reference.loihi_engine import rule_of
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
        """Reset every neuron to its resting state."""
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
    """total + weight @ message, summed in the order of the sources, which fixes the rounding."""
    sources = np.flatnonzero(message)
    inputs = (weight[:, sources] * message[sources]).T
    # np.sum would add pairwise if there is only one target.
    return np.asarray(np.add.accumulate(np.concatenate([total[None], inputs]), axis=0)[-1])


@dataclass(slots=True)
class EffectiveWeights:
    """Weights of a projection, which pass on weight * gain; in integers, gain is the step size."""

    projection: Projection
    weight: Array
    gain: Array | float


def effective_weights(plastic: PlasticNetwork) -> list[EffectiveWeights]:
    """The weights of all projections before the first sample."""
    network, found = plastic.network, []
    scales = {n: p.scale for p in plastic.plastic for n in (p.name, p.mirror) if n}
    for projection in network.projections:
        learns = projection.gain is Gain.ONE and projection.name in plastic.learns
        if network.fixed is None:
            gain = plastic.gains.get(projection.name, 1.0) if projection.gain is Gain.ONE else 1.0
            found.append(EffectiveWeights(projection, projection.weight.copy(), gain))
            continue
        fixed = integer_weights(network, projection)  # raises an error for weights too large
        if not learns:
            found.append(EffectiveWeights(projection, fixed.astype(float), 1.0))
            continue
        source = network[projection.source].neuron
        theta = source.theta if isinstance(source, Graded) else 1.0
        step = scales[projection.name]
        one = step * theta / network.fixed.units[projection.target]
        found.append(EffectiveWeights(projection, projection.weight / step, one))
    return found


@dataclass(frozen=True, slots=True)
class ReferenceLearner:
    """Learns sample by sample, in float64 or in integers."""

    name: str = "reference"

    def check(self, plastic: PlasticNetwork, training: TrainingSamples) -> None:
        """Raise an error for samples that do not fit the network."""
        training.stimulus.check(plastic.network)

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
        run = LearningRun(plastic, training, synapses)
        for sample in range(training.stimulus.samples):
            run.present(sample)
            progress(1)
        return run.result()


class LearningRun:
    """State of a learning run."""

    def __init__(
        self, plastic: PlasticNetwork, training: TrainingSamples, synapses: Synapses
    ) -> None:
        self.plastic, self.training, self.synapses = plastic, training, synapses
        network, rule = plastic.network, plastic.rule
        self.populations = Populations(plastic, training.stimulus)
        self.weights = effective_weights(plastic)
        self.tags: Tags = rule_of(plastic, self.weights, training)
        self.names = [p.name for p in network.populations]
        rows, shape = len(rule.schedule) + 1, (len(rule.schedule) + 1, len(self.names))
        sent = {p.name: np.zeros((rows, p.size), dtype=np.int64) for p in network.populations}
        counted = np.zeros((3, *shape), dtype=np.int64)
        self.nudged = np.ones(training.stimulus.samples, dtype=np.int64)
        self.events = Events(sent, counted[0], counted[1], counted[2], self.nudged)
        self.drives = np.zeros((training.stimulus.samples, network[network.output].size))
        self.history = empty_history(synapses, training.stimulus.samples, rule.steps)
        phases, record = (training.stimulus.samples, rule.steps - 1), synapses.activity
        self.spikes = {name: np.zeros((*phases, network[name].size)) for name in record.spikes}
        self.signals = {key: np.zeros((*phases, network[key[0]].size)) for key in record.signals}

    def present(self, sample: int) -> None:
        """Run all phases of a sample, and the commit."""
        rule, output, t = self.plastic.rule, self.plastic.network.output, 0
        silent = {n: np.zeros(self.plastic.network[n].size) for n in self.names}
        if rule.fresh and sample:
            self.populations.rest()
        self.in_flight = silent
        step, within_margin = (self.training.first + sample) * rule.steps, False
        for row, (phase, gate) in enumerate(zip(rule.schedule, rule.gates, strict=True)):
            within_margin = self.tags.within_margin(sample) if row == 1 else within_margin
            if within_margin:
                self.nudged[sample] = 0
                t += phase.steps
                continue
            for tick in range(phase.steps):
                check_deadline()
                self.populations.step(sample, self.arriving(), phase.beta)
                self.in_flight = dict(self.populations.messages)
                for name, message in self.in_flight.items():
                    self.events.sent[name][row] += message != 0
                inside = tick >= phase.steps - phase.window
                if row == 0 and inside:
                    self.drives[sample] += self.populations.drive(output)
                self.tags.trace(self.populations, self.in_flight, step + t, self.events.traces[row])
                factor = gate if inside else 0.0
                self.tags.accumulate(factor, step + t, sample, self.events.tags[row])
                self.record_synapses(sample, t)
                self.record_activity(sample, t)
                t += 1
        self.commit(sample, step + t, silent)
        self.record_synapses(sample, t)

    def commit(self, sample: int, step: int, silent: Mapping[str, Array]) -> None:
        """Run the last step of a sample, in which weights commit at the end of a batch."""
        rule, samples = self.plastic.rule, self.training.stimulus.samples
        self.tags.trace(None, silent, step, self.events.traces[-1])
        done = sample % rule.batch + 1
        if done == rule.batch or sample == samples - 1:
            self.tags.commit(sample, step, done, self.events)
        if rule.fresh:
            self.tags.reset_graded()

    def arriving(self) -> dict[tuple[str, Gain], Array]:
        """The synaptic input of each population in this step."""
        size = {name: self.plastic.network[name].size for name in self.names}
        found = {(name, gain): np.zeros(size[name]) for name in self.names for gain in Gain}
        for each in self.weights:
            projection = each.projection
            message, key = self.in_flight[projection.source], (projection.target, projection.gain)
            found[key] = arrive(found[key], each.weight * each.gain, message)
        return found

    def record_synapses(self, sample: int, t: int) -> None:
        """Record the chosen synapses."""
        for k, (name, target, source) in enumerate(self.synapses.chosen):
            self.history[sample, t, k] = self.tags.synapse_values(name, target, source)

    def record_activity(self, sample: int, t: int) -> None:
        """Record the chosen spikes and signals of populations."""
        neurons = self.populations.neurons
        for name, course in self.spikes.items():
            course[sample, t] = neurons[name].payload(self.in_flight[name])
        for (name, variable), course in self.signals.items():
            course[sample, t] = neurons[name].values()[variable]

    def result(self) -> Learned:
        """The result of the run."""
        return Learned(
            self.tags.weights(),
            self.tags.last(),
            self.drives / self.plastic.rule.schedule[0].window,
            tally_learning(self.plastic, self.training, self.events),
            self.tags.saturated(),
            self.tags.clipped,
            self.populations.overflows,
            self.history,
            recordings(self.synapses.activity, self.spikes, self.signals),
            self.nudged,
        )
