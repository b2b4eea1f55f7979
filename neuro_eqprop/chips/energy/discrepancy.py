"""Discrepancy of the energy model, learned from published measurements of other chips.

The ranges of the constants express how far sources disagree. A sum of events times constants is
also only a model of a chip; its error is a second source of uncertainty, the model discrepancy of
Kennedy & O'Hagan (2001). It is learned from the predictions of the validation: with
r = ln(measured / predicted) of a case and s the standard deviation of ln(predicted) over the ranges
of the constants, the remaining variance is

    sigma^2 = max(SIGMA_FLOOR^2, QUANTILE over chips of the mean over its cases of (r^2 - s^2)),

over the chips other than the one that is estimated and its variants, so that a chip's own
measurements never narrow its own range. The quantile covers four of five chips and does not depend
on a single one. UNTESTED^2 is added to these values as a prior, for the case of few chips.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from math import log, sqrt

import numpy as np

from neuro_eqprop.chips.published import Measure

QUANTILE = 0.8
"""Fraction of the chips whose error the discrepancy covers."""
SIGMA_FLOOR = 0.05
"""Least standard deviation of the logarithm."""
UNTESTED = 0.3
"""Standard deviation of the logarithm if no case of another chip was predicted."""
NORMAL_95 = 1.96
"""97.5 % quantile of the standard normal distribution."""


class ModelPart(Enum):
    """The quantity a discrepancy is learned for."""

    ENERGY = "energy"
    TIME = "time"
    PLACEMENT = "placement"


KINDS = {
    Measure.POWER: ModelPart.ENERGY,
    Measure.ENERGY: ModelPart.ENERGY,
    Measure.TIME: ModelPart.TIME,
    Measure.CORES: ModelPart.PLACEMENT,
    Measure.MESSAGES: ModelPart.PLACEMENT,
}


@dataclass(frozen=True, slots=True)
class Residual:
    """A published measurement and its prediction."""

    chip: str
    kind: ModelPart
    measured: float
    predicted: float
    low: float
    high: float

    @property
    def left_over(self) -> float:
        """r^2 - s^2, the squared error beyond the range of the constants."""
        spread = 0.0
        if self.low > 0:
            spread = log(self.high / self.low) / (2 * NORMAL_95)
        return log(self.measured / self.predicted) ** 2 - spread**2


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """Standard deviations of the logarithm of the model's error."""

    energy: float = 0.0
    time: float = 0.0
    placement: float = 0.0
    chips: int = 0
    """Chips whose cases it was learned from."""


NONE = Discrepancy()


def learn(residuals: Iterable[Residual], *, without: str) -> Discrepancy:
    """The discrepancy from the cases of all chips but one."""
    others = [each for each in residuals if each.chip != without]
    sigmas = {}
    for kind in ModelPart:
        chips: dict[str, list[float]] = {}
        for each in others:
            if each.kind is kind:
                chips.setdefault(each.chip, []).append(each.left_over)
        means = [max(0.0, sum(values) / len(values)) for values in chips.values()]
        variance = float(np.quantile([*means, UNTESTED**2], QUANTILE))
        sigmas[kind.value] = sqrt(max(SIGMA_FLOOR**2, variance))
    return Discrepancy(**sigmas, chips=len({each.chip for each in others}))
