"""What a command of the command line is, and the words its options understand."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from rich.console import Console

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its options, its work, and how its outcome looks to a person.

    `run` prints nothing on standard output and returns what `--json` shows; `show` draws the same
    object for people.
    """

    name: str
    summary: str
    options: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], Json]
    show: Callable[[Json, Console], None]


def positive_int(text: str) -> int:
    """A whole number above zero."""
    try:
        value = int(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a whole number") from None
    if value < 1:
        raise ArgumentTypeError(f"{value} is not above zero")
    return value


def positive_float(text: str) -> float:
    """A number above zero."""
    try:
        value = float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a number") from None
    if not 0.0 < value < float("inf"):
        raise ArgumentTypeError(f"{text} is not above zero and finite")
    return value


def percent(fraction: float) -> str:
    """A fraction of one, as people read it."""
    return f"{100 * fraction:.2f} %"


def facts(rows: Mapping[str, object], console: Console) -> None:
    """A small table of names and values."""
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in rows.items():
        table.add_row(f"[bold]{name}[/bold]", str(value))
    console.print(table)
