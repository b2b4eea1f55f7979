"""`neuro-eqprop doctor`: check packages, simulators, tools and data sets."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import asdict

from rich.console import Console
from rich.markup import escape
from rich.table import Table

import neuro_eqprop as ne
from neuro_eqprop import __version__
from neuro_eqprop.cli.command import Command, Json


def options(parser: ArgumentParser) -> None:
    """Add no options."""


def run(args: Namespace) -> Json:
    """Check the environment."""
    return {
        "version": __version__,
        "findings": [asdict(finding) for finding in ne.check_environment()],
    }


def show(outcome: Json, console: Console) -> None:
    """Print a row for each item."""
    table = Table(show_header=False, box=None, pad_edge=False)
    for each in outcome["findings"]:
        mark = "[green]yes[/green]" if each["here"] else "[yellow]no[/yellow]"
        table.add_row(mark, each["thing"], escape(each["note"]))
    console.print(f"neuro-eqprop {outcome['version']}")
    console.print(table)
    lacking = sum(not each["here"] for each in outcome["findings"])
    if lacking:
        console.print(f"{lacking} not here; each line says how to get it")


COMMAND = Command(
    "doctor",
    options,
    run,
    show,
    ("neuro-eqprop doctor", "neuro-eqprop doctor --json"),
)
