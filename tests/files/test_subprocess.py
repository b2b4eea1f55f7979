"""A watched child process: every way it can end, and that nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from time import monotonic, sleep

import numpy as np
import pytest

from neuro_eqprop.files import subprocess as child

START = """
import os, signal, subprocess, sys, time
from pathlib import Path
folder = Path(sys.argv[1])
def say(name, text):
    (folder / (name + ".draft")).write_text(text)
    (folder / (name + ".draft")).rename(folder / name)
say("pid", str(os.getpid()))
"""


def command(folder: Path, code: str) -> list[str]:
    return [sys.executable, "-c", START + code, str(folder)]


def run(folder: Path, code: str, *, deadline: float = 30.0) -> None:
    child.run(command(folder, code), folder, deadline=deadline, environment={})


def until(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    since = monotonic()
    while not condition() and monotonic() - since < seconds:
        sleep(0.02)
    return condition()


def running(folder: Path) -> dict[int, str]:
    """What still runs of the child; that it started at all is for the test to see."""
    assert (folder / "pid").exists()
    found = child.members(int((folder / "pid").read_text()))
    return {pid: process.state for pid, process in found.items() if process.state not in "ZX"}


def test_a_child_that_ends_well_prints_into_its_log_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, "print('spoken', flush=True); say('result', os.environ['TMPDIR'])")
    assert (tmp_path / "result").read_text() == str(tmp_path)
    assert (tmp_path / child.LOG).read_text() == "spoken\n"
    assert capfd.readouterr() == ("", "")


def test_an_error_is_raised_at_once_though_the_child_hangs(tmp_path: Path) -> None:
    started = monotonic()
    with pytest.raises(child.ChildError) as caught:
        run(tmp_path, "say('error.txt', 'Traceback:\\nValueError: no'); time.sleep(60)")
    assert str(caught.value) == "ValueError: no\nTraceback:\nValueError: no"
    assert monotonic() - started < 20
    assert not running(tmp_path)


def test_the_last_line_of_a_child_that_ended_badly_is_the_reason(tmp_path: Path) -> None:
    with pytest.raises(child.ChildError, match=r"^there is no such thing\n"):
        run(tmp_path, "sys.exit('there is no such thing')")


def test_a_child_that_was_killed_is_reported_with_its_code(tmp_path: Path) -> None:
    with pytest.raises(child.ChildError, match="ended with code -9"):
        run(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)")


def test_silence_ends_at_the_deadline(tmp_path: Path) -> None:
    started = monotonic()
    with pytest.raises(child.SilenceError, match=r"no progress for 2\.5 s"):
        run(tmp_path, "time.sleep(60)", deadline=2.5)
    assert 2.5 < monotonic() - started < 20
    assert not running(tmp_path)


def test_progress_puts_the_deadline_off(tmp_path: Path) -> None:
    steps = """
for step in range(30):
    (folder / "progress").write_bytes(bytes([step]))
    time.sleep(0.1)
"""
    run(tmp_path, steps, deadline=2.5)
    assert (tmp_path / child.PROGRESS).read_bytes() == bytes([29])


def test_progress_is_seen_from_outside_at_once(tmp_path: Path) -> None:
    np.zeros(2, dtype=np.int64).tofile(tmp_path / child.PROGRESS)
    before = child.read_progress(tmp_path)
    child.progress(tmp_path)[1] = 30
    assert child.read_progress(tmp_path) != before
    assert np.fromfile(tmp_path / child.PROGRESS, dtype=np.int64).tolist() == [0, 30]


def test_a_process_of_the_group_that_died_is_noticed_long_before_the_deadline(
    tmp_path: Path,
) -> None:
    started = monotonic()
    with pytest.raises(child.ChildError, match="one of its processes died"):
        run(tmp_path, "subprocess.Popen([sys.executable, '-c', '1/0']); time.sleep(60)")
    assert monotonic() - started < 20
    assert not running(tmp_path)


@pytest.mark.parametrize(("code", "bad"), [("", False), ("exit(3)", True)])
def test_only_a_bad_end_counts_as_a_death(tmp_path: Path, code: str, bad: bool) -> None:
    outer = f"subprocess.Popen([sys.executable, '-c', {code!r}]); time.sleep(60)"
    with subprocess.Popen(command(tmp_path, outer), start_new_session=True) as leader:
        ended = until(lambda: any(p.state == "Z" for p in child.members(leader.pid).values()))
        found = child.dead(leader.pid)
        leader.kill()
    assert ended
    assert found == bad


@pytest.mark.slow
@pytest.mark.parametrize(
    "stubborn",
    [
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)",
        "os.kill(os.getpid(), signal.SIGSTOP)",
    ],
    ids=["deaf", "stopped"],
)
def test_the_stubborn_are_ended_too(tmp_path: Path, stubborn: str) -> None:
    inner = f"import os, signal, time; print('ready', flush=True); {stubborn}"
    code = f"""
other = subprocess.Popen([sys.executable, '-c', {inner!r}], stdout=subprocess.PIPE)
other.stdout.readline()
say("error.txt", "enough")
time.sleep(60)
"""
    with pytest.raises(child.ChildError, match="enough"):
        run(tmp_path, code)
    assert not running(tmp_path)


def test_processes_that_outlive_a_good_end_are_ended(tmp_path: Path) -> None:
    run(tmp_path, "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])")
    assert not running(tmp_path)


def test_shared_memory_of_a_child_that_hangs_is_removed(tmp_path: Path) -> None:
    code = """
from multiprocessing.shared_memory import SharedMemory
memory = SharedMemory(create=True, size=4096)
say("segment", memory.name)
say("error.txt", "enough")
time.sleep(60)
"""
    with pytest.raises(child.ChildError, match="enough"):
        run(tmp_path, code)
    assert not (Path("/dev/shm") / (tmp_path / "segment").read_text()).exists()


def test_an_interrupt_ends_the_child(tmp_path: Path) -> None:
    def interrupt() -> None:
        until((tmp_path / "pid").exists)
        os.kill(os.getpid(), signal.SIGINT)

    thread = Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, "time.sleep(60)")
    thread.join()
    assert not running(tmp_path)


def test_a_child_does_not_outlive_a_parent_that_was_killed(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    inner = "from neuro_eqprop.files.subprocess import guard; guard(folder); say('ready', '')"
    outer = f"""
import sys
from pathlib import Path
from neuro_eqprop.files import subprocess as child
folder = Path(sys.argv[1])
child.run({command(folder, inner + "; time.sleep(60)")!r}, folder, deadline=60, environment={{}})
"""
    with subprocess.Popen([sys.executable, "-c", outer, str(folder)]) as parent:
        started = until((folder / "ready").exists)
        group = int((folder / "pid").read_text()) if started else 0
        parent.kill()
    assert started
    assert until(lambda: not child.alive(group))
    assert not folder.exists()


def test_the_first_error_is_reported_whole(tmp_path: Path) -> None:
    child.report(tmp_path, "Traceback\nValueError: no")
    child.report(tmp_path, "Traceback\nRuntimeError: an error occurred")
    assert [path.name for path in tmp_path.iterdir()] == [child.ERROR]
    assert (tmp_path / child.ERROR).read_text() == "Traceback\nValueError: no"
