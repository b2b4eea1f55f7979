"""Verify the files of a run folder, and repair what can be repaired."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from neuro_eqprop.chips.energy.file import read_energy
from neuro_eqprop.common.html import html_table
from neuro_eqprop.files.lock import lock_owner
from neuro_eqprop.files.read import json_lines, read_bytes
from neuro_eqprop.files.write import leftovers, remove, write_bytes, write_text
from neuro_eqprop.runs import checkpoint, run_folder
from neuro_eqprop.traces.lazy import read as read_trace
from neuro_eqprop.traces.schema import TraceError
from neuro_eqprop.training import study as config

OK, NOTE, DAMAGED, REPAIRED = "ok", "note", "damaged", "repaired"
"""States of a finding."""


@dataclass(frozen=True, slots=True)
class FileFinding:
    """Result of the check of one file of a run folder.

    Parameters
    ----------
    file : str
        Name of the file.
    state : {"ok", "note", "damaged", "repaired"}
        ``"note"`` is unusual but not an error.
    detail : str
        What was found.
    """

    file: str
    state: str
    detail: str


@dataclass(frozen=True, slots=True)
class RunCheck:
    """Result of `check_run`.

    Parameters
    ----------
    run : str
        The run folder.
    findings : tuple of FileFinding
        One or more for each file.
    """

    run: str
    findings: tuple[FileFinding, ...]

    @property
    def ok(self) -> bool:
        """Whether no file is damaged."""
        return all(each.state != DAMAGED for each in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the fields of `check --json`."""
        return {"run": self.run, "ok": self.ok, "files": [asdict(each) for each in self.findings]}

    def _repr_html_(self) -> str:
        rows = {each.file: f"{each.state}: {each.detail}" for each in self.findings}
        return html_table(f"Check of {self.run}", rows)


def check_run(path: str | Path, *, repair: bool = True) -> RunCheck:
    """Verify the files of a run folder, and repair what can be repaired.

    The digests of the model and of its settings are compared, every trace is read completely, and
    every line of metrics and evaluations is parsed. Repair removes temporary files of ended
    processes, and unfinished or damaged lines; if a complete line is removed, the old file is kept
    as `NAME.damaged`.

    Parameters
    ----------
    path : str or Path
        The run folder.
    repair : bool
        Whether to repair; False only reports.

    Returns
    -------
    RunCheck
        The findings for each file; `ok` is True if no file is damaged.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> _ = ne.train("layered", "digits", hidden=(16,), epochs=1, out="runs/checked")
    >>> ne.check_run("runs/checked").ok
    True
    """
    folder = Path(path)
    if folder.is_file():
        raise run_folder.RunError(f"{folder} is a file; name the folder of a run")
    if not folder.is_dir():
        raise run_folder.RunError(
            f"there is no run folder {folder}; `neuro-eqprop train --out {folder}` makes one"
        )
    owner = lock_owner(folder / run_folder.LOCK)
    if owner is not None:
        found = FileFinding(run_folder.LOCK, NOTE, f"the run is being written by {owner}")
        return RunCheck(str(folder), (found, *check_files(folder, repair=False)))
    if repair:
        with run_folder.locked(folder):
            run_folder.move_back(folder)
            return RunCheck(str(folder), tuple(check_files(folder, repair=True)))
    return RunCheck(str(folder), tuple(check_files(folder, repair=False)))


def check_files(folder: Path, *, repair: bool) -> Iterator[FileFinding]:
    """Check all files of a run folder."""
    yield from check_state(folder)
    for name in (run_folder.METRICS, run_folder.EVALUATIONS):
        if (folder / name).exists():
            yield check_lines(folder / name, repair=repair)
    if (folder / run_folder.ENERGY).exists():
        yield attempt(folder / run_folder.ENERGY, describe_energy)
    for path in sorted([*folder.glob("*.h5"), *folder.glob("*.h5.partial")]):
        yield check_trace(path)
    for path in sorted(folder.glob("*.h5.before")):
        yield FileFinding(
            path.name, NOTE, "the earlier trace, which an unfinished recording was to replace"
        )
    if (folder / run_folder.BACKUP_DIR).exists():
        yield FileFinding(
            run_folder.BACKUP_DIR, NOTE, "the earlier run, kept while a new one is unfinished"
        )
    for path in leftovers(folder):
        if repair:
            remove(path)
        state = REPAIRED if repair else NOTE
        yield FileFinding(path.name, state, "temporary file of a process that has ended")


