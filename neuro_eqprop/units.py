"""Numbers with SI prefixes as text."""

from __future__ import annotations

PREFIXES = (
    *((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m")),
    *((1e-6, "u"), (1e-9, "n"), (1e-12, "p"), (1e-15, "f")),
)
LARGE = "GMk"
"""Prefixes not used for seconds."""


def with_prefix(value: float, unit: str, digits: int = 3) -> tuple[str, str]:
    """The digits of a number other than zero, and the unit with its prefix."""
    rounded = float(f"{value:.{digits}g}")  # rounded first: 999.6 u is 1 m
    for factor, prefix in PREFIXES:
        if abs(rounded) >= factor and not (unit == "s" and prefix and prefix in LARGE):
            shown = rounded / factor
            return (f"{shown:.0f}" if abs(shown) >= 1000 else f"{shown:.{digits}g}"), prefix + unit
    factor, prefix = PREFIXES[-1]
    return f"{value / factor:.{digits}g}", prefix + unit


def si(value: float | None, unit: str) -> str:
    """A number with three digits and an SI prefix; a dash for None.

    >>> si(3.14159e-6, "J")
    '3.14 uJ'
    """
    if value is None:
        return "-"
    return " ".join(with_prefix(value, unit)) if value else f"0 {unit}"


def si_range(low: float, high: float, unit: str, digits: int = 3) -> str:
    """A range; the unit is written once where both ends share it.

    >>> si_range(2e-6, 31e-6, "J")
    '2 .. 31 uJ'
    """
    if not low or not high:
        return f"{si(low, unit)} .. {si(high, unit)}"
    if low != high and with_prefix(low, unit, digits) == with_prefix(high, unit, digits):
        digits += 1
    (first, one), (last, other) = with_prefix(low, unit, digits), with_prefix(high, unit, digits)
    return f"{first} .. {last} {one}" if one == other else f"{first} {one} .. {last} {other}"
