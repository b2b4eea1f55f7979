"""Agreement of two sets of rates, and of two weight changes.

With a and b arrays of equal shape, pooled over all entries, and e = b - a:

    rmse = sqrt(mean(e^2))      p999 = 99.9th percentile of |e|      worst = max |e|
    pearson = correlation of a and b
    cosine = <a, b> / (|a| |b|)
    sign_agreement = share of equal signs where |a| > `MIN_RELATIVE_UPDATE` max |a|

A value that cannot be computed is None, and a `reason` says why.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuro_eqprop.arrays import Array

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
    """Agreement of two changes of the weights of a connection."""

    connection: str
    cosine: float | None
    sign_agreement: float | None
    reason: str | None = None
    """Why the other two are None."""


def distance(a: Array, b: Array) -> Distance:
    """Distance of b from a, pooled over all entries."""
    error = np.abs(b - a).ravel()
    constant = [side for side, rates in (("a", a), ("b", b)) if np.ptp(rates) == 0]
    return Distance(
        pearson(a.ravel(), b.ravel()),
        float(np.sqrt(np.mean(error**2))),
        float(np.percentile(error, 99.9)),
        float(error.max()),
        f"rates of {' and '.join(constant)} are constant" if constant else None,
    )


def pearson(a: Array, b: Array) -> float | None:
    """Pearson correlation of two arrays; None where either is constant."""
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    return cosine(a - a.mean(), b - b.mean())


def cosine(a: Array, b: Array) -> float | None:
    """Cosine of the angle between two arrays; None where either is zero up to rounding."""
    norms = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    if min(norms) <= ROUNDING:
        return None
    return float(np.clip(np.vdot(a, b) / (norms[0] * norms[1]), -1.0, 1.0))


def update_agreement(connection: str, a: Array, b: Array) -> UpdateAgreement:
    """Agreement of the change b of the weights of a connection with the change a."""
    angle = cosine(a, b)
    if angle is None:
        zero = [side for side, change in (("a", a), ("b", b)) if np.linalg.norm(change) <= ROUNDING]
        reason = f"weight change of {' and '.join(zero)} is zero"
        return UpdateAgreement(connection, None, None, reason)
    signed = np.abs(a) > MIN_RELATIVE_UPDATE * np.abs(a).max(initial=0.0)
    share = float(np.mean(np.sign(a[signed]) == np.sign(b[signed])))
    return UpdateAgreement(connection, angle, share)
