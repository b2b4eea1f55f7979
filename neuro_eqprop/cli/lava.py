"""`neuro-eqprop lava install`: Lava in this environment, on Python 3.10 to 3.13."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from dataclasses import asdict

from rich.console import Console

import neuro_eqprop as ne
from neuro_eqprop.cli.command import Command, Json, print_facts


def options(parser: ArgumentParser) -> None:
    """Add the action."""
    meaning = "install lava-nc into this environment, also where pip refuses it, and try it"
    parser.add_argument("action", choices=["install"], help=meaning)


def run(args: Namespace) -> Json:
    """Install Lava, and run two of its processes."""
    return asdict(ne.install_lava(announce=announce))


def announce(step: str) -> None:
    """Print a step on standard error."""
    sys.stderr.write(f"{step} ...\n")


def show(outcome: Json, console: Console) -> None:
    """Print what is installed now."""
    changed = "installed" if outcome["changed"] else "was installed already"
    rows = {
        "lava-nc": f"{outcome['version']}, {changed}",
        "python": outcome["python"],
        "run of two processes": "every value arrived",
    }
    print_facts(rows, console)


COMMAND = Command(
    "lava",
    options,
    run,
    show,
    ("neuro-eqprop lava install",),
)
