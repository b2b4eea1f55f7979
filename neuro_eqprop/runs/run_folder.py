"""Run folders: a model, its settings and its results, and how they are locked and replaced."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import ArgumentError
from neuro_eqprop.common.equality import Comparable
from neuro_eqprop.data import Dataset, Split, is_data_file, load_data
from neuro_eqprop.files.lock import FileLock, LockedError
from neuro_eqprop.files.read import read_toml
from neuro_eqprop.files.write import (
    append_json,
    holds_mark,
    make_folder,
    remove,
    remove_empty,
    rename,
    sweep,
    write_text,
)
from neuro_eqprop.runs import checkpoint
from neuro_eqprop.runs.translate import read_document, read_nir
from neuro_eqprop.spiking.codes import Code, find_code
from neuro_eqprop.spiking.lowered import LoweredNetwork
from neuro_eqprop.training import study as config
from neuro_eqprop.training.history import History, read_history
from neuro_eqprop.training.rules.base import DIVERGENCE_ADVICE
from neuro_eqprop.training.study import Study
from neuro_eqprop.training.trained import TrainedNetwork

STUDY, MODEL, METRICS, RESUME = (
    "study.toml",
    "model.safetensors",
    "metrics.jsonl",
    "resume.safetensors",
)
"""Files of a run: settings, model, metrics of each epoch, and the state to resume from."""
BEST = "best.safetensors"
"""Parameters of the best epoch of a training with patience, until it ends."""
EVALUATIONS, TRACES, ENERGY, REPORT = "evaluations.jsonl", "traces.h5", "energy.json", "report.html"
"""Files of a run that further commands write."""


LARGEST_WEIGHT = 1e6
"""Largest weight of a model that is kept; with larger ones a training has diverged."""


class RunError(ValueError):
    """A run folder is invalid or cannot be used; the message says how to proceed."""


class DivergedError(RunError):
    """The weights of a model are too large to be of use; what was there before is kept."""


@dataclass(frozen=True, eq=False, repr=False)
class RunFolder(Comparable):
    """A run folder with a model and its settings, or a NIR file; `Run` adds what can be done."""

    path: Path
    """The folder, or a NIR file."""
    model: TrainedNetwork
    study: Study
    spiking: LoweredNetwork | None = None
    """The spiking network of a NIR file, whose code and bits are fixed; None for a folder."""

    @cached_property
    def data(self) -> Dataset:
        """The data set of the study, loaded on first use.

        Raises
        ------
        DataError
            If its files are missing.
        RunError
            If its sizes do not match the model.
        """
        data, network = load_data(self.study.dataset), self.model.network
        sizes = network.input.size, network.output.size
        if sizes != (data.features, data.classes):
            folder = self.spiking is None
            raise RunError(
                f"{self.path / MODEL if folder else self.path} goes from {sizes[0]} to {sizes[1]} "
                f"units, but {self.study.dataset!r} has {data.features} features and "
                f"{data.classes} classes; "
                + (f"{STUDY} is of another run" if folder else "name its own data set")
            )
        return data

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r}, {self.model!r})"

    @property
    def history(self) -> History:
        """Metrics of the training, one row per epoch."""
        return self.model.history

    @property
    def evaluations(self) -> tuple[Mapping[str, Any], ...]:
        """Results in `evaluations.jsonl`, oldest first."""
        return read_history(self.path / EVALUATIONS).rows

    def coding(self, code: str | Code | None, bits: int | None) -> tuple[Code, int | None]:
        """Return the spike code and the weight bits: given, of the NIR file, or the defaults."""
        given, spiking = None if code is None else find_code(code), self.spiking
        if spiking is None:
            return given or Code.RATE, bits
        if given not in {None, spiking.coding.code}:
            raise ArgumentError(
                f"{self.path} holds a network of code {spiking.code!r}, not "
                f"{code!r}; leave out `code`"
            )
        if bits not in {None, spiking.bits}:
            number = "floating point" if spiking.bits is None else f"{spiking.bits} bits"
            raise ArgumentError(
                f"{self.path} holds a network in {number}, not {bits}; leave out `bits`"
            )
        return spiking.coding.code, spiking.bits

    def test_samples(self, count: int | None = None) -> Split:
        """Return the first `count` test samples, or all if None."""
        return first_samples(self.data, count)


def first_samples(data: Dataset, count: int | None) -> Split:
    """Return the first `count` test samples of a data set, or all if None."""
    if count is None:
        return data.test
    if count < 1:
        raise ValueError(f"{count} samples cannot be evaluated; use at least one")
    if count > len(data.test):
        raise ValueError(f"{data.name!r} has {len(data.test)} test samples, not {count}")
    return data.test.take(slice(0, count))


RUN = (STUDY, MODEL, METRICS, RESUME)
"""Files that make a folder a run folder; one is enough."""
RUN_FILES = (*RUN, BEST, EVALUATIONS, TRACES, ENERGY, REPORT)
"""Files that belong to a run; others in its folder are never moved or removed."""
BACKUP_DIR, LOCK = ".before", ".lock"
"""Folder that keeps the old run while a new one replaces it, and lock file of the writer."""
MOVING = ".before.moving"
"""Name of that folder while files are moved to it or back."""


class RunWarning(UserWarning):
    """A process ended without releasing a run folder; the message says what was done."""


@contextmanager
def writing(path: Path, *, force: bool = False, resume: bool = False) -> Iterator[None]:
    """Hold a run folder for writing in a context.

    A new run needs a folder without a run, or `force`. With `force`, the files of the old run are
    kept until the context ends without an error, and restored if it fails before the new run can be
    resumed.
    """
    if path.exists() and not path.is_dir():
        raise RunError(f"{path} is a file; `out` names a folder")
    if resume:
        check_begun(path)
    else:
        refuse_run(path, force=force)
    made = not path.exists()
    make_folder(path)
    try:
        with locked(path, quiet=resume):
            sweep(path)
            move_back(path)
            if resume:
                yield
                return
            refuse_run(path, force=force)  # another process may have written one before the lock
            backup_run(path)
            try:
                yield
            except BaseException as error:
                # A run that is interrupted in its first epoch can be resumed from its study.
                interrupted = not isinstance(error, Exception) and not (path / BACKUP_DIR).exists()
                diverged = isinstance(error, DivergedError)
                if diverged or (not interrupted and not (path / RESUME).exists()):
                    restore_run(path)
                raise
            remove(path / BACKUP_DIR)
    finally:
        if made:
            remove_empty(path)


@contextmanager
def locked(path: Path, *, quiet: bool = False) -> Iterator[None]:
    """Hold the lock of a run folder in a context.

    A stale lock of an ended process is taken over with a warning, unless `quiet`: a resumed run is
    expected to have one.
    """
    lock = FileLock(path / LOCK)
    try:
        with lock:
            if lock.stale is not None and not quiet:
                warnings.warn(
                    f"{path} was left by {lock.stale}, which has ended; its lock is taken over",
                    RunWarning,
                    stacklevel=5,
                )
            yield
    except LockedError as error:
        raise RunError(
            f"{path} is being written by {error.owner or 'another process'}; wait until it has "
            f"ended, or choose another `out`"
        ) from None


def refuse_run(path: Path, *, force: bool) -> None:
    """Raise RunError if a folder holds a run, unless `force`, which replaces runs alone."""
    present = [name for name in RUN if (path / name).exists()]
    if present and not force:
        raise RunError(
            f"{path} already holds a run ({', '.join(present)}); choose another `out`, go on with "
            f"resume=True, or replace it with force=True"
        )
    foreign = foreign_file(path, present)
    if foreign is not None:
        raise RunError(
            f"{path / foreign} is not of a run of this program, so force=True does not replace it; "
            f"choose another `out`, or move it away"
        )


def foreign_file(path: Path, present: Sequence[str]) -> str | None:
    """The name of a file of a run that this program did not write; None if it wrote all."""
    for name in (MODEL, RESUME):
        if name in present and not holds_mark(path / name):
            return name
    if STUDY not in present:
        return METRICS if METRICS in present else None
    try:
        config.read(path / STUDY)
    except (ValueError, LookupError):
        return STUDY
    return None


def backup_run(path: Path) -> None:
    """Move the files of a run to the folder `BACKUP_DIR`.

    If that holds a run already, and the newer one has no model, the newer one is removed instead.
    """
    kept = path / BACKUP_DIR
    if not any((path / name).exists() for name in RUN):
        return
    if kept.exists() and not (path / MODEL).exists():
        # The newer run did not finish; the kept one is worth more.
        for name in RUN_FILES:
            remove(path / name)
        return
    remove(path / MOVING)
    make_folder(path / MOVING)
    for name in [name for name in RUN_FILES if (path / name).exists()]:
        rename(path / name, path / MOVING / name)
    remove(kept)
    rename(path / MOVING, kept)


def replaces_good_run(path: Path) -> bool:
    """Return whether the run that is to be replaced has a model, and nothing warns of it."""
    kept = path / BACKUP_DIR
    rows = read_history(kept / METRICS).rows
    return (kept / MODEL).exists() and not (rows and rows[-1].get("warning"))


def restore_run(path: Path) -> None:
    """Remove the files of a failed run, and restore those that it was to replace."""
    for name in (*RUN, BEST):
        remove(path / name)
    kept = path / BACKUP_DIR
    if kept.is_dir() and not kept.is_symlink():
        rename(kept, path / MOVING)
        move_back(path)


def move_back(path: Path) -> None:
    """Move the files of a run back to where they were; also after a kill while they were moved."""
    moving = path / MOVING
    if moving.is_dir() and not moving.is_symlink():
        for each in moving.iterdir():
            rename(each, path / each.name)
        remove_empty(moving)


def check_begun(path: Path) -> None:
    """Raise RunError if a folder has no run to resume."""
    if not (path / STUDY).is_file():
        raise RunError(
            f"there is no run in {path} to resume; name its folder by `out`, or leave out "
            f"`resume` to begin one there"
        )


def study_digest(path: Path) -> str:
    """Return the SHA-256 of a study's settings, without the data set, whose path may change."""
    content = {key: value for key, value in read_toml(path).items() if key != "dataset"}
    return sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def save_model(path: Path, model: TrainedNetwork) -> None:
    """Write the model of a run with the digest of its study, and remove its resume state."""
    for name, values in model.params.items():
        largest = float(np.abs(values).max(initial=0.0))
        if largest > LARGEST_WEIGHT:
            raise DivergedError(
                f"the training diverged: the weights {name!r} reach {largest:.3g}, so the model is "
                f"not kept; {DIVERGENCE_ADVICE}"
            )
    checkpoint.save(path / MODEL, model, study=study_digest(path / STUDY))
    remove(path / RESUME)
    remove(path / BACKUP_DIR)