def attempt(path: Path, read: Callable[[Path], str]) -> FileFinding:
    """Check a file by reading it; `read` returns the detail or raises."""
    try:
        return FileFinding(path.name, OK, read(path))
    except (ValueError, OSError, RuntimeError, KeyError) as error:
        return FileFinding(path.name, DAMAGED, str(error))


def check_state(folder: Path) -> Iterator[FileFinding]:
    """Check the settings, the model and the state to resume from."""
    study, model = folder / run_folder.STUDY, folder / run_folder.MODEL
    resume = folder / run_folder.RESUME
    if not study.exists():
        yield FileFinding(study.name, DAMAGED, "missing: the settings of the run are lost")
    else:
        yield attempt(study, lambda path: f"model {config.read(path).model.name}")
    if model.exists():
        yield attempt(model, describe_model)
    elif not resume.exists():
        yield FileFinding(model.name, NOTE, "missing: the run has not finished an epoch")
    if resume.exists():
        yield attempt(resume, describe_model)


def describe_energy(path: Path) -> str:
    """Describe an energy file."""
    return f"{len(read_energy(path).estimates)} chips"


def describe_model(path: Path) -> str:
    """Describe a model file; raise if a digest of it or of its settings differs."""
    model = checkpoint.load_training(path)[0]
    stored, study = checkpoint.stored_study(path), path.parent / run_folder.STUDY
    if stored is not None and study.exists() and stored != run_folder.study_digest(study):
        raise run_folder.RunError(f"{study} does not hold the settings it was trained with")
    checked = "sha256" in checkpoint.read_header(path)
    digest = "digest verified" if checked else "without a digest (version 0.1)"
    return f"{model.parameters} parameters after {model.epochs} epochs, {digest}"


def check_lines(path: Path, *, repair: bool) -> FileFinding:
    """Check a JSONL file, and remove its damaged lines."""
    try:
        lines = list(json_lines(path))
        content = read_bytes(path)
        ended = content[-1:] in (b"", b"\n")
    except (ValueError, OSError) as error:
        return FileFinding(path.name, DAMAGED, str(error))
    good = [line.row for line in lines if line.row is not None]
    bad = [line for line in lines if line.row is None]
    if not bad and ended:
        return FileFinding(path.name, OK, f"{len(good)} lines")
    what = f"{len(good)} lines" + (", the last one unfinished" if not ended else "")
    lost = [line for line in bad if not line.unfinished]
    if lost:
        what += f"; damaged: {', '.join(str(line.number) for line in lost)}"
    if not repair:
        return FileFinding(path.name, DAMAGED, what)
    if lost:
        write_bytes(path.with_name(f"{path.name}.damaged"), content)
        what += f"; removed, the old file is kept as {path.name}.damaged"
    write_text(path, "".join(json.dumps(row, allow_nan=False) + "\n" for row in good))
    return FileFinding(path.name, REPAIRED, what)


def check_trace(path: Path) -> FileFinding:
    """Check a trace by reading it completely."""
    try:
        trace = read_trace(path)
    except TraceError as error:
        if "not a trace of this program" in str(error):
            return FileFinding(path.name, NOTE, "not a neuro_eqprop trace; not checked")
        return FileFinding(path.name, DAMAGED, str(error))
    if trace.complete:
        return FileFinding(path.name, OK, f"{trace.samples} samples, complete")
    return FileFinding(path.name, NOTE, f"incomplete: holds the first {trace.samples} samples")
