"""The rule of `neuro_eqprop.spiking.plasticity` in NumPy, the reference for all other learners."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.simulators.learning import Learned, Learner, LearningLog
from neuro_eqprop.simulators.learning_rules import RULES, FloatRule
from neuro_eqprop.spiking.ir import Gain
from neuro_eqprop.spiking.neurons import Neurons, neurons_of
from neuro_eqprop.spiking.plasticity import EpisodeStep


@dataclass(frozen=True, slots=True)
class ReferenceLearner(Learner):
    """Learns sample by sample, in float64 or in integers."""

    name: str = "reference"

    def run(self, log: LearningLog) -> Learned:
        """Learn from all samples."""
        network = log.plastic.network
        neurons = {p.name: neurons_of(network, p) for p in network.populations}
        rule = RULES[type(log.plastic.rule.numbers)](log)
        for part in log.parts(1):
            if log.plastic.rule.fresh:
                for population in network.populations:
                    neurons[population.name].rest((population.size,))
            learn_sample(part.start, neurons, rule)
        log.drives /= log.plastic.rule.schedule[0].window
        log.overflows = sum(int(cells.overflows.sum()) for cells in neurons.values())
        return rule.result()


def learn_sample(sample: int, neurons: Mapping[str, Neurons], rule: FloatRule) -> None:
    """Run all steps of a sample, of which the last is the commit."""
    log, schedule, output = rule.log, rule.rule.schedule, rule.plastic.network.output
    episode = rule.rule.episode
    silent = {name: np.zeros(log.sent[name].shape[1]) for name in neurons}
    messages = silent
    for t, step in enumerate(episode):
        place = (log.training.first + sample) * len(episode) + t
        is_commit = step.phase == len(schedule)
        if t == schedule[0].steps and rule.within_margin(sample):
            log.nudged[sample] = 0
        if step.phase > 0 and not is_commit and not log.nudged[sample]:
            continue
        messages = silent if is_commit else advance(sample, step, messages, neurons, rule)
        rule.trace(messages, neurons, place, step.phase)
        if step.gate:
            rule.gather(step, sample, place)
        if is_commit:
            rule.commit(sample, place)
        else:
            record_activity(sample, t, step, messages, neurons, log)
        if step.phase == 0 and step.in_window:
            log.drives[sample] += neurons[output].values()["drive"]
        rule.record(sample, t)


def advance(
    sample: int,
    step: EpisodeStep,
    messages: Mapping[str, Array],
    neurons: Mapping[str, Neurons],
    rule: FloatRule,
) -> dict[str, Array]:
    """One step of every population: the new messages, from those of the last step."""
    network, stimulus = rule.plastic.network, rule.log.training.stimulus
    dtype = np.float64 if network.fixed is None else np.int64
    arriving = {(p.name, gain): np.zeros(p.size) for p in network.populations for gain in Gain}
    for weights in rule.weights:
        key = weights.projection.target, weights.projection.gain
        sent = messages[weights.projection.source]
        arriving[key] = arrive(arriving[key], weights.weight * weights.gain, sent)
    new = {}
    for name, cells in neurons.items():
        current, pull = stimulus.current.get(name), stimulus.pull.get(name)
        outside = cells.outside(
            None if current is None else current[sample],
            None if pull is None else pull[sample],
            step.beta,
        )
        one, by_beta = (arriving[name, gain].astype(dtype) for gain in Gain)
        new[name] = cells.advance(one, by_beta, step.beta, outside).astype(np.float64)
    return new


def arrive(total: Array, weight: Array, message: Array) -> Array:
    """total + weight @ message, summed in the order of the sources, which fixes the rounding."""
    sources = np.flatnonzero(message)
    inputs = (weight[:, sources] * message[sources]).T
    # np.sum would add pairwise if there is only one target.
    return np.asarray(np.add.accumulate(np.concatenate([total[None], inputs]), axis=0)[-1])


def record_activity(
    sample: int,
    t: int,
    step: EpisodeStep,
    messages: Mapping[str, Array],
    neurons: Mapping[str, Neurons],
    log: LearningLog,
) -> None:
    """Count the messages of a step, and record the activity of the chosen populations."""
    for name, message in messages.items():
        log.sent[name][step.phase] += message != 0
    for (name, variable), course in log.activity.items():
        cells, spikes = neurons[name], variable == "spikes"
        course[sample, t] = cells.payload(messages[name]) if spikes else cells.values()[variable]
