"""A one-page HTML data sheet of a network on a chip."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

from neuro_eqprop.chips.energy.dense_reference import Outcome
from neuro_eqprop.chips.energy.estimate import Estimate
from neuro_eqprop.chips.energy.result import EnergyEstimate, EnergyReport
from neuro_eqprop.chips.energy.table import COLUMNS, UseRow
from neuro_eqprop.chips.energy.term_colours import colour_of
from neuro_eqprop.common.units import si, si_range
from neuro_eqprop.files.write import make_folder, write_text

STYLE = """
body{font:14px/1.4 sans-serif;max-width:46rem;margin:1.5rem auto;padding:0 1rem;color:#222}
h1{font-size:1.3rem;margin-bottom:0}h2{font-size:1rem;margin:1rem 0 .3rem}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.1rem .5rem .1rem 0;
border-bottom:1px solid #ddd;vertical-align:top}.bar{display:inline-block;height:.7em}
.small{color:#666;font-size:.85rem}@media print{body{margin:0}}
"""


def table(rows: Iterable[tuple[str, ...]], head: tuple[str, ...] = ()) -> str:
    """An HTML table; cells are text already escaped."""
    top = "".join(f"<th>{each}</th>" for each in head)
    body = "".join(f"<tr>{''.join(f'<td>{c}</td>' for c in row)}</tr>" for row in rows)
    return f"<table>{f'<tr>{top}</tr>' if top else ''}{body}</table>"


FIGURES = ("joules", "seconds", "frames_per_second", "frames_per_joule", "energy_delay_product")
"""Columns of a data sheet, whose unknown values are left out."""
TITLES = {
    "joules": "energy",
    "seconds": "latency",
    "frames_per_second": "throughput",
    "frames_per_joule": "efficiency",
}
UNITS = {
    "frames_per_second": "samples a second",
    "frames_per_joule": "samples a second and watt",
    "energy_delay_product": "J s",
}


def figures(row: UseRow) -> str:
    """The key figures of an inference or a learning sample."""
    found = row.found
    if found.joules is None:
        return f"<p>{escape(found.reason or 'unknown')}</p>"
    rows = []
    for name in FIGURES:
        column, value = COLUMNS[name], COLUMNS[name].value(row)
        if value is None:
            continue
        text = f"{value:.3g} {UNITS[name]}" if name in UNITS else column.text(row)
        spread = {"joules": found.joules, "seconds": found.seconds}.get(name)
        if spread is not None:
            text += f" ({si_range(spread.low, spread.high, column.unit)})"
        rows.append((TITLES.get(name, column.title), text.replace(">=", "at least")))
    if found.duty is not None:
        watts = "unknown" if found.duty.watts is None else si(found.duty.watts, "W")
        rows.append((f"at {found.duty.rate:g} samples a second", f"{watts}; {found.duty.note}"))
    rows.append(("boundary", COLUMNS["inside"].text(row)))
    if found.placement is not None and found.placement.cores is not None:
        chips = "1 chip" if found.placement.chips == 1 else f"{found.placement.chips} chips"
        rows.append(("placement", f"{found.placement.cores} cores of {chips}, {found.mapping}"))
    return table((escape(name), escape(value)) for name, value in rows)


def terms(found: Estimate) -> str:
    """The cost terms with a bar on a linear scale each."""
    rows = []
    for name, share in found.shares.items():
        bar = f"<span class='bar' style='width:{12 * share:.2f}rem;background:{colour_of(name)}'>"
        joules = next(term.joules.value for term in found.terms if term.name == name)
        rows.append((escape(name), si(joules, "J"), f"{share:.1%}", f"{bar}</span>"))
    return table(rows, ("term", "joules", "share", ""))


def sheet(report: EnergyReport, chip: EnergyEstimate) -> str:
    """The page of one chip."""
    counted = report.counted
    layers = [(escape(name), si(value, "J")) for name, value in chip.inference.layers.items()]
    summaries = [
        (escape(each.summary),) for each in chip.comparisons if each.outcome is not Outcome.REFUSED
    ]
    missing = [(escape(each),) for each in (*chip.inference.unknown, *chip.unchecked)]
    accuracy = ""
    if chip.accuracy is not None:
        accuracy = f"; accuracy {chip.accuracy:.2%} with {chip.bits}-bit weights"
    point = ", ".join(f"{key} {value}" for key, value in chip.operating_point.items())
    parts = [
        f"<h1>{escape(chip.title)}</h1><p class='small'>{escape(report.run or counted.source)}: "
        f"{counted.steps} steps, input as {escape(counted.input_coding)}, {counted.spikes:.4g} "
        f"spikes and {counted.synops:.4g} synaptic operations a sample{accuracy}. "
        f"{escape(point)}</p>",
        f"<h2>An inference</h2>{figures(UseRow(chip, 'inference'))}",
        f"<h2>Where the energy goes</h2>{terms(chip.inference)}" if chip.inference.terms else "",
        f"<h2>By layer</h2>{table(layers)}" if layers else "",
        f"<h2>A learning sample</h2>{figures(UseRow(chip, 'learning'))}",
        f"<h2>Compared with dense devices</h2>{table(summaries)}" if summaries else "",
        f"<h2>Not known or not checked</h2>{table(missing)}" if missing else "",
        "<p class='small'>An estimate: counted events times published costs. Not a measurement. "
        "The range of a calibrated chip is that of its own published measurements; that of any "
        "other one spans an order of magnitude or more.</p>",
    ]
    title = f"{escape(chip.title)}: energy"
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{title}</title>"
        f"<style>{STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )


def write_datasheets(report: EnergyReport, path: Path) -> Path:
    """Write a data sheet: one file for a single chip, or a folder with one for each."""
    if path.suffix == ".html" and len(report) == 1:
        write_text(path, sheet(report, report.estimates[0]))
        return path
    if path.suffix:
        raise ValueError(f"{path} is one file for {len(report)} chips; name a folder, or one chip")
    make_folder(path)
    for chip in report:
        write_text(path / f"{chip.profile}.html", sheet(report, chip))
    return path
