"""`neuro-eqprop report RUN`: one self-contained page from a run folder."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from neuro_eqprop.cli.command import Command, Json

if TYPE_CHECKING:
    from neuro_eqprop.io.trace.schema import TraceError
    from neuro_eqprop.io.trace.trace import Trace
    from neuro_eqprop.report.contents import RunContents

FILES = ("study.toml", "metrics.jsonl", "evaluations.jsonl", "energy.json", "model.safetensors")


def options(parser: ArgumentParser) -> None:
    """The run folders."""
    told = "the folder of a run; more of them are shown beside the first"
    parser.add_argument("run", type=Path, nargs="+", metavar="RUN", help=told)
    told = "where to write the page (report.html in the first RUN)"
    parser.add_argument("--out", type=Path, metavar="FILE.html", help=told)


def run(args: Namespace) -> Json:
    """Write the page and say where it is."""
    path = report(*args.run, out=args.out)
    runs = [str(each) for each in args.run]
    return {"run": runs[0], "runs": runs, "report": str(path), "bytes": path.stat().st_size}


def report(folder: Path, *others: Path, out: Path | None = None) -> Path:
    """Write the page of a run and of those beside it, into the folder of the first."""
    from neuro_eqprop.io.atomic import write_text
    from neuro_eqprop.report.page import page_of

    out = out or folder / "report.html"
    write_text(out, page_of(replace(look(folder), others=tuple(look(each) for each in others))))
    return out


def look(folder: Path) -> RunContents:
    """What a run folder holds."""
    from neuro_eqprop.io.trace.trace import Trace
    from neuro_eqprop.report.contents import read_contents

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
    return read_contents(folder, traces, notes)


def attempt(path: Path) -> Trace | TraceError:
    """The trace in a file, or why it could not be read."""
    from neuro_eqprop.io.trace.lazy import read
    from neuro_eqprop.io.trace.schema import TraceError

    try:
        return read(path)
    except TraceError as error:
        return error


def show(outcome: Json, console: Console) -> None:
    """Where the page is."""
    size = outcome["bytes"] / 1e6
    console.print(f"wrote {outcome['report']} ({size:.1f} MB), open it in a browser", markup=False)


COMMAND = Command("report", "one self-contained page from a run", options, run, show)
