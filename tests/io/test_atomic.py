from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from neuro_eqprop.io.atomic import write_bytes, write_text


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
