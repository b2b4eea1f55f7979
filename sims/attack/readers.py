"""The readers of files that the attacks try, each with a valid file to start from."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

Read = Callable[[Path], object]
SPEC = {"axes": {"seed": [0]}, "settings": {"hidden": [8], "epochs": 1}}


@dataclass(frozen=True)
class Reader:
    """A reader: the name of its valid file below the folder of valid files, and its function."""

    name: str
    file: str
    read: Read
    together: bool = False
    """Whether it reads the other files of the folder, too."""


def make_valid_files(folder: Path) -> None:
    """Write a valid file for every reader."""
    import neuro_eqprop as ne
    from neuro_eqprop.chips.profiles.load import profile_folder
    from neuro_eqprop.chips.workload_file import write_workload
    from neuro_eqprop.files.package_data import data_folder
    from neuro_eqprop.runs.event_source import workload_of
    from neuro_eqprop.runs.translate import translate

    folder.mkdir(parents=True, exist_ok=True)
    run = folder / "run"
    data = ne.load_data("digits")
    model = ne.train("layered", data, hidden=(8,), epochs=2, out=run, force=True)
    ne.open_run(run).evaluate(samples=5)
    spiking = model.to_spiking(code="graded")
    found = spiking.run(data.test.x[:4], on="emulator", steps=8)
    ne.estimate_energy(found, "loihi1").save(run / "energy.json")
    spiking.record(data.test.x[:3], on="emulator", steps=8).save(folder / "trace.h5")
    unfinished(folder / "trace.h5", folder / "unfinished.h5")
    translate(model, folder / "net.nir", code="graded", force=True)
    rng = np.random.default_rng(0)
    x, y = rng.random((40, 6)), np.arange(40) % 4
    np.savez(folder / "data.npz", x=x, y=y)
    np.savez_compressed(folder / "packed.npz", x=x, y=y)
    idx = b"\x00\x00\x08\x03" + b"".join(n.to_bytes(4, "big") for n in (10, 4, 4)) + bytes(160)
    (folder / "images-idx3-ubyte").write_bytes(idx)
    (folder / "images-idx3-ubyte.gz").write_bytes(gzip.compress(idx, mtime=0))
    cifar(folder / "cifar.tar.gz")
    with zipfile.ZipFile(folder / "SST-2.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for part in ("train.tsv", "dev.tsv"):
            archive.writestr(f"SST-2/{part}", "sentence\tlabel\n" + "a good film\t1\n" * 9)
    shutil.copy(next(iter(sorted(profile_folder().glob("*.toml")))), folder / "profile.toml")
    cases = next(iter(sorted((profile_folder() / "validation").glob("*.toml"))))
    shutil.copy(cases, folder / "cases.toml")
    shutil.copy(data_folder("datasets") / "mnist.toml", folder / "manifest.toml")
    (folder / "sweep.toml").write_text(
        '[settings]\ndataset = "digits"\nepochs = 1\n[axes]\nbeta = [0.1, 0.5]\n'
    )
    write_workload(folder / "counts.json", workload_of(found))
    make_states(folder)


def make_states(folder: Path) -> None:
    """Write what commands read back to go on: states to resume from, stored results, a lock."""
    import neuro_eqprop as ne
    from neuro_eqprop.files.deadlines import DeadlineError
    from neuro_eqprop.files.lock import this_process
    from sims.claims import cache as cells
    from sims.claims.claim import CellResult

    def stop(_: object) -> None:
        raise DeadlineError("stop")

    settings: dict[str, Any] = {"hidden": (8,), "epochs": 3}
    for learn, name in ((ne.train, "begun"), (ne.learn_on_chip, "begun-chip")):
        few = {"samples": 20} if learn is ne.learn_on_chip else {}
        with suppress(DeadlineError):
            learn("layered", "digits", out=folder / name, progress=stop, **settings, **few)
    ne.sweep(SPEC, folder / "sweep")
    shutil.copy(next((folder / "sweep" / "trials").glob("*.json")), folder / "trial.json")
    cell = some_cell()
    cells.store(folder, CellResult(cell, {"accuracy": 0.5}, None, 1.0))
    shutil.copy(cells.cell_path(folder, cell), folder / "cell.json")
    learned = ne.learn_on_chip(
        *("layered", "digits"),
        **{**settings, "samples": 20, "epochs": 1},
        traces=folder / "begun.h5",
        record=["hidden->output:hebbian"],
        snapshots=(0, 10),
    )
    assert learned.trace is not None
    (folder / "lock.json").write_text(json.dumps(asdict(this_process())))


def some_cell() -> Any:  # noqa: ANN401
    """A cell of a claim."""
    from sims.claims.claim import Budget
    from sims.claims.definitions import IDS, claim

    return next(cell for name in IDS for cell in claim(name).cells(Budget.SMALL))


def linked(path: Path, *places: str) -> Path:
    """A link to a file at a place below a folder beside it; the folder."""
    folder = path.parent / "linked"
    target = folder.joinpath(*places)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    target.symlink_to(path)
    return folder


def read_all(path: Path) -> object:
    """Read everything in a trace, as exports and comparisons do."""
    import neuro_eqprop as ne

    with ne.open_trace(path) as trace:
        whole = trace.load()
        for name in whole.sizes:
            trace.time_course(name)
        ne.compare(whole, whole)
        return repr(trace), trace._repr_html_()


@cache
def digits() -> Any:  # noqa: ANN401
    """The digits, which are read once."""
    from neuro_eqprop.data import load_data

    return load_data("digits")


def read_resume(path: Path) -> object:
    """The state that a training is resumed from."""
    from neuro_eqprop.runs.train import resume
    from neuro_eqprop.training import study as config
    from neuro_eqprop.training.loop import TrainingLoop

    study = config.read(path.with_name("study.toml"))
    loop = TrainingLoop(study, study.network(digits()), digits())
    resume(loop, path.parent)
    return loop


def read_chip_resume(path: Path) -> object:
    """The state that learning is resumed from."""
    from neuro_eqprop.runs import on_chip_config
    from neuro_eqprop.runs.learn_on_chip.state import resume_state
    from neuro_eqprop.runs.learn_on_chip.task import prepare

    study, chip = on_chip_config.read(path.with_name("study.toml"))
    data = digits()
    return resume_state(prepare(study, chip, data, study.network(data)), path.parent)


def read_trial(path: Path) -> object:
    """The stored result of a cell of a sweep."""
    from neuro_eqprop.runs.sweeps.run import group, load, trial_path
    from neuro_eqprop.runs.sweeps.spec import read_sweep

    task, _ = next(group(read_sweep(SPEC), [{"seed": 0}]))
    place = trial_path(path.parent, task)
    return load(linked(path, *place.relative_to(path.parent).parts), task)


def read_cell(path: Path) -> object:
    """The stored result of a cell of a claim."""
    from sims.claims import cache as cells

    place = cells.cell_path(path.parent, some_cell())
    return cells.load(linked(path, *place.relative_to(path.parent).parts), some_cell())


def read_estimate(path: Path) -> object:
    """The energy of counted events."""
    import neuro_eqprop as ne
    from neuro_eqprop.chips.workload_file import read_workload

    return ne.estimate_energy(read_workload(path), "loihi1")


def write_report(path: Path) -> object:
    """Write the page of a run folder."""
    import neuro_eqprop as ne

    return ne.report(path.parent)


def check_and_open(path: Path) -> object:
    """Check a run folder, then open and evaluate it."""
    import neuro_eqprop as ne

    ne.check_run(path.parent, repair=False)
    run = ne.open_run(path.parent)
    return run.history, run.evaluations, run.model


def read_lock(path: Path) -> object:
    """Ask who holds a lock, and take it."""
    from neuro_eqprop.files.lock import FileLock, LockedError, lock_owner

    owner = lock_owner(path)
    try:
        with FileLock(path):
            return owner
    except LockedError:
        return owner


def cifar(path: Path) -> None:
    """Write an archive with the names of CIFAR-10 and one record a file."""
    from neuro_eqprop.data.cifar10 import RECORD, TEST, TRAIN

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in TRAIN + TEST:
            entry = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            entry.size = RECORD
            archive.addfile(entry, io.BytesIO(bytes(RECORD)))
    path.write_bytes(gzip.compress(buffer.getvalue(), mtime=0))


UNFINISHED = """
import os, sys
from pathlib import Path
from neuro_eqprop.traces import file
from neuro_eqprop.traces.lazy import read
real = file.Writer.sample
def sample(self, k, recording):
    real(self, k, recording)
    if k == 1:
        self.flush()
        os.kill(os.getpid(), 9)