def open_folder(path: str | Path, *, dataset: str | Path | None = None) -> RunFolder:
    """Open the folder of a finished run, or a NIR file, see `neuro_eqprop.open_run`."""
    path = Path(path)
    if path.suffix == ".nir" and not path.is_dir():
        return open_nir(path, dataset)
    if dataset is not None:
        raise ArgumentError(f"`dataset` goes with a NET.nir; the run {path} names its own")
    if path.is_file():
        known = (path.parent / STUDY).is_file()
        which = f"such as {path.parent}" if known else "that `neuro-eqprop train --out` makes"
        raise RunError(f"{path} is a file, not a run folder; a run is a folder {which}")
    if not path.is_dir():
        raise RunError(
            f"there is no run folder {path}; `neuro-eqprop train --out {path}` makes one"
        )
    if not (path / MODEL).exists():
        more = f"was not finished; `neuro-eqprop train --out {path} --resume` finishes it"
        state = more if (path / RESUME).exists() else "holds none"
        raise RunError(f"{path} has no {MODEL}: the run {state}")
    study = config.read(path / STUDY)
    stored = checkpoint.stored_study(path / MODEL)
    if stored is not None and stored != study_digest(path / STUDY):
        raise RunError(
            f"{path / STUDY} does not hold the settings that {MODEL} was trained with; restore it "
            f"from a copy, or train anew"
        )
    history = read_history(path / METRICS)
    model = replace(checkpoint.load(path / MODEL), study=study, history=history)
    return RunFolder(path, model, study)


