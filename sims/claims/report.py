"""The Markdown page of the claims, their figures, and all numbers as CSV and JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from neuro_eqprop.files.write import write_bytes, write_text
from sims.claims.charts import draw
from sims.claims.claim import (
    TIMING,
    CellResults,
    Finding,
    Json,
    Verdict,
    cell_names,
    values_by_seed,
)
from sims.claims.run import ClaimResult
from sims.claims.statistics import student

FIGURES = "figures"


def write(found: Sequence[ClaimResult], folder: Path, *, page: Path, command: str) -> list[Path]:
    """Write the page, a figure for each claim that has one, `cells.csv` and `verdicts.json`."""
    made = []
    for each in found:
        picture = figure(each, "svg")
        if picture is not None:
            path = page.parent / FIGURES / f"{each.claim.id}.svg"
            write_bytes(path, picture)
            made.append(path)
    drawn = {path.stem for path in made}
    write_text(page, text(found, drawn, figures=FIGURES, command=command))
    write_text(folder / "cells.csv", table(found))
    verdicts = {"claims": [as_json(each) for each in found]}
    write_text(folder / "verdicts.json", json.dumps(verdicts, indent=1, allow_nan=False) + "\n")
    return [page, *made, folder / "cells.csv", folder / "verdicts.json"]


def figure(each: ClaimResult, form: str) -> bytes | None:
    """The figure of a claim; None if it has none or a needed cell failed."""
    worked = [outcome for outcome in each.results if outcome.error is None]
    short = any(o.error is not None and o.cell.needed for o in each.results)
    if each.claim.chart is None or not worked or (short and not each.claim.partial):
        return None
    return draw(each.claim.chart(worked), form=form)


def as_json(each: ClaimResult) -> Json:
    """The fields of a claim in `--json`."""
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
        "cells": [outcome.cell.key for outcome in each.results],
    }


def number(value: float | None) -> str:
    """A number with four digits; empty for None."""
    return "" if value is None else f"{value:.4g}"


def span(interval: tuple[float, float] | None) -> str:
    """An interval as text; empty for None."""
    return "" if interval is None else f"{number(interval[0])} to {number(interval[1])}"


def text(found: Sequence[ClaimResult], drawn: set[str], *, figures: str, command: str) -> str:
    """The Markdown page: a table of all claims, then a section for each."""
    counts = {finding: 0 for finding in Finding}
    for each in found:
        counts[each.verdict.finding] += 1
    summary = ", ".join(f"{count} {finding.value}" for finding, count in counts.items())
    spent = {o.cell.key: o.seconds for each in found for o in each.results}
    lines = [
        "# The claims of the research notes",
        "",
        "Which claims of the research notes hold, with the measurements that decide each.",
        f"Made by `{command}`; do not edit. {len(found)} claims: {summary}.",
        f"They use {len(spent)} cells, {sum(spent.values()) / 60:.0f} minutes of CPU time.",
        "A claim is confirmed or refuted only if the whole 95 % interval lies on one side of",
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


def section(each: ClaimResult, picture: str, drawn: bool) -> Iterator[str]:
    """The lines of a claim's section: statement, figure, verdict, method, meaning, table."""
    claim, verdict = each.claim, each.verdict
    yield f"## {claim.id}"
    yield ""
    yield f"*{claim.statement}* (notes {claim.source})"
    yield ""
    if drawn:
        yield f"![{claim.id}]({picture})"
        yield ""
    yield finding(verdict)
    yield ""
    yield f"Threshold: {claim.threshold}. "
    yield f"Method ({each.budget.value} budget): {claim.method_text(each.budget)}"
    yield ""
    yield f"What it means: {claim.meaning[verdict.finding]}"
    if claim.conflict:
        yield ""
        yield f"Where the notes disagree: {claim.conflict}"
    if each.results:
        yield ""
        yield from numbers(each)
    if verdict.effect is not None:
        yield ""
        yield f"Effect size (Hedges' g): {verdict.effect:.2f}."


def finding(verdict: Verdict) -> str:
    """The finding and its note as Markdown."""
    start = f"{Finding.UNDECIDED.value}: "
    if verdict.note.startswith(start):
        return f"**Undecided:** {verdict.note.removeprefix(start)}."
    return f"**{verdict.finding.value.capitalize()}.** {verdict.note}"


def numbers(each: ClaimResult) -> Iterator[str]:
    """The lines of a table: a row per cell name, each value a mean over seeds with its interval."""
    worked = [outcome for outcome in each.results if outcome.error is None]
    shown = each.claim.shown or scalar_columns(worked)
    yield f"| cell | seeds | {' | '.join(shown)} |" if shown else "| cell | seeds | error |"
    yield "|---|---|" + "---|" * max(1, len(shown))
    for name in cell_names(each.results):
        by_seed = values_by_seed(worked, name)
        if not by_seed:
            error = next(str(e.error) for e in each.results if e.cell.name == name)
            yield f"| {name} | 0 | {error} |" + " |" * (len(shown) - 1)
            continue
        leaves = [dict(flat(by_seed[seed])) for seed in sorted(by_seed)]
        columns = (
            mean([float(leaf[path]) for leaf in leaves if path in leaf]) for path in shown.values()
        )
        yield f"| {name} | {len(by_seed)} | {' | '.join(columns)} |"


def scalar_columns(results: CellResults) -> dict[str, str]:
    """Columns for all scalar numbers, for a claim without `shown`."""
    found: dict[str, str] = {}
    for outcome in results:
        for key, value in outcome.values.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                found[key.replace("_", " ")] = key
    return found


def mean(values: Sequence[float]) -> str:
    """The mean and its interval as text."""
    if not values:
        return ""
    found = student(values)
    if len(values) == 1 or found.low == found.high:
        return number(found.value)
    return f"{number(found.value)} ({number(found.low)} to {number(found.high)})"


def flat(values: Any, path: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """Yield (path, value) for every leaf; lists of lists are skipped."""
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


def table(found: Sequence[ClaimResult]) -> str:
    """All numbers of all cells as CSV, with six digits; a shared cell is listed once."""
    buffer, seen = StringIO(), set[str]()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["claim", "cell", "seed", "key", "field", "value"])
    for each in found:
        for outcome in each.results:
            cell = outcome.cell
            if cell.key in seen:
                continue
            seen.add(cell.key)
            start = [each.claim.id, cell.name, cell.seed, cell.key[:8]]
            writer.writerow([*start, TIMING, f"{outcome.seconds:.3f}"])
            if outcome.error is not None:
                writer.writerow([*start, "error", outcome.error])
            for field, value in flat(outcome.values):
                writer.writerow([*start, field, f"{value:.6g}" if type(value) is float else value])
    return buffer.getvalue()
