from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.schedules import Phase
from neuro_eqprop.networks.activations import HARD_SIGMOID, RELU
from neuro_eqprop.networks.architectures import layered, looped
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.spiking.codes import Code, Coding
from neuro_eqprop.spiking.counter_rng import chances, uniform
from neuro_eqprop.spiking.ir import Stimulus
from neuro_eqprop.spiking.make_plastic import (
    ALWAYS,
    PlasticityConfig,
    for_inference,
    make_plastic,
    parameters,
    training_stimulus,
)
from neuro_eqprop.spiking.nonidealities import DEAD, Nonidealities
from neuro_eqprop.spiking.phases import PhaseLengths
from neuro_eqprop.spiking.plasticity import (
    IntegerArithmetic,
    LearningRule,
    LoihiEngine,
    PlasticityError,
    PlasticNetwork,
    TrainingSamples,
    engine_for,
    third_factors,
    with_weights,
)

SCHEDULE = PhaseLengths(8, 6, 4).schedule(beta=0.5, centered=True)
RATE, GRADED = Coding(Code.RATE), Coding(Code.GRADED, theta=2.0**-8)


def network(feedback: float = 1.0) -> Network:
    return layered(
        6, (5,), 3, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID, feedback=feedback
    )


def params(net: Network, bias: float = 0.3) -> dict[str, Array]:
    found = initialize(net, np.random.default_rng(1))
    return {name: value + (bias if "->" not in name else 0.0) for name, value in found.items()}


def grown(coding: Coding, rule: LearningRule, flaws: Nonidealities | None = None) -> PlasticNetwork:
    net = network()
    return make_plastic(
        net, params(net), PlasticityConfig(coding, rule, 2.0, 1e-3, flaws or Nonidealities())
    )


def test_the_gate_is_the_sign_of_the_contrast() -> None:
    assert LearningRule(SCHEDULE, 8.0).gates == (0.0, -1.0, 1.0)
    one_sided = PhaseLengths(8, 6, 4).schedule(beta=0.5, centered=False)
    rule = LearningRule(one_sided, 8.0)
    assert rule.gates == (-1.0, 1.0)
    assert (rule.gap, rule.window, rule.steps) == (0.5, 4, 12 + 10 + 1)


