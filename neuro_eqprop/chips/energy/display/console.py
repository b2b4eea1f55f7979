"""Consoles and plain tables of at most 100 columns."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

WIDTH = 100


def console_or_default(console: Console | None) -> Console:
    """The given console, or one on standard output; at most 100 columns wide."""
    console = console or Console(highlight=False)
    console.width = min(WIDTH, console.width)
    return console


def plain_table(
    console: Console, columns: Iterable[str], *, right: Iterable[str] = (), wrap: bool = False
) -> Table:
    """A table without lines; columns in `right` are aligned to the right."""
    gap = 2 if console.width >= 90 else 1
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, gap, 0, 0))
    right = set(right)
    for name in columns:
        table.add_column(name, no_wrap=not wrap, justify="right" if name in right else "left")
    return table


def remark_table(rows: Iterable[tuple[str, str]]) -> Table:
    """Names beside remarks, which may wrap."""
    from rich.markup import escape

    table = Table.grid(padding=(0, 2, 0, 0))
    for name, remark in rows:
        table.add_row(escape(name), escape(remark))
    return table
