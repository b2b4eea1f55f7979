from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from neuro_eqprop.common.arrays import Array, defined_cosine
from neuro_eqprop.data import load_digits, one_hot
from neuro_eqprop.dynamics.field import field
from neuro_eqprop.dynamics.schedules import Schedule, three_phase, two_phase
from neuro_eqprop.networks.activations import HARD_SIGMOID, TANH
from neuro_eqprop.networks.architectures import layered, looped
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.runs.learning_cost import events_by_step
from neuro_eqprop.simulators.learning import Learned, LearningRecord
from neuro_eqprop.simulators.learning_rules import ENDS, round_stochastic
from neuro_eqprop.simulators.recordings import Record
from neuro_eqprop.simulators.registry import load_learner
from neuro_eqprop.spiking.codes import Code, Coding
from neuro_eqprop.spiking.make_plastic import PlasticityConfig, make_plastic, training_stimulus
from neuro_eqprop.spiking.nonidealities import Nonidealities
from neuro_eqprop.spiking.phases import PhaseLengths
from neuro_eqprop.spiking.plasticity import (
    IntegerArithmetic,
    LearningRule,
    LoihiEngine,
    PlasticNetwork,
    TrainingSamples,
    engine_for,
)
from neuro_eqprop.training.rules.hebbian import hebbian
from neuro_eqprop.training.rules.phases import SWEEPS, relax

CENTERED = PhaseLengths(10, 6, 4).schedule(beta=0.5, centered=True)
ONE_SIDED = PhaseLengths(10, 6, 4).schedule(beta=0.5, centered=False)
SYNAPSES = LearningRecord(
    (("input->hidden", 3, 20), ("output->hidden", 2, 1), ("always->output", 1, 0))
)
MARGIN = 0.8
"""Between the largest errors of the samples before learning."""
ENGINE = engine_for(0.1, gap=1.0, window=4, scale=1 / 128, seed=5)


