"""`neuro-eqprop nir doctor`: run a NIR file on the installed frameworks and compare the outputs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

import neuro_eqprop as ne
from neuro_eqprop.cli.command import (
    Command,
    Json,
    UsageError,
    percent,
    positive_float,
    positive_int,
)
from neuro_eqprop.cli.progress import stages
from neuro_eqprop.simulators.nir.assume import PRESETS, Assumptions
from neuro_eqprop.spiking.ir import Reset

RESETS = ("zero", "subtract")


def options(parser: ArgumentParser) -> None:
    """Add the file, the length of the run, and assumptions for files without step semantics."""
    add = parser.add_argument
    add("action", choices=["doctor"], help="run the file on every installed framework")
    add("file", type=Path, metavar="NET.nir", help="a NIR file")
    add("--steps", type=positive_int, default=64, help="steps of the run")
    add(
        "--samples",
        type=positive_int,
        default=4,
        metavar="N",
        help="random inputs, held constant",
    )
    add(
        "--only",
        action="append",
        metavar="NAME",
        help="run only this framework; repeatable (default: all installed)",
    )
    meaning = "seconds without progress after which a framework fails"
    add("--deadline", type=positive_float, default=60.0, metavar="S", help=meaning)
    meaning = "how this framework, which wrote the file, runs it (default: what the file states)"
    add("--assume", choices=sorted(PRESETS), metavar="FRAMEWORK", help=meaning)
    meaning = (
        "time step in seconds, for a file that does not state it (default: what the file states)"
    )
    add("--assume-dt", type=positive_float, metavar="S", help=meaning)
    add(
        "--assume-delay",
        type=positive_int,
        metavar="STEPS",
        help="with --assume-dt: delay of an edge in steps (default 1)",
    )
    add(
        "--assume-reset",
        choices=RESETS,
        help="with --assume-dt: reset after a spike (default zero)",
    )


def assumptions(args: Namespace) -> str | Assumptions | None:
    """Return the assumptions of `--assume`, or of `--assume-dt` and its companions, or None."""
    if args.assume is not None and (args.assume_dt or args.assume_delay or args.assume_reset):
        raise UsageError("--assume states all that the others do: give one of them")
    if args.assume is not None:
        return str(args.assume)
    if args.assume_dt is not None:
        reset = Reset(args.assume_reset or "zero")
        return Assumptions(args.assume_dt, args.assume_delay or 1, reset)
    if args.assume_delay or args.assume_reset:
        raise UsageError("--assume-delay and --assume-reset go with --assume-dt")
    return None


def run(args: Namespace) -> Json:
    """Run the reference, then every framework."""
    with stages() as advance:
        return ne.check_nir(
            args.file,
            only=args.only or (),
            samples=args.samples,
            steps=args.steps,
            assume=assumptions(args),
            deadline=args.deadline,
            progress=lambda _, done, total: advance("nir doctor", done, total),
        ).to_json()


def show(outcome: Json, console: Console) -> None:
    """Print a row for each framework."""
    table = Table(box=None, pad_edge=False)
    for column in ("framework", "version", "read by", "runs it", "equal", "note"):
        table.add_column(column, justify="right" if column == "equal" else "left")
    for each in outcome["frameworks"]:
        table.add_row(
            each["framework"],
            each["version"] or "",
            each["reader"],
            each["verdict"],
            "" if each["equal"] is None else percent(each["equal"]),
            escape(each["note"]),
        )
    console.print(table)
    console.print(
        f"against the reference: {outcome['samples']} inputs, {outcome['steps']} steps, "
        f"{outcome['values']} output values, {outcome['events']} of them events"
    )


COMMAND = Command(
    "nir",
    options,
    run,
    show,
    ("neuro-eqprop nir doctor digits.nir --samples 2 --steps 16 --only snntorch",),
)
