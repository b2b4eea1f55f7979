"""`neuro-eqprop nir doctor`: run a NIR file on the installed frameworks and compare the outputs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from neuro_eqprop.arrays import UnknownNameError
from neuro_eqprop.cli.command import (
    Command,
    Json,
    UsageError,
    percent,
    positive_float,
    positive_int,
)

if TYPE_CHECKING:
    from neuro_eqprop.backends.nir.assume import Assumptions

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


def assumptions(args: Namespace) -> Assumptions | None:
    """The assumptions of the options, or None."""
    from neuro_eqprop.backends.nir.assume import Assumptions
    from neuro_eqprop.spiking.ir import Reset

    if args.assume_dt is not None:
        reset = Reset(args.assume_reset or "zero")
        return Assumptions(args.assume_dt, args.assume_delay or 1, reset)
    if args.assume_delay or args.assume_reset:
        raise UsageError("--assume-delay and --assume-reset go with --assume-dt")
    return None


def select_frameworks(only: list[str] | None) -> list[tuple[str, bool]]:
    """The frameworks to run, and whether each is a backend of this package."""
    from neuro_eqprop.backends.nir.framework_check import IMPORTERS, OURS

    for name in only or ():
        if name not in (*OURS, *IMPORTERS):
            raise UnknownNameError("framework", name, {*OURS, *IMPORTERS})
    every = [(name, True) for name in OURS] + [(name, False) for name in IMPORTERS]
    return [pair for pair in every if not only or pair[0] in only]


def run(args: Namespace) -> Json:
    """Run the reference, then every framework in a separate child process."""
    from neuro_eqprop.backends.nir.framework_check import examine, prepare
    from neuro_eqprop.backends.nir.read import read
    from neuro_eqprop.cli.progress import bar

    assume, chosen = assumptions(args), select_frameworks(args.only)
    document = read(args.file, assume)
    trial = prepare(args.file, document, samples=args.samples, steps=args.steps)
    frameworks = []
    with bar("nir doctor", len(chosen)) as advance:
        for name, ours in chosen:
            found = asdict(examine(trial, name, ours=ours, deadline=args.deadline))
            result = found.pop("result").value
            frameworks.append(found | {"verdict": result})
            advance(1, name)
    return {
        "file": str(args.file),
        "digest": document.network.digest,
        "steps": args.steps,
        "samples": args.samples,
        "values": int(trial.expected.size),
        "events": int((trial.expected != 0).sum()),
        "frameworks": frameworks,
    }


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
    "what other frameworks make of a NIR file",
    options,
    run,
    show,
    ("neuro-eqprop nir doctor digits.nir --samples 2 --steps 16 --only snntorch",),
)
