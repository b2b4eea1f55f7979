"""Several runs side by side in a table."""

from __future__ import annotations

from neuro_eqprop.html_report.contents import RunContents
from neuro_eqprop.html_report.header import joules, preferred_evaluation
from neuro_eqprop.html_report.html import Cell, percent, setting_cell, table, text_cell
from neuro_eqprop.html_report.section import Section

SETTINGS = ("dataset", "model", "hidden", "rule", "nudging", "beta", "epochs", "seed")


def body(run: RunContents) -> str:
    """A row per run: its settings, accuracy, agreement with spikes and energy."""
    header = ["run", *SETTINGS, "test accuracy", "same answer", "joules"]
    return table("runs", header, [row(each) for each in run.runs])


def row(run: RunContents) -> list[Cell]:
    """The cells of a run."""
    last = run.metrics[-1] if run.metrics else {}
    best = preferred_evaluation(run) or {}
    energy = [f"{value}, {label}" for value, label, _ in joules(run)]
    return [
        text_cell(run.name),
        *(setting_cell(run.setting(name)) for name in SETTINGS),
        (last.get("test_accuracy"), percent(last.get("test_accuracy"), 2)),
        (best.get("agreement"), percent(best.get("agreement"), 2)),
        text_cell(energy[0] if energy else None),
    ]


SECTION = Section("runs", "Side by side", body, needs=lambda run: bool(run.others))
