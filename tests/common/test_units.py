"""Numbers with SI prefixes."""

from __future__ import annotations

import pytest

from neuro_eqprop.common.units import si, si_range


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "J", "-"),
        (0.0, "J", "0 J"),
        (999.6e-6, "J", "1 mJ"),
        (4e-18, "J", "0.004 fJ"),
        (12345.0, "J", "12.3 kJ"),
        (12345.0, "s", "12300 s"),
        (-2.5e-9, "W", "-2.5 nW"),
    ],
)
def test_a_number_gets_its_si_prefix(value: float | None, unit: str, text: str) -> None:
    assert si(value, unit) == text


def test_a_range_shares_its_unit_and_stays_a_range() -> None:
    assert si_range(2e-6, 31e-6, "J") == "2 .. 31 uJ"
    assert si_range(999e-9, 31e-6, "J") == "999 nJ .. 31 uJ"
    assert si_range(0.0, 31e-6, "J") == "0 J .. 31 uJ"
    assert si_range(1.0001e-6, 1.0009e-6, "J") == "1 .. 1.001 uJ"
