"""Confusion matrix of the test samples after the last epoch."""

from __future__ import annotations

from neuro_eqprop.html_report.contents import RunContents
from neuro_eqprop.html_report.html import chart
from neuro_eqprop.html_report.section import Section, Shown, asset
from neuro_eqprop.runs.rows import MetricsRow

MAX_CLASSES = 40


def show(run: RunContents) -> Shown:
    """A sentence on the most frequent mistake, and the last recorded matrix."""
    matrix = next((row["confusion"] for row in reversed(run.metrics) if is_square(row)), None)
    if matrix is None or run.others:
        return Shown()
    classes = range(len(matrix))
    total, right = sum(map(sum, matrix)), sum(matrix[k][k] for k in classes)
    mistakes = [(matrix[i][j], i, j) for i in classes for j in classes if i != j]
    most, true, given = max(mistakes, default=(0, 0, 0))
    mistake = f" The most frequent mistake takes {true} for {given}, {most} times." if most else ""
    return Shown(
        f"<p>{right} of {total} test samples are classified correctly.{mistake} The colour is "
        f"the share of a class.</p>{chart('confusion', 'Confusion of the classes', tall=True)}",
        lambda _: {"confusion": matrix},
    )


def is_square(row: MetricsRow) -> bool:
    """Whether an epoch has a matrix, true classes in rows, that is not too large to draw."""
    matrix = row.get("confusion", [])
    return 0 < len(matrix) <= MAX_CLASSES and all(len(line) == len(matrix) for line in matrix)


SECTION = Section("mistakes", "Mistakes", show, asset("script/confusion.js"))
