"""The rule of `neuro_eqprop.spiking.plasticity` in NumPy, the reference for all other learners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.files.deadlines import check as check_deadline
from neuro_eqprop.simulators.learning import (
    NO_SYNAPSES,
    Learned,
    LearningLog,
    ProgressCallback,
    Synapses,
    no_progress,
)
from neuro_eqprop.simulators.reference.learning_rules import FloatRule, IntegerRule
from neuro_eqprop.simulators.reference.loihi_engine import EngineRule
from neuro_eqprop.spiking.ir import Gain
from neuro_eqprop.spiking.neurons import Neurons, neurons_of
from neuro_eqprop.spiking.plasticity import (
    EpisodeStep,
    IntegerArithmetic,
    LoihiEngine,
    PlasticNetwork,
    TrainingSamples,
)

RULES = {type(None): FloatRule, IntegerArithmetic: IntegerRule, LoihiEngine: EngineRule}
"""The rule in each number format."""


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
        synapses: Synapses = NO_SYNAPSES,
        progress: ProgressCallback = no_progress,
    ) -> Learned:
        """Learn from all samples."""
        self.check(plastic, training)
        network = plastic.network
        log = LearningLog(plastic, training, synapses)
        neurons = {p.name: neurons_of(network, p) for p in network.populations}
        rule = RULES[type(plastic.rule.numbers)](plastic, training)
        for sample in range(training.stimulus.samples):
            if plastic.rule.fresh:
                for population in network.populations:
                    neurons[population.name].rest((population.size,))
            present(sample, neurons, rule, log)
            progress(1)
        log.drives /= plastic.rule.schedule[0].window
        log.clipped = rule.clipped
        log.overflows = sum(int(each.overflows.sum()) for each in neurons.values())
        weights = {name: learning.weight for name, learning in rule.plastic_weights.items()}
        return log.result(weights, rule.committed)


def present(sample: int, neurons: Mapping[str, Neurons], rule: FloatRule, log: LearningLog) -> None:
    """Run all phases of a sample, and the commit."""
    plastic, training, events = log.plastic, log.training, log.events
    episode, output = plastic.rule.episode, plastic.network.output
    silent = {p.name: np.zeros(p.size) for p in plastic.network.populations}
    messages, within_margin = silent, False
    for t, step in enumerate(episode):
        check_deadline()
        number = (training.first + sample) * len(episode) + t
        if step.phase == len(plastic.rule.schedule):
            rule.trace(silent, None, number, events.traces[-1])
            rule.commit(sample, number, log)
            record_synapses(sample, t, rule, log)
            return
        if t == plastic.rule.schedule[0].steps and rule.within_margin(sample):
            within_margin, log.nudged[sample] = True, 0
        if within_margin:
            continue
        messages = advance(sample, step, messages, neurons, rule, log)
        for name, message in messages.items():
            events.sent[name][step.phase] += message != 0
        if step.phase == 0 and step.in_window:
            log.drives[sample] += neurons[output].values()["drive"]
        rule.trace(messages, neurons, number, events.traces[step.phase])
        if step.gate:
            rule.gather(step.gate, number, sample, log, events.tags[step.phase])
        record_synapses(sample, t, rule, log)
        for (name, variable), course in log.activity.items():
            cell = neurons[name]
            spikes = variable == "spikes"
            course[sample, t] = cell.payload(messages[name]) if spikes else cell.values()[variable]


def advance(
    sample: int,
    step: EpisodeStep,
    messages: Mapping[str, Array],
    neurons: Mapping[str, Neurons],
    rule: FloatRule,
    log: LearningLog,
) -> dict[str, Array]:
    """One step of every population: the new messages, from those of the last step."""
    network, stimulus = log.plastic.network, log.training.stimulus
    dtype = np.float64 if network.fixed is None else np.int64
    arriving = {(p.name, gain): np.zeros(p.size) for p in network.populations for gain in Gain}
    for each in rule.weights:
        key = each.projection.target, each.projection.gain
        sent = messages[each.projection.source]
        arriving[key] = arrive(arriving[key], each.weight * each.gain, sent)
    found = {}
    for name, cells in neurons.items():
        current, pull = stimulus.current.get(name), stimulus.pull.get(name)
        outside = cells.outside(
            None if current is None else current[sample],
            None if pull is None else pull[sample],
            step.beta,
        )
        one, by_beta = (arriving[name, gain].astype(dtype) for gain in Gain)
        found[name] = cells.advance(one, by_beta, step.beta, outside).astype(np.float64)
    return found


def arrive(total: Array, weight: Array, message: Array) -> Array:
    """total + weight @ message, summed in the order of the sources, which fixes the rounding."""
    sources = np.flatnonzero(message)
    inputs = (weight[:, sources] * message[sources]).T
    # np.sum would add pairwise if there is only one target.
    return np.asarray(np.add.accumulate(np.concatenate([total[None], inputs]), axis=0)[-1])


def record_synapses(sample: int, t: int, rule: FloatRule, log: LearningLog) -> None:
    """Record the chosen synapses."""
    for k, (name, target, source) in enumerate(log.synapses.chosen):
        log.history[sample, t, k] = rule.synapse(name, target, source)
