"""Run the missing cells of a sweep and write its table."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuro_eqprop.chips.profiles.load import load_profile
from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.data.registry import DATASETS
from neuro_eqprop.files.codec import Format, decode
from neuro_eqprop.files.lock import FileLock, LockedError
from neuro_eqprop.files.read import read_bytes, read_json
from neuro_eqprop.files.write import make_folder, remove, write_bytes, write_text
from neuro_eqprop.runs.executors import Executor, Task, TaskResult
from neuro_eqprop.runs.executors.task import canonical, outcome_line
from neuro_eqprop.runs.sweeps.cell import EVALUATION, TRAINING, TrialValues, complete
from neuro_eqprop.runs.sweeps.result import SweepResult
from neuro_eqprop.runs.sweeps.search import combinations
from neuro_eqprop.runs.sweeps.spec import (
    FLOAT,
    PROFILE,
    TABLES,
    Choice,
    Sweep,
    SweepError,
    Values,
)
from neuro_eqprop.runs.sweeps.table import CSV, PARQUET, write_table
from neuro_eqprop.simulators.registry import BACKENDS
from neuro_eqprop.spiking.codes import find_code
from neuro_eqprop.spiking.input_coding import find_input_coding
from neuro_eqprop.spiking.rounding import Rounding
from neuro_eqprop.training import study as config

SPEC, TRIALS, PAGE, BEST = "sweep.json", "trials", "sweep.html", "best.toml"
LOCK = ".lock"
OUTPUTS = (TRIALS, PAGE, BEST, CSV, PARQUET)
"""What a sweep writes beside its description."""
TRIAL_NAME = re.compile(r"[0-9a-f]{64}-\d+\.json")
"""Names of the files in `TRIALS`."""
DEADLINE = 3600.0
"""Default time limit in seconds of a training with its evaluations."""
VERSION = 1
"""Part of the key of a stored result; increase it when results change."""


@dataclass(frozen=True, slots=True)
class StoredTrial:
    """The file of a result."""

    task: Mapping[str, Any]
    values: Mapping[str, Any]
    seconds: float
    error: str | None = None


STORED = Format(StoredTrial)

Progress = Callable[[int, int, str], None]
"""Called with the number of cells done, the number known so far, and the last error or ""."""


def no_progress(done: int, total: int, error: str) -> None:
    """No-op progress callback."""


def run_sweep(
    described: Sweep,
    folder: Path,
    executor: Executor,
    *,
    deadline: float = DEADLINE,
    force: bool = False,
    progress: Progress = no_progress,
) -> SweepResult:
    """Run the missing cells of a sweep in a folder, see `neuro_eqprop.sweep`."""
    check_axes(described)
    check_folder(folder)
    make_folder(folder)
    try:
        with FileLock(folder / LOCK):
            claim(folder, described, force=force)
            return run_all(described, folder, executor, deadline, progress)
    except LockedError as error:
        raise SweepError(
            f"{folder} is being written by {error.owner or 'another process'}; wait until it has "
            "ended, or choose another folder"
        ) from None


def run_all(
    described: Sweep, folder: Path, runner: Executor, deadline: float, progress: Progress
) -> SweepResult:
    """Run the missing cells of a sweep; the caller holds the lock of the folder."""
    rows: list[Values] = []
    run: list[Values] = []
    search = combinations(described)
    cells = next(search)

    def on_done(done: int, error: str) -> None:
        total = max(len(rows) + len(cells), described.search.trials)
        progress(len(rows) + done, total, error)

    while cells:
        found = run_cells(described, cells, folder, runner, deadline, on_done)
        rows, run = rows + found, [*run, *cells]
        try:
            cells = search.send(found)
        except StopIteration:
            break
    kept = {trial_path(folder, task) for task, _ in group(described, run)}
    for stored in set((folder / TRIALS).glob("*.json")) - kept:
        if TRIAL_NAME.fullmatch(stored.name):
            remove(stored)
    return finish(described, rows, folder)


def check_axes(described: Sweep) -> None:
    """Raise ValueError for invalid names and values, before anything runs."""
    first = {
        key: axis.values[0] if isinstance(axis, Choice) else axis.low
        for key, axis in described.axes.items()
    }
    for key, axis in described.axes.items():
        for value in axis.values if isinstance(axis, Choice) else (axis.low, axis.high):
            check_value(key, value)
            study = described.study({**first, key: value})
    for key, value in (*described.spiking.items(), ("dataset", study.dataset)):
        check_value(key, value)
    search, columns = described.search, (*TRAINING, *EVALUATION)
    if search.objective not in columns:
        raise UnknownNameError("column to maximise or minimise", search.objective, columns)
    held_out = study.training.validation or "validation" in described.axes
    if search.method == "optuna" and search.objective == "validation_accuracy" and not held_out:
        raise SweepError(
            "the search maximises validation_accuracy, and no samples are held out; set "
            "validation = 0.1 under [settings], or name another column by maximise or minimise"
        )


def check_value(key: str, value: object) -> None:
    """Raise an error for a value that no evaluation accepts, or an unknown data set."""
    if key in ("bits", "steps", "samples"):
        integer = isinstance(value, int) and not isinstance(value, bool) and value >= 1
        if not integer and (key, value) != ("bits", FLOAT):
            also = f", nor {FLOAT!r}" if key == "bits" else ""
            raise SweepError(f"{key} is {value!r}, which is not an integer above zero{also}")
        if key == "bits" and integer:
            Rounding(int(str(value)))
    elif key == "dataset" and not Path(str(value)).suffix:
        DATASETS.find(str(value))
    elif key == "input":
        find_input_coding(str(value))
    elif key == "on":
        BACKENDS.find(str(value))
    elif key == "code":
        find_code(str(value))
    elif key == PROFILE:
        load_profile(str(value))


def claim(folder: Path, described: Sweep, *, force: bool) -> None:
    """Write the description of the sweep; raise SweepError if the folder has that of another.

    With `force` the description is replaced. Results are named by their settings, so those of the
    other sweep cannot be confused with new ones; `run_all` removes them at the end.
    """
    path, content = folder / SPEC, canonical(described.to_json()) + b"\n"
    if path.exists() and read_bytes(path) != content and not force:
        raise SweepError(
            f"{folder} holds the results of another sweep; choose another folder, or replace "
            f"them with force=True"
        )
    write_bytes(path, content)


def check_folder(folder: Path) -> None:
    """Raise SweepError if the path is a file, or a folder with such files, but of no sweep."""
    if folder.exists() and not folder.is_dir():
        raise SweepError(f"{folder} is a file; out names a folder")
    if (folder / SPEC).exists():
        foreign = [] if described_by(folder / SPEC) else [SPEC]
    else:
        foreign = [name for name in OUTPUTS if (folder / name).exists()]
    foreign += [TRIALS] * (folder / TRIALS).is_symlink()
    if foreign:
        raise SweepError(
            f"{folder / foreign[0]} is not of a sweep of this program; choose another folder, or "
            f"move it away"
        )


def described_by(path: Path) -> bool:
    """Whether a file describes a sweep."""
    try:
        return set(read_json(path)) == set(TABLES)
    except ValueError:
        return False


def run_cells(
    described: Sweep,
    cells: Sequence[Values],
    folder: Path,
    executor: Executor,
    deadline: float,
    on_done: Callable[[int, str], None],
) -> list[Values]:
    """The rows of the cells, in order; only cells without a stored result run."""
    tasks, trials = [], {}
    for task, members in group(described, cells):
        tasks.append((task, members))
        trials[task.key] = load(folder, task)
    done = sum(len(members) for task, members in tasks if trials[task.key] is not None)
    on_done(done, "")
    sizes = {task.key: len(members) for task, members in tasks}
    missing = [task for task, _ in tasks if trials[task.key] is None]
    for result in executor.run(missing, deadline=deadline):
        trials[result.task.key] = result
        store(folder, result)
        done += sizes[result.task.key]
        on_done(done, result.error or "")
    rows: dict[int, Values] = {}
    for task, members in tasks:
        found = trials[task.key]
        assert found is not None
        for position, (place, values) in enumerate(members):
            rows[place] = cell_row(values, found, position)
    return [rows[place] for place in range(len(cells))]


def group(
    described: Sweep, cells: Sequence[Values]
) -> Iterator[tuple[Task, list[tuple[int, Values]]]]:
    """Yield each task with its cells, (position, values): one task for each distinct training."""
    found: dict[bytes, list[tuple[int, Values]]] = {}
    for place, values in enumerate(cells):
        settings = described.stated(values)
        found.setdefault(canonical(settings), []).append((place, values))
    for settings_json, members in found.items():
        evaluations = [described.evaluation(values) for _, values in members]
        arguments = {"settings": json.loads(settings_json), "evaluations": evaluations}
        yield Task("neuro_eqprop.runs.sweeps.cell:run_trial", arguments), members


def cell_row(values: Values, found: TaskResult, position: int) -> Values:
    """The row of a cell: the values of its axes, its metrics and its error."""
    if found.error is not None:
        return {**values, "error": found.error}
    training, evaluation = found.values["training"], found.values["evaluations"][position]
    return {
        **values,
        **{key: training[key] for key in TRAINING},
        **{key: evaluation[key] for key in EVALUATION if key in evaluation},
    }


def trial_path(folder: Path, task: Task) -> Path:
    """The file with the result of a task."""
    return folder / TRIALS / f"{task.key}-{VERSION}.json"


def store(folder: Path, result: TaskResult) -> None:
    """Write a result, or the error of a failed task, atomically."""
    task = result.task
    line = outcome_line(result.values, result.error, result.seconds, task=task.to_json())
    write_bytes(trial_path(folder, task), line)


def load(folder: Path, task: Task) -> TaskResult | None:
    """The stored result of a task; None if it is missing or failed, so that the task runs again."""
    path = trial_path(folder, task)
    if not path.is_file():
        return None
    try:
        stored = STORED.read(path)
        if stored.error is not None:
            return None
        trial = decode(dict(stored.values), TrialValues, path, more_keys=True)
    except (OSError, ValueError) as fault:
        raise SweepError(f"{path} cannot be read ({fault}); remove it and run again") from fault
    same = stored.task == json.loads(canonical(task.to_json()))
    if not same or len(trial["evaluations"]) != len(task.arguments["evaluations"]):
        raise SweepError(f"{path} holds the result of another task; remove it and run again")
    if any(each.get("error") for each in trial["evaluations"]):
        return None
    return TaskResult(task, dict(trial), None, stored.seconds)


def finish(described: Sweep, rows: Sequence[Values], folder: Path) -> SweepResult:
    """Write the table and the study of the best cell."""
    numbered = tuple({"cell": place, **row} for place, row in enumerate(rows))
    files = tuple(write_table(numbered, folder))
    result = SweepResult(described, numbered, folder, files, folder / PAGE)
    if result.has(result.objective):
        axes = {key: result.best()[key] for key in described.axes}
        write_text(folder / BEST, config.write(complete(described.stated(axes))))
    return result
