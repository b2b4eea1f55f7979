"""Rate-based EqProp on the samples of on-chip learning: a baseline, and reference updates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from neuro_eqprop.common.arrays import Array, cosine
from neuro_eqprop.dynamics.field import field
from neuro_eqprop.networks.feedback import own_feedback
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.runs.simulate import settle
from neuro_eqprop.runs.update_fidelity import rate_settings, summed_update
from neuro_eqprop.simulators.learning import (
    NO_RECORD,
    SYNAPSE_VARIABLES,
    Learned,
    Learner,
    LearningLog,
)
from neuro_eqprop.simulators.recordings import Record
from neuro_eqprop.spiking.ir import Stimulus
from neuro_eqprop.spiking.make_plastic import ALWAYS, gain_of, parameters
from neuro_eqprop.spiking.plasticity import PlasticNetwork, TrainingSamples
from neuro_eqprop.training.rules.base import Batch
from neuro_eqprop.training.settings import RuleSettings


def to_batch(network: Network, stimulus: Stimulus) -> Batch:
    """Convert the samples of a stimulus to a batch for rates."""
    x, target = stimulus.current[network.input.name], stimulus.pull[network.output.name]
    return Batch(x, target, measured=False)


@dataclass(frozen=True, slots=True)
class RateLearner(Learner):
    """The rate network learns, in the order, batches and learning rates of the chip.

    Weights are clipped to [-limit, limit] after each batch. What is recorded of a batch is its
    samples as they settle with the weights before it, through the phases of the chip.
    """

    network: Network
    settings: RuleSettings
    limit: float
    name: str = "rate"

    def run(self, log: LearningLog) -> Learned:
        """Learn from all samples; rates have no tags and no events."""
        plastic = log.plastic
        before = {name: plastic.projection(name).weight for name in plastic.learns}
        params = parameters(self.network, plastic, before)
        names, keep = [part.name for part in plastic.plastic], plastic.keeps(log.training.rates)
        for part in log.parts(plastic.rule.batch):
            batch = to_batch(self.network, log.training.stimulus.take(part.start, part.stop))
            rate = float(log.training.rates[part.stop - 1]) / (part.stop - part.start)
            keeps = dict(zip(names, keep[part.stop - 1], strict=True))
            after = dict(params)
            update, log.drives[part] = summed_update(self.network, params, batch, self.settings)
            for name, gradient in update.items():
                # Adding zero turns -0.0 into 0.0, so that equal weights have equal bytes.
                wanted = keeps.get(name, 1.0) * params[name] - rate * gradient + 0.0
                after[name] = np.clip(wanted, -self.limit, self.limit)
                log.clipped += int(np.count_nonzero(after[name] != wanted))
            if log.record != NO_RECORD:
                self.record(log, part, batch, params, after)
            params = after
        weights = {c.name: gain_of(c) * params[c.name] for c in self.network.connections}
        for layer in self.network.moving:
            weights[f"{ALWAYS}->{layer.name}"] = params[layer.name].reshape(-1, 1)
        return replace(log.result(weights, {}), counts={})

    def record(
        self,
        log: LearningLog,
        part: slice,
        batch: Batch,
        params: Mapping[str, Array],
        after: Mapping[str, Array],
    ) -> None:
        """Record the rates of a batch, and of its synapses what the rule would make of them."""
        synapses, rule, moving = log.record.synapses, log.plastic.rule, self.network.moving
        rates = frozenset((layer.name, "rate") for layer in moving) if synapses else frozenset()
        wanted = Record(signals=rates | log.record.activity.signals)
        free = field(NumpyOps(), self.network, params, batch.x)
        settled = settle(free, batch.target, rule.schedule, wanted)
        courses = {
            key: np.stack([recording.signals[key] for recording in settled])
            for key in wanted.signals
        }
        for key, course in log.activity.items():
            course[part] = courses[key]
        gates = np.array([step.gate for step in rule.episode[:-1]])[:, None]
        history = np.zeros((len(settled), len(gates), len(synapses), len(SYNAPSE_VARIABLES)))
        for k, (name, target, source) in enumerate(synapses):
            before, _, behind = name.partition("->")
            given = before == self.network.input.name
            pre = batch.x[:, None, source] if given else courses[before, "rate"][:, :, source]
            history[:, :, k, 0] = pre
            history[:, :, k, 1] = courses[behind, "rate"][:, :, target]
            history[:, :, k, 3] = params[name][target, source]
        history[..., 2] = np.cumsum(gates * (history[..., 0] * history[..., 1]), axis=1)
        chosen = np.array([after[name][target, source] for name, target, source in synapses])
        log.record_batch(part, history, chosen)


@dataclass(frozen=True, slots=True)
class Direction:
    """Median cosine similarity of a parameter's tags over samples; None if it is undefined."""

    rate: float | None
    """Cosine with the update of rate-based EqProp."""
    gradient: float | None
    """Cosine with the negative exact gradient."""


NOISE = 1e-7
"""Norms below this are rounding noise of the solver."""


def directions(
    network: Network,
    plastic: PlasticNetwork,
    params: Mapping[str, Array],
    stimulus: Stimulus,
    learner: Learner,
) -> dict[str, Direction]:
    """Compare the tags of on-chip learning with rate-based updates and exact gradients.

    `params` are the current parameters of the rate network that `plastic` was made from. Each
    sample is learned on its own, with a learning rate of zero.
    """
    settings = rate_settings(plastic.rule.schedule, free=2000, nudged=2000)
    backwards = {back.name for _, back in own_feedback(network)}
    rates: dict[str, list[float]] = {}
    gradients: dict[str, list[float]] = {}
    for k in range(stimulus.samples):
        sample = stimulus.take(k, k + 1)
        learned = learner.learn(plastic, TrainingSamples(sample, np.zeros(1)))
        batch = to_batch(network, sample)
        updates, _ = summed_update(network, params, batch, settings)
        exact = exact_gradient(network, params, batch)
        for name, update in updates.items():
            if name not in plastic.learns and "->" in name:
                continue  # random feedback
            tag = learned.tags[name if "->" in name else f"{ALWAYS}->{name}"].ravel()
            append_defined(rates, name, cosine(tag, -update, floor=NOISE))
            if exact is not None and name not in backwards:
                append_defined(gradients, name, cosine(tag, -exact[name], floor=NOISE))
    return {
        name: Direction(median(rates.get(name)), median(gradients.get(name)))
        for name in network.parameters()
    }


def exact_gradient(
    network: Network, params: Mapping[str, Array], batch: Batch
) -> dict[str, Array] | None:
    """Return the gradient of the cost at equilibrium; None if the network does not settle."""
    from neuro_eqprop.training.gradients import implicit

    try:
        return implicit(network, dict(params), batch.x, batch.target)
    except ValueError:
        return None


def append_defined(cosines: dict[str, list[float]], name: str, value: float | None) -> None:
    """Append a value unless it is None."""
    if value is not None:
        cosines.setdefault(name, []).append(value)


def median(values: list[float] | None) -> float | None:
    """Return the median; None if there are no values."""
    return float(np.median(values)) if values else None
