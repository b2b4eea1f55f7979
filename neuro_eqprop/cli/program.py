"""The commands of the command line, and how one is found, parsed, run and reported."""

from __future__ import annotations

import json
import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Collection
from contextlib import ExitStack
from importlib import import_module
from textwrap import indent

from neuro_eqprop import __version__
from neuro_eqprop.cli.command import FAILURE, Command, common, in_flags, to_json
from neuro_eqprop.cli.parsers import Parser, suggestion
from neuro_eqprop.cli.signals import ending_by_signals, exit_code
from neuro_eqprop.common.arrays import ArgumentError, UnknownNameError

COMMANDS = {
    "demo": "the whole chain on the embedded digits, from training to the report",
    "train": "train a rate network by equilibrium propagation",
    "learn": "learn in a simulator: both phases and the Hebbian rule run in spikes",
    "evaluate": "accuracy on the test set, as rates or on a simulator",
    "translate": "a run as a NIR file, a Lava package or a netx file",
    "nir": "what other frameworks make of a NIR file",
    "simulate": "run samples and record traces",
    "compare": "rates against spikes: two traces side by side",
    "energy": "joules per inference and per training sample on each chip",
    "profiles": "the chips: limits, costs and their sources",
    "traces": "show, follow and export a trace file",
    "report": "one self-contained page from a run",
    "sweep": "many trainings with different settings, here or on a cluster",
    "check": "verify a run folder: digests, files, unfinished lines",
    "data": "the data sets: where they are, what is in them",
    "lava": "install Lava into this environment, on Python 3.10 to 3.13",
    "doctor": "what is installed and works here, and how to get what is missing",
    "completion": "a script that completes commands, options and names in your shell",
}
"""Commands and their summaries; each has a module with `COMMAND`, imported when it is used."""

DESCRIPTION = """\
Train networks by Equilibrium Propagation, run them as spikes, estimate their energy on chips.
Every command prints one JSON object with --json, and its options and examples with --help."""
EPILOG = """\
examples:
  neuro-eqprop train --dataset digits --epochs 5 --out runs/digits
  neuro-eqprop evaluate runs/digits --on emulator --code graded
  neuro-eqprop energy runs/digits --profile loihi1
  neuro-eqprop report runs/digits"""


def command(name: str) -> Command:
    """Import and return a command."""
    found = import_module(f"neuro_eqprop.cli.{name}").COMMAND
    if not isinstance(found, Command):
        raise TypeError(f"neuro_eqprop.cli.{name}.COMMAND is not a Command")
    return found


def parser(argv: list[str]) -> Parser:
    """Return the parser, with the options of only the command in `argv`."""
    chosen = next((argument for argument in argv if not argument.startswith("-")), None)
    top = build_parser(() if chosen is None else (chosen,))
    if chosen is None:
        top.check_flags(argv)
    elif chosen in COMMANDS and argv[0].startswith("--") and argv[0] not in top.flags:
        sentence = f"options follow the command, as in `neuro-eqprop {chosen} {argv[0]}`"
        top.exit(2, f"neuro-eqprop: {sentence}\n")
    if chosen is not None and chosen not in COMMANDS:
        meant = suggestion(chosen, COMMANDS) or ";"
        top.exit(
            2,
            f"neuro-eqprop: unknown command {chosen!r}{meant} `neuro-eqprop --help` lists them\n",
        )
    return top


def build_parser(names: Collection[str]) -> Parser:
    """Return the parser of all commands, with the options and examples of those in `names`."""
    top = Parser(prog="neuro-eqprop", description=DESCRIPTION, epilog=EPILOG)
    top.add_argument("--version", action="version", version=f"neuro-eqprop {__version__}")
    places = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, summary in COMMANDS.items():
        place = places.add_parser(name, help=summary, description=f"{name}: {summary}")
        common(place, False)
        if name in names:
            chosen = command(name)
            chosen.options(place)
            place.epilog = "\n  ".join(("examples:", *chosen.examples))
            for file, content in chosen.files.items():
                place.epilog += f"\n\n{file} of the examples:\n{indent(content, '  ')}"
    return top


def perform(chosen: Command, args: Namespace) -> None:
    """Run a command and print its result."""
    from rich.console import Console

    with ExitStack() as limits:
        if getattr(args, "yes", False):
            from neuro_eqprop.runs.request_size import allow_large

            limits.enter_context(allow_large())
        if getattr(args, "simulates", False) and args.deadline is not None:
            from neuro_eqprop.files.deadlines import REQUESTED

            limits.callback(REQUESTED.reset, REQUESTED.set(args.deadline))
        outcome = chosen.run(args)
    if args.json:
        sys.stdout.write(json.dumps(to_json(outcome), allow_nan=False) + "\n")
    else:
        wide = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else 100
        chosen.show(outcome, Console(width=wide, highlight=False))
    sys.stdout.flush()
    failure = outcome.get(FAILURE) if isinstance(outcome, dict) else getattr(outcome, FAILURE, "")
    if failure:
        raise RuntimeError(failure)
    step = None if args.json else chosen.next_step(outcome)
    if step is not None:
        sys.stderr.write(f"next: neuro-eqprop {step}\n")


def run(arguments: list[str]) -> int:
    """Run the command in the arguments; its exit code."""

    def chosen() -> int:
        args = parser(arguments).parse_args(arguments)
        return attempt(command(args.command), args, f"neuro-eqprop {args.command}")

    return exit_code_of(chosen)


def exit_code_of(work: Callable[[], int]) -> int:
    """The exit code of `work`, which may be ended by a signal or by a closed standard output."""
    try:
        with ending_by_signals():
            return work()
    except KeyboardInterrupt as error:
        return exit_code(error)
    except BrokenPipeError:
        from neuro_eqprop.files.write import discard_output

        discard_output()
        return 0


def show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Write a warning to standard error, without the line of code that it comes from."""
    sys.stderr.write(f"warning: {message}\n")


def attempt(chosen: Command, args: Namespace, program: str) -> int:
    """Run a command; an error becomes one sentence, which starts with `program`, and a code."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = show_warning
            perform(chosen, args)
    except BrokenPipeError:
        raise
    except (ValueError, RuntimeError, OSError, LookupError, ArithmeticError, MemoryError) as error:
        if args.debug:
            raise
        sentence = in_flags(str(error), chosen.options)
        if isinstance(error, MemoryError):
            sentence += "; request a smaller network, or fewer samples at a time"
        sys.stderr.write(f"{program}: {sentence}\n")
        return 2 if isinstance(error, UnknownNameError | ArgumentError) else 1
    return 0