@cache
def three_classes() -> tuple[Array, Array, Network, dict[str, Array]]:
    """Digits 0, 1 and 2 with their targets, and a network that is to tell them apart."""
    train = load_digits().train
    rows = np.flatnonzero(train.y < 3)[:100]
    net = layered(64, (32,), 3, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
    return train.x[rows], one_hot(train.y[rows], 3), net, start(net)


def start(net: Network) -> dict[str, Array]:
    params = initialize(net, np.random.default_rng(0))
    return {name: value + (0.0 if "->" in name else 0.3) for name, value in params.items()}


@dataclass(frozen=True, slots=True)
class Case:
    """What to learn from a number of samples."""

    code: Code
    rule: LearningRule
    samples: int = 8
    theta: float = 2.0**-8
    limit: float = 2.0
    flaws: Nonidealities = Nonidealities()  # noqa: RUF009 - frozen
    first: int = 0


def task(case: Case) -> tuple[PlasticNetwork, TrainingSamples]:
    x, target, net, params = three_classes()
    coding = Coding(case.code, theta=case.theta)
    how = PlasticityConfig(coding, case.rule, case.limit, 1e-3, case.flaws)
    stimulus = training_stimulus(net, x[: case.samples], target[: case.samples], coding)
    rates = np.linspace(0.1, 0.02, case.samples)
    return make_plastic(net, params, how), TrainingSamples(stimulus, rates, case.first)


def learn(on: str, plastic: PlasticNetwork, training: TrainingSamples) -> Learned:
    return load_learner(on).learn(plastic, training, record=SYNAPSES)


CASES = {
    "rate": Case(Code.RATE, LearningRule(CENTERED, 5.0)),
    "rate, one-sided": Case(Code.RATE, LearningRule(ONE_SIDED, 5.0)),
    "rate, batch": Case(Code.RATE, LearningRule(CENTERED, 5.0, batch=3)),
    "rate, run on": Case(Code.RATE, LearningRule(CENTERED, 5.0, fresh=False)),
    "rate, clipped": Case(Code.RATE, LearningRule(CENTERED, 5.0), limit=0.3),
    "rate, flaws": Case(
        Code.RATE, LearningRule(CENTERED, 5.0), flaws=Nonidealities(0.2, 0.1, 0.1, seed=3)
    ),
    "rate, whole": Case(Code.RATE, LearningRule(CENTERED, 5.0, numbers=IntegerArithmetic(7))),
    "rate, whole, later": Case(
        Code.RATE, LearningRule(CENTERED, 5.0, 3, numbers=IntegerArithmetic(7)), first=9
    ),
    "rate, whole, apart": Case(
        Code.RATE,
        LearningRule(CENTERED, 5.0, numbers=IntegerArithmetic(7, 6, 5)),
        flaws=Nonidealities(asymmetric=True),
    ),
    "rate, whole, run on": Case(
        Code.RATE, LearningRule(CENTERED, 5.0, fresh=False, numbers=IntegerArithmetic(7))
    ),
    "rate, engine": Case(Code.RATE, LearningRule(CENTERED, 5.0, numbers=ENGINE)),
    "rate, engine, later": Case(Code.RATE, LearningRule(CENTERED, 5.0, numbers=ENGINE), first=4),
    "graded": Case(Code.GRADED, LearningRule(CENTERED, 5.0)),
    "graded, one-sided": Case(Code.GRADED, LearningRule(ONE_SIDED, 5.0)),
    "graded, theta": Case(Code.GRADED, LearningRule(CENTERED, 5.0), theta=0.01),
    "graded, batch": Case(Code.GRADED, LearningRule(CENTERED, 5.0, batch=3)),
    "graded, whole": Case(Code.GRADED, LearningRule(CENTERED, 5.0, numbers=IntegerArithmetic(7))),
    "rate, margin": Case(Code.RATE, LearningRule(CENTERED, 5.0, margin=MARGIN)),
    "rate, margin, batch, run on": Case(
        Code.RATE, LearningRule(CENTERED, 5.0, 3, fresh=False, margin=MARGIN)
    ),
    "graded, margin": Case(Code.GRADED, LearningRule(CENTERED, 5.0, margin=MARGIN)),
    "graded, whole, margin": Case(
        Code.GRADED, LearningRule(CENTERED, 5.0, numbers=IntegerArithmetic(7), margin=MARGIN)
    ),
}


@pytest.mark.parametrize("code", [Code.RATE, Code.GRADED])
def test_a_sample_within_the_margin_changes_no_weight(code: Code) -> None:
    plastic, training = task(Case(code, LearningRule(CENTERED, 5.0, margin=MARGIN)))
    commits = learn("emulator", plastic, training).history[:, :, 2, 3]
    changed = commits[:, -1] != np.concatenate([commits[:1, 0], commits[:-1, -1]])
    assert 0 < changed.sum() < len(changed)


@pytest.mark.parametrize("on", ["reference", "emulator"])
@pytest.mark.parametrize("code", [Code.RATE, Code.GRADED])
def test_phases_that_were_left_out_have_no_steps_and_no_updates(code: Code, on: str) -> None:
    rule = LearningRule(CENTERED, 5.0, margin=MARGIN)
    plastic, training = task(Case(code, rule))
    drive = ("hidden", "drive")
    recorded = LearningRecord(activity=Record(signals=frozenset([drive])))
    learned = load_learner(on).learn(plastic, training, record=recorded)
    start = 0
    for phase in rule.schedule:
        stop = start + phase.steps
        # A unit of a phase that ran has a drive: its bias is not zero.
        ran = [bool(each.signals[drive][start:stop].any()) for each in learned.activity]
        assert (sum(ran) == len(ran)) == (start == 0)
        assert sum(ran) > 0
        for population in plastic.network.populations:
            counted = learned.counts[population.name, phase.name]
            assert counted.steps == sum(ran) * phase.steps
            updates = counted.updates_active + counted.updates_idle
            assert updates == counted.steps * population.size
        start = stop


@pytest.mark.parametrize("code", [Code.RATE, Code.GRADED])
def test_recorded_steps_leave_out_the_phases_that_did_not_run(code: Code) -> None:
    rule = LearningRule(CENTERED, 5.0, margin=MARGIN)
    plastic, training = task(Case(code, rule, samples=4))
    learned, recorded = learn("reference", plastic, training), events_by_step(plastic, training)
    for name in ("hidden", "output"):
        counted = [c for (each, _), c in learned.counts.items() if each == name]
        steps = sum(each.steps for each in counted)
        assert steps < 4 * rule.steps
        for event in ("spikes", "tag_updates"):
            assert recorded[name, event].shape == (steps, plastic.network[name].size)
            assert recorded[name, event].sum() == sum(getattr(c, event) for c in counted) > 0
        assert recorded[name, "weight_updates"].sum() == 4


def check_equal(a: Learned, b: Learned) -> None:
    for name, weight in a.weights.items():
        np.testing.assert_array_equal(weight, b.weights[name])
    for name, tag in a.tags.items():
        np.testing.assert_array_equal(tag, b.tags[name])
    np.testing.assert_array_equal(a.history, b.history)
    np.testing.assert_allclose(a.drive, b.drive, rtol=0, atol=1e-12)
    assert a.counts == b.counts
    assert (a.saturated, a.clipped, a.overflows) == (b.saturated, b.clipped, b.overflows)


@pytest.mark.parametrize("name", CASES)
def test_the_emulator_learns_what_the_reference_does_bit_for_bit(name: str) -> None:
    plastic, training = task(CASES[name])
    a, b = learn("reference", plastic, training), learn("emulator", plastic, training)
    check_equal(a, b)
    moved = a.weights["input->hidden"] - plastic.projection("input->hidden").weight
    assert np.count_nonzero(moved) > 100
    assert np.ptp(a.history[..., 2]) > 0


@pytest.mark.parametrize("code", [Code.RATE, Code.GRADED])
def test_they_are_equal_after_a_hundred_samples(code: Code) -> None:
    case = Case(code, LearningRule(CENTERED, 5.0), samples=100)
    plastic, training = task(case)
    check_equal(learn("reference", plastic, training), learn("emulator", plastic, training))


@pytest.mark.parametrize("numbers", [None, IntegerArithmetic(7), ENGINE])
@pytest.mark.parametrize("window", [1, 3, 8, 11])
def test_windows_of_any_length_gather_the_same_unwatched(
    window: int, numbers: IntegerArithmetic | LoihiEngine | None
) -> None:
    phases = PhaseLengths(6, 4, window).schedule(beta=0.5, centered=True)
    batch = 1 if isinstance(numbers, LoihiEngine) else 2
    case = Case(Code.RATE, LearningRule(phases, 5.0, batch, numbers=numbers), samples=5)
    plastic, training = task(case)
    learned = [load_learner(on).learn(plastic, training) for on in ("reference", "emulator")]
    check_equal(*learned)
    assert learned[0].total.tag_updates > 0


@pytest.mark.parametrize("which", ["looped", "deep", "tanh"])
def test_they_are_equal_on_other_networks(which: str) -> None:
    x, target, _, _ = three_classes()
    rate = TANH if which == "tanh" else HARD_SIGMOID
    if which == "looped":
        net = looped(64, 12, 3, hidden_rate=rate, output_rate=HARD_SIGMOID, bound=None)
    else:
        net = layered(64, (9, 7), 3, hidden_rate=rate, output_rate=HARD_SIGMOID, feedback=0.5)
    code = Code.GRADED if which == "tanh" else Code.RATE
    coding = Coding(code, theta=2.0**-8)
    plastic = make_plastic(
        net, start(net), PlasticityConfig(coding, LearningRule(CENTERED, 5.0), 2.0, 1e-3)
    )
    training = TrainingSamples(training_stimulus(net, x[:6], target[:6], coding), np.full(6, 0.1))
    learned = [load_learner(on).learn(plastic, training) for on in ("reference", "emulator")]
    check_equal(*learned)
    if which == "looped":
        loop = learned[0].weights["hidden->hidden"]
        np.testing.assert_array_equal(loop, loop.T)


def test_the_emulator_may_be_stopped_between_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    from neuro_eqprop.simulators.emulator import learning

    plastic, training = task(CASES["rate, run on"])
    whole = learn("emulator", plastic, training)
    monkeypatch.setattr(learning, "AT_ONCE", 1)
    seen: list[int] = []
    parts = load_learner("emulator").learn(plastic, training, record=SYNAPSES, progress=seen.append)
    assert seen == [1] * 8
    check_equal(whole, parts)


def rate_update(k: int, schedule: Schedule) -> dict[str, Array]:
    """What rate EqProp asks for with sample k, at tight equilibria."""
    x, target, net, params = three_classes()
    ops, x, target = NumpyOps(), x[k : k + 1], target[k : k + 1]
    settling = replace(SWEEPS, tolerance=1e-12)
    phases = relax(field(ops, net, params, x), target, schedule, settling)
    states = {name: settled.state for name, settled in phases.items()}
    asked = hebbian(ops, net, x, states=states, schedule=schedule)
    return {n if "->" in n else f"always->{n}": v.reshape(len(v), -1) for n, v in asked.items()}


def cosines(rule: LearningRule, code: Code, samples: int = 15) -> dict[str, float]:
    """By projection, the median cosine of tags with what rate EqProp asks for."""
    plastic, every = task(Case(code, rule, samples=samples))
    make = three_phase if len(rule.schedule) == 3 else two_phase
    found: dict[str, list[float]] = {}
    for k in range(samples):
        one = TrainingSamples(every.stimulus.take(k, k + 1), every.rates[k : k + 1])
        tags = load_learner("emulator").learn(plastic, one).tags
        wanted = rate_update(k, make(beta=0.5, free=2000, nudged=2000))
        for name, value in wanted.items():
            found.setdefault(name, []).append(defined_cosine(tags[name], value))
    return {name: float(np.median(values)) for name, values in found.items()}


def test_graded_tags_point_where_rates_do() -> None:
    schedule = PhaseLengths(16, 12, 4).schedule(beta=0.5, centered=True)
    assert min(cosines(LearningRule(schedule, 8.0), Code.GRADED).values()) >= 0.98


def test_spiking_tags_point_where_rates_do() -> None:
    schedule = PhaseLengths(32, 32, 32).schedule(beta=0.5, centered=True)
    assert min(cosines(LearningRule(schedule, 8.0), Code.RATE).values()) >= 0.98


def test_whole_tags_point_where_rates_do() -> None:
    schedule = PhaseLengths(32, 32, 32).schedule(beta=0.5, centered=True)
    assert (
        min(cosines(LearningRule(schedule, 8.0, numbers=IntegerArithmetic(0)), Code.RATE).values())
        >= 0.95
    )


def test_with_the_sign_turned_tags_point_the_other_way() -> None:
    class Turned(LearningRule):
        @property
        def gates(self) -> tuple[float, ...]:
            return (0.0, 1.0, -1.0)

    schedule = PhaseLengths(16, 12, 4).schedule(beta=0.5, centered=True)
    assert max(cosines(Turned(schedule, 8.0), Code.GRADED, samples=5).values()) < -0.9


@pytest.mark.parametrize("code", [Code.RATE, Code.GRADED])
def test_three_classes_are_learned(code: Code) -> None:
    x, target, net, params = three_classes()
    window = 16 if code is Code.RATE else 4
    schedule = PhaseLengths(16, 16, window).schedule(beta=0.5, centered=True)
    coding = Coding(code, theta=2.0**-8)
    plastic = make_plastic(
        net, params, PlasticityConfig(coding, LearningRule(schedule, 8.0), 4.0, 1e-3)
    )
    order = np.random.default_rng(0).permutation(np.tile(np.arange(100), 3))
    stimulus = training_stimulus(net, x[order], target[order], coding)
    training = TrainingSamples(stimulus, np.full(300, 0.05))
    learned = load_learner("emulator").learn(plastic, training, record=SYNAPSES)
    right = learned.drive.argmax(axis=1) == target[order].argmax(axis=1)
    assert right[:30].mean() < 0.8
    assert right[-100:].mean() >= 0.95


@pytest.mark.lava
def test_the_engine_rounds_as_lava_does() -> None:
    """Its parts of Lava, given the same numbers: trace, tag and weight bit for bit."""
    from lava.magma.core.learning.learning_rule import Loihi3FLearningRule
    from lava.magma.core.learning.learning_rule_applier import LearningRuleApplierBitApprox
    from lava.magma.core.model.py.connection import LearningConnectionModelBitApproximate as Lava

    rule = Loihi3FLearningRule(
        dw=f"2^{ENGINE.exponent}*u0*t*y3", dt="2^-7*u0*x1*y1*y2 - u0*t*y3", t_epoch=1
    )
    rng = np.random.default_rng(0)
    shape = (7, 9)
    w, m = rng.integers(-256, 256, shape), rng.integers(-257, 256, shape)
    pre, post = rng.integers(0, 128, 9), rng.integers(0, 128, 7)
    decayed = Lava._decay_trace(pre, 1, 8.0, 0.4)
    np.testing.assert_array_equal(decayed, round_stochastic(np.exp(-1 / 8.0) * pre, 0.4))
    for y2, y3 in ((ENGINE.factor, 0), (-ENGINE.factor, 0), (0, 32)):
        result = {
            "shape": shape,
            "u": 1,
            "weights": w,
            "tag_1": m,
            "x1_u": pre[None],
            "y1_u": post[:, None],
            "y2_u": np.full((7, 1), y2),
            "y3_u": np.full((7, 1), y3),
        }
        series = rule.active_product_series
        found = {}
        for name, target, old in (("weights", "dw", w), ("tag_1", "dt", m)):
            raw = LearningRuleApplierBitApprox(series[target]).apply(old << 7, **result)
            found[name] = Lava._stochastic_round_synaptic_variable(name, raw, 0.3) >> 7
        grown = np.clip(np.floor(pre[None] * post[:, None] * y2 / 1024), *ENDS)
        grown = np.clip(128.0 * m + grown, *ENDS)
        grown = np.clip(grown + np.clip(np.floor(-m * y3 / 32) * 128.0, *ENDS), *ENDS)
        np.testing.assert_array_equal(found["tag_1"], round_stochastic(grown / 128.0, 0.3))
        asked = np.clip(np.floor(m * y3 / 32) * 2.0 ** (7 + ENGINE.exponent), *ENDS)
        asked = round_stochastic(np.clip(128.0 * w + asked, *ENDS) / 128.0, 0.3)
        np.testing.assert_array_equal(found["weights"], asked)


def test_the_engine_learns_and_keeps_pairs_nearly_symmetric() -> None:
    assert isinstance(ENGINE, LoihiEngine)
    plastic, training = task(
        Case(Code.RATE, LearningRule(CENTERED, 5.0, numbers=ENGINE), samples=60)
    )
    learned = learn("emulator", plastic, training)
    there, back = learned.weights["hidden->output"], learned.weights["output->hidden"]
    assert np.count_nonzero(there != back.T) <= 0.05 * there.size
    assert not np.array_equal(there, plastic.projection("hidden->output").weight)
