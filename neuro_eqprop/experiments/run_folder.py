"""The folder of a run: what lies in it, and that nothing is overwritten."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from neuro_eqprop.data import Dataset
from neuro_eqprop.data import load as load_data
from neuro_eqprop.experiments import config
from neuro_eqprop.experiments.config import Study
from neuro_eqprop.history import read_history
from neuro_eqprop.io import checkpoint
from neuro_eqprop.model import Model

STUDY, MODEL, METRICS, RESUME = (
    "study.toml",
    "model.safetensors",
    "metrics.jsonl",
    "resume.safetensors",
)
EVALUATIONS, TRACES, ENERGY, REPORT = "evaluations.jsonl", "traces.h5", "energy.json", "report.html"


class RunError(ValueError):
    """A run folder is not as it should be; the message says the way out."""


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run: its folder, its settings, its network, its data."""

    path: Path
    study: Study
    model: Model
    data: Dataset


def claim(path: Path, *, force: bool) -> None:
    """Make the folder ready for a new run; one that holds a run is kept unless forced."""
    held = [name for name in (STUDY, MODEL, METRICS, RESUME) if (path / name).exists()]
    if held and not force:
        raise RunError(
            f"{path} already holds a run ({', '.join(held)}); choose another --out, go on with "
            f"--resume, or replace it with --force"
        )
    if path.exists() and not path.is_dir():
        raise RunError(f"{path} is a file; --out names a folder")
    path.mkdir(parents=True, exist_ok=True)
    if not held:
        return  # what else lies in the folder is none of ours to remove
    for name in (STUDY, MODEL, METRICS, RESUME, EVALUATIONS, ENERGY, REPORT):
        (path / name).unlink(missing_ok=True)
    for trace in path.glob("*.h5"):
        trace.unlink()


def check_begun(path: Path) -> None:
    """Refuse to go on where no run was begun."""
    if not (path / STUDY).is_file():
        raise RunError(
            f"there is no run in {path} to resume; name its folder by --out, or leave out "
            f"--resume to begin one there"
        )


def abandon(path: Path) -> None:
    """Take back a run of which not one epoch was done."""
    for name in (STUDY, METRICS, RESUME):
        (path / name).unlink(missing_ok=True)
    if not any(path.iterdir()):
        path.rmdir()


def open_run(path: str | Path) -> Run:
    """The run in a folder."""
    path = Path(path)
    if not path.is_dir():
        raise RunError(
            f"there is no run folder {path}; `neuro-eqprop train --out {path}` makes one"
        )
    if not (path / MODEL).exists():
        state = (
            "was not finished; go on with --resume" if (path / RESUME).exists() else "holds none"
        )
        raise RunError(f"{path} has no {MODEL}: the run {state}")
    study = config.read(path / STUDY)
    data, history = load_data(study.dataset), read_history(path / METRICS)
    model = replace(checkpoint.load(path / MODEL), study=study, history=history)
    sizes = model.network.input.size, model.network.output.size
    if sizes != (data.features, data.classes):
        raise RunError(
            f"{path / MODEL} goes from {sizes[0]} to {sizes[1]} units, but {study.dataset!r} has "
            f"{data.features} features and {data.classes} classes; {STUDY} is of another run"
        )
    return Run(path, study, model, data)


def head(path: Path | None, study: Study, model: Model) -> dict[str, Any]:
    """How the outcome of a run begins, by whatever it was trained."""
    return {
        "run": None if path is None else str(path),
        "dataset": study.dataset,
        "model": study.model.name,
        "rule": study.rule.name,
        "nudging": study.rule.nudging,
        "beta": study.rule.beta,
        "seed": study.seed,
        "epochs": model.epochs,
        "parameters": model.parameters,
    }


def append(path: Path, line: Mapping[str, Any]) -> None:
    """Add a line of JSON to a file, flushed."""
    with path.open("a") as file:
        file.write(json.dumps(dict(line), allow_nan=False) + "\n")
        file.flush()
