"""Agreement of two sets of rates, and of two weight changes.

With a and b arrays of equal shape, pooled over all entries, and e = b - a:

    rmse = sqrt(mean(e^2))      p999 = 99.9th percentile of |e|      worst = max |e|
    pearson = correlation of a and b
    cosine = <a, b> / (|a| |b|)
    sign_agreement = share of equal signs where |a| > `MIN_RELATIVE_UPDATE` max |a|

A value that cannot be computed is None, and a `reason` says why.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from neuro_eqprop.common.arrays import Array, cosine

ROUNDING = 1e-9
"""An array with at most this norm counts as zero."""
MIN_RELATIVE_UPDATE = 1e-6
"""Updates below this fraction of the largest are rounding errors and have no sign."""


@dataclass(frozen=True, slots=True)
class Distance:
    """Distance of two sets of rates."""

    pearson: float | None
    rmse: float
    p999: float
    worst: float
    reason: str | None = None
    """Why `pearson` is None."""


@dataclass(frozen=True, slots=True)
class UpdateAgreement:
    """Agreement of two weight changes of a connection."""

    connection: str
    cosine: float | None
    sign_agreement: float | None
    reason: str | None = None
    """Why the other two are None."""


def distance(a: Array, b: Array) -> Distance:
    """Distance of b from a, pooled over all entries."""
    error = np.abs(b - a).ravel()
    infinite, constant = (
        which(a, b, not_finite),
        which(a, b, is_constant),
    )
    reason = f"rates of {infinite} are not finite" if infinite else None
    reason = f"rates of {constant} are constant" if constant else reason
    return Distance(
        None if reason else pearson(a.ravel(), b.ravel()),
        float(np.sqrt(np.mean(error**2))),
        float(np.percentile(error, 99.9)),
        float(error.max()),
        reason,
    )


def not_finite(values: Array) -> bool:
    """Whether an array holds NaN or infinity."""
    return not np.isfinite(values).all()


def is_constant(values: Array) -> bool:
    """Whether all values are the same."""
    return bool(np.ptp(values) == 0)


def which(a: Array, b: Array, holds: Callable[[Array], bool]) -> str:
    """Names of the sides for which a condition holds: "a", "b", "a and b" or none."""
    return " and ".join(side for side, values in (("a", a), ("b", b)) if holds(values))


def pearson(a: Array, b: Array) -> float | None:
    """Pearson correlation of two arrays; None where either is constant."""
    if is_constant(a) or is_constant(b):
        return None
    found = cosine(a - a.mean(), b - b.mean(), floor=ROUNDING)
    return None if found is None else float(np.clip(found, -1.0, 1.0))


def update_agreement(connection: str, a: Array, b: Array) -> UpdateAgreement:
    """Agreement of the weight change b of a connection with the weight change a."""
    infinite = which(a, b, not_finite)
    if infinite:
        reason = f"weight change of {infinite} is not finite"
        return UpdateAgreement(connection, None, None, reason)
    angle = cosine(a, b, floor=ROUNDING)
    if angle is None:
        zero = which(a, b, lambda change: float(np.linalg.norm(change)) <= ROUNDING)
        return UpdateAgreement(connection, None, None, f"weight change of {zero} is zero")
    signed = np.abs(a) > MIN_RELATIVE_UPDATE * np.abs(a).max(initial=0.0)
    share = float(np.mean(np.sign(a[signed]) == np.sign(b[signed])))
    return UpdateAgreement(connection, float(np.clip(angle, -1.0, 1.0)), share)
