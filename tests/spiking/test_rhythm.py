"""Phases as an oscillation of beta."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.spiking.phases import PhaseLengths
from neuro_eqprop.spiking.plasticity import LearningRule, PlasticityError

SCHEDULE = PhaseLengths(20, 30, 20).schedule(beta=0.4, centered=True)
RHYTHM = LearningRule(SCHEDULE, 4.0, rhythm=True)
pytestmark = pytest.mark.filterwarnings(
    "ignore::neuro_eqprop.runs.learn_on_chip.loop.OnChipWarning"
)


def tag_of(rule: LearningRule, response: float) -> float:
    """The tag of a product that follows beta as a trace of the rule does, from a base of 3."""
    betas = np.array([step.beta for step in rule.episode[:-1]])
    product, courses = 0.0, []
    for beta in np.r_[np.tile(betas[20:], 30)]:  # settled into the oscillation
        product += (1.0 - np.exp(-1.0 / rule.tau)) * (beta - product)
        courses.append(product)
    gates = np.array([step.gate for step in rule.episode[20:-1]])
    return float(gates @ (3.0 + response * np.array(courses[-len(gates) :])))


def test_a_cycle_counts_as_two_clocked_phases() -> None:
    clocked = RHYTHM.gap * RHYTHM.window
    assert tag_of(RHYTHM, 0.0) == pytest.approx(0.0, abs=1e-9)
    assert tag_of(RHYTHM, 0.5) == pytest.approx(0.5 * clocked, rel=0.03)


def test_the_nudge_is_continuous_and_free_before_the_cycle() -> None:
    betas = np.array([step.beta for step in RHYTHM.episode])
    assert not betas[:20].any()
    assert np.abs(np.diff(betas)).max() < 0.03
    assert betas.min() == pytest.approx(-0.4, abs=0.01)
    assert betas.max() == pytest.approx(0.4, abs=0.01)


@pytest.mark.parametrize("change", [{"margin": 0.1}, {"schedule": SCHEDULE[:2]}])
def test_what_has_no_rhythm_says_so(change: dict[str, object]) -> None:
    with pytest.raises(PlasticityError, match=r"rhythm|windows"):
        replace(RHYTHM, **change)  # type: ignore[arg-type]


def learned(on: str, **settings: object) -> dict[str, np.ndarray]:
    """The parameters after some samples."""
    given: dict[str, Any] = {
        "hidden": (12,),
        "code": "rate",
        "steps": 32,
        "samples": 20,
        "epochs": 1,
        **settings,
    }
    return dict(ne.learn_on_chip("layered", "digits", on=on, rhythm=True, **given).params)


def test_samples_follow_without_a_reset_as_on_the_reference() -> None:
    compiled, reference = (learned(on, run_on=True) for on in ("emulator", "reference"))
    for name, weight in reference.items():
        assert np.array_equal(compiled[name], weight), name


def test_biology_oscillates() -> None:
    plain = ne.learn_on_chip(
        "layered", "digits", on="biology", hidden=(12,), code="rate", steps=32, samples=20,
        epochs=1, batch=10,
    )  # fmt: skip
    assert not np.array_equal(learned("biology", batch=10)["hidden"], plain.params["hidden"])
