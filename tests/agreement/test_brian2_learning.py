"""Learning in Brian2 against the reference: the same spikes, tags and weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from neuro_eqprop.cli import main
from neuro_eqprop.common.arrays import Array
from neuro_eqprop.data import load_digits, one_hot
from neuro_eqprop.networks.activations import HARD_SIGMOID, TANH
from neuro_eqprop.networks.architectures import layered, looped
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.brian2.learning_equations import time_constant
from neuro_eqprop.simulators.learning import Learned, LearningRecord
from neuro_eqprop.simulators.registry import learner_names, load_learner
from neuro_eqprop.spiking.codes import Code, Coding
from neuro_eqprop.spiking.make_plastic import PlasticityConfig, make_plastic, training_stimulus
from neuro_eqprop.spiking.nonidealities import Nonidealities
from neuro_eqprop.spiking.phases import PhaseLengths
from neuro_eqprop.spiking.plasticity import (
    IntegerArithmetic,
    LearningRule,
    PlasticNetwork,
    TrainingSamples,
)

pytestmark = pytest.mark.brian2

CENTERED = PhaseLengths(6, 3, 2).schedule(beta=0.5, centered=True)
ONE_SIDED = PhaseLengths(4, 3, 2).schedule(beta=0.3, centered=False)
SYNAPSES = LearningRecord(
    (("input->hidden", 3, 20), ("output->hidden", 2, 1), ("always->output", 1, 0))
)
DEEP = LearningRecord((("hidden2->hidden1", 3, 2), ("hidden1->hidden2", 2, 3)))


@dataclass(frozen=True, slots=True)
class Case:
    """What to learn from a number of samples."""

    code: Code
    rule: LearningRule
    samples: int = 4
    limit: float = 2.0
    flaws: Nonidealities = Nonidealities()  # noqa: RUF009 - frozen
    net: str = "layered"


CASES = {
    "rate, run on, batch": Case(Code.RATE, LearningRule(CENTERED, 5.0, batch=3, fresh=False)),
    "rate, clipped, flaws": Case(
        Code.RATE,
        LearningRule(ONE_SIDED, 3.0),
        limit=0.31,
        flaws=Nonidealities(0.2, 0.1, 0.1, seed=3),
    ),
    "rate, looped": Case(Code.RATE, LearningRule(CENTERED, 5.0), net="looped"),
    "graded, one-sided, apart": Case(
        Code.GRADED,
        LearningRule(ONE_SIDED, 5.0, batch=2),
        samples=5,
        flaws=Nonidealities(asymmetric=True),
    ),
    "graded, deep": Case(Code.GRADED, LearningRule(CENTERED, 5.0), net="deep"),
}


@cache
def samples() -> tuple[Array, Array]:
    """Digits 0, 1 and 2, with their targets."""
    train = load_digits().train
    rows = np.flatnonzero(train.y < 3)[:100]
    return train.x[rows], one_hot(train.y[rows], 3)


def network(which: str) -> Network:
    if which == "looped":
        return looped(64, 8, 3, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID, bound=None)
    if which == "deep":
        return layered(64, (7, 5), 3, hidden_rate=TANH, output_rate=HARD_SIGMOID, feedback=0.5)
    return layered(64, (12,), 3, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)


def task(case: Case) -> tuple[PlasticNetwork, TrainingSamples]:
    (x, target), net = samples(), network(case.net)
    params = initialize(net, np.random.default_rng(0))
    params = {name: value + (0.0 if "->" in name else 0.3) for name, value in params.items()}
    coding = Coding(case.code, theta=2.0**-8)
    stimulus = training_stimulus(net, x[: case.samples], target[: case.samples], coding)
    plastic = make_plastic(
        net, params, PlasticityConfig(coding, case.rule, case.limit, 1e-3, case.flaws)
    )
    return plastic, TrainingSamples(stimulus, np.linspace(0.2, 0.05, case.samples))


def both(case: Case, synapses: LearningRecord) -> tuple[PlasticNetwork, Learned, Learned]:
    plastic, training = task(case)
    a, b = (
        load_learner(on).learn(plastic, training, record=synapses) for on in ("reference", "brian2")
    )
    for name, weight in a.weights.items():
        np.testing.assert_allclose(b.weights[name], weight, rtol=0, atol=1e-12)
    for name, tag in a.tags.items():
        np.testing.assert_allclose(b.tags[name], tag, rtol=0, atol=1e-12)
    np.testing.assert_allclose(b.history, a.history, rtol=0, atol=1e-12)
    np.testing.assert_allclose(b.drive, a.drive, rtol=0, atol=1e-12)
    assert a.counts == b.counts
    assert (a.saturated, a.clipped, a.overflows) == (b.saturated, b.clipped, b.overflows)
    return plastic, a, b


@pytest.mark.parametrize("name", CASES)
def test_brian2_learns_what_the_reference_does(name: str) -> None:
    case = CASES[name]
    synapses = (
        DEEP if case.net == "deep" else LearningRecord() if case.net == "looped" else SYNAPSES
    )
    plastic, _, b = both(case, synapses)
    for part in plastic.plastic:
        moved = b.weights[part.name] - plastic.projection(part.name).weight
        assert np.count_nonzero(moved) > 0, part.name
        if part.mirror is not None:
            pair = part.mirrored * b.weights[part.name].T
            np.testing.assert_array_equal(b.weights[part.mirror], pair)
    if "clipped" in name:
        assert b.clipped > 0
    if case.net == "deep":
        forward, back = b.history[..., 1, :], b.history[..., 0, :]
        np.testing.assert_array_equal(back[..., 3], 0.5 * forward[..., 3])
        np.testing.assert_array_equal(back[..., 0], forward[..., 1])


@pytest.mark.slow
@pytest.mark.parametrize("code", [Code.RATE, Code.GRADED])
def test_they_are_equal_after_a_hundred_samples(code: Code) -> None:
    _, a, b = both(Case(code, LearningRule(CENTERED, 5.0), samples=100), SYNAPSES)
    for name, weight in a.weights.items():
        np.testing.assert_array_equal(b.weights[name], weight)


def test_fixed_point_is_refused_with_the_reason() -> None:
    plastic, training = task(
        Case(Code.RATE, LearningRule(CENTERED, 5.0, numbers=IntegerArithmetic(7)), limit=1.0)
    )
    learner = load_learner("brian2")
    with pytest.raises(BackendError, match=r"floating point.*without bits"):
        learner.learn(plastic, training)


def test_every_sample_is_reported() -> None:
    plastic, training = task(Case(Code.GRADED, LearningRule(ONE_SIDED, 5.0), samples=3))
    seen: list[int] = []
    load_learner("brian2").learn(plastic, training, progress=seen.append)
    assert "brian2" in learner_names()
    assert seen == [1, 1, 1]


@pytest.mark.parametrize("tau", [0.7, 3.0, 5.0, 8.0, 20.0, 100.0])
def test_the_time_constant_decays_to_the_last_bit(tau: float) -> None:
    from brian2 import second

    rule = LearningRule(CENTERED, tau)
    seconds = float(time_constant(rule, 1e-3 * second))
    assert seconds == pytest.approx(tau * 1e-3, rel=1e-14)
    assert float(np.exp(-1e-3 / seconds)) == rule.keep


def test_the_command_learns_in_brian2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "learn --on brian2 --samples 4 --epochs 1 --hidden 6 --steps 4 --code rate --json"
    assert main([*words.split(), "--out", str(tmp_path / "run")]) == 0
    assert '"on": "brian2"' in capsys.readouterr().out
