"""Lengths of the phases of learning."""

from __future__ import annotations

import pytest

from neuro_eqprop.spiking.codes import CODES, Code, find_code, learning_codes
from neuro_eqprop.spiking.phases import PhaseLengths, PhasePolicy, is_centered


def test_each_code_that_learns_has_default_phase_lengths() -> None:
    found = {name: CODES[name].learning for name in learning_codes()}
    lengths = {name: policy.lengths() for name, policy in found.items() if policy is not None}
    assert lengths == {"rate": PhaseLengths(32, 32, 32), "graded": PhaseLengths(16, 12, 4)}


@pytest.mark.parametrize(
    ("code", "steps", "lengths"),
    [
        ("rate", 7, (4, 4, 3)),
        ("rate", 2, (1, 1, 1)),
        ("graded", 7, (7, 6, 1)),
        ("graded", 2, (2, 1, 1)),
    ],
)
def test_window_and_settling_fill_a_nudged_phase(
    code: str, steps: int, lengths: tuple[int, int, int]
) -> None:
    policy = find_code(code).learning
    assert policy is not None
    assert policy.lengths(steps) == PhaseLengths(*lengths)


def test_centered_nudging_has_three_phases_and_one_sided_two() -> None:
    lengths = PhaseLengths(free=8, settle=6, window=4)
    centered = lengths.schedule(beta=0.5, centered=True)
    assert [(p.name, p.beta, p.steps, p.window) for p in centered] == [
        ("free", 0.0, 8, 4),
        ("negative", -0.5, 10, 4),
        ("positive", 0.5, 10, 4),
    ]
    one_sided = lengths.schedule(beta=0.5, centered=False)
    assert [(p.name, p.beta, p.steps, p.window) for p in one_sided] == [
        ("free", 0.0, 12, 4),
        ("nudged", 0.5, 10, 4),
    ]


def test_phases_too_short_to_settle_are_refused() -> None:
    with pytest.raises(ValueError, match="steps is 1; a phase needs 2 or more"):
        PhasePolicy(16, window=0.25, free=1.0).lengths(1)


def test_nudging_without_phases_on_a_chip_is_refused() -> None:
    assert (is_centered("centered"), is_centered("positive")) == (True, False)
    with pytest.raises(ValueError, match=r"nudging 'random' has no phases.*positive or centered"):
        is_centered("random")


def test_a_code_is_found_by_name_or_passed_through() -> None:
    assert find_code("graded") is find_code(Code.GRADED) is Code.GRADED
    with pytest.raises(ValueError, match="unknown code 'grade'; known: graded, "):
        find_code("grade")
