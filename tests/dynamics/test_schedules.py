from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuro_eqprop.dynamics.schedules import Phase, contrast, free_only, tail, three_phase, two_phase

CALM = settings(derandomize=True, deadline=None, max_examples=60)
BETAS = st.integers(-16, 16).map(lambda n: n / 16)


@CALM
@given(st.lists(BETAS, min_size=2, max_size=6).filter(lambda betas: len(set(betas)) > 1))
def test_contrast_is_the_slope_between_the_outermost_betas(betas: list[float]) -> None:
    schedule = tuple(Phase(f"p{k}", beta, 4, 2) for k, beta in enumerate(betas))
    weights = [contrast(schedule)[phase.name] for phase in schedule]
    gap = max(betas) - min(betas)
    assert sum(weights) == pytest.approx(0.0, abs=1e-12)
    assert sum(w for w in weights if w > 0) == pytest.approx(1 / gap)
    # A quantity linear in beta has slope one: that is what makes the contrast a derivative.
    assert sum(w * beta for w, beta in zip(weights, betas, strict=True)) == pytest.approx(1.0)
    between = [w for w, b in zip(weights, betas, strict=True) if min(betas) < b < max(betas)]
    assert not any(between)


def test_one_sided_and_centered_contrasts_are_as_written() -> None:
    assert contrast(two_phase(beta=0.25, free=4, nudged=2)) == {"free": -4.0, "nudged": 4.0}
    assert contrast(two_phase(beta=-0.25, free=4, nudged=2)) == {"free": 4.0, "nudged": -4.0}
    assert contrast(three_phase(beta=0.25, free=4, nudged=2)) == {
        "free": 0.0,
        "negative": -2.0,
        "positive": 2.0,
    }


def test_phases_of_equal_beta_share_their_weight() -> None:
    schedule = (*two_phase(beta=0.5, free=4, nudged=2), Phase("again", 0.5, 2, 2))
    assert contrast(schedule) == {"free": -2.0, "nudged": 1.0, "again": 1.0}


@pytest.mark.parametrize(
    "schedule",
    [
        free_only(steps=4, window=2),
        two_phase(beta=0.0, free=4, nudged=4),
        (Phase("same", 0.0, 4, 2), Phase("same", 0.5, 4, 2)),
    ],
    ids=["free only", "beta zero", "one name twice"],
)
def test_a_schedule_without_contrast_is_refused(schedule: tuple[Phase, ...]) -> None:
    with pytest.raises(ValueError, match=r"contrast|not unique"):
        contrast(schedule)


@pytest.mark.parametrize(
    ("beta", "steps", "window", "reason"),
    [
        (0.0, 0, 1, "at least one"),
        (0.0, -3, 1, "at least one"),
        (0.0, 4, 0, "window must be"),
        (0.0, 4, 5, "window must be"),
        (float("nan"), 4, 2, "finite"),
        (float("inf"), 4, 2, "finite"),
    ],
)
def test_an_impossible_phase_is_refused(beta: float, steps: int, window: int, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Phase("odd", beta, steps, window)


@CALM
@given(st.integers(1, 10_000), st.floats(0.0, 1.0))
def test_a_tail_lies_within_its_phase(steps: int, part: float) -> None:
    assert 1 <= tail(steps, part) <= steps
    assert tail(steps, part) >= steps * part


def test_the_usual_tail_is_three_quarters() -> None:
    assert (tail(64), tail(32), tail(1), tail(2)) == (48, 24, 1, 2)
