"""The page of the claims, their figures, and all numbers as CSV and JSON."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from neuro_eqprop.claims.charts import draw
from neuro_eqprop.claims.claim import TIMING, Finding, Json, Outcomes, named, names
from neuro_eqprop.claims.intervals import student
from neuro_eqprop.claims.judging import Judged
from neuro_eqprop.files.atomic import write_bytes, write_text

FIGURES = "figures"


def write(found: Sequence[Judged], folder: Path, *, page: Path, command: str) -> list[Path]:
    """Write the page, a figure for each claim that has one, `cells.csv` and `verdicts.json`."""
    made = []
    for each in found:
        picture = figure(each, "svg")
        if picture is not None:
            path = folder / FIGURES / f"{each.claim.id}.svg"
            write_bytes(path, picture)
            made.append(path)
    relative = os.path.relpath(folder / FIGURES, page.parent)
    drawn = {path.stem for path in made}
    write_text(page, text(found, drawn, figures=relative, command=command))
    write_text(folder / "cells.csv", table(found))
    verdicts = {"claims": [as_json(each) for each in found]}
    write_text(folder / "verdicts.json", json.dumps(verdicts, indent=1, allow_nan=False) + "\n")
    return [page, *made, folder / "cells.csv", folder / "verdicts.json"]


def figure(each: Judged, form: str) -> bytes | None:
    """The figure of a claim, if it has one and all that the verdict needs was measured."""
    worked = [outcome for outcome in each.outcomes if outcome.error is None]
    short = any(o.error is not None and o.cell.needed for o in each.outcomes)
    if each.claim.chart is None or not worked or (short and not each.claim.partial):
        return None
    return draw(each.claim.chart(worked), form=form)


def as_json(each: Judged) -> Json:
    """A verdict as `--json` shows it."""
    verdict = each.verdict
    return {
        "id": each.claim.id,
        "statement": each.claim.statement,
        "finding": verdict.finding.value,
        "value": verdict.value,
        "interval": None if verdict.interval is None else list(verdict.interval),
        "seeds": verdict.seeds,
        "note": verdict.note,
        "effect": verdict.effect,
        "threshold": each.claim.threshold,
        "source": each.claim.source,
        "budget": each.budget.value,
        "cells": [outcome.cell.key for outcome in each.outcomes],
    }


def number(value: float | None) -> str:
    """A number as the page shows it."""
    return "" if value is None else f"{value:.4g}"


def span(interval: tuple[float, float] | None) -> str:
    """An interval as the page shows it."""
    return "" if interval is None else f"{number(interval[0])} to {number(interval[1])}"


def text(found: Sequence[Judged], drawn: set[str], *, figures: str, command: str) -> str:
    """The page: the table, then a section for each claim."""
    counts = {finding: 0 for finding in Finding}
    for each in found:
        counts[each.verdict.finding] += 1
    summary = ", ".join(f"{count} {finding.value}" for finding, count in counts.items())
    lines = [
        "# The claims of the research notes",
        "",
        f"Made by `{command}`; do not edit. {len(found)} claims: {summary}.",
        "A claim is confirmed or refuted only where the whole 95 % interval lies on one side of",
        "its threshold.",
        "",
        "| claim | statement | finding | value | 95 % interval | seeds |",
        "|---|---|---|---|---|---|",
    ]
    for each in found:
        v = each.verdict
        cells = (
            f"[{each.claim.id}](#{each.claim.id})",
            each.claim.statement,
            f"**{v.finding.value}**",
            number(v.value),
            span(v.interval),
            str(v.seeds or ""),
        )
        lines.append(f"| {' | '.join(cells)} |")
    for each in found:
        lines += ["", *section(each, f"{figures}/{each.claim.id}.svg", each.claim.id in drawn)]
    return "\n".join(lines) + "\n"


def section(each: Judged, picture: str, drawn: bool) -> Iterator[str]:
    """What was claimed, how it was tested, what came out, and what it means."""
    claim, verdict = each.claim, each.verdict
    yield f"## {claim.id}"
    yield ""
    yield f"*{claim.statement}* (notes {claim.source})"
    yield ""
    if drawn:
        yield f"![{claim.id}]({picture})"
        yield ""
    yield f"**{verdict.finding.value.capitalize()}.** {verdict.note}"
    yield ""
    yield f"Threshold: {claim.threshold}. "
    yield f"Method ({each.budget.value} budget): {claim.told(each.budget)}"
    yield ""
    yield f"What it means: {claim.meaning[verdict.finding]}"
    rows = list(numbers(each.outcomes))
    if rows:
        yield ""
        yield "| cell | seeds | numbers: mean over seeds, and 95 % interval |"
        yield "|---|---|---|"
        yield from rows
    if verdict.effect is not None:
        yield ""
        yield f"Effect size (Hedges' g): {verdict.effect:.2f}."


def numbers(outcomes: Outcomes) -> Iterator[str]:
    """A row for each cell over its seeds."""
    worked = [each for each in outcomes if each.error is None]
    for name in names(outcomes):
        by_seed = named(worked, name)
        if not by_seed:
            error = next(str(each.error) for each in outcomes if each.cell.name == name)
            yield f"| {name} | 0 | {error} |"
            continue
        fields: dict[str, list[float]] = {}
        for seed in sorted(by_seed):
            for field, value in scalars(by_seed[seed]):
                fields.setdefault(field, []).append(value)
        told = []
        for field, values in fields.items():
            mean = student(values)
            ends = f" ({number(mean.low)} to {number(mean.high)})" if len(values) > 1 else ""
            told.append(f"{field} {number(mean.value)}{ends}")
        yield f"| {name} | {len(by_seed)} | {'; '.join(told)} |"


def scalars(values: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The plain numbers among the values, one level down too, without lists."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            for inner, part in scalars(value):
                yield f"{key} {inner}", part
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield key, float(value)


def flat(values: Any, path: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """Every leaf with its path; tables within tables, such as pictures, stay in the cell's file."""
    if isinstance(values, Mapping):
        for key, value in values.items():
            yield from flat(value, f"{path}.{key}" if path else str(key))
    elif isinstance(values, list):
        if values and isinstance(values[0], list):
            return
        for place, value in enumerate(values):
            yield from flat(value, f"{path}[{place}]")
    else:
        yield path, values


def table(found: Sequence[Judged]) -> str:
    """All numbers of all cells, one a line."""
    buffer = StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["claim", "cell", "seed", "key", "function", "field", "value"])
    for each in found:
        for outcome in each.outcomes:
            cell = outcome.cell
            start = [each.claim.id, cell.name, cell.seed, cell.key[:12], cell.function]
            writer.writerow([*start, TIMING, f"{outcome.seconds:.3f}"])
            if outcome.error is not None:
                writer.writerow([*start, "error", outcome.error])
            for field, value in flat(outcome.values):
                writer.writerow([*start, field, value])
    return buffer.getvalue()
