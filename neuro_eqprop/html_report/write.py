"""`report`: write the report page of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeAlias

from neuro_eqprop.common.arrays import type_name
from neuro_eqprop.files.write import write_text
from neuro_eqprop.html_report.contents import RunContents, read_contents
from neuro_eqprop.html_report.page import render
from neuro_eqprop.traces.lazy import read
from neuro_eqprop.traces.schema import TraceError
from neuro_eqprop.traces.trace import Trace

FILES = ("study.toml", "metrics.jsonl", "evaluations.jsonl", "energy.json", "model.safetensors")


class HasPath(Protocol):
    """An opened run: an object with the path of its folder."""

    @property
    def path(self) -> Path:
        """Path of the folder."""
        ...


RunLike: TypeAlias = "str | Path | HasPath"


def report(run: RunLike, *others: RunLike, out: str | Path | None = None) -> Path:
    """Write one self-contained HTML page on a run: charts, tables, settings.

    The page shows what the folder holds (metrics, evaluations, traces, energy estimates) and the
    command that makes what is missing.

    Parameters
    ----------
    run : str, Path or Run
        Folder of a run.
    *others : str, Path or Run
        Runs to show beside it.
    out : str or Path, optional
        File to write; `report.html` in the folder of the first run unless given.

    Returns
    -------
    Path
        The file written.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> ne.report(example_run).name
    'report.html'
    """
    first, *beside = (read_run(folder_of(each)) for each in (run, *others))
    path = first.path / "report.html" if out is None else Path(out)
    write_text(path, render(replace(first, others=tuple(beside))))
    return path


def folder_of(run: RunLike) -> Path:
    """Folder of a run."""
    path = run if isinstance(run, (str, Path)) else getattr(run, "path", None)
    if path is None:
        raise TypeError(f"report takes a run folder or a Run, not {type_name(run)}")
    return Path(path)


def read_run(folder: Path) -> RunContents:
    """Contents of a run folder, with a note on each trace that cannot be read."""
    if not folder.is_dir():
        raise ValueError(f"there is no run folder {folder}; `neuro-eqprop train` makes one")
    found = sorted(folder.glob("*.h5"))
    if not found and not any((folder / name).exists() for name in FILES):
        raise ValueError(f"{folder} holds no run; `neuro-eqprop train --out` makes one")
    traces: dict[str, Trace] = {}
    notes: list[str] = []
    for path in found:
        trace = read_or_error(path)
        if isinstance(trace, Trace):
            traces[path.name] = trace
        else:
            notes.append(f"{trace}.")
    return read_contents(folder, traces, notes)


def read_or_error(path: Path) -> Trace | TraceError:
    """Trace of a file, or why it cannot be read."""
    try:
        return read(path)
    except TraceError as error:
        return error
