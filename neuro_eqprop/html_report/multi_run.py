"""The joules of several runs side by side in a report."""

from __future__ import annotations

from collections.abc import Sequence

from neuro_eqprop.html_report import html as text
from neuro_eqprop.io.energy_file import ChipEstimateRecord, EnergyRecord


def beside(runs: Sequence[tuple[str, EnergyRecord]]) -> str:
    """The joules of several runs, chip by chip; no ratio where they enclose different things."""
    known = [(name, bills) for name, bills in runs if bills.chips]
    if len(known) < 2:
        return ""
    first = known[0][1]
    rows = []
    for bill in first.chips:
        found = [match(bills, bill) for _, bills in known]
        if not any(each and each.total for each in found):
            continue
        names = [text.text_cell(bill.title), text.text_cell(bill.use)]
        times = [times_cell(bill, each) for each in found[1:]]
        rows.append([*names, *map(joules_cell, found), *times])
    runs_ = [name for name, _ in known]
    header = ["chip", "use", *runs_, *(f"{runs_[0]} : {name}" for name in runs_[1:])]
    return f'<p class="listed">The runs side by side</p>{text.table("joules-runs", header, rows)}'


def match(bills: EnergyRecord, wanted: ChipEstimateRecord) -> ChipEstimateRecord | None:
    """The bill of the same chip and use."""
    same = (b for b in bills.chips if (b.profile, b.use) == (wanted.profile, wanted.use))
    return next(same, None)


def joules_cell(bill: ChipEstimateRecord | None) -> tuple[object, str]:
    """The total of a bill, or why there is none."""
    if bill is None or bill.total is None:
        return text.text_cell((bill.reason.partition(":")[0] if bill else "") or "not estimated")
    least = "≥ " if bill.unknown else ""
    return bill.total.joules, f"{least}{text.quantity(bill.total.joules, 'J')}"


def times_cell(one: ChipEstimateRecord, other: ChipEstimateRecord | None) -> tuple[object, str]:
    """How many times the joules of another run; refused across boundaries."""
    if other is None or one.total is None or other.total is None or not other.total.joules:
        return text.text_cell(None)
    if one.boundary != other.boundary:
        return text.text_cell(f"not compared: {one.boundary}, {other.boundary}")
    times = one.total.joules / other.total.joules
    return times, f"{times:.3g}"
