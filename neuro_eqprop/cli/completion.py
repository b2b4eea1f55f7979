"""`neuro-eqprop completion SHELL`: a script that completes commands, options and names."""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from neuro_eqprop.cli.command import Command, Json

SHELLS = ("bash", "zsh", "tcsh")


def options(parser: ArgumentParser) -> None:
    """Add the shell."""
    parser.add_argument("shell", choices=SHELLS, help="your shell")


def run(args: Namespace) -> Json:
    """Make the script from the parsers of all commands."""
    import shtab

    from neuro_eqprop.cli.program import COMMANDS, build_parser

    top = build_parser(COMMANDS)
    for action in actions(top):
        names = getattr(action, "names", ())
        if names:
            action.choices = names
        elif action.type is Path:
            vars(action)["complete"] = shtab.FILE
    return {"shell": args.shell, "script": shtab.complete(top, shell=args.shell)}


def actions(parser: ArgumentParser) -> Iterator[Action]:
    """Yield the options and arguments of a parser and its subparsers."""
    for action in parser._actions:
        yield action
        if isinstance(action.choices, dict):
            for below in action.choices.values():
                yield from actions(below)


def show(outcome: Json, console: Console) -> None:
    """Print the script without wrapping."""
    console.file.write(f"{outcome['script']}\n")


COMMAND = Command(
    "completion",
    options,
    run,
    show,
    (
        "neuro-eqprop completion bash > neuro-eqprop.bash",
        "neuro-eqprop completion zsh > _neuro-eqprop",
    ),
)
