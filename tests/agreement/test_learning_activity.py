"""Spikes, voltages and drives while a network learns: the same on every simulator that learns."""

from __future__ import annotations

import numpy as np
import pytest

from neuro_eqprop.data import load_digits, one_hot
from neuro_eqprop.networks.activations import HARD_SIGMOID
from neuro_eqprop.networks.architectures import layered
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.simulators.base import kinds
from neuro_eqprop.simulators.learning import Learned, LearningRecord
from neuro_eqprop.simulators.recordings import parse_record
from neuro_eqprop.simulators.registry import load_learner
from neuro_eqprop.spiking.codes import Code, Coding
from neuro_eqprop.spiking.make_plastic import PlasticityConfig, make_plastic, training_stimulus
from neuro_eqprop.spiking.phases import PhaseLengths
from neuro_eqprop.spiking.plasticity import IntegerArithmetic, LearningRule, TrainingSamples

SAMPLES = 3
PHASES = PhaseLengths(6, 3, 3).schedule(beta=0.5, centered=True)
RULES = {
    "rate": (Code.RATE, LearningRule(PHASES, 5.0)),
    "rate, batch": (Code.RATE, LearningRule(PHASES, 5.0, batch=2, fresh=False)),
    "rate, integers": (Code.RATE, LearningRule(PHASES, 5.0, numbers=IntegerArithmetic(7))),
    "graded": (Code.GRADED, LearningRule(PHASES, 5.0)),
    "graded, integers": (Code.GRADED, LearningRule(PHASES, 5.0, numbers=IntegerArithmetic(7))),
}


def learn(on: str, case: str) -> Learned:
    """The result of three digits, with all populations recorded."""
    code, rule = RULES[case]
    network = layered(64, (12,), 3, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
    train, coding = load_digits().train, Coding(code)
    rows = np.flatnonzero(train.y < 3)[:SAMPLES]
    params = initialize(network, np.random.default_rng(0))
    params = {name: value + (0.0 if "->" in name else 0.3) for name, value in params.items()}
    stimulus = training_stimulus(network, train.x[rows], one_hot(train.y[rows], 3), coding)
    plastic = make_plastic(network, params, PlasticityConfig(coding, rule, 2.0, 1e-3))
    own = "voltage" if code is Code.RATE else "state"
    requests = [f"{name}:{what}" for name in ("hidden", "output") for what in (own, "current")]
    record = parse_record(requests, kinds(plastic.network))
    return load_learner(on).learn(
        plastic,
        TrainingSamples(stimulus, np.full(SAMPLES, 0.1)),
        record=LearningRecord(activity=record),
    )


def check_same(on: str, case: str, within: float) -> None:
    """What a simulator recorded is what the reference did."""
    expected, found = learn("reference", case), learn(on, case)
    assert len(expected.activity) == len(found.activity) == SAMPLES
    fired = 0
    for mine, other in zip(expected.activity, found.activity, strict=True):
        assert set(mine.spikes) == set(other.spikes)
        assert set(mine.signals) == set(other.signals)
        assert {"hidden", "output"} <= set(mine.spikes)
        for name, spikes in mine.spikes.items():
            assert len(spikes) == 18  # steps of the phases, without the commit
            np.testing.assert_array_equal(spikes, other.spikes[name], err_msg=name)
            fired += int(np.count_nonzero(spikes))
        for key, values in mine.signals.items():
            np.testing.assert_allclose(values, other.signals[key], rtol=0, atol=within)
            assert np.ptp(values) > 0
    assert fired > 50


@pytest.mark.parametrize("case", RULES)
def test_the_emulator_records_the_activity_of_the_reference(case: str) -> None:
    check_same("emulator", case, within=0.0)


@pytest.mark.brian2
@pytest.mark.parametrize("case", ["rate, batch", "graded"])
def test_brian2_records_the_activity_of_the_reference(case: str) -> None:
    check_same("brian2", case, within=1e-12)


@pytest.mark.lava
@pytest.mark.parametrize("case", ["rate, batch", "graded"])
def test_lava_records_the_activity_of_the_reference(case: str) -> None:
    check_same("lava", case, within=1e-12)


def test_the_spikes_that_are_recorded_are_those_that_are_counted() -> None:
    learned = learn("emulator", "rate")
    for name in ("hidden", "output"):
        counted = sum(c.spikes for (layer, _), c in learned.counts.items() if layer == name)
        assert counted == sum(int(each.spikes[name].sum()) for each in learned.activity)
