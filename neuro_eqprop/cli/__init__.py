"""The command line: `neuro-eqprop COMMAND ...`."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from importlib import import_module

from neuro_eqprop import __version__
from neuro_eqprop.arrays import UnknownNameError
from neuro_eqprop.cli.command import FAILURE, Command, UsageError, common, to_json

COMMANDS = {
    "demo": "the whole chain on the embedded digits, from training to the report",
    "train": "train a rate network by equilibrium propagation",
    "learn": "learn in a simulator: both phases and the Hebbian rule run in spikes",
    "evaluate": "accuracy on the test set, as rates or on a simulator",
    "translate": "the spiking description as a NIR file",
    "nir": "what other frameworks make of a NIR file",
    "simulate": "run samples and record traces",
    "compare": "rates against spikes: two traces side by side",
    "energy": "joules per inference on hardware profiles",
    "profiles": "the chips: limits, costs and their sources",
    "traces": "show, follow and export a trace file",
    "report": "one self-contained page from a run",
    "sweep": "many trainings with different settings, here or on a cluster",
    "claims": "test the claims of the research notes",
    "data": "the data sets: where they are, what is in them",
    "doctor": "what is installed and works here",
}
"""Commands and their summaries; the module of the same name defines `COMMAND`, imported on use."""


def command(name: str) -> Command:
    """The command with this name."""
    found = import_module(f"neuro_eqprop.cli.{name}").COMMAND
    if not isinstance(found, Command):
        raise TypeError(f"neuro_eqprop.cli.{name}.COMMAND is not a Command")
    return found


def parser(argv: list[str]) -> ArgumentParser:
    """The parser; only the command that `argv` names gets its options."""
    top = ArgumentParser(prog="neuro-eqprop", description=__doc__)
    top.add_argument("--version", action="version", version=f"neuro-eqprop {__version__}")
    places = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    chosen = next((argument for argument in argv if not argument.startswith("-")), None)
    if chosen is not None and chosen not in COMMANDS:
        known = UnknownNameError("command", chosen, COMMANDS)
        top.exit(2, f"neuro-eqprop: {known}; `neuro-eqprop --help` explains them\n")
    for name, summary in COMMANDS.items():
        place = places.add_parser(name, help=summary, description=summary)
        common(place, False)
        if name == chosen:
            command(name).options(place)
    return top


def perform(args: Namespace) -> None:
    """Run a command and print its result."""
    from rich.console import Console

    chosen = command(args.command)
    outcome = chosen.run(args)
    if args.json:
        sys.stdout.write(json.dumps(to_json(outcome), allow_nan=False) + "\n")
    else:
        wide = None if sys.stdout.isatty() else 100
        chosen.show(outcome, Console(width=wide, highlight=False))
    sys.stdout.flush()
    if isinstance(outcome, dict) and FAILURE in outcome:
        raise RuntimeError(outcome[FAILURE])


def main(argv: list[str] | None = None) -> int:
    """Run a command; exit code 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    arguments = sys.argv[1:] if argv is None else argv
    try:
        return attempt(parser(arguments).parse_args(arguments))
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def attempt(args: Namespace) -> int:
    """Run a command; an error becomes one sentence and an exit code."""
    try:
        perform(args)
    except BrokenPipeError:
        raise
    except (ValueError, RuntimeError, OSError, KeyError, MemoryError) as error:
        if args.debug:
            raise
        sys.stderr.write(f"neuro-eqprop {args.command}: {error}\n")
        return 2 if isinstance(error, UnknownNameError | UsageError) else 1
    return 0
