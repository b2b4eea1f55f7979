"""Traces on full disks, damaged traces, traces of killed and resumed runs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest

from neuro_eqprop.files import probe as probing
from neuro_eqprop.traces.append_buffer import AppendBuffer
from neuro_eqprop.traces.file import write
from neuro_eqprop.traces.lazy import open_trace, read
from neuro_eqprop.traces.schema import TraceError
from neuro_eqprop.traces.trace import Trace

DISK = """
import resource, sys
from pathlib import Path
import numpy as np
from neuro_eqprop.files import write as checked
from neuro_eqprop.traces.file import Writer
from neuro_eqprop.traces.lazy import read
source, path, limit, late = sys.argv[1:]
trace = read(source)
if late == "late":  # the space is gone between the check and the write
    checked.largest_file = lambda: None
from neuro_eqprop.traces import append_buffer
append_buffer.MAX_BYTES = 2**14
from neuro_eqprop.traces.file import write
resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
try:
    write(Path(path), trace, overwrite=True)
except ValueError as error:
    print(error)
    sys.exit(1)
"""


@pytest.mark.parametrize("late", ["early", "late"])
@pytest.mark.parametrize("part", [0.5, 0.9])
def test_a_full_disk_leaves_what_was_written_and_nothing_complete(
    episode: dict[str, Trace], tmp_path: Path, part: float, late: str
) -> None:
    write(tmp_path / "whole.h5", episode["spikes"], overwrite=False)
    path, size = tmp_path / "t.h5", (tmp_path / "whole.h5").stat().st_size
    arguments = [str(tmp_path / "whole.h5"), str(path), str(int(part * size)), late]
    done = subprocess.run(
        [sys.executable, "-c", DISK, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "t.h5 cannot be written" in done.stdout
    assert not path.exists()
    kept = tmp_path / "t.h5.partial"
    if kept.exists():
        found = read(kept)
        assert not found.complete
        n = len(found.index)
        assert n >= int(done.stdout.partition("keeps the first ")[2].split()[0]) > 0
        np.testing.assert_array_equal(
            found.time_course("hidden"), episode["spikes"].time_course("hidden")[:n]
        )


def test_a_trace_that_cannot_fit_is_refused_before_the_run(
    episode: dict[str, Trace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2**20))
    with pytest.raises(TraceError, match=r"t\.h5 cannot be written: .* kept free; free some"):
        write(tmp_path / "t.h5", episode["rate"], overwrite=False)
    assert not list(tmp_path.iterdir())


def test_a_trace_is_complete_only_if_it_reads_back_as_written(
    episode: dict[str, Trace], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = AppendBuffer.write

    def lose_a_row(self: AppendBuffer) -> None:
        before(self)
        if "spikes/hidden/step" in self._data:
            self._data["spikes/hidden/step"].resize(5, axis=0)
            self._file.flush()

    monkeypatch.setattr(AppendBuffer, "write", lose_a_row)
    with pytest.raises(TraceError, match="spikes/hidden/step holds 5 rows"):
        write(tmp_path / "t.h5", episode["spikes"], overwrite=False)
    assert [path.name for path in tmp_path.iterdir()] == ["t.h5.partial"]
    assert not open_trace(tmp_path / "t.h5.partial").complete


def test_flipped_bits_of_the_data_are_found(episode: dict[str, Trace], tmp_path: Path) -> None:
    path = tmp_path / "t.h5"
    write(path, episode["spikes"], overwrite=False)
    with h5py.File(path) as file:
        where = file["spikes/hidden/step"].id.get_chunk_info(0).byte_offset
        assert file["samples/input"].fletcher32
        inputs = file["samples/input"].id.get_chunk_info(0).byte_offset
    for place in (where, inputs):
        content = bytearray(path.read_bytes())
        content[place + 40] ^= 0x40
        (tmp_path / "bad.h5").write_bytes(content)
        with pytest.raises(TraceError, match=r"bad\.h5 is damaged"):
            read(tmp_path / "bad.h5")


def test_a_file_that_is_overwritten_comes_back_after_an_error(
    episode: dict[str, Trace], tmp_path: Path
) -> None:
    path = tmp_path / "t.h5"
    write(path, episode["spikes"], overwrite=False)
    old = path.read_bytes()
    made = episode["rate"]
    broken = Trace(**{**vars(made), "signals": {k: v[:70] for k, v in made.signals.items()}})
    with pytest.raises((TraceError, ValueError)):
        write(path, broken, overwrite=True)
    assert path.read_bytes() == old
    write(path, made, overwrite=True)
    assert sorted(p.name for p in tmp_path.iterdir() if ".partial" not in p.name) == ["t.h5"]
    assert read(path).complete


@pytest.fixture
def unfinished(episode: dict[str, Trace], tmp_path: Path) -> bytes:
    write(tmp_path / "whole.h5", episode["spikes"], overwrite=False)
    code = """
