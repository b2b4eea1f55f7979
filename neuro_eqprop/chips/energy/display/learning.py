"""Energy of learning as text."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape

from neuro_eqprop.chips.energy.display.console import plain_table, remark_table
from neuro_eqprop.chips.energy.result import EnergyEstimate, LearningEvents
from neuro_eqprop.common.units import si, si_range


def print_learning(
    chips: Iterable[EnergyEstimate], counted: LearningEvents, console: Console
) -> None:
    """Print the joules of a learning sample and of the whole training, or why there are none."""
    console.print("\n[bold]learning[/bold]")
    if counted.samples:
        print_phases(counted, console)
    chips = list(chips)
    known = [(each, joules) for each in chips if (joules := each.learning.joules)]
    samples = next((each.learning.samples for each, _ in known), counted.presentations)
    total = f"all {samples} samples" if samples else "whole training"
    if samples and counted.presentations and samples < counted.presentations:
        total = f"the first {samples} samples"
    columns = ("chip", "cores", "one sample", "95 % of draws", "time", total)
    table = plain_table(console, columns)
    for each, joules in known:
        found = each.learning
        least = ">= " if found.at_least else ""
        cores = None if found.placement is None else found.placement.cores
        training = ""
        if found.training is not None:
            time = si(found.training_seconds, "s")
            training = f"{least}{si(found.training.value, 'J')}, {time}"
        table.add_row(
            escape(each.profile),
            "-" if cores is None else str(cores),
            f"{least}{si(joules.value, 'J')}",
            si_range(joules.low, joules.high, "J"),
            "-" if found.seconds is None else si(found.seconds.value, "s"),
            training,
        )
    if known:
        console.print(table)
    console.print(remark_table(learning_remarks(chips)))


def print_phases(counted: LearningEvents, console: Console) -> None:
    """Print the events of one learning sample, phase by phase."""
    console.print(f"counted on {counted.samples} samples on the emulator; per sample:")
    names = list(dict.fromkeys(name for events in counted.phases.values() for name in events))
    kept = [name for name in names if any(events[name] for events in counted.phases.values())]
    titles = [name.replace("_", " ") for name in kept]
    table = plain_table(console, ["phase", *titles], right=titles)
    for phase, events in counted.phases.items():
        table.add_row(escape(phase), *(f"{events[name]:,.0f}" for name in kept))
    console.print(table)
    if counted.note:
        console.print(escape(counted.note))
    console.print("")


def learning_remarks(chips: Iterable[EnergyEstimate]) -> list[tuple[str, str]]:
    """Why chips have no joules of learning, or what these leave out, grouped by reason."""
    grouped: dict[str, list[str]] = {}
    for each in chips:
        found = each.learning
        remark = found.reason or "unknown"
        if found.joules is not None:
            missing = ", ".join(term.name for term in found.missing)
            remark = f"not included, because unknown: {missing}" if missing else ""
            if found.seconds_at_least:
                remark += "; the time is a lower bound, too"
        if remark:
            grouped.setdefault(remark, []).append(each.profile)
    return [(", ".join(names), remark) for remark, names in grouped.items()]
