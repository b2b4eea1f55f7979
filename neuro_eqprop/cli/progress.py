"""Messages on standard error, if it is a terminal: progress bars, the size of a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

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
"""Advances a bar by an amount; the text after the count shows the latest metric, or is empty."""


def progress_bars() -> Progress:
    """Progress bars on standard error with the time left; disabled if it is no terminal."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f} {task.fields[text]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )


@contextmanager
def bar(description: str, total: int) -> Iterator[Advance]:
    """A progress bar with the time left."""
    with progress_bars() as progress:
        task = progress.add_task(description, total=total, text="")

        def advance(more: float, text: str) -> None:
            progress.update(task, advance=more, text=text)

        yield advance


@contextmanager
def counted(description: str, total: int, unit: str) -> Iterator[Callable[[Any], None]]:
    """A progress bar, as a callback that takes a number of samples or the metrics of an epoch."""
    with bar(description, total) as advance:
        yield lambda done: advance(done if isinstance(done, int) else 1, unit)


@contextmanager
def stages() -> Iterator[Callable[[str, int, int], None]]:
    """Progress bars of work in several stages, one bar for each."""
    with progress_bars() as progress:
        tasks: dict[str, TaskID] = {}

        def advance(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = progress.add_task(stage, total=total, text="")
            progress.update(tasks[stage], completed=done, total=total)

        yield advance


def announce(plan: Plan) -> None:
    """Print the largest size that a trace can reach, before recording; only on a terminal."""
    console, size = Console(stderr=True, highlight=False), plan.most_bytes / 1e6
    if console.is_terminal:
        samples = f"{len(plan.index)} samples of {plan.steps} steps"
        console.print(f"recording {samples}: at most {size:.1f} MB", soft_wrap=True)
