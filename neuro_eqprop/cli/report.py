"""`neuro-eqprop report RUN`: one self-contained page from a run folder."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rich.console import Console

import neuro_eqprop as ne
from neuro_eqprop.cli.command import Command, Json


def options(parser: ArgumentParser) -> None:
    """Add the run folders and the output file."""
    meaning = "folder of a run; further runs are shown beside the first"
    parser.add_argument("run", type=Path, nargs="+", metavar="RUN", help=meaning)
    meaning = "file to write (default: report.html in the first RUN)"
    parser.add_argument("--out", type=Path, metavar="FILE.html", help=meaning)


def run(args: Namespace) -> Json:
    """Write the page."""
    path = ne.report(*args.run, out=args.out)
    runs = [str(each) for each in args.run]
    return {"run": runs[0], "runs": runs, "report": str(path), "bytes": path.stat().st_size}


def show(outcome: Json, console: Console) -> None:
    """Print the path of the page."""
    size = outcome["bytes"] / 1e6
    console.print(f"wrote {outcome['report']} ({size:.1f} MB), open it in a browser", markup=False)


COMMAND = Command(
    "report",
    options,
    run,
    show,
    (
        "neuro-eqprop report runs/digits",
        "neuro-eqprop report runs/digits runs/seed1 --out both.html",
    ),
)
