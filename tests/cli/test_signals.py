"""SIGINT and SIGTERM end commands within five seconds; no code of the current folder runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import neuro_eqprop as ne

BUSY = {
    "python": "while True: pass",
    "compiled": (
        "import numpy as np; from neuro_eqprop.common.jit import inner\n"
        "@inner\ndef spin(n):\n"
        "    s = 0.0\n"
        "    for k in range(n):\n"
        "        s += np.sin(s + k)\n"
        "    return s\n"
        "spin(1); print('ready', flush=True); spin(10**13)"
    ),
    "swallows": (
        "import time\nwhile True:\n    try: time.sleep(60)\n    except BaseException: pass"
    ),
}


SWEEP = '[settings]\ndataset = "digits"\nhidden = [8]\nepochs = 1\n[axes]\nseed = [0, 1]\n'


@pytest.mark.parametrize("name", BUSY)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
def test_a_signal_ends_what_is_busy(name: str, number: signal.Signals) -> None:
    work = "".join(f"        {line}\n" for line in BUSY[name].splitlines())
    code = (
        "import sys\nfrom neuro_eqprop.cli.signals import ending_by_signals, exit_code\n"
        "try:\n    with ending_by_signals():\n"
        f"        print('ready', flush=True)\n{work}"
        "except KeyboardInterrupt as error: sys.exit(exit_code(error))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    if name == "compiled":
        assert process.stdout.readline() == b"ready\n"
    time.sleep(0.2)
    began = time.monotonic()
    process.send_signal(number)
    _, said = process.communicate(timeout=20)
    assert time.monotonic() - began < 5.5
    assert process.returncode == 128 + number
    assert said.strip() == {signal.SIGTERM: b"terminated", signal.SIGINT: b"interrupted"}[number]


def test_a_terminated_training_can_be_resumed(tmp_path: Path) -> None:
    words = ["train", "--dataset", "digits", "--hidden", "8", "--epochs", "200", "--out", "run"]
    command = [sys.executable, "-m", "neuro_eqprop", *words]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    while not (tmp_path / "run" / "resume.safetensors").exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    process.terminate()
    said = process.communicate(timeout=10)[1]
    assert process.returncode == 143
    assert said.endswith(b"terminated\n")
    found = ne.check_run(tmp_path / "run")
    assert found.ok
    assert not [path.name for path in (tmp_path / "run").iterdir() if path.suffix == ".tmp"]


def hostile(folder: Path) -> None:
    for name in (
        "json",
        "importlib",
        "boom",
        "numpy",
        "h5py",
        "ctypes",
        "socket",
        "multiprocessing",
    ):
        text = f"open({str(folder / 'ran')!r}, 'w').write({name!r})\nraise SystemExit(3)\n"
        (folder / f"{name}.py").write_text(text)
    (folder / "brian_preferences").write_text(
        f"core.default_float_dtype = open({str(folder / 'ran')!r}, 'w').write('preferences')\n"
    )


@pytest.mark.parametrize(
    "words",
    [
        ("sweep", "spec.toml", "--workers", "2", "--out", "sweep"),
        ("evaluate", "run", "--on", "lava", "--samples", "1", "--steps", "2"),
        ("evaluate", "run", "--on", "brian2", "--samples", "1", "--steps", "2"),
        (
            "evaluate",
            "run",
            "--on",
            "reference",
            "--samples",
            "2",
            "--steps",
            "2",
            "--workers",
            "2",
        ),
    ],
    ids=["sweep", "lava", "brian2", "workers"],
)
def test_no_code_of_the_current_folder_runs(
    words: tuple[str, ...], tmp_path: Path, make_run: Callable[[Path], Path]
) -> None:
    hostile(tmp_path)
    (tmp_path / "spec.toml").write_text(SWEEP)
    make_run(tmp_path / "run")
    program = Path(sys.executable).with_name("neuro-eqprop")
    done = subprocess.run(
        [program, *words], cwd=tmp_path, check=False, timeout=240, capture_output=True
    )
    assert not (tmp_path / "ran").exists()
    assert done.returncode == 0, done.stderr


def test_workers_end_with_a_killed_parent(tmp_path: Path) -> None:
    code = (
        "import time; from neuro_eqprop.runs.executors.local import start_worker\n"
        "workers = [start_worker() for _ in range(2)]\n"
        "print(*(w.process.pid for w in workers), flush=True); time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    children = [int(pid) for pid in parent.stdout.readline().split()]
    parent.kill()
    parent.wait()
    parent.stdout.close()
    until = time.monotonic() + 5
    while time.monotonic() < until and any(running(pid) for pid in children):
        time.sleep(0.05)
    assert not any(running(pid) for pid in children)


def running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def test_an_interrupt_while_packages_are_imported_ends_the_command(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'torch': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from neuro_eqprop.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    words = ("train", "--epochs", "1000", "--out", str(tmp_path / "run"))
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
    assert not (tmp_path / "run").exists()