file.Writer.sample = sample
file.write(Path(sys.argv[2]), read(sys.argv[1]), overwrite=True)
"""


def unfinished(source: Path, path: Path) -> None:
    """Write the trace of a process that is killed after two samples."""
    subprocess.run([sys.executable, "-c", UNFINISHED, str(source), str(path)], check=False)


def read_sst2(path: Path) -> object:
    """Read an archive of SST-2 from the folder that it lies in."""
    from neuro_eqprop.data.sst2 import load_sst2

    os.environ["NEURO_EQPROP_DATA"] = str(linked(path, "sst2", "SST-2.zip"))
    return load_sst2()


def read_report(path: Path) -> object:
    """Read the run folder that a file lies in, as the report does."""
    from neuro_eqprop.html_report.contents import read_contents

    return read_contents(path.parent, {})


def readers() -> Mapping[str, Reader]:
    """All readers by name."""
    from neuro_eqprop.chips.energy.file import read_energy
    from neuro_eqprop.chips.profiles.load import load_profile
    from neuro_eqprop.chips.published import read_cases
    from neuro_eqprop.data.cifar10 import from_archive
    from neuro_eqprop.data.idx import read_idx
    from neuro_eqprop.data.manifest import read_manifest
    from neuro_eqprop.data.npz import load_npz
    from neuro_eqprop.runs import checkpoint, on_chip_config
    from neuro_eqprop.runs.sweeps.spec import read_sweep
    from neuro_eqprop.simulators.nir.read import read as read_nir
    from neuro_eqprop.traces.lazy import read as read_trace
    from neuro_eqprop.training import study as config
    from neuro_eqprop.training.history import read_history

    listed = (
        Reader("study", "run/study.toml", config.read),
        Reader("metrics", "run/metrics.jsonl", read_history),
        Reader("report", "run/metrics.jsonl", read_report, together=True),
        Reader("report of energy", "run/energy.json", write_report, together=True),
        Reader("report of evaluations", "run/evaluations.jsonl", write_report, together=True),
        Reader("run of a model", "run/model.safetensors", check_and_open, together=True),
        Reader("run of a study", "run/study.toml", check_and_open, together=True),
        Reader("resume", "begun/resume.safetensors", read_resume, together=True),
        Reader(
            "resume on a chip", "begun-chip/resume.safetensors", read_chip_resume, together=True
        ),
        Reader("study of a chip", "begun-chip/study.toml", on_chip_config.read),
        Reader("counts", "counts.json", read_estimate),
        Reader("stored trial", "trial.json", read_trial),
        Reader("stored cell", "cell.json", read_cell),
        Reader("lock", "lock.json", read_lock),
        Reader("evaluations", "run/evaluations.jsonl", read_history),
        Reader("model", "run/model.safetensors", checkpoint.load_training),
        Reader("energy", "run/energy.json", read_energy),
        Reader("trace", "trace.h5", read_trace),
        Reader("unfinished trace", "unfinished.h5", read_trace),
        Reader("opened trace", "trace.h5", read_all),
        Reader("trace of learning", "begun.h5", read_all),
        Reader("NIR", "net.nir", read_nir),
        Reader("npz", "data.npz", load_npz),
        Reader("compressed npz", "packed.npz", load_npz),
        Reader("IDX", "images-idx3-ubyte", read_idx),
        Reader("gzipped IDX", "images-idx3-ubyte.gz", read_idx),
        Reader("CIFAR-10 archive", "cifar.tar.gz", from_archive),
        Reader("SST-2 archive", "SST-2.zip", read_sst2),
        Reader("profile", "profile.toml", load_profile),
        Reader("cases", "cases.toml", read_cases),
        Reader("manifest", "manifest.toml", read_manifest),
        Reader("sweep", "sweep.toml", read_sweep),
    )
    return {each.name: each for each in listed}


def resealed(content: bytes) -> bytes:
    """A NIR file with a valid seal, as whoever changes a file can make it."""
    from neuro_eqprop.simulators.nir.document import SEAL, seal

    body = content[: content.rfind(SEAL)] if SEAL in content else content
    return body + seal(body)


def rewritten_digest(content: bytes) -> bytes:
    """A model file whose header has no digest, so that its tensors are not compared."""
    size = int.from_bytes(content[:8], "little")
    try:
        header = json.loads(content[8 : 8 + size])
        inner = json.loads(header["__metadata__"]["neuro_eqprop"])
        inner.pop("sha256", None)
        header["__metadata__"]["neuro_eqprop"] = json.dumps(inner)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return content
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + content[8 + size :]
