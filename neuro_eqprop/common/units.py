"""Numbers with SI prefixes as text."""

from __future__ import annotations

import re

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


def parse_si(text: str, unit: str) -> float:
    """A number with its unit in SI units; the unit must be written, with or without a prefix.

    >>> parse_si("20 ms", "s")
    0.02
    >>> parse_si("0.1nA", "A")
    1e-10
    >>> parse_si("8 mV/ms", "V/s")
    8.0
    """
    found = NUMBER.fullmatch(text.strip())
    parts, wanted = (found[2].split("/") if found else []), unit.split("/")
    example = f"20 {'/'.join('m' + each for each in wanted)}"
    if found is None or len(parts) != len(wanted):
        raise ValueError(f"{text!r} is no number with a unit; write it as {example}")
    factor = 1.0
    for k, (part, base) in enumerate(zip(parts, wanted, strict=True)):
        prefix = part.removesuffix(base)
        if not part.endswith(base) or prefix not in FACTORS:
            raise ValueError(f"{text!r} is not in {unit}; write it as {example}")
        factor = factor * FACTORS[prefix] if k == 0 else factor / FACTORS[prefix]
    return float(f"{float(found[1]) * factor:.12g}")


FACTORS = {prefix: factor for factor, prefix in PREFIXES}
"""Factors by prefix."""
NUMBER = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([a-zA-Z/]+)")
"""A number and a unit."""
