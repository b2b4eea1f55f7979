"""Numbers with units, as people read them."""

from __future__ import annotations

LARGE = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
"""Nobody speaks of kiloseconds."""
SMALL = ((1e-3, "m"), (1e-6, "u"), (1e-9, "n"), (1e-12, "p"), (1e-15, "f"))


def parts(value: float, unit: str, digits: int = 3) -> tuple[str, str]:
    """The digits of a number that is not zero, and its unit with a prefix."""
    # As it is rounded: 999.6 u is 1 m.
    rounded = float(f"{value:.{digits}g}")
    for factor, prefix in (*(LARGE if unit != "s" else ()), (1.0, ""), *SMALL):
        if abs(rounded) >= factor:
            shown = rounded / factor
            return (f"{shown:.0f}" if abs(shown) >= 1000 else f"{shown:.{digits}g}"), prefix + unit
    return f"{value:.3g}", unit


def si(value: float | None, unit: str) -> str:
    """A number with a prefix, as people read it."""
    if value is None:
        return "-"
    if value == 0:
        return f"0 {unit}"
    return " ".join(parts(value, unit))


def span(low: float, high: float, unit: str, digits: int = 3) -> str:
    """A range; the unit stands once where both ends share it, and no digits are lost on it."""
    if not low or not high:
        return f"{si(low, unit)} .. {si(high, unit)}"
    if low != high and parts(low, unit, digits) == parts(high, unit, digits):
        digits += 1
    (first, one), (last, other) = parts(low, unit, digits), parts(high, unit, digits)
    return f"{first} .. {last} {one}" if one == other else f"{first} {one} .. {last} {other}"
