from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from sims.claims.statistics import (
    Interval,
    cohens_d,
    deviation,
    geometric,
    hedges_g,
    paired,
    spearman,
    student,
    wilson,
)

RNG = np.random.default_rng(0)
ONE, OTHER = RNG.normal(3.0, 1.0, 7).tolist(), RNG.normal(2.0, 1.5, 7).tolist()


def ends(found: Interval) -> tuple[float, float]:
    return found.low, found.high


def test_student_is_scipys() -> None:
    wanted = stats.t.interval(0.95, 6, loc=np.mean(ONE), scale=stats.sem(ONE))
    assert ends(student(ONE)) == pytest.approx(wanted, rel=1e-12)
    assert student(ONE).size == 7


def test_one_value_says_nothing_about_its_spread() -> None:
    assert student([2.0]) == Interval(2.0, -math.inf, math.inf, 1)
    with pytest.raises(ValueError, match="at least one value"):
        student([])


def test_paired_is_scipys_interval_of_a_paired_test() -> None:
    wanted: Any = stats.ttest_rel(ONE, OTHER).confidence_interval(0.95)
    assert ends(paired(ONE, OTHER)) == pytest.approx((wanted.low, wanted.high), rel=1e-12)
    with pytest.raises(ValueError, match="cannot be paired"):
        paired(ONE, OTHER[1:])


def test_geometric_mean_of_ratios() -> None:
    found = geometric([0.5, 2.0])
    assert found.value == pytest.approx(stats.gmean([0.5, 2.0]))
    assert found.low * found.high == pytest.approx(1.0)
    assert geometric([3.0]).high == math.inf


def test_effect_sizes_follow_their_definitions() -> None:
    t: Any = stats.ttest_ind(ONE, OTHER).statistic
    d = cohens_d(ONE, OTHER)
    assert d == pytest.approx(t * math.sqrt(2 / 7), rel=1e-12)
    df = 12
    exact = special.gamma(df / 2) / (math.sqrt(df / 2) * special.gamma((df - 1) / 2))
    assert d is not None
    assert hedges_g(ONE, OTHER) == pytest.approx(d * exact, rel=2e-3)
    assert cohens_d([1.0, 1.0], [1.0, 1.0]) is None
    assert hedges_g([1.0], [2.0, 3.0]) is None


def test_spearman_is_scipys_with_fishers_interval() -> None:
    x = RNG.integers(0, 9, 60).astype(float)
    y = x + RNG.normal(0, 4, 60)
    found = spearman(x.tolist(), y.tolist())
    assert found.value == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)
    of_ranks: Any = stats.pearsonr(stats.rankdata(x), stats.rankdata(y))
    wanted = of_ranks.confidence_interval(0.95)
    assert ends(found) == pytest.approx((wanted.low, wanted.high), abs=1e-12)


def test_spearman_at_its_edges() -> None:
    assert spearman([1, 2, 3, 4], [2, 4, 6, 9]).value == 1.0
    assert spearman([1, 2, 3, 4], [5, 5, 5, 5]).value == 0.0
    with pytest.raises(ValueError, match="at least 4"):
        spearman([1, 2, 3], [1, 2, 3])


@pytest.mark.parametrize(("hits", "size"), [(0, 20), (7, 20), (20, 20), (999, 1000)])
def test_wilson_is_scipys(hits: int, size: int) -> None:
    wanted = stats.binomtest(hits, size).proportion_ci(0.95, method="wilson")
    assert ends(wilson(hits, size)) == pytest.approx((wanted.low, wanted.high), abs=1e-12)


def test_wilson_refuses_what_is_no_proportion() -> None:
    with pytest.raises(ValueError, match="not a proportion"):
        wilson(3, 2)


def test_deviation_covers_the_truth_as_often_as_it_says() -> None:
    draws = np.random.default_rng(1).normal(0.0, 2.0, (2000, 5))
    inside = [found.low < 2.0 < found.high for found in map(deviation, draws.tolist())]
    assert 0.94 < np.mean(inside) < 0.96
    with pytest.raises(ValueError, match="too few for a standard deviation"):
        deviation([1.0])
