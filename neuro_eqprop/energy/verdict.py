"""Who uses less, a chip or a dense machine, in words; from the rows that `energy` writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

Row: TypeAlias = Mapping[str, Any]

OUTCOMES = (
    ("spikes win", "spikes win (!) against"),
    ("the ranges overlap", "the ranges overlap (?) with"),
    ("spikes lose", "spikes lose against"),
    ("not compared", "not compared across boundaries with"),
)
"""Outcomes in the order in which they are told."""


def sentence(rows: Iterable[Row]) -> str:
    """Of one chip: against which machines spikes win, lose, cannot be told, and up to where."""
    rows, parts = list(rows), []
    for outcome, words in OUTCOMES:
        told = [row for row in rows if row.get("outcome") == outcome]
        if told:
            parts.append(f"{words} {', '.join(machines(told))}{doubt(told)}")
    return "; ".join(parts)


def doubt(rows: Iterable[Row]) -> str:
    """What a lower bound that is not lost to may still lose by."""
    open_ = any("which are unknown" in str(row.get("words")) for row in rows)
    return ", as long as the costs that are unknown are small" if open_ else ""


def machines(rows: Iterable[Row]) -> list[str]:
    """Machines with their batches, those with the same remark together."""
    grouped: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        batches = grouped.setdefault(until(row), {})
        batches.setdefault(str(row.get("device")), []).append(str(row.get("batch")))
    return [
        ", ".join(f"{name} at {'/'.join(batches)}" for name, batches in each.items()) + how
        for how, each in grouped.items()
    ]


def until(row: Row) -> str:
    """Up to which activity spikes would win."""
    stops = row.get("stops_at")
    if isinstance(stops, float | int):
        return f" (they win below {stops:.2g} spikes a neuron and step)"
    for words in ("even without a single spike", "at any activity"):
        if words in str(row.get("words")):
            return f" ({words})"
    return ""
