"""`Command`, and parsers of values and helpers for its output."""

from __future__ import annotations

import re
import shlex
from argparse import Action, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from rich.console import Console

from neuro_eqprop.common.arrays import ArgumentError

if TYPE_CHECKING:
    from rich.table import Table

Json: TypeAlias = dict[str, Any]
FAILURE = "failure"
"""Field of an outcome with the reason why the command failed; exit code 1."""
LARGEST_INTEGER = 2**53
"""Largest number of steps, samples or epochs; float64 holds integers up to it exactly."""


class JsonResult(Protocol):
    """A result that has a JSON form."""

    def to_json(self) -> Json:
        """Return the result as a JSON object."""


Outcome: TypeAlias = Json | JsonResult


def to_json(outcome: Outcome) -> Json:
    """Return the JSON object of an outcome."""
    return outcome if isinstance(outcome, dict) else outcome.to_json()


def no_next_step(_: object) -> None:
    """Suggest no next command."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its options, its work, and how its result is printed.

    `run` prints nothing on standard output and returns a JSON object, or a result with `to_json`,
    for `--json`; `show` prints the same object for people. An outcome with a sentence under
    `FAILURE` is shown, and then ends with that sentence and exit code 1. `examples` are complete
    calls for the help, which the tests run in the order of the commands; `files` are the contents
    of files that they read, by name. `next_step` returns the arguments of a call that continues
    from the outcome, printed on standard error.
    """

    name: str
    options: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], Outcome]
    show: Callable[[Any, Console], None]
    examples: tuple[str, ...]
    next_step: Callable[[Any], str | None] = no_next_step
    files: Mapping[str, str] = field(default_factory=dict)


class UsageError(ArgumentError):
    """Wrong arguments that are found after parsing; exit code 2."""


def common(parser: ArgumentParser, default: bool | str) -> None:
    """Add the options of every command.

    Subcommands pass the default `SUPPRESS`, so that they do not reset options given before them.
    """
    for flag, meaning in (
        ("--json", "one JSON object on standard output"),
        ("--debug", "show the traceback of an error"),
    ):
        parser.add_argument(flag, action="store_true", default=default, help=meaning)


def set_completions(action: Action, names: Iterable[str]) -> None:
    """Set the names that an option or argument takes, for shell completion."""
    vars(action)["names"] = tuple(names)


def run_argument(run: str) -> str:
    """Quote the path of a run for a shell."""
    return shlex.quote(run)


def in_flags(sentence: str, options: Callable[[ArgumentParser], None]) -> str:
    """Replace the Python arguments in a message by the options of a command.

    `out` becomes --out, force=True becomes --force, on='rate' becomes --on rate and bits=1 becomes
    --bits 1, where the command has such an option.
    """
    parser = ArgumentParser(add_help=False)
    options(parser)
    flags = {a.dest: a.option_strings[-1] for a in parser._actions if a.option_strings}

    def flag(found: re.Match[str]) -> str:
        option = flags.get(found["name"] or found["argument"])
        value = found["value"] or found["number"]
        return found[0] if option is None else option + (f" {value}" if value else "")

    argument = r"\b(?P<argument>\w+)=(?:True\b|'(?P<value>[^']+)'|(?P<number>\d+)\b(?!\.\d))"
    return re.sub(rf"`(?P<name>\w+)`|{argument}", flag, sentence)


def positive_int(text: str) -> int:
    """Parse an integer in 1..LARGEST_INTEGER."""
    value = integer(text)
    if value < 1:
        raise ArgumentTypeError(f"{value} is not above zero")
    return value


def integer(text: str) -> int:
    """Parse an integer up to LARGEST_INTEGER."""
    try:
        value = int(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not an integer") from None
    if value > LARGEST_INTEGER:
        raise ArgumentTypeError(f"{value:.3g} is too large; at most {LARGEST_INTEGER} is possible")
    return value


def number(text: str) -> float:
    """Parse a number."""
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a number") from None


def positive_float(text: str) -> float:
    """Parse a finite number above zero."""
    value = number(text)
    if not 0.0 < value < float("inf"):
        raise ArgumentTypeError(f"{text} is not above zero and finite")
    return value


def fraction(text: str) -> float:
    """Parse a number in [0, 1]."""
    value = number(text)
    if not 0.0 <= value <= 1.0:
        raise ArgumentTypeError(f"{text} is not between 0 and 1")
    return value


def percent(part: float) -> str:
    """Format a fraction as a percentage."""
    return f"{100 * part:.2f} %"


def plain_table(console: Console) -> Table:
    """Make a table without borders, with narrow gaps on a narrow terminal."""
    from rich.table import Table

    gap = 2 if console.width >= 90 else 1
    return Table(box=None, pad_edge=False, header_style="bold", padding=(0, gap, 0, 0))


def print_facts(rows: Mapping[str, object], console: Console) -> None:
    """Print a table of names and values."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in rows.items():
        table.add_row(f"[bold]{escape(name)}[/bold]", escape(str(value)))
    console.print(table)
