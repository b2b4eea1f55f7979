"""`neuro-eqprop report RUN`: one self-contained page from a run folder."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from neuro_eqprop.cli.base import Command, Json

if TYPE_CHECKING:
    from neuro_eqprop.files.tracefile import TraceError
    from neuro_eqprop.traces import Trace

FILES = ("study.toml", "metrics.jsonl", "evaluations.jsonl", "energy.json", "model.safetensors")


def options(parser: ArgumentParser) -> None:
    """The run folder."""
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a run")


def run(args: Namespace) -> Json:
    """Write the page and say where it is."""
    path = report(args.run)
    return {"run": str(args.run), "report": str(path), "bytes": path.stat().st_size}


def report(folder: Path) -> Path:
    """Write `report.html` into a run folder."""
    from neuro_eqprop.analysis.page import page
    from neuro_eqprop.files.atomic import write_text
    from neuro_eqprop.traces import Trace

    if not folder.is_dir():
        raise ValueError(f"there is no run folder {folder}; `neuro-eqprop train` makes one")
    found = sorted(folder.glob("*.h5"))
    if not found and not any((folder / name).exists() for name in FILES):
        raise ValueError(f"{folder} holds no run; `neuro-eqprop train --out` makes one")
    traces: dict[str, Trace] = {}
    notes: list[str] = []
    for path in found:
        read = attempt(path)
        if isinstance(read, Trace):
            traces[path.name] = read
        else:
            notes.append(f"{read}.")
    write_text(folder / "report.html", page(folder, traces, notes=notes))
    return folder / "report.html"


def attempt(path: Path) -> Trace | TraceError:
    """The trace in a file, or why it could not be read."""
    from neuro_eqprop.files.tracefile import TraceError, read

    try:
        return read(path)
    except TraceError as error:
        return error


def show(outcome: Json, console: Console) -> None:
    """Where the page is."""
    size = outcome["bytes"] / 1e6
    console.print(f"wrote {outcome['report']} ({size:.1f} MB), open it in a browser", markup=False)


COMMAND = Command("report", "one self-contained page from a run", options, run, show)