def test_one_sided_windows_need_traces_that_have_settled() -> None:
    short = PhaseLengths(16, 16, 16).schedule(beta=0.5, centered=False)
    long = PhaseLengths(64, 16, 16).schedule(beta=0.5, centered=False)
    assert LearningRule(short, 8.0).unsettled
    assert not LearningRule(long, 8.0).unsettled
    assert not LearningRule(SCHEDULE, 8.0).unsettled


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tau": 0.0}, "tau must be above zero"),
        ({"batch": 0}, "never commits"),
        ({"numbers": LoihiEngine(0, 100, -3, 0.1), "batch": 2}, "batch of 1"),
        ({"schedule": (Phase("commit", 0.0, 3, 2), Phase("b", 0.5, 3, 2))}, "called 'commit'"),
        ({"schedule": (Phase("a", 0.0, 3, 1), Phase("b", 0.5, 3, 2))}, "windows"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(change: dict[str, object], words: str) -> None:
    with pytest.raises(PlasticityError, match=words):
        replace(LearningRule(SCHEDULE, 8.0), **change)  # type: ignore[arg-type]


def test_engine_is_refused_for_what_it_cannot_do() -> None:
    with pytest.raises(PlasticityError, match="factor"):
        LoihiEngine(0, 128, -3, 0.1)
    with pytest.raises(PlasticityError, match="unsigned bytes"):
        grown(GRADED, LearningRule(SCHEDULE, 8.0, numbers=LoihiEngine(0, 100, -3, 0.1)))


@pytest.mark.parametrize("name", ["input->hidden", "output->output"])
def test_delays_are_refused_even_of_the_nudge(name: str) -> None:
    made = grown(RATE, LearningRule(SCHEDULE, 8.0))
    late = tuple(replace(p, delay=2) if p.name == name else p for p in made.network.projections)
    with pytest.raises(PlasticityError, match=f"{name}.*delay of 2"):
        replace(made, network=replace(made.network, projections=late))


def test_graded_units_do_not_run_on() -> None:
    with pytest.raises(PlasticityError, match="use fresh=True"):
        grown(GRADED, LearningRule(SCHEDULE, 8.0, fresh=False))


@pytest.mark.parametrize("code", [Code.PREDICTIVE, Code.BERNOULLI, Code.PAIRED])
def test_codes_without_traces_are_refused(code: Code) -> None:
    with pytest.raises(PlasticityError, match="use code rate or graded"):
        grown(Coding(code), LearningRule(SCHEDULE, 8.0))


def test_a_spectral_bound_is_refused() -> None:
    net = looped(6, 5, 3, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID, bound=0.9)
    with pytest.raises(PlasticityError, match="spectral bound"):
        make_plastic(
            net, params(net), PlasticityConfig(RATE, LearningRule(SCHEDULE, 8.0), 2.0, 1e-3)
        )


def test_a_symmetric_loop_learns_half() -> None:
    net = looped(6, 5, 3, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID, bound=None)
    found = make_plastic(
        net, params(net), PlasticityConfig(RATE, LearningRule(SCHEDULE, 8.0), 2.0, 1e-3)
    )
    shares = {part.name: part.share for part in found.plastic}
    assert shares["hidden->hidden"] == 0.5
    assert shares["hidden->output"] == 1.0


def test_what_is_plastic() -> None:
    found = grown(RATE, LearningRule(SCHEDULE, 8.0))
    assert [p.name for p in found.network.populations] == ["input", ALWAYS, "hidden", "output"]
    assert {part.name: part.mirror for part in found.plastic} == {
        "input->hidden": None,
        "hidden->output": "output->hidden",
        "always->hidden": None,
        "always->output": None,
    }
    np.testing.assert_array_equal(
        found.projection("output->hidden").weight, found.projection("hidden->output").weight.T
    )
    assert found.network[ALWAYS].bias.tolist() == [1.0]


def test_feedback_scales_the_mirror_and_the_shares() -> None:
    net = network(feedback=0.5)
    found = make_plastic(
        net, params(net), PlasticityConfig(RATE, LearningRule(SCHEDULE, 8.0), 2.0, 1e-3)
    )
    parts = {part.name: part for part in found.plastic}
    assert parts["hidden->output"].mirrored == 0.5
    assert parts["input->hidden"].share == 2.0
    rule = LearningRule(SCHEDULE, 8.0, numbers=IntegerArithmetic(0))
    with pytest.raises(PlasticityError, match="integers"):
        make_plastic(net, params(net), PlasticityConfig(RATE, rule, 2.0, 1e-3))


def test_whole_weights_are_multiples_of_their_scale() -> None:
    found = grown(RATE, LearningRule(SCHEDULE, 8.0, numbers=IntegerArithmetic(0)))
    for part in found.plastic:
        assert part.scale == 2.0 / 128
        whole = found.projection(part.name).weight / part.scale
        np.testing.assert_array_equal(whole, np.rint(whole))


def test_parameters_come_back() -> None:
    net = network()
    wanted = params(net)
    found = grown(RATE, LearningRule(SCHEDULE, 8.0))
    weights = {name: found.projection(name).weight for name in found.learns}
    for name, value in parameters(net, found, weights).items():
        np.testing.assert_allclose(value, wanted[name], atol=2.0**-12)
    doubled = with_weights(found, {"input->hidden": 2 * weights["input->hidden"]})
    np.testing.assert_array_equal(
        doubled.projection("input->hidden").weight, 2 * weights["input->hidden"]
    )


def test_flaws_are_drawn_by_their_seed() -> None:
    rule = LearningRule(SCHEDULE, 8.0)
    flawed = Nonidealities(weight_noise=0.1, dead=0.5, mismatch=0.1, seed=4)
    first, again = grown(RATE, rule, flawed), grown(RATE, rule, flawed)
    other = grown(RATE, rule, replace(flawed, seed=5))
    gain = first.gains["input->hidden"]
    np.testing.assert_array_equal(gain, again.gains["input->hidden"])
    assert not np.array_equal(gain, other.gains["input->hidden"])
    dead = first.network["hidden"].bias == DEAD
    assert 0 < dead.sum() < 5
    passed = for_inference(first)
    weight = next(p.weight for p in passed.projections if p.name == "input->hidden")
    np.testing.assert_array_equal(weight, first.projection("input->hidden").weight * gain)
    with pytest.raises(PlasticityError, match="without bits"):
        grown(RATE, LearningRule(SCHEDULE, 8.0, numbers=IntegerArithmetic(0)), flawed)


def test_separate_copies_learn_apart() -> None:
    rule = LearningRule(SCHEDULE, 8.0, numbers=IntegerArithmetic(0))
    found = grown(RATE, rule, Nonidealities(asymmetric=True))
    assert {"hidden->output", "output->hidden"} <= {part.name for part in found.plastic}
    assert all(part.mirror is None for part in found.plastic)


def test_rates_outside_traces_are_refused() -> None:
    net = layered(6, (5,), 3, hidden_rate=RELU, output_rate=HARD_SIGMOID)
    rule = LearningRule(SCHEDULE, 8.0, numbers=IntegerArithmetic(0))
    with pytest.raises(PlasticityError, match=r"leave 0\.\.1"):
        make_plastic(net, params(net), PlasticityConfig(GRADED, rule, 2.0, 1e-3))


def test_inputs_that_spikes_cannot_carry_are_refused() -> None:
    with pytest.raises(PlasticityError, match="use code graded"):
        training_stimulus(network(), np.full((1, 6), 1.5), np.zeros((1, 3)), RATE)


def test_samples_need_a_learning_rate_each() -> None:
    with pytest.raises(PlasticityError, match="as many rates"):
        TrainingSamples(Stimulus(2, {}, {}), np.ones(3))
    with pytest.raises(PlasticityError, match="finite"):
        TrainingSamples(Stimulus(1, {}, {}), np.array([np.nan]))


@pytest.mark.parametrize("rate", [0.01, 0.03, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("window", [8, 16, 32])
def test_the_engine_comes_near_a_rate(rate: float, window: int) -> None:
    scale, gap = 1 / 128, 1.0
    engine = engine_for(rate, gap=gap, window=window, scale=scale, seed=0)
    reached = gap * scale * 2.0**engine.exponent * 127**2 * engine.factor * window / 2**17
    assert reached == pytest.approx(rate, rel=0.02)
    assert 127**2 * engine.factor * window / 2**17 < 257, "a full window fits the tag"
    assert third_factors(engine, np.array([rate, rate / 2, 0.0])).tolist() == [
        engine.factor,
        round(engine.factor / 2),
        0,
    ]


def test_chances_are_those_of_uniform() -> None:
    np.testing.assert_array_equal(chances(5, 2, 7, (3, 4)).ravel(), uniform(5, 7, (3, 12))[2])
