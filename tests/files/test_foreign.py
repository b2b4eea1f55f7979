"""Files of others are neither written, cut nor removed: links, foreign files, folders with them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.api.model import Model
from neuro_eqprop.chips.energy.csv_file import write_csv
from neuro_eqprop.chips.energy.result import EnergyReport
from neuro_eqprop.files import lock as locks
from neuro_eqprop.files import write
from neuro_eqprop.files.lock import FileLock, LockedError
from neuro_eqprop.files.subprocess import capture
from neuro_eqprop.files.write import (
    MANIFEST,
    WriteError,
    append_bytes,
    append_json,
    refuse_existing,
    replace_folder,
    temporary_folder,
    temporary_name,
    write_text,
)
from neuro_eqprop.networks.activations import HARD_SIGMOID
from neuro_eqprop.networks.architectures.mlp import layered
from neuro_eqprop.networks.initialize import initialize

WRITERS: dict[str, Callable[[Path], object]] = {
    "append_json": lambda path: append_json(path, {"a": 1}),
    "append_bytes": lambda path: append_bytes(path, b"more"),
    "lock": lambda path: FileLock(path).__enter__(),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "folder"])
def test_only_regular_files_are_opened_for_writing(name: str, kind: str, tmp_path: Path) -> None:
    target, path = tmp_path / "of somebody else", tmp_path / "place"
    if kind != "dangling":
        target.write_text("precious, without an end")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(target)
    with pytest.raises(WriteError, match="place"):
        WRITERS[name](path)
    assert target.exists() == (kind != "dangling")
    assert kind == "dangling" or target.read_text() == "precious, without an end"
    assert not list(tmp_path.glob(".*.tmp"))


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "mine").read_text() == "mine"
    assert not (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("content", ["precious", '{"host": 1}', "[]", "{}", "\x00" * 8])
def test_a_file_that_is_no_lock_is_neither_cut_nor_removed(tmp_path: Path, content: str) -> None:
    (tmp_path / ".lock").write_text(content)
    os.link(tmp_path / ".lock", tmp_path / "another name")
    with pytest.raises(WriteError, match="no lock of this program"), FileLock(tmp_path / ".lock"):
        pass
    assert (tmp_path / ".lock").read_text() == (tmp_path / "another name").read_text() == content


def test_the_lock_of_an_ended_process_is_replaced_and_not_cut(tmp_path: Path) -> None:
    entry = json.dumps({"host": socket.gethostname(), "pid": 2**22 + 1, "since": "then"})
    (tmp_path / ".lock").write_text(entry)
    os.link(tmp_path / ".lock", tmp_path / "another name")
    with FileLock(tmp_path / ".lock") as lock:
        assert lock.stale is not None
        assert (tmp_path / "another name").read_text() == entry
    assert sorted(each.name for each in tmp_path.iterdir()) == ["another name"]


@pytest.mark.parametrize("without", ["flock", "links", "both"])
def test_one_process_holds_a_lock_whatever_the_file_system_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: str
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    if without != "links":
        monkeypatch.setattr(locks, "lock_now", lambda _: None)
    if without != "flock":
        monkeypatch.setattr(os, "link", refused)
    path = tmp_path / ".lock"
    for _ in range(3):
        with FileLock(path), pytest.raises(LockedError, match=f"process {os.getpid()}"):
            FileLock(path).__enter__()
    assert not list(tmp_path.iterdir())
    path.write_text(json.dumps({"host": socket.gethostname(), "pid": 2**22 + 1, "since": ""}))
    with FileLock(path) as lock:
        assert lock.stale is not None
        assert lock.stale.pid == 2**22 + 1
    assert not list(tmp_path.iterdir())


COMPETE = """
import os, random, sys, time
from pathlib import Path
from neuro_eqprop.files import lock
lock.lock_now = lambda handle: None
folder, random = Path(sys.argv[1]), random.Random(int(sys.argv[2]))
held = double = 0
while held < 60:
    try:
        with lock.FileLock(folder / ".lock"):
            held += 1
            try:
                os.mkdir(folder / "inside")
            except FileExistsError:
                double += 1
            else:
                time.sleep(random.random() / 1000)
                os.rmdir(folder / "inside")
    except lock.LockedError:
        pass
    try:
        if random.random() < 0.1:
            (folder / ".lock").touch(exist_ok=False)
            os.utime(folder / ".lock", (0, 0))
    except FileExistsError:
        pass
