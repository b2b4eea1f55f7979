"""Confusion matrix of the test samples after the last epoch."""

from __future__ import annotations

from neuro_eqprop.html_report.contents import RunContents
from neuro_eqprop.html_report.html import chart
from neuro_eqprop.html_report.section import Json, Limits, Section, asset

MAX_CLASSES = 40


def matrix(run: RunContents) -> list[list[int]] | None:
    """The last recorded confusion matrix: true classes in rows, predicted ones in columns."""
    for row in reversed(run.metrics):
        found = row.get("confusion")
        if not isinstance(found, list) or not 0 < len(found) <= MAX_CLASSES:
            continue
        if all(isinstance(line, list) and len(line) == len(found) for line in found):
            return [[int(value) for value in line] for line in found]
    return None


def body(run: RunContents) -> str:
    """A sentence on the most frequent mistake, and the matrix."""
    found = matrix(run) or []
    total, right = sum(map(sum, found)), sum(found[k][k] for k in range(len(found)))
    mistakes = [(found[i][j], i, j) for i in range(len(found)) for j in range(len(found)) if i != j]
    most, true, given = max(mistakes, default=(0, 0, 0))
    mistake = f" The most frequent mistake takes {true} for {given}, {most} times." if most else ""
    return (
        f"<p>{right} of {total} test samples are classified correctly.{mistake} The colour is "
        f"the share of a class.</p>{chart('confusion', 'Confusion of the classes', tall=True)}"
    )


def data(run: RunContents, _: Limits) -> Json:
    """The matrix."""
    return {"confusion": matrix(run)}


SECTION = Section(
    "mistakes",
    "Mistakes",
    body,
    needs=lambda run: not run.others and matrix(run) is not None,
    data=data,
    script=asset("script/confusion.js"),
)
