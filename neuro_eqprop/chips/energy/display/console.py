"""Consoles and plain tables of at most 100 columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

WIDTH = 100


def console_or_default(console: Console | None) -> Console:
    """The given console, or one on standard output; at most 100 columns wide."""
    console = console or Console(highlight=False)
    console.width = min(WIDTH, console.width)
    return console


def print_table(
    console: Console,
    columns: Iterable[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Iterable[str] = (),
    wrap: bool = False,
    dim: Sequence[bool] = (),
) -> None:
    """Print a table without lines, whose cells are markup; a repeated first cell is left blank.

    Columns in `right` are aligned to the right; rows at which `dim` is true are dimmed.
    """
    gap = 2 if console.width >= 90 else 1
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, gap, 0, 0))
    right = set(right)
    for name in columns:
        table.add_column(name, no_wrap=not wrap, justify="right" if name in right else "left")
    previous = ""
    for place, (first, *rest) in enumerate(rows):
        style = "dim" if dim and dim[place] else ""
        table.add_row("" if first == previous and not dim else first, *rest, style=style)
        previous = first
    console.print(table)


def print_remarks(rows: Iterable[tuple[str, str]], console: Console) -> None:
    """Print names beside remarks, which may wrap; a repeated name is left blank."""
    table = Table.grid(padding=(0, 2, 0, 0))
    previous = ""
    for name, remark in rows:
        table.add_row("" if name == previous else escape(name), escape(remark))
        previous = name
    console.print(table)
