"""What is told on standard error: the size of a trace to come; bars, when that is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

if TYPE_CHECKING:
    from neuro_eqprop.traces import Plan

Advance = Callable[[float, str], None]
"""Told how much more is done, and a word on how it goes."""


@contextmanager
def bar(what: str, total: int) -> Iterator[Advance]:
    """A bar with the time left."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f} {task.fields[word]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=total, word="")

        def advance(more: float, word: str) -> None:
            progress.update(task, advance=more, word=word)

        yield advance


@contextmanager
def stages() -> Iterator[Callable[[str, int, int], None]]:
    """Progress bars of work in several stages, one bar for each."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        tasks: dict[str, TaskID] = {}

        def advance(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = progress.add_task(stage, total=total)
            progress.update(tasks[stage], completed=done, total=total)

        yield advance


def announce(plan: Plan) -> None:
    """Say how large a trace can become, before it is begun; as bars, only on a terminal."""
    console, size = Console(stderr=True, highlight=False), plan.most_bytes / 1e6
    told = f"recording {len(plan.index)} samples of {plan.steps} steps"
    if console.is_terminal:
        console.print(f"{told}: at most {size:.1f} MB", soft_wrap=True)
