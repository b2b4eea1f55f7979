"""Several runs side by side in a table."""

from __future__ import annotations

from neuro_eqprop.html_report.contents import RunContents
from neuro_eqprop.html_report.header import joules, preferred_evaluation
from neuro_eqprop.html_report.html import Cell, percent, setting_cell, table
from neuro_eqprop.html_report.section import Section, Shown

SETTINGS = ("dataset", "model", "hidden", "rule", "nudging", "beta", "epochs", "seed")


def show(run: RunContents) -> Shown:
    """A row per run: its settings, accuracy, agreement with spikes and energy."""
    header = ["run", *SETTINGS, "test accuracy", "same answer", "joules"]
    return Shown(table("runs", header, map(row, run.runs)) if run.others else "")


def row(run: RunContents) -> list[Cell]:
    """The cells of a run."""
    accuracy = run.metrics[-1].get("test_accuracy") if run.metrics else None
    best = preferred_evaluation(run) or {}
    energy = [f"{card.value}, {card.label}" for card in joules(run)[-1:]]
    return [
        run.name,
        *(setting_cell(run.setting(name)) for name in SETTINGS),
        (accuracy, percent(accuracy, 2)),
        (best.get("agreement"), percent(best.get("agreement"), 2)),
        energy[0] if energy else None,
    ]


SECTION = Section("runs", "Side by side", show)
