"""`neuro-eqprop check RUN`: verify a run folder and repair what can be repaired."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rich.console import Console

import neuro_eqprop as ne
from neuro_eqprop.cli.command import FAILURE, Command, Json, plain_table
from neuro_eqprop.runs.check_run import DAMAGED


def options(parser: ArgumentParser) -> None:
    """Add the run folder and whether to repair it."""
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a run")
    meaning = "report alone; unfinished lines and leftover temporary files stay"
    parser.add_argument("--no-repair", action="store_true", help=meaning)


def run(args: Namespace) -> Json:
    """Verify the folder."""
    outcome = ne.check_run(args.run, repair=not args.no_repair).to_json()
    damaged = [each["file"] for each in outcome["files"] if each["state"] == DAMAGED]
    if damaged:
        outcome[FAILURE] = (
            f"{args.run} is damaged ({', '.join(damaged)}); restore these files from a copy, or "
            f"make them again"
        )
    return outcome


def show(outcome: Json, console: Console) -> None:
    """Print a row for each file."""
    from rich.markup import escape

    table = plain_table(console)
    for title in ("file", "state", "what was found"):
        table.add_column(title, overflow="fold")
    for each in outcome["files"]:
        table.add_row(*(escape(str(each[key])) for key in ("file", "state", "detail")))
    console.print(table)


COMMAND = Command(
    "check",
    options,
    run,
    show,
    ("neuro-eqprop check runs/digits", "neuro-eqprop check runs/digits --no-repair"),
)
