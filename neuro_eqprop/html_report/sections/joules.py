"""Energy estimates on every chip, the terms of each, and several runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from neuro_eqprop.chips.boundary import Boundary
from neuro_eqprop.chips.energy.estimate import Estimate
from neuro_eqprop.chips.energy.interval import Interval
from neuro_eqprop.chips.energy.pareto import best
from neuro_eqprop.chips.energy.result import EnergyEstimate, EnergyReport
from neuro_eqprop.chips.energy.table import (
    COLUMNS,
    USES,
    UseRow,
    boundary_text,
    placement_text,
    use_rows,
)
from neuro_eqprop.chips.energy.term_colours import colour_of
from neuro_eqprop.chips.profile import Tier
from neuro_eqprop.html_report import html as text
from neuro_eqprop.html_report.commands import energy_command
from neuro_eqprop.html_report.contents import RunContents
from neuro_eqprop.html_report.section import Section, Shown, asset

SHOWN = ("title", "joules", "low", "high", "inside", "seconds", "always_on", "remark")
"""Columns of the table of all chips."""


def drawn(report: EnergyReport) -> list[UseRow]:
    """The chips and uses that have terms to draw, those that fit first."""
    rows = [row for row in use_rows(report) if any(t.joules.value > 0 for t in row.found.terms)]
    return sorted(rows, key=lambda row: (COLUMNS["fits"].value(row) is not True, row.use))


def chart_data(report: EnergyReport) -> dict[str, Any]:
    """Bars of all chips, the terms of each, and accuracy against joules."""
    terms = [
        {
            "name": f"{row.chip.title}: {row.use}",
            "terms": [
                {"name": each.name, "colour": colour_of(each.name), **joules_data(each.joules)}
                for each in sorted(row.found.terms, key=lambda term: -term.joules.value)
                if each.joules.value > 0
            ],
            "total": joules_data(row.found.joules) | {"name": "total", "colour": "#444444"}
            if row.found.joules
            else None,
        }
        for row in drawn(report)
    ]
    curves = {chip.profile: curve_data(chip) for chip in report if chip.curve}
    return {"bars": {use: bars(report, use) for use in USES}, "estimates": terms, "curves": curves}


def joules_data(joules: Interval) -> dict[str, Any]:
    """Joules with their range."""
    return {"joules": joules.value, "low": joules.low, "high": joules.high}


def curve_data(chip: EnergyEstimate) -> list[dict[str, Any]]:
    """The points of accuracy against joules, with the best one marked."""
    chosen = best(chip.curve)
    return [
        {
            "code": each.code,
            "steps": each.steps,
            "accuracy": each.accuracy,
            **{"joules": each.joules, "low": each.low, "high": each.high},
            "fits": each.fits,
            "best": each == chosen,
        }
        for each in chip.curve
        if each.joules > 0
    ]


def bars(report: EnergyReport, use: str) -> list[dict[str, Any]]:
    """One row for each chip and dense device, grouped by boundary; those without joules last."""
    rows: list[dict[str, Any]] = []
    none = {"joules": None, "low": None, "high": None}
    for row in use_rows(report, [use]):
        chip, found = row.chip, row.found
        known = found.joules is not None and found.joules.value > 0
        rows.append(
            {
                "name": chip.title + mark(found) + (" *" if changes(chip) else ""),
                **(joules_data(found.joules) if found.joules and known else none),
                "group": boundary_text(found) if known else "",
                "parts": found.shares if known else {},
                "reason": "" if known else found.reason or placement_text(found),
                "least": found.at_least,
                "dense": False,
            }
        )
    for each in report.references if use == "inference" else ():
        dense = {"name": f"{each.device}, batch {each.batch}", **joules_data(each.joules)}
        rest = {"parts": {}, "reason": "", "least": False, "dense": True}
        rows.append(dense | {"group": words(each.boundary)} | rest)
    order = {words(boundary): place for place, boundary in enumerate(Boundary)}
    return sorted(rows, key=lambda row: (order.get(row["group"], 99), -(row["joules"] or 0.0)))


def mark(found: Estimate) -> str:
    """A mark behind the name of a chip whose joules are an order of magnitude."""
    return " ~" if found.tier is Tier.ORDER_OF_MAGNITUDE else ""


def words(boundary: Boundary) -> str:
    """The name of a boundary as words."""
    return boundary.value.replace("_", " ")


def range_text(joules: Interval) -> str:
    """The range of joules."""
    return f"{text.quantity(joules.low, 'J')} to {text.quantity(joules.high, 'J')}"


def show(run: RunContents) -> Shown:
    """Charts and tables or, without an estimate, the command that makes one."""
    if not len(run.energy):
        return Shown(text.missing("No energy estimate yet; this makes one:", "energy", run.path))
    several = runs_side_by_side([(each.name, each.energy) for each in run.runs])
    html = estimates_html(run.energy) + several + text.reproduce(energy_command(run))
    return Shown(html, lambda _: {"energy": chart_data(run.energy)})


def estimates_html(report: EnergyReport) -> str:
    """Charts and tables of the estimates of one run."""
    bars_, terms_, curve_ = (
        text.chart("chips", "Joules on each chip"),
        text.chart("terms", "Joules by term"),
        text.chart("trade", "Accuracy against joules", tall=True),
    )
    details = "".join(
        f'<div class="estimate" data-estimate="{k}">{details_text(row.found)}</div>'
        for k, row in enumerate(drawn(report))
    )
    choice = '<div class="controls"><label>chip <select id="chip"></select></label></div>'
    terms = f'{choice}<div class="grid two">{terms_}<div>{details}</div></div>' if details else ""
    select = '<div class="controls"><label>joules of <select id="use"></select></label></div>'
    return (
        "<p>An estimate: counted events times published costs, not a measurement. Costs that are "
        f"not published are listed and left out.{escape(counted_text(report))}</p>"
        f"{select}{bars_}<p class='small'>A dot is the joules, on a logarithmic scale, its whisker "
        "the range: that of its own published measurements on a calibrated chip, an order of "
        "magnitude or more on one that is marked ~. "
        "Compare only dots under the same heading; (≥) marks a lower bound, where costs are "
        "unknown. The terms of a chip are bars on a linear scale; a term has the same colour in "
        "every chart.</p>"
        f"{changes_list(report)}{comparison_list(report)}"
        f"{curve_text(report, curve_)}{terms}{chips_table(report)}{no_learning(report)}"
    )


def counted_text(report: EnergyReport) -> str:
    """The counted events, as a sentence."""
    counted = report.counted
    if not counted.samples or not counted.steps:
        return ""
    code = f" in code {counted.code}" if counted.code else ""
    samples, steps = text.count(counted.samples), text.count(counted.steps)
    return (
        f" Counted on {samples} samples of {steps} steps{code}, the input as "
        f"{counted.input_coding}."
    )


def changes(chip: EnergyEstimate) -> list[str]:
    """Differences of a chip from its profile: a scenario, and overridden values."""
    scenario = [f"scenario: {chip.scenario}"] if chip.scenario else []
    return [*scenario, *chip.overridden]


def changes_list(report: EnergyReport) -> str:
    """Values that are not those of the profiles, chip by chip."""
    lines = [f"{chip.title}: {change}" for chip in report for change in changes(chip)]
    return text.listing("* Not as in the profiles", lines)


def comparison_list(report: EnergyReport) -> str:
    """Whether spikes need less than the most frugal dense device, one row a chip."""
    rows = [
        [
            text.text_cell(chip.title),
            text.text_cell(each.device),
            (each.ratio, f"{each.ratio:.2g}" if each.ratio is not None else text.DASH),
            (each.summary, text.Html(f'<span class="remark">{escape(each.summary)}</span>')),
        ]
        for chip, each in report.verdicts
    ]
    if not rows:
        return ""
    header = ["chip", "most frugal device", "chip : device", "comparison"]
    return f'<p class="listed">Do spikes need less?</p>{text.table("verdicts", header, rows)}'


def curve_text(report: EnergyReport, figure: str) -> str:
    """Accuracy against joules, with the best point marked."""
    if not any(chip.curve for chip in report):
        return ""
    choice = '<div class="controls"><label>chip <select id="trade-chip"></select></label></div>'
    return (
        f"{choice}{figure}<p class='small'>Each point is a code and a number of steps; the best "
        "trade (star) is the cheapest within half a percent of the most accurate, chosen on the "
        "test samples that it is drawn for, so its accuracy is optimistic. "
        "<span id='trade-below'></span></p>"
    )


def details_text(found: Estimate) -> str:
    """Remarks of an estimate besides its terms."""
    parts: list[str] = []
    least = "at least " if found.at_least else ""
    if found.joules is not None:
        joules = text.quantity(found.joules.value, "J")
        tier = "" if found.tier is None else f"{found.tier.value}: "
        parts.append(f"{least}{joules} ({tier}{range_text(found.joules)})")
    if found.seconds is not None:
        parts.append(f"{text.quantity(found.seconds.value, 's')} long")
    if found.energy_delay_product is not None:
        parts.append(f"energy times delay {found.energy_delay_product:.2g} J\u00a0s")
    if found.duty is not None and found.duty.watts is not None:
        watts = text.quantity(found.duty.watts, "W")
        parts.append(f"always on, at {found.duty.rate:g} samples a second, {watts}")
    parts.append(placement_text(found))
    if found.training is not None:
        joules = f"{text.quantity(found.training.value, 'J')} ({range_text(found.training)})"
        samples = text.count(found.samples)
        parts.append(f"the whole training of {samples} samples takes {least}{joules}")
    sentence = f"<p>{escape('; '.join(parts))}.</p>"
    return sentence + text.listing("Unknown, so not in the sum", found.unknown)


def no_learning(report: EnergyReport) -> str:
    """Why there are no joules of learning, if no chip has any."""
    learning = [chip.learning for chip in report]
    if not learning or any(found.joules for found in learning):
        return ""
    return f"<p>No joules of learning: {escape(learning[0].reason or 'not estimated')}.</p>"


def chips_table(report: EnergyReport) -> str:
    """Every chip, also those without joules, a row each; learning if a chip has it."""
    learned = any(chip.learning.joules for chip in report)
    rows = use_rows(report, ["inference"])
    cells = [[html_cell(name, row) for name in SHOWN] for row in rows]
    header = [COLUMNS[name].title for name in SHOWN]
    if learned:
        place = SHOWN.index("inside")
        header.insert(place, "learning, a sample")
        for chip, line in zip(report, cells, strict=True):
            line.insert(place, html_cell("joules", UseRow(chip, "learning")))
    return text.table("chips", header, cells)


def html_cell(name: str, row: UseRow) -> tuple[object, str]:
    """A cell of the page: its value, by which a table is sorted, and its text."""
    column = COLUMNS[name]
    value, shown = column.value(row), column.text(row, text.quantity).replace(">=", "≥")
    if name == "remark":
        return value, text.Html(f'<span class="remark">{escape(shown)}</span>')
    return value, shown or (text.DASH if value is None else "")


def runs_side_by_side(runs: Sequence[tuple[str, EnergyReport]]) -> str:
    """The joules of several runs, chip by chip; no ratio between different boundaries."""
    known = [(name, report) for name, report in runs if len(report)]
    if len(known) < 2:
        return ""
    (first, report), *others = known
    matches = [{row.profile: row for row in other} for _, other in others]
    rows = []
    for row in use_rows(report):
        chips = [match.get(row.chip.profile) for match in matches]
        theirs = [UseRow(each, row.use) if each else None for each in chips]
        if not any(each and each.found.joules for each in (row, *theirs)):
            continue
        cells = [joules_cell(each) for each in (row, *theirs)]
        ratios = [ratio_cell(row.found, each.found if each else None) for each in theirs]
        rows.append([html_cell("title", row), html_cell("use", row), *cells, *ratios])
    names = [name for name, _ in others]
    header = ["chip", "use", first, *names, *(f"{first} : {name}" for name in names)]
    table = text.table("joules-runs", header, rows)
    return f'<p class="listed">The runs side by side</p>{table}'


def joules_cell(row: UseRow | None) -> tuple[object, str]:
    """The joules of an estimate, or why there are none."""
    if row is None or row.found.joules is None:
        reason = row.found.reason.partition(":")[0] if row else ""
        return text.text_cell(reason or "not estimated")
    return html_cell("joules", row)


def ratio_cell(one: Estimate, other: Estimate | None) -> tuple[object, str]:
    """The joules of one run over those of another at the same boundary."""
    if other is None or one.joules is None or other.joules is None or not other.joules.value:
        return text.text_cell(None)
    if one.boundary is not other.boundary:
        return text.text_cell(f"not compared: {boundary_text(one)}, {boundary_text(other)}")
    ratio = one.joules.value / other.joules.value
    return ratio, f"{ratio:.3g}"


SECTION = Section("joules", "Joules", show, asset("script/joules.js"))
