from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from neuro_eqprop.files.write import (
    WriteError,
    append_json,
    atomic,
    host_mark,
    sweep,
    temporary_name,
    write_bytes,
    write_text,
)


def test_content_and_folder_are_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file"
    write_text(path, "grüß\n")
    assert path.read_text(encoding="utf-8") == "grüß\n"
    assert list(path.parent.iterdir()) == [path]
    assert stat.S_IMODE(path.stat().st_mode) & 0o600 == 0o600


def test_an_old_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_bytes(path, b"long before")
    with path.open("rb") as held:
        write_bytes(path, b"now")
        # Who still reads the old file sees it unchanged: it was replaced, not overwritten.
        assert held.read() == b"long before"
    assert path.read_bytes() == b"now"


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failure_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, error: BaseException
) -> None:
    path = tmp_path / "file"
    write_bytes(path, b"before")

    def fail(*_: object) -> None:
        raise error

    if call == "fsync":
        monkeypatch.setattr(os, "fsync", fail)
    else:
        monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(type(error)):
        write_bytes(path, b"after")
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("umask", "mode"), [(0o077, 0o600), (0o002, 0o664), (0o022, 0o644)])
def test_permissions_follow_the_umask(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        write_bytes(tmp_path / "file", b"x")
        append_json(tmp_path / "lines.jsonl", {"a": 1})
    finally:
        os.umask(before)
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_temporary_files_of_ended_processes_are_swept_and_no_others(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
        capture_output=True, check=True)  # fmt: skip
    pid = int(ended.stdout)
    name = temporary_name(tmp_path / "model.safetensors").name
    own = tmp_path / name
    dead = tmp_path / name.replace(f".{os.getpid()}.", f".{pid}.")
    elsewhere = tmp_path / dead.name.replace(host_mark(), "000000")
    foreign = tmp_path / ".model.safetensors.swp"
    for path in (own, dead, elsewhere, foreign):
        path.write_bytes(b"")
    assert sweep(tmp_path) == [dead]
    assert sorted(tmp_path.iterdir()) == sorted([own, elsewhere, foreign])


def test_a_killed_writer_leaves_a_file_that_the_next_sweep_removes(tmp_path: Path) -> None:
    code = (
        "import os; from pathlib import Path; from neuro_eqprop.files.write import atomic\n"
        f"with atomic(Path({str(tmp_path / 'file')!r})) as draft:\n"
        "    draft.write_bytes(b'x'); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    assert len(list(tmp_path.iterdir())) == 1
    sweep(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_disk_without_room_is_named_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2**20 + 5))
    write_bytes(tmp_path / "file", b"12345")
    with pytest.raises(WriteError, match=r"other needs 6 bytes and its disk has 1\.0 MB left"):
        write_bytes(tmp_path / "other", b"123456")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_line_that_does_not_fit_is_cut_off_again(tmp_path: Path) -> None:
    code = (
        "import resource; from pathlib import Path\n"
        "from neuro_eqprop.files.write import append_json\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        f"path = Path({str(tmp_path / 'm.jsonl')!r})\n"
        "append_json(path, {'a': 'x' * 50})\n"
        "append_json(path, {'a': 'x' * 50})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "m.jsonl cannot be written" in done.stderr
    assert "raise the limit on file sizes" in done.stderr
    assert (tmp_path / "m.jsonl").read_text() == json.dumps({"a": "x" * 50}) + "\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'{"a": 1}', b'{"a": 1}\n{"b": 2}\n'),
        (b'{"a": 1}\n{"a', b'{"a": 1}\n{"b": 2}\n'),
        (b'{"a', b'{"b": 2}\n'),
        (b"", b'{"b": 2}\n'),
        (b"x" * 70000, b'{"b": 2}\n'),
    ],
)
def test_a_line_is_never_joined_to_an_unfinished_one(
    tmp_path: Path, before: bytes, after: bytes
) -> None:
    (tmp_path / "m.jsonl").write_bytes(before)
    append_json(tmp_path / "m.jsonl", {"b": 2})
    assert (tmp_path / "m.jsonl").read_bytes() == after


def test_a_folder_appears_complete_or_not_at_all(tmp_path: Path) -> None:
    with atomic(tmp_path / "folder") as temporary:
        temporary.mkdir()
        (temporary / "a").write_text("x")
    assert (tmp_path / "folder" / "a").read_text() == "x"
    with (
        pytest.raises(WriteError, match="other cannot be written"),
        atomic(tmp_path / "other") as temporary,
    ):
        shutil.copytree(tmp_path / "none", temporary)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_file_that_fails_its_check_does_not_get_its_name(tmp_path: Path) -> None:
    def refuse(path: Path) -> None:
        raise ValueError(path.read_text())

    with (
        pytest.raises(ValueError, match="content"),
        atomic(tmp_path / "file", verify=refuse) as temporary,
    ):
        temporary.write_text("content")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match=r"inner/x cannot be written \(.*\); check its folder"):
        write_text(tmp_path / "file" / "inner" / "x", "")
