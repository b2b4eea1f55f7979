"""`report`: write the report page of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeAlias, cast

from neuro_eqprop.chips.energy.result import EnergyReport
from neuro_eqprop.common.arrays import type_name
from neuro_eqprop.files.write import refuse_existing, write_text
from neuro_eqprop.html_report.contents import (
    FILES,
    RunContents,
    from_model,
    read_contents,
    simulator_label,
)
from neuro_eqprop.html_report.page import render
from neuro_eqprop.runs.evaluate import Evaluation
from neuro_eqprop.runs.rows import EvaluationRow
from neuro_eqprop.traces.trace import Trace
from neuro_eqprop.training.trained import TrainedNetwork


class HasPath(Protocol):
    """An opened run: an object with the path of its folder."""

    @property
    def path(self) -> Path:
        """Path of the folder."""
        ...


RunLike: TypeAlias = "str | Path | HasPath | TrainedNetwork"
Made: TypeAlias = "Trace | EnergyReport | Evaluation"
"""What can be shown of a run besides its folder."""


def report(run: RunLike, *others: RunLike | Made, out: str | Path | None = None) -> Path:
    """Write one self-contained HTML page on a run: charts, tables, settings.

    The page shows what the folder holds (metrics, evaluations, traces, energy estimates) and the
    command that makes what is missing. Objects that were just made need not be read back.

    Parameters
    ----------
    run : str, Path, Run or Model
        Folder of a run, or a model.
    *others : str, Path, Run, Model, Trace, EnergyReport or Evaluation
        Runs to show beside it; and traces, an energy report and evaluations of the run before
        them. Traces and an energy report stand in place of those in its folder.
    out : str or Path, optional
        File to write; `report.html` in the folder of the first run unless given. A model needs it.

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
    shown: list[tuple[RunLike, list[Made]]] = [(run, [])]
    for each in others:
        if isinstance(each, Trace | EnergyReport | Evaluation):
            shown[-1][1].append(each)
        else:
            shown.append((each, []))
    first, *beside = (gather(source, made) for source, made in shown)
    if out is None and isinstance(run, TrainedNetwork):
        raise ValueError("a model has no folder for its page; give `out`, the file to write")
    path = first.path / "report.html" if out is None else Path(out)
    refuse_existing(path, force=True, mark=b'<p class="over">neuro_eqprop')
    write_text(path, render(replace(first, others=tuple(beside))))
    return path


def gather(source: RunLike, made: Sequence[Made]) -> RunContents:
    """What is known of a run."""
    traces = {trace_name(each): each.load() for each in made if isinstance(each, Trace)}
    energy = next((each for each in made if isinstance(each, EnergyReport)), None)
    rows = [cast("EvaluationRow", e.to_dict()) for e in made if isinstance(e, Evaluation)]
    if isinstance(source, TrainedNetwork):
        return from_model(source, traces, rows, energy or EnergyReport(()))
    folder = folder_of(source)
    if not folder.is_dir():
        raise ValueError(f"there is no run folder {folder}; `neuro-eqprop train` makes one")
    if not any(folder.glob("*.h5")) and not any((folder / name).exists() for name in FILES):
        raise ValueError(f"{folder} holds no run; `neuro-eqprop train --out` makes one")
    model = getattr(source, "model", None)
    held = read_contents(folder, traces or None, energy=energy, model=model)
    return replace(held, evaluations=[*held.evaluations, *rows])


def trace_name(trace: Trace) -> str:
    """Name of the file of a trace; one in memory is named after its simulator."""
    path = getattr(trace, "path", None)
    return path.name if path else f"{simulator_label(trace)}.h5".replace(", ", "-")


def folder_of(run: RunLike) -> Path:
    """Folder of a run."""
    path = run if isinstance(run, str | Path) else getattr(run, "path", None)
    if path is None:
        raise TypeError(f"report takes a run folder, a Run or a Model, not {type_name(run)}")
    return Path(path)
