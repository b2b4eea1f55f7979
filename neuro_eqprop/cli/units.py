"""Numbers with units, as people read them."""

from __future__ import annotations


def si(value: float | None, unit: str) -> str:
    """A number with a prefix, as people read it."""
    if value is None:
        return "-"
    if value == 0:
        return f"0 {unit}"
    for factor, prefix in ((1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"), (1e-12, "p")):
        if abs(value) >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"
