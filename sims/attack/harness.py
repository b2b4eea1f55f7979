"""Kills, full disks, concurrent writers and a soak, each counted: how many were tried, and held.

    python sims/attack/harness.py kills --count 100
    python sims/attack/harness.py disks --count 50
    python sims/attack/harness.py parents --count 50
    python sims/attack/harness.py writers --count 50
    python sims/attack/harness.py soak --count 1000

Each prints one JSON object: `attack`, `tried`, `held` and what did not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

PROGRAM = [sys.executable, "-m", "neuro_eqprop"]
TRAIN = ("train", "--dataset", "digits", "--hidden", "8", "--epochs", "60", "--traces")

Result = tuple[int, int, list[str]]
"""How many were tried and held, and what did not hold."""


def start(*words: str) -> subprocess.Popen[bytes]:
    """Start a command of the program without output."""
    none = subprocess.DEVNULL
    return subprocess.Popen([*PROGRAM, *words], stdout=none, stderr=none)


def kills(count: int, folder: Path, random: Random) -> Result:
    """Kill a training again and again; its files stay readable and it ends in the same bytes."""
    from neuro_eqprop.experiments.check_run import check_run

    whole = folder / "whole"
    start(*TRAIN, "--out", str(whole)).wait()
    expected = (whole / "model.safetensors").read_bytes()
    tried, failures, chain = 0, list[str](), 0
    while tried < count:
        chain += 1
        out = folder / f"run{chain}"
        words: tuple[str, ...] = (*TRAIN, "--out", str(out))
        for _ in range(12):
            process = start(*words)
            began = time.monotonic()
            while process.poll() is None and not (out / "study.toml").exists():
                time.sleep(0.02)
            wait = random.uniform(0.0, 2.5)
            while process.poll() is None and time.monotonic() - began < 60 and wait > 0:
                time.sleep(0.05)
                wait -= 0.05
            if process.poll() is not None:
                break
            process.send_signal(random.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)))
            process.wait()
            tried += 1
            if (out / "study.toml").exists():
                found = check_run(out, repair=False)
                bad = [f for f in found.findings if f.state == "damaged"]
                failures += [
                    f"{out.name}: {f.file}: {f.detail}" for f in bad if "end" not in f.detail
                ]
                words = ("train", "--out", str(out), "--resume", "--traces")
            if tried >= count:
                break
        done = start(*words).wait() if not (out / "model.safetensors").exists() else 0
        if done or (out / "model.safetensors").read_bytes() != expected:
            failures.append(f"{out.name} ended with code {done} or other bytes")
    return tried, tried - len(failures), failures


DISK = """
import resource, sys
from pathlib import Path
from neuro_eqprop.checked_files import write as checked
from neuro_eqprop.io.trace import append_buffer
from neuro_eqprop.io.trace.file import write
from neuro_eqprop.io.trace.lazy import read
source, path, limit, late = sys.argv[1:]
trace = read(source)
if late == "late":
    checked.largest_file = lambda: None
append_buffer.MAX_BYTES = 2**14
resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
try:
    write(Path(path), trace, overwrite=True)
except ValueError:
    sys.exit(1)
