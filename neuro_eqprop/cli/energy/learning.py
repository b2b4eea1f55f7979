"""The learning side of `energy`: lessons counted on the emulator, and what is shown of them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from neuro_eqprop.cli.command import Json, plain_table
from neuro_eqprop.units import si, si_range

if TYPE_CHECKING:
    from neuro_eqprop.hardware.workload import Workload

SHOWN = ("steps", "spikes", "synops", "trace_updates", "tag_updates", "weight_updates")


@dataclass(frozen=True, slots=True)
class Taught:
    """Lessons that were counted, or why there are none."""

    load: Workload | None
    reason: str
    presentations: int | None
    """Lessons of the whole training."""
    note: str = ""


def teach(args: Namespace, inference: Workload, *, steps: int | None, code: str) -> Taught:
    """Count lessons of the run; a network or a code that cannot learn is a reason, no error."""
    from neuro_eqprop.energy.estimate import NO_LEARNING

    if args.counts is not None:
        return Taught(None, NO_LEARNING, args.presentations)
    from neuro_eqprop.cli.progress import bar
    from neuro_eqprop.experiments.learning_cost import count_learning_events
    from neuro_eqprop.experiments.run_folder import open_run
    from neuro_eqprop.hardware.learning_workload import lessons_load
    from neuro_eqprop.spiking.codes import find_code

    try:
        opened = open_run(args.run)
        with bar("counting lessons", args.samples) as advance:
            found = count_learning_events(
                opened,
                samples=args.samples,
                steps=steps,
                code=find_code(code),
                watch=lambda more: advance(more, "lessons"),
            )
    except ValueError as error:
        return Taught(None, f"unknown: {error}", args.presentations)
    load = lessons_load(
        found.plastic,
        found.learned.counts,
        entry=opened.model.network.input.name,
        bits=args.bits or 8,
        lessons=found.samples,
        coding=found.code.name,
        dense_macs=inference.dense_macs,
    )
    return Taught(load, "", args.presentations or found.presentations, found.note)


def taught_json(taught: Taught) -> Json:
    """What was counted, per lesson and phase."""
    if taught.load is None:
        return {"lessons": 0, "reason": taught.reason}
    phases: dict[str, Json] = {}
    for (_, phase), counts in taught.load.counts.items():
        held = phases.setdefault(phase, dict.fromkeys(SHOWN, 0.0))
        for name in SHOWN:
            each = getattr(counts, name) / taught.load.samples
            held[name] = max(held[name], each) if name == "steps" else held[name] + each
    return {
        "lessons": taught.load.samples,
        "input_coding": taught.load.input_coding,
        "presentations": taught.presentations,
        "note": taught.note,
        "phases": phases,
    }


def learning(profiles: Iterable[Json], counted: Json, console: Console) -> None:
    """Joules of a lesson and of the whole training on each chip, or why there are none."""
    console.print("\n[bold]learning[/bold]")
    phases(counted, console)
    found = plain_table(console)
    for name in ("chip", "cores", "a lesson", "95 % of draws", "time"):
        found.add_column(name, no_wrap=True)
    lessons = counted.get("presentations")
    many = f"{lessons} lessons" if lessons else "training"
    found.add_column(f"all {many}", no_wrap=True)
    chips, priced = list(profiles), 0
    for each in chips:
        side, least = each["learning"], ">= " if each["learning"]["at_least"] else ""
        if side["joules"] is None:
            continue
        priced += 1
        whole = side.get("training")
        found.add_row(
            escape(each["profile"]),
            "-" if side["cores"] is None else str(side["cores"]),
            f"{least}{si(side['joules'], 'J')}",
            si_range(side["low"], side["high"], "J"),
            si(side["seconds"], "s"),
            f"{least}{si(whole['joules'], 'J')}, {si(whole['seconds'], 's')}" if whole else "",
        )
    if priced:
        console.print(found)
    console.print(remarks(chips))


def phases(counted: Json, console: Console) -> None:
    """What a lesson took, phase by phase."""
    if not counted["lessons"]:
        return
    console.print(f"counted on {counted['lessons']} lessons on the emulator; in each:")
    kept = [name for name in SHOWN if any(held[name] for held in counted["phases"].values())]
    found = plain_table(console)
    found.add_column("phase")
    for name in kept:
        found.add_column(name.replace("_", " "), justify="right", no_wrap=True)
    for phase, held in counted["phases"].items():
        found.add_row(escape(phase), *(f"{held[name]:,.0f}" for name in kept))
    console.print(found)
    if counted["note"]:
        console.print(escape(counted["note"]))
    console.print("")


def remarks(chips: Iterable[Json]) -> object:
    """Why a chip has no joules of learning, or what they leave out; chips that share it in one."""
    from rich.table import Table

    told: dict[str, list[str]] = {}
    for each in chips:
        side = each["learning"]
        missing = ", ".join(unknown["name"] for unknown in side["unpriced"])
        words = side["reason"] or "unknown"
        if side["joules"] is not None:
            words = f"not counted, because unknown: {missing}" if missing else ""
        if words:
            told.setdefault(words, []).append(each["profile"])
    found = Table.grid(padding=(0, 2, 0, 0))
    for words, names in told.items():
        found.add_row(escape(", ".join(names)), escape(words))
    return found
