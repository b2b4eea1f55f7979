"""`neuro-eqprop sweep`: many trainings with different settings."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

from rich.console import Console

import neuro_eqprop as ne
from neuro_eqprop.cli.command import (
    FAILURE,
    Command,
    Json,
    positive_float,
    positive_int,
    print_facts,
    run_argument,
)
from neuro_eqprop.cli.executors import executor_arguments, executor_options
from neuro_eqprop.cli.progress import bar

EXAMPLE = """\
[settings]            # of every training
epochs = 2
validation = 0.1      # part of the training samples that the best cell is chosen by

[axes]                # what varies: every combination is trained
hidden = [[16], [32]]
seed = [0, 1]
"""


def options(parser: ArgumentParser) -> None:
    """Add the sweep, the folder and the executor."""
    add = parser.add_argument
    add("sweep", type=Path, metavar="SWEEP.toml", help="settings and what varies; see below")
    add("--out", type=Path, required=True, metavar="DIR", help="folder of the results")
    executor_options(parser)
    cores = min(4, os.cpu_count() or 1)
    add(
        "--workers",
        type=positive_int,
        default=cores,
        metavar="N",
        help=f"processes, or Slurm jobs at the same time (default {cores})",
    )
    add(
        "--deadline",
        type=positive_float,
        default=3600.0,
        metavar="S",
        help="seconds for a training with its evaluations (default 3600)",
    )
    add("--force", action="store_true", help="replace the results of another sweep in --out")


def run(args: Namespace) -> Json:
    """Run the sweep."""
    given = executor_arguments(args)
    with bar(f"sweep {args.sweep}", 1) as advance:
        shown = [0.0]

        def on_cells(done: int, total: int, error: str) -> None:
            share = done / max(total, 1)
            advance(share - shown[0], f"of the sweep, {done} of {total} cells")
            shown[0] = share

        found = ne.sweep(
            args.sweep,
            args.out,
            **given,
            deadline=args.deadline,
            force=args.force,
            progress=on_cells,
        )
    outcome = found.to_json()
    if found.failed == found.cells:
        outcome[FAILURE] = f"all {found.cells} cells failed; the first: {outcome['errors'][0]}"
    return outcome


def show(outcome: Json, console: Console) -> None:
    """Print the counts, the best cell and the files."""
    rows: dict[str, object] = {"cells": f"{outcome['done']} done, {outcome['failed']} failed"}
    if outcome["best"]:
        hidden = ("error", "model_sha256")
        rows |= {
            f"best {key}" if key == outcome["objective"] else key: value
            for key, value in outcome["best"].items()
            if key not in hidden and value is not None
        }
    for error in outcome["errors"][:3]:
        rows["failed"] = error
    rows |= {"table": outcome["table"], "page": outcome["page"]}
    print_facts(rows, console)


def next_step(outcome: Json) -> str | None:
    """Train the best cell again, into a run folder."""
    if not outcome["best"]:
        return None
    return f"train {run_argument(outcome['out'] + '/best.toml')} --out runs/best"


COMMAND = Command(
    "sweep",
    options,
    run,
    show,
    ("neuro-eqprop sweep sweep.toml --out runs/sweep --workers 2",),
    next_step,
    {"sweep.toml": EXAMPLE},
)