import os, sys, time
from pathlib import Path
from neuro_eqprop.traces import file
from neuro_eqprop.traces.lazy import read
trace = read(sys.argv[1])
first = file.Writer.sample
def sample(self, k, recording):
    first(self, k, recording)
    if k == 3:
        self._buffer.write()
        os.kill(os.getpid(), 9)
file.Writer.sample = sample
file.write(Path(sys.argv[2]), trace, overwrite=False)
"""
    path = tmp_path / "killed.h5"
    command = [sys.executable, "-c", code, str(tmp_path / "whole.h5"), str(path)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert len(read(path).index) == 4
    return path.read_bytes()


def test_a_damaged_unfinished_trace_ends_with_an_error(unfinished: bytes, tmp_path: Path) -> None:
    path, began = tmp_path / "bad.h5", time.monotonic()
    rng, outcomes = np.random.default_rng(0), {"read": 0, "refused": 0}
    for place in [9, 11, 12, 20, 40, *rng.integers(0, len(unfinished), 15)]:
        content = bytearray(unfinished)
        content[place] = 1 if content[place] != 1 else 0
        path.write_bytes(content)
        try:
            read(path)
            outcomes["read"] += 1
        except TraceError:
            outcomes["refused"] += 1
    assert outcomes["refused"] > 3
    assert time.monotonic() - began < 40


def test_a_file_on_which_the_reader_hangs_or_crashes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers = tmp_path / "readers"
    readers.mkdir()
    (readers / "bad_readers.py").write_text(
        "import os, time\ndef crash(path): os.abort()\ndef hang(path): time.sleep(600)\n"
        "def fail(path): raise KeyError(path)\n"
        "def loop(path):\n    while True: pass\n"
    )
    monkeypatch.syspath_prepend(readers)
    monkeypatch.setattr(probing, "PROBER", probing.Prober())
    path = tmp_path / "a.h5"
    path.write_bytes(b"x")
    with pytest.raises(ValueError, match=r"a\.h5 is damaged: .* crashes"):
        probing.probe(path, "bad_readers:crash", error=ValueError)
    with pytest.raises(ValueError, match=r"a\.h5 is damaged: .* does not end"):
        probing.probe(path, "bad_readers:hang", deadline=1.0, error=ValueError)
    probing.probe(path, "bad_readers:fail", error=ValueError)
    monkeypatch.setattr(probing, "COMPUTING", 0.5)
    with pytest.raises(ValueError, match=r"does not end \(its processor time is used up\)"):
        probing.probe(path, "bad_readers:loop", deadline=600.0, error=ValueError)
    probing.PROBER.stop()


def test_a_file_that_was_changed_is_read_again_whatever_its_date_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[object]()
    monkeypatch.setattr(probing, "call_reader", lambda path, *_, **__: asked.append(path))
    path = tmp_path / "a.h5"
    path.write_bytes(b"x")
    probing.probe(path, "some:reader")
    probing.probe(path, "some:reader")
    assert len(asked) == 1
    status = path.stat()
    time.sleep(0.02)  # the clock of the file system ticks a hundred times a second or more
    path.write_bytes(b"y")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    probing.probe(path, "some:reader")
    assert len(asked) == 2


def test_a_child_that_reads_first_ends_with_its_parent(tmp_path: Path) -> None:
    code = """
import os, sys, time
from pathlib import Path
from neuro_eqprop.files.probe import PROBER
print(PROBER.running().process.pid, flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    until = time.monotonic() + 5
    while Path(f"/proc/{child}").exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text()


def test_no_code_of_the_current_folder_runs_in_the_child(
    episode: dict[str, Trace], tmp_path: Path
) -> None:
    write(tmp_path / "t.h5", episode["rate"], overwrite=False)
    for name in ("json", "importlib", "h5py", "numpy", "select", "resource"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w').write('x')\nraise SystemExit(3)\n")
    code = (
        "import sys; sys.path[:] = [p for p in sys.path if p]\n"
        "from neuro_eqprop.traces.lazy import read; assert read('t.h5').complete"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, env=dict(os.environ))
    assert not (tmp_path / "ran").exists()