def open_nir(path: Path, dataset: str | Path | None) -> RunFolder:
    """Open a NIR file as a run without a folder."""
    if dataset is None:
        raise ArgumentError(f"{path} names no data set to evaluate it on; add `dataset`")
    model, spiking = read_nir(*read_document(path))
    study = config.adapt(model.study or Study(), {"dataset": str(dataset)})
    return RunFolder(path, replace(model, study=study), study, spiking)


def save_run(
    model: TrainedNetwork, out: str | Path, *, dataset: str | Path, force: bool = False
) -> None:
    """Save a model as a run folder, which all commands accept.

    Parameters
    ----------
    model : Model
        A trained or converted model.
    out : str or Path
        Run folder to write.
    dataset : str or Path
        Name or `.npz` file of the data set to evaluate it on.
    force : bool
        Whether to replace an existing run in the folder.
    """
    out, sizes = Path(out), [layer.size for layer in model.network.moving[:-1]] or [1]
    name = str(Path(dataset).resolve()) if is_data_file(dataset) else str(dataset)
    study = model.study or config.adapt(Study(), {"hidden": tuple(sizes)})
    with writing(out, force=force):
        write_text(out / STUDY, config.write(config.adapt(study, {"dataset": name})))
        for row in model.history:
            append_json(out / METRICS, row)
        save_model(out, model)


def summary_fields(path: Path | None, study: Study, model: TrainedNetwork) -> dict[str, Any]:
    """Return the fields that the results of `train` and `learn` share."""
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
