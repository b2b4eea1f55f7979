"""The text of docs/results/models-numbers.md, from what was measured."""

from __future__ import annotations

from typing import Any

import numpy as np
from models_notes import CHOICE, GROUPS, HEAD, MISSES
from models_rows import ROWS, Row

Measured = dict[str, Any]


def page(known: dict[str, list[Measured]], cosines: Measured | None) -> str:
    """All groups, then gradients, then what was not reached."""
    lines = ["# Every model, measured", "", *HEAD, ""]
    for group, words in GROUPS.items():
        lines += [f"## {words[0]}", "", *words[1:], *table(group, known), ""]
    lines += ["## Gradients", "", *gradients(cosines), ""]
    lines += ["## Goals not reached, and rows not measured", "", *MISSES, *unmeasured(known), ""]
    lines += ["## How settings were chosen", "", *CHOICE, ""]
    lines += ["## Commands", "", "With `--out RUN --seed N`:", ""]
    lines += [f"- {r.title}: `neuro-eqprop train {r.options}`" for n, r in ROWS.items() if known[n]]
    return "\n".join(lines) + "\n"


def table(group: str, known: dict[str, list[Measured]]) -> list[str]:
    """The rows of a group that were measured."""
    rows = [
        line(row, known[name]) for name, row in ROWS.items() if row.group == group and known[name]
    ]
    if not rows:
        return ["Not measured yet."]
    return [
        "| network | test %, seeds 0, 1, ... | mean | with 4x the steps | steps to 1e-4: mean, "
        "most | CPU s | goal |",
        "|---|---|---|---|---|---|---|",
        *rows,
    ]


def line(row: Row, result: list[Measured]) -> str:
    """A row."""
    tests = [t["test"] for t in result]
    each = " ".join(f"{test:.2f}" for test in tests)
    more = " ".join(f"{t['test4']:.2f}" for t in result if "test4" in t) or "-"
    steps = "-"
    if "steps_max" in result[0]:
        mean = np.mean([t["steps_mean"] for t in result])
        steps = f"{mean:.1f}, {max(t['steps_max'] for t in result)}"
    spent = np.mean([t["cpu"] for t in result])
    reach = row.reach or "-"
    if "jacobian" in result[0]:
        largest = max(t["jacobian"] for t in result)
        reach += f"; norm of the Jacobian < 1: at most {largest:.3f}"
    return (
        f"| {row.title} | {each} | {np.mean(tests):.2f} | {more} | {steps} | {spent:.0f} "
        f"| {reach} |"
    )


def gradients(result: Measured | None) -> list[str]:
    """The least cosine of each model."""
    if result is None:
        return ["Not measured yet."]
    rows = [
        f"| {name} | {t['least']:.7f} | `{t['of']}` | {t['residual']:.0e} |"
        for name, t in result.items()
    ]
    return [
        "The cosine of the update, centered with beta 0.1, with minus the implicit gradient: the",
        "least of any weight or bias. Float64, converged, 32 digits, after one epoch of training",
        "(`sims/rate/models.py cosines`). Without symmetry only the adjoint nudge of rule",
        "`asymmetric` is right; the other two show the error without it.",
        "",
        "| model | least cosine | of | free residual |",
        "|---|---|---|---|",
        *rows,
    ]


def unmeasured(known: dict[str, list[Measured]]) -> list[str]:
    """Which rows are still to be run."""
    missing = [f"`{name}`" for name, message in known.items() if not message]
    few = [f"`{name}`" for name, message in known.items() if 0 < len(message) < 3]
    lines = []
    if missing:
        lines.append(f"- Not run: {', '.join(missing)}; `sims/rate/models.py run NAME` runs one.")
    if few:
        lines.append(f"- Run for fewer than three seeds: {', '.join(few)}.")
    return lines
