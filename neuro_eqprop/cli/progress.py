"""Progress bars and messages on standard error, if it is a terminal."""

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
    from neuro_eqprop.simulators.recordings import RecordingPlan

Advance = Callable[[float, str], None]
"""Advances a bar by an amount, and sets the text after the count."""


def progress_bars() -> Progress:
    """Return progress bars on standard error; disabled if it is not a terminal."""
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
    """Show a progress bar with the remaining time; yield the function that advances it."""
    with progress_bars() as progress:
        task = progress.add_task(description, total=total, text="")

        def advance(more: float, text: str) -> None:
            progress.update(task, advance=more, text=text)

        yield advance


@contextmanager
def counted(description: str, total: int, unit: str) -> Iterator[Callable[[Any], None]]:
    """Show a progress bar; yield a callback for numbers of samples or metrics of an epoch."""
    with bar(description, total) as advance:
        yield lambda done: advance(done if isinstance(done, int) else 1, unit)


@contextmanager
def stages() -> Iterator[Callable[[str, int, int], None]]:
    """Show one progress bar per stage; yield a callback for stage, steps done and total."""
    with progress_bars() as progress:
        tasks: dict[str, TaskID] = {}

        def advance(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                tasks[stage] = progress.add_task(stage, total=total, text="")
            progress.update(tasks[stage], completed=done, total=total)

        yield advance


def announce(plan: RecordingPlan) -> None:
    """Print the largest size that a trace can reach, before recording; only on a terminal."""
    console, size = Console(stderr=True, highlight=False), plan.most_bytes / 1e6
    if console.is_terminal:
        samples = f"{len(plan.index)} samples of {plan.steps} steps"
        console.print(f"recording {samples}: at most {size:.1f} MB", soft_wrap=True)