sys.exit(double)
"""


def test_two_processes_never_hold_a_lock_without_flock(tmp_path: Path) -> None:
    """With locks of ended processes in between, which each of them may take over."""
    processes = [
        subprocess.Popen([sys.executable, "-c", COMPETE, str(tmp_path), str(k)]) for k in range(3)
    ]
    assert [process.wait(120) for process in processes] == [0, 0, 0]


def draft_in(folder: Path, **files: str) -> Path:
    """A folder to be put in the place of another."""
    for name, content in files.items():
        write_text(folder / "draft" / f"{name}.py", content)
    return folder / "draft"


@pytest.mark.parametrize("swaps", [True, False])
def test_a_folder_is_replaced_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swaps: bool
) -> None:
    if not swaps:
        monkeypatch.setattr(write, "exchange", lambda *_: False)
    place = tmp_path / "pkg"
    for content in ("old", "new"):
        with temporary_folder(within=tmp_path) as folder:
            replace_folder(draft_in(folder, a=content, **{content: ""}), place)
        (place / "__pycache__").mkdir()
        (place / "__pycache__" / "a.pyc").write_text("compiled")
    assert sorted(each.name for each in place.glob("*.*")) == [MANIFEST, "a.py", "new.py"]
    assert [each.name for each in tmp_path.iterdir()] == ["pkg"]


@pytest.mark.parametrize(
    "foreign",
    ["thesis.tex", "sub/notes", ".hidden", "__pycache__/notes", "x__pycache__/a", "link", "empty"],
)
def test_a_folder_with_a_file_of_others_is_not_replaced(tmp_path: Path, foreign: str) -> None:
    place = tmp_path / "pkg"
    with temporary_folder(within=tmp_path) as folder:
        replace_folder(draft_in(folder, a="old"), place)
    if foreign == "link":
        (place / foreign).symlink_to(tmp_path)
    elif foreign == "empty":
        (place / foreign).mkdir()
    else:
        write_text(place / foreign, "precious")
    with (
        temporary_folder(within=tmp_path) as folder,
        pytest.raises(WriteError, match=f"pkg holds {foreign}, which this program did not write"),
    ):
        replace_folder(draft_in(folder, a="new"), place)
    assert (place / "a.py").read_text() == "old"
    assert (place / foreign).exists()


def test_a_link_to_a_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "pkg").symlink_to(tmp_path / "home")
    with temporary_folder(within=tmp_path) as folder, pytest.raises(WriteError, match="no folder"):
        replace_folder(draft_in(folder, a="new"), tmp_path / "pkg")
    assert (tmp_path / "pkg").is_symlink()


@pytest.mark.parametrize("where", [0, 1, 2])
def test_a_kill_leaves_the_old_folder_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: int
) -> None:
    """Where folders cannot be exchanged, the next call finishes what was interrupted."""
    place, rename, renamed = tmp_path / "pkg", write.rename, list[Path]()

    def killed(source: Path, target: Path) -> None:
        if len(renamed) == where:
            raise KeyboardInterrupt
        renamed.append(target)
        rename(source, target)

    for content in ("old", "new"):
        with monkeypatch.context() as patch, temporary_folder(within=tmp_path) as folder:
            patch.setattr(write, "exchange", lambda *_: False)
            if content == "new":
                patch.setattr(write, "rename", killed)
            try:
                replace_folder(draft_in(folder, a=content), place)
            except KeyboardInterrupt:
                assert content == "new"
    held = [f for f in (place, tmp_path / ".pkg.before") if f.exists()]
    assert {(each / "a.py").read_text() for each in held} <= {"old", "new"}
    assert held
    with temporary_folder(within=tmp_path) as folder:
        replace_folder(draft_in(folder, a="newer"), place)
    assert (place / "a.py").read_text() == "newer"


def test_force_replaces_files_of_this_program_alone(tmp_path: Path) -> None:
    mine, ours = tmp_path / "mine.h5", tmp_path / "ours.h5"
    refuse_existing(mine)
    mine.write_text("a thesis")
    ours.write_text("neuro_eqprop trace ...")
    for path in (mine, ours):
        with pytest.raises(WriteError, match="exists already"):
            refuse_existing(path)
    refuse_existing(ours, force=True)
    with pytest.raises(WriteError, match=r"mine\.h5 was not written by this program"):
        refuse_existing(mine, force=True)
    (tmp_path / "link").symlink_to(ours)
    with pytest.raises(WriteError, match="link was not written"):
        refuse_existing(tmp_path / "link", force=True)


def test_temporary_folders_of_a_killed_process_go_at_the_next_start(
    tmp_path: Path,
) -> None:
    old = temporary_name(tmp_path / "neuro-eqprop")
    left = old.with_name(old.name.replace(str(os.getpid()), str(2**22 + 1)))
    (left / "inner").mkdir(parents=True)
    with temporary_folder(within=tmp_path) as folder:
        assert [each.name for each in tmp_path.iterdir()] == [folder.name]
        assert folder.stat().st_mode & 0o777 == 0o700
    assert not list(tmp_path.iterdir())


SLEEP = "import time; print('ready', flush=True); time.sleep(100)"
STARTS = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}])"


def running(words: str) -> bool:
    """Whether a process with these words in its command runs."""
    return any(
        words.encode() in path.read_bytes()
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if path.parent.name != str(os.getpid())
    )


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks into /proc")
@pytest.mark.parametrize("how", ["kill", "terminate"])
def test_a_captured_command_ends_with_its_parent(how: str, tmp_path: Path) -> None:
    mark = f"mark_{tmp_path.name}"
    inner = f"{mark} = 0; {STARTS}; {SLEEP}".replace("'ready'", f"'{mark}'")
    code = (
        "import sys; from neuro_eqprop.files.subprocess import capture; "
        f"capture([sys.executable, '-c', {inner!r}])"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    until = time.monotonic() + 60
    while not running(f"{mark} = 0") or time.monotonic() > until:
        time.sleep(0.05)
    time.sleep(0.3)
    getattr(parent, how)()
    parent.wait()
    until = time.monotonic() + 5
    while running(mark) and time.monotonic() < until:
        time.sleep(0.05)
    assert not running(mark)


def test_a_captured_command_leaves_no_process_and_passes_its_code() -> None:
    began = time.monotonic()
    done = capture([sys.executable, "-c", f"{STARTS}; print('printed'); sys.exit(7)"])
    assert (done.returncode, done.stdout) == (7, "printed\n")
    with pytest.raises(TimeoutError, match=r"took over 1 s"):
        capture([sys.executable, "-c", SLEEP], deadline=1)
    with pytest.raises(OSError, match="cannot be run"):
        capture(["/no/such/program"])
    assert time.monotonic() - began < 30


def test_a_command_runs_outside_of_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "json.py").write_text("raise SystemExit(9)")
    done = capture([sys.executable, "-c", "import json, os; print(os.getcwd())"])
    assert (done.returncode, done.stdout.strip()) == (0, "/")


def test_a_page_and_a_table_replace_their_own_kind_alone(tmp_path: Path) -> None:
    network = layered(4, (3,), 2, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
    model = Model(network, initialize(network, np.random.default_rng(0)))
    page, table = tmp_path / "page.html", tmp_path / "table.csv"

    def write_both() -> None:
        ne.report(model, out=page)
        write_csv(EnergyReport(()), table)

    for path in (page, table):
        path.write_text("precious, of neuro_eqprop")
    with pytest.raises(WriteError, match=r"page\.html was not written by this program"):
        ne.report(model, out=page)
    with pytest.raises(WriteError, match=r"table\.csv was not written by this program"):
        write_csv(EnergyReport(()), table)
    for path in (page, table):
        assert path.read_text().startswith("precious")
        path.unlink()
    write_both()
    write_both()