"""


def disks(count: int, folder: Path, random: Random) -> Result:
    """Let the disk end at random places of a trace; no file is complete with wrong data.

    Half of the runs notice it before the write, half of them (`late`) when the write fails.
    """
    import numpy as np

    import neuro_eqprop as ne
    from neuro_eqprop.io.trace.lazy import read

    data = ne.load_data("digits")
    model = ne.train("layered", data, hidden=(8,), epochs=1)
    source = folder / "source.h5"
    spiking = model.to_spiking(code="rate")
    spiking.record(data.test.x[:40], on="emulator", steps=32, record=["hidden:voltage"]).save(
        source
    )
    size, whole, failures = source.stat().st_size, read(source), list[str]()
    for k in range(count):
        path, limit = folder / f"t{k}.h5", random.randrange(int(1.1 * size))
        words = [str(source), str(path), str(limit), random.choice(("early", "late"))]
        done = subprocess.run(
            [sys.executable, "-c", DISK, *words], check=False, stderr=subprocess.DEVNULL
        )
        if done.returncode not in (0, 1) or (done.returncode == 1 and path.exists()):
            failures.append(f"limit {limit}: code {done.returncode}, file {path.exists()}")
        for each in (path, path.with_name(f"{path.name}.partial")):
            if each.exists():
                found = read(each)
                n = len(found.index)
                same = np.array_equal(found.time_course("hidden"), whole.time_course("hidden")[:n])
                if not same or (found.complete and n != len(whole.index)):
                    failures.append(f"limit {limit}: {each.name} is wrong")
    return count, count - len(failures), failures


PARENTS = {
    "workers": (
        "from neuro_eqprop.executors.local import Worker; import time\n"
        "made = [Worker.start().process.pid for _ in range(2)]\n"
        "print(*made, flush=True); time.sleep(60)\n"
    ),
    "probe": (
        "from neuro_eqprop.checked_files.probe import PROBER; import time\n"
        "print(PROBER.running().pid, flush=True); time.sleep(60)\n"
    ),
}


def parents(count: int, folder: Path, random: Random) -> Result:
    """Kill parents; all their children are gone within five seconds."""
    failures = []
    for k in range(count):
        name = random.choice(list(PARENTS))
        parent = subprocess.Popen([sys.executable, "-c", PARENTS[name]], stdout=subprocess.PIPE)
        assert parent.stdout is not None
        children = [int(pid) for pid in parent.stdout.readline().split()]
        parent.kill()
        parent.wait()
        parent.stdout.close()
        until = time.monotonic() + 5
        while any(runs(pid) for pid in children) and time.monotonic() < until:
            time.sleep(0.02)
        failures += [f"{k}: {name} {pid} lives" for pid in children if runs(pid)]
    return count, count - len(failures), failures


def runs(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def writers(count: int, folder: Path, random: Random) -> Result:
    """Train into one folder with several processes at once; one consistent run is left."""
    from neuro_eqprop.experiments.check_run import check_run
    from neuro_eqprop.experiments.run_folder import open_run

    failures, tried = list[str](), 0
    while tried < count:
        together = min(5, count - tried)
        out = folder / f"run{tried}"
        words = ("train", "--dataset", "digits", "--hidden", "8", "--epochs", "3", "--force")
        many = [start(*words, "--seed", str(k), "--out", str(out)) for k in range(together)]
        codes = [process.wait() for process in many]
        tried += together
        found, run = check_run(out, repair=False), open_run(out)
        seconds = {row["epoch"] for row in run.history}
        if not found.ok or 0 not in codes or seconds != {1, 2, 3} or len(run.history) != 3:
            failures += [f"{out.name}: codes {codes}, {found}"] * together
        left = [path.name for path in out.iterdir() if path.name.startswith(".")]
        if left:
            failures.append(f"{out.name} holds {left}")
    return tried, tried - len(failures), failures


def soak(count: int, folder: Path, random: Random) -> Result:
    """Evaluate again and again in one process; memory, files and processes do not grow."""
    import neuro_eqprop as ne

    out = folder / "run"
    ne.train("layered", "digits", hidden=(8,), epochs=1, out=out)
    run = ne.open_run(out)

    def use() -> tuple[int, int, int]:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        return pages * 4096, len(os.listdir("/proc/self/fd")), len(children)

    for _ in range(20):
        run.evaluate(on="emulator", code="graded", samples=5)
    before = use()
    for _ in range(count):
        run.evaluate(on="emulator", code="graded", samples=5)
    after, failures = use(), list[str]()
    if after[0] - before[0] > 2**25 or after[1:] != before[1:]:
        failures.append(f"from {before} to {after} (bytes, files, processes)")
    if len(run.evaluations) != count + 20:
        failures.append(f"{len(run.evaluations)} lines")
    return count, count if not failures else 0, failures


ATTACKS: dict[str, Callable[[int, Path, Random], Result]] = {
    each.__name__: each for each in (kills, disks, parents, writers, soak)
}


def main() -> int:
    """Run an attack; exit code 1 if something did not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("attack", choices=list(ATTACKS))
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        attack = ATTACKS[args.attack]
        tried, held, failures = attack(args.count, Path(folder), Random(args.seed))
    found = {"attack": args.attack, "tried": tried, "held": held, "failures": failures}
    sys.stdout.write(json.dumps(found) + "\n")
    return int(held < tried)


if __name__ == "__main__":
    sys.exit(main())
