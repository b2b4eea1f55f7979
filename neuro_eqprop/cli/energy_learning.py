"""The learning side of `energy`: lessons counted on the emulator, and what is shown of them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from neuro_eqprop.cli.base import Json
from neuro_eqprop.cli.units import si

if TYPE_CHECKING:
    from neuro_eqprop.spiking.workloads import Workload

SHOWN = ("steps", "spikes", "synops", "trace_updates", "tag_updates", "weight_updates")


@dataclass(frozen=True, slots=True)
class Taught:
    """Lessons that were counted, or why there are none."""

    load: Workload | None
    reason: str
    presentations: int | None
    """Lessons of the whole training."""
    note: str = ""


def teach(args: Namespace, inference: Workload, *, steps: int, code: str) -> Taught:
    """Count lessons of the run; a network or a code that cannot learn is a reason, no error."""
    from neuro_eqprop.analysis.joules import NO_LEARNING
    from neuro_eqprop.cli.evaluate import code_named
    from neuro_eqprop.cli.progress import bar
    from neuro_eqprop.spiking.learning_load import lessons_load
    from neuro_eqprop.study.episodes import count_lessons
    from neuro_eqprop.study.folder import open_run

    if args.counts is not None:
        return Taught(None, NO_LEARNING, args.presentations)
    try:
        opened = open_run(args.run)
        with bar("counting lessons", args.samples) as advance:
            found = count_lessons(
                opened,
                samples=args.samples,
                steps=steps,
                code=code_named(code),
                watch=lambda more: advance(more, "lessons"),
            )
    except ValueError as error:
        return Taught(None, f"unknown: {error}", args.presentations)
    load = lessons_load(
        found.plastic,
        found.learned.counts,
        entry=opened.model.network.input.name,
        bits=args.bits or 8,
        lessons=found.lessons,
        coding=found.code.value,
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


def head(counted: Json, console: Console) -> None:
    """What a lesson took, phase by phase."""
    if not counted["lessons"]:
        return
    console.print(f"counted on {counted['lessons']} lessons of learning on the emulator, each:")
    for phase, held in counted["phases"].items():
        parts = (f"{held[name]:.4g} {name.replace('_', ' ')}" for name in SHOWN if held[name])
        console.print(escape(f"  {phase}: {', '.join(parts)}"))
    if counted["note"]:
        console.print(escape(f"  {counted['note']}"))


def learning(profiles: Iterable[Json], console: Console) -> None:
    """Joules of a lesson and of the whole training on each chip, or why there are none."""
    console.print("\n[bold]learning[/bold], a training sample")
    for each in profiles:
        side, name = each["learning"], f"{each['profile'][:18]:<18} "
        if side["joules"] is None:
            console.print(escape(f"{name}{side['reason'] or 'unknown'}"), style="dim")
            continue
        least = ">= " if side["at_least"] else ""
        span = f"[{si(side['low'], 'J')} .. {si(side['high'], 'J')}]"
        cores = "-" if side["cores"] is None else f"{side['cores']} cores"
        told = f"{least}{si(side['joules'], 'J')} {span}, {si(side['seconds'], 's')}, {cores}"
        console.print(escape(f"{name}{told}"))
        training = side.get("training")
        if training:
            whole = f"{least}{si(training['joules'], 'J')}, {si(training['seconds'], 's')}"
            many = training["presentations"]
            console.print(escape(f"{'':<19}whole training of {many} lessons: {whole}"))
        missing = ", ".join(unknown["name"] for unknown in side["unpriced"])
        if missing:
            console.print(escape(f"{'':<19}not counted, because unknown: {missing}"))
