from __future__ import annotations

from dataclasses import replace
from math import exp, floor

import numpy as np
import pytest

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.schedules import Phase
from neuro_eqprop.networks.activations import HARD_SIGMOID
from neuro_eqprop.networks.architectures import layered
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.learning import NO_RECORD, Learned, LearningRecord
from neuro_eqprop.simulators.registry import learner_names, load_learner
from neuro_eqprop.spiking.codes import Code, Coding
from neuro_eqprop.spiking.ir import Graded
from neuro_eqprop.spiking.make_plastic import (
    PlasticityConfig,
    make_plastic,
    training_stimulus,
)
from neuro_eqprop.spiking.nonidealities import Nonidealities
from neuro_eqprop.spiking.phases import PhaseLengths
from neuro_eqprop.spiking.plasticity import (
    IntegerArithmetic,
    LearningRule,
    PlasticNetwork,
    TrainingSamples,
    with_weights,
)

NETWORK = layered(6, (5,), 3, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
X = np.random.default_rng(2).uniform(0, 1, (6, 6))
TARGET = np.eye(3)[[0, 2, 1, 1, 0, 2]]
RATES = np.linspace(0.3, 0.1, 6)
CODINGS = {"rate": Coding(Code.RATE), "graded": Coding(Code.GRADED, theta=2.0**-7)}
CENTERED = PhaseLengths(8, 6, 4).schedule(beta=0.5, centered=True)
ONE_SIDED = PhaseLengths(8, 6, 4).schedule(beta=0.5, centered=False)


def grown(
    code: str, rule: LearningRule, *, limit: float = 2.0, flaws: Nonidealities | None = None
) -> tuple[PlasticNetwork, TrainingSamples]:
    params = initialize(NETWORK, np.random.default_rng(1))
    params = {n: v + (0.0 if "->" in n else 0.3) for n, v in params.items()}
    how = PlasticityConfig(CODINGS[code], rule, limit, 1e-3, flaws or Nonidealities())
    stimulus = training_stimulus(NETWORK, X, TARGET, CODINGS[code])
    return make_plastic(NETWORK, params, how), TrainingSamples(stimulus, RATES)


def learn(
    plastic: PlasticNetwork, training: TrainingSamples, synapses: LearningRecord = NO_RECORD
) -> Learned:
    return load_learner("reference").learn(plastic, training, record=synapses)


def replay(  # noqa: C901, PLR0912, PLR0915 - one loop in plain sight
    plastic: PlasticNetwork, training: TrainingSamples
) -> dict[str, Array]:
    """The rule once more, unit by unit in plain Python, for nets of this file alone."""
    rule, net = plastic.rule, plastic.network
    sizes = {p.name: p.size for p in net.populations}
    graded = {p.name: hasattr(p.neuron, "theta") for p in net.populations}
    w = {(p.source, p.target, p.gain.value): p.weight.tolist() for p in net.projections}
    limit = plastic.plastic[0].limit
    keep = exp(-1 / rule.tau)
    r = {n: [0.0] * k for n, k in sizes.items()}
    tags = {p.name: np.zeros(plastic.projection(p.name).weight.shape) for p in plastic.plastic}
    betas = [phase.beta for phase in rule.schedule]
    gap = max(betas) - min(betas)
    cell: dict[tuple[str, int], dict[str, float]] = {}
    for sample in range(training.stimulus.samples):
        if rule.fresh or not cell:
            for n, k in sizes.items():
                for i in range(k):
                    cell[n, i] = {"v": 0.5, "g": 0.0, "gb": 0.0, "x": 0.0, "sent": 0.0}
        sent = {n: [0.0] * k for n, k in sizes.items()}
        for phase in rule.schedule:
            sign = (phase.beta == max(betas)) - (phase.beta == min(betas))
            for tick in range(phase.steps):
                new = {n: [0.0] * k for n, k in sizes.items()}
                for p in net.populations:
                    for i in range(p.size):
                        a = {"one": 0.0, "beta": 0.0}
                        for (source, target, gain), weight in w.items():
                            if target == p.name:
                                a[gain] += sum(
                                    weight[i][j] * sent[source][j] for j in range(sizes[source])
                                )
                        c = cell[p.name, i]
                        outside = float(p.bias[i])
                        if p.name in training.stimulus.current:
                            outside += training.stimulus.current[p.name][sample, i]
                        if p.name in training.stimulus.pull:
                            outside += phase.beta * training.stimulus.pull[p.name][sample, i]
                        if graded[p.name]:
                            assert isinstance(p.neuron, Graded)
                            theta, damping = p.neuron.theta, p.neuron.damping
                            c["g"] += a["one"]
                            c["gb"] += a["beta"]
                            d = c["g"] + phase.beta * c["gb"] + outside
                            rho = d if p.name == "input" else min(max(d, 0.0), 1.0)
                            c["x"] += damping * (rho - c["x"])
                            q = theta * float(np.rint((c["x"] - c["sent"]) / theta))
                            c["sent"] += q
                            new[p.name][i] = q
                            r[p.name][i] = c["sent"]
                        else:
                            v = c["v"] + a["one"] + phase.beta * a["beta"] + outside
                            spike = v >= 1.0
                            c["v"] = min(max(v - spike, -1.0), 2.0)
                            new[p.name][i] = float(spike)
                            r[p.name][i] = keep * r[p.name][i] + (1 - keep) * spike
                sent = new
                if tick >= phase.steps - phase.window:
                    for name in tags:
                        source, target = name.split("->")
                        tags[name] += sign * np.outer(r[target], r[source])
        for n in sizes:
            r[n] = [0.0 if graded[n] else keep * value for value in r[n]]
        done = sample % rule.batch + 1
        if done == rule.batch or sample == training.stimulus.samples - 1:
            eta = training.rates[sample] / (gap * rule.window * done)
            for name, m in tags.items():
                source, target = name.split("->")
                new_weight = np.clip(np.array(w[source, target, "one"]) + eta * m, -limit, limit)
                w[source, target, "one"] = new_weight.tolist()
                if (target, source, "one") in w:
                    w[target, source, "one"] = new_weight.T.tolist()
                m[:] = 0.0
    return {f"{s}->{t}": np.array(v) for (s, t, gain), v in w.items() if gain == "one"}


@pytest.mark.parametrize("code", ["rate", "graded"])
@pytest.mark.parametrize("schedule", [CENTERED, ONE_SIDED], ids=["centered", "one-sided"])
@pytest.mark.parametrize("batch", [1, 4])
def test_it_is_the_rule_as_a_plain_replay_has_it(
    code: str, schedule: tuple[Phase, ...], batch: int
) -> None:
    plastic, training = grown(code, LearningRule(schedule, 5.0, batch=batch))
    learned = learn(plastic, training)
    for name, weight in replay(plastic, training).items():
        np.testing.assert_allclose(learned.weights[name], weight, rtol=0, atol=1e-12)
        assert not np.array_equal(weight, plastic.projection(name).weight)


def test_spiking_neurons_may_run_on() -> None:
    plastic, training = grown("rate", LearningRule(CENTERED, 5.0, fresh=False))
    learned = learn(plastic, training)
    for name, weight in replay(plastic, training).items():
        np.testing.assert_allclose(learned.weights[name], weight, rtol=0, atol=1e-12)
    fresh = learn(replace(plastic, rule=replace(plastic.rule, fresh=True)), training)
    assert not np.array_equal(fresh.weights["input->hidden"], learned.weights["input->hidden"])


def test_weights_are_clipped_and_that_is_counted() -> None:
    plastic, training = grown("graded", LearningRule(CENTERED, 5.0), limit=0.35)
    learned = learn(plastic, training)
    for name, weight in replay(plastic, training).items():
        np.testing.assert_allclose(learned.weights[name], weight, rtol=0, atol=1e-12)
        assert np.abs(weight).max() <= 0.35
    assert learned.clipped > 0
    at_limit = {n: np.count_nonzero(np.abs(w) == 0.35) for n, w in learned.weights.items()}
    assert learned.saturated == at_limit
    assert max(at_limit.values()) > 0


@pytest.mark.parametrize("code", ["rate", "graded"])
@pytest.mark.parametrize("numbers", [None, IntegerArithmetic(3)], ids=["real", "whole"])
def test_pairs_stay_symmetric(code: str, numbers: IntegerArithmetic | None) -> None:
    plastic, training = grown(code, LearningRule(CENTERED, 5.0, numbers=numbers))
    learned = learn(plastic, training)
    there, back = learned.weights["hidden->output"], learned.weights["output->hidden"]
    assert not np.array_equal(there, plastic.projection("hidden->output").weight)
    np.testing.assert_array_equal(there, back.T)


def test_copies_that_are_rounded_apart_drift_apart() -> None:
    rule = LearningRule(CENTERED, 5.0, numbers=IntegerArithmetic(3))
    plastic, training = grown("rate", rule, flaws=Nonidealities(asymmetric=True))
    learned = learn(plastic, training)
    there, back = learned.weights["hidden->output"], learned.weights["output->hidden"]
    assert not np.array_equal(there, back.T)
    assert np.abs(there - back.T).max() <= 6 * plastic.plastic[0].scale


@pytest.mark.parametrize("code", ["rate", "graded"])
def test_fixed_point_rounds_the_rule_without_bias(code: str) -> None:
    """The mean of many seeds' first change is the tag times eta, which no seed alone can be."""
    changes, wanted = [], []
    for seed in range(30):
        rule = LearningRule(CENTERED, 5.0, numbers=IntegerArithmetic(seed))
        plastic, training = grown(code, rule)
        one = TrainingSamples(training.stimulus.take(0, 1), training.rates[:1])
        learned, part = learn(plastic, one), plastic.plastic[1]
        before = plastic.projection(part.name).weight
        changes.append((learned.weights[part.name] - before) / part.scale)
        eta = part.share * 0.3 / (rule.gap * rule.window) / (part.scale * 127**2)
        wanted.append(eta * learned.tags[part.name])
        assert np.array_equal(changes[-1], np.rint(changes[-1]))
        apart = changes[-1] - np.floor(wanted[-1])
        assert set(np.unique(apart)) <= {0.0, 1.0}
    error = np.abs(np.mean(changes, axis=0) - np.mean(wanted, axis=0))
    assert error.max() < 4 * 0.5 / np.sqrt(30)


def test_whole_traces_are_127_times_real_ones() -> None:
    chosen = LearningRecord((("input->hidden", 1, 2),))
    real, training = grown("graded", LearningRule(CENTERED, 5.0))
    whole, _ = grown("graded", LearningRule(CENTERED, 5.0, numbers=IntegerArithmetic(1)))
    none = replace(training, rates=np.zeros(6))
    traces = [learn(p, none, chosen).history[..., :2] for p in (real, whole)]
    assert np.abs(traces[1] - 127 * traces[0]).max() < 4
    assert (traces[1] == np.rint(traces[1])).all()
    assert traces[1].max() <= 127


def test_a_bias_learns_through_the_unit_that_is_always_on() -> None:
    """Its trace is one, so its change is the sum of the output's shift."""
    plastic, training = grown("graded", LearningRule(CENTERED, 5.0))
    one = TrainingSamples(training.stimulus.take(0, 1), training.rates[:1])
    chosen = LearningRecord(tuple(("always->output", i, 0) for i in range(3)))
    learned = learn(plastic, one, chosen)
    history = learned.history[0]
    assert (history[:-1, :, 0] == 1.0).all()
    shift = history[32 - 8 : 28, :, 1].sum(axis=0) - history[14:18, :, 1].sum(axis=0)
    moved = learned.weights["always->output"] - plastic.projection("always->output").weight
    np.testing.assert_allclose(moved[:, 0], 0.3 / 4 * shift, atol=1e-12)
    assert moved[0, 0] > 0 > moved[1:, 0].min()


def test_the_history_of_a_synapse() -> None:
    plastic, training = grown("rate", LearningRule(CENTERED, 5.0))
    chosen = LearningRecord((("hidden->output", 0, 3), ("output->hidden", 3, 0)))
    history = learn(plastic, training, chosen).history
    assert history.shape == (6, 29, 2, 4)
    there, back = history[:, :, 0], history[:, :, 1]
    np.testing.assert_array_equal(there[..., [1, 0, 2, 3]], back)
    assert (there[:, :14, 2] == 0).all(), "tags accumulate only in windows"
    assert (there[:, -1, 2] == 0).all(), "and are empty after the commit"
    inside = there[0, 14:18]
    np.testing.assert_allclose(
        np.diff(inside[:, 2]), -(inside[:, 0] * inside[:, 1])[1:], atol=1e-15
    )
    moves = np.flatnonzero(np.diff(there[..., 3].ravel()))
    assert {int(step + 1) % 29 for step in moves} == {28}


def test_events_are_counted_by_phase() -> None:
    plastic, training = grown("rate", LearningRule(CENTERED, 5.0))
    learned = learn(plastic, training)
    counts = learned.counts
    assert {phase for _, phase in counts} == {"free", "negative", "positive", "commit"}
    assert counts["hidden", "free"].tag_updates == 0
    assert 0 < counts["hidden", "negative"].tag_updates <= 6 * 4 * (6 * 5 + 5 + 3 * 5)
    assert counts["output", "commit"].weight_updates > 0
    assert counts["output", "positive"].weight_updates == 0
    assert counts["always", "free"].spikes == 6 * 8
    assert counts["always", "free"].synops == 6 * 8 * (5 + 3)
    assert counts["always", "commit"].trace_updates == 6
    assert counts["hidden", "commit"].spikes == 0
    assert counts["hidden", "commit"].steps == 6


def test_draws_go_on_where_they_were() -> None:
    plastic, training = grown("graded", LearningRule(CENTERED, 5.0, numbers=IntegerArithmetic(3)))
    together = learn(plastic, training)
    first = learn(plastic, TrainingSamples(training.stimulus.take(0, 4), training.rates[:4]))
    rest = TrainingSamples(training.stimulus.take(4, 6), training.rates[4:], first=4)
    second = learn(with_weights(plastic, first.weights), rest)
    for name, weight in together.weights.items():
        np.testing.assert_array_equal(second.weights[name], weight)
    assert floor(together.clipped) == first.clipped + second.clipped


@pytest.mark.parametrize(
    ("name", "words"),
    [("snntorch", "its synapses do not change")],
)
def test_simulators_that_cannot_learn_say_why(name: str, words: str) -> None:
    with pytest.raises(BackendError, match=rf"{words}.*; use reference or emulator"):
        load_learner(name)


def test_an_unknown_learner_is_named() -> None:
    assert {"reference", "emulator"} <= set(learner_names())
    with pytest.raises(ValueError, match="unknown simulator that learns 'emulat'; known: emul"):
        load_learner("emulat")
