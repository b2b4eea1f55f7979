"""Kills, full disks, concurrent writers and a soak, each counted: how many were tried, and held.

    python sims/attack/harness.py kills --count 100
    python sims/attack/harness.py disks --count 50
    python sims/attack/harness.py parents --count 50
    python sims/attack/harness.py signals --count 34
    python sims/attack/harness.py writers --count 50
    python sims/attack/harness.py soak --count 1000
    python sims/attack/harness.py links --count 100
    python sims/attack/harness.py force --count 32
    python sims/attack/harness.py locks --count 10000
    python sims/attack/harness.py caches --count 100
    python sims/attack/harness.py traps --count 15
    python sims/attack/harness.py full --count 36

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
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

import foreign

Result = tuple[int, int, list[str]]
"""How many were tried and held, and what did not hold."""


class Forked:
    """A command of the program in a copy of this process, which has imported it already."""

    def __init__(self, words: Sequence[str], folder: Path | None = None) -> None:
        self.code: int | None = None
        self.began = time.monotonic()
        self.pid = os.fork()
        if self.pid:
            return
        code = 70
        try:
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1):
                os.dup2(nothing, stream)
            os.dup2(nothing if folder is None else os.open(folder, os.O_WRONLY | os.O_CREAT), 2)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            from neuro_eqprop.cli import main as command_line
            from sims.claims.__main__ import main as check_claims

            name, *rest = words
            code = check_claims(rest) if name == "claims" else command_line([name, *rest])
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        except BaseException:
            traceback.print_exc()
            code = 71
        finally:
            os._exit(code)

    def poll(self) -> int | None:
        """The exit code (negative for a signal), or None while it runs."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code

    def wait(self, most: float = 600.0) -> int:
        """The exit code; a process that does not end is killed."""
        until = time.monotonic() + most
        while self.poll() is None:
            if time.monotonic() > until:
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(0.01)
        assert self.code is not None
        return self.code

    def send_signal(self, number: int) -> None:
        """Send a signal."""
        if self.poll() is None:
            os.kill(self.pid, number)


def start(*words: str) -> Forked:
    """Start a command of the program without output."""
    return Forked(words)


def import_all() -> None:
    """Import what commands need, so that copies of this process start at once."""
    import h5py  # noqa: F401
    import torch

    import neuro_eqprop as ne
    from neuro_eqprop.cli.program import build_parser
    from neuro_eqprop.simulators.emulator import kernels, learning_kernels  # noqa: F401

    torch.set_num_threads(1)
    build_parser(("train", "learn", "evaluate", "simulate", "energy", "sweep"))
    ne.train("layered", "digits", hidden=(8,), epochs=1)
    ne.learn_on_chip("layered", "digits", hidden=(8,), epochs=1, samples=10)


SWEEP = (
    '[settings]\ndataset = "digits"\nhidden = [8]\nepochs = 2\n'
    "[axes]\nbeta = [0.1, 0.2, 0.3, 0.4]\nseed = [0, 1, 2]\n"
)
CHAINS: dict[str, tuple[str, ...]] = {
    "train": ("train", "--dataset", "digits", "--hidden", "8", "--epochs", "60"),
    "train with traces": (
        *("train", "--dataset", "digits", "--hidden", "8", "--epochs", "40", "--traces"),
    ),
    "learn": ("learn", "--hidden", "8", "--samples", "200", "--epochs", "25"),
    "learn with traces": (
        *("learn", "--hidden", "8", "--samples", "200", "--epochs", "15", "--traces"),
        *("--watched", "3", "--snapshots", "0,300,900"),
    ),
    "sweep": ("sweep", "SWEEP", "--workers", "1"),
}
"""Commands that are killed and resumed again and again."""


def kills(count: int, folder: Path, random: Random) -> Result:
    """Kill commands again and again; files stay readable and they end in the same bytes."""
    import_all()
    (folder / "sweep.toml").write_text(SWEEP)
    tried, failures, chain = 0, list[str](), 0
    expected: dict[str, dict[str, object]] = {}
    spent: dict[str, float] = {}
    while tried < count:
        name = list(CHAINS)[chain % len(CHAINS)]
        words = [str(folder / "sweep.toml") if w == "SWEEP" else w for w in CHAINS[name]]
        if name not in expected:
            whole, began = folder / f"whole {name}", time.monotonic()
            code = start(*words, "--out", str(whole)).wait()
            expected[name], spent[name] = outcome_of(whole), time.monotonic() - began
            if code:
                return count, 0, [f"{name} ends with code {code}"]
        chain += 1
        out = folder / f"run{chain}"
        more, bad = kill_chain(words, out, min(10, count - tried), spent[name], random)
        tried += more
        if not bad and outcome_of(out) != expected[name]:
            bad.append("ended with other bytes")
        failures += [f"{name}, {out.name}: {each}" for each in bad]
        print(f"{tried} kills, {name}: {more}, {bad}", file=sys.stderr, flush=True)
    return tried, tried - len(failures), failures


def kill_chain(
    words: list[str], out: Path, most: int, usual: float, random: Random
) -> tuple[int, list[str]]:
    """Kill and resume a command at most so often, then let it end; how often, and what is wrong."""
    from neuro_eqprop.runs.check_run import check_run

    command, kinds, bad = words[0], (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM), list[str]()
    now = [*words, "--out", str(out)]
    for done in range(most):
        process = start(*now)
        until = time.monotonic() + random.uniform(0.0, usual / 3)
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        if process.poll() is not None:
            return done, bad + ([f"code {process.poll()}"] if process.poll() else [])
        number = random.choice(kinds)
        process.send_signal(number)
        code = process.wait(6.0)
        if code not in (-number, 128 + number, 0):
            bad.append(f"signal {number} gives code {code}")
        if command != "sweep" and (out / "study.toml").exists():
            found = check_run(out, repair=False)
            bad += [
                f"{f.file}: {f.detail}"
                for f in found.findings
                if f.state == "damaged" and "end" not in f.detail
            ]
            traced = ["--traces"] if "--traces" in words else []
            if (out / "model.safetensors").exists():
                return done + 1, bad
            now = [command, "--out", str(out), "--resume", *traced]
            now += words[words.index("--watched") :] if "--watched" in words else []
    code = start(*now).wait()
    return most, bad + ([f"the last one ends with code {code}"] if code else [])


def outcome_of(out: Path) -> dict[str, object]:
    """The bytes and the recorded values that a resumed run has in common with one in one piece."""
    from neuro_eqprop.traces.lazy import read

    found: dict[str, object] = {}
    for name in ("model.safetensors", "table.csv"):
        if (out / name).exists():
            found[name] = (out / name).read_bytes()
    if (out / "metrics.jsonl").exists():
        rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        found["epochs"] = [(row["epoch"], row["test_accuracy"]) for row in rows]
    if (out / "traces.h5").exists():
        trace = read(out / "traces.h5")
        found["trace"] = (
            trace.complete,
            trace.epochs["epoch"].tolist(),
            {key: values.tobytes() for key, values in trace.signals.items()},
        )
    return found


DISK = """
import resource, sys
from pathlib import Path
from neuro_eqprop.files import write as checked
from neuro_eqprop.traces import append_buffer
from neuro_eqprop.traces.file import write
from neuro_eqprop.traces.lazy import read
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
    from neuro_eqprop.traces.lazy import read

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


PARENTS: dict[str, tuple[str, ...]] = {
    "lava": ("evaluate", "RUN", "--on", "lava", "--samples", "20", "--steps", "20000"),
    "claims": ("claims", "--workers", "2", "--budget", "small", "--out", "OUT"),
    "sweep": ("sweep", "SWEEP", "--workers", "2", "--out", "OUT"),
    "workers": ("evaluate", "RUN", "--on", "reference", "--workers", "2", "--steps", "100000"),
    "trace": ("check", "RUN"),
    "package": ("translate", "RUN", "--to", "lava", "--out", "PKG", "--samples", "200"),
}
"""Commands that start processes."""


def parents(count: int, folder: Path, random: Random) -> Result:
    """Kill parents; all processes below them are gone within five seconds."""
    import neuro_eqprop as ne
    from neuro_eqprop.files.write import leftovers, temporary_folder

    import_all()
    (folder / "sweep.toml").write_text(SWEEP.replace("epochs = 2", "epochs = 300"))
    run = folder / "run"
    data = ne.load_data("digits")
    model = ne.train("layered", data, hidden=(8,), epochs=1, out=run)
    spiking = model.to_spiking(code="rate")
    spiking.record(data.test.x[:300], steps=64).save(run / "traces.h5")
    failures, names = list[str](), list(PARENTS)
    for k in range(count):
        name = names[k % len(names)]
        places = {"RUN": str(run), "SWEEP": str(folder / "sweep.toml"), "OUT": str(folder / f"{k}")}
        places["PKG"] = str(folder / f"package{k}")
        parent = start(*(places.get(word, word) for word in PARENTS[name]))
        while not below(parent.pid) and parent.poll() is None:
            time.sleep(0.01)
        time.sleep(random.uniform(0.0, 3.0) if name != "trace" else 0.01)
        children = below(parent.pid)
        os.kill(parent.pid, random.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT)))
        parent.wait()
        until = time.monotonic() + 5
        while any(runs(pid) for pid in children) and time.monotonic() < until:
            time.sleep(0.02)
        failures += [f"{k}: {name} {pid} lives" for pid in children if runs(pid)]
        print(f"{k} {name}: {len(children)} processes below", file=sys.stderr, flush=True)
    for place in (folder, Path(tempfile.gettempdir())):
        with temporary_folder(within=place):  # as the next start of a command does
            failures += [f"{left} is left" for left in leftovers(place)]
    return count, count - len(failures), failures


def below(pid: int) -> list[int]:
    """The processes that a process started, and those that they started."""
    parents = dict[int, int]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found, waiting = list[int](), [pid]
    while waiting:
        parent = waiting.pop()
        waiting += (children := [each for each, of in parents.items() if of == parent])
        found += children
    return found


SIGNALLED: dict[str, tuple[str, ...]] = {
    "train": (*CHAINS["train"][:-1], "100000", "--out", "OUT"),
    **{
        f"learn on {on}": ("learn", "--hidden", "8", "--on", on, "--epochs", "500", "--out", "OUT")
        for on in ("emulator", "reference", "rate", "lava")
    },
    "learn on brian2": (
        *("learn", "--hidden", "8", "--on", "brian2", "--code", "rate", "--out", "OUT"),
    ),
    **{
        f"evaluate on {on}": ("evaluate", "RUN", "--on", on, "--steps", "200000")
        for on in ("emulator", "reference", "snntorch", "brian2", "lava")
    },
    "simulate": ("simulate", "RUN", "--on", "emulator", "--steps", "100000", "--traces", "OUT"),
    "energy": ("energy", "RUN", "--steps", "2000000", "--profile", "loihi1"),
    "sweep": ("sweep", "SWEEP", "--workers", "2", "--out", "OUT"),
    "claims": ("claims", "--workers", "2", "--budget", "small", "--out", "OUT"),
    "report": ("report", "RUN"),
    "demo": ("demo", "--out", "OUT"),
    "package": ("translate", "RUN", "--to", "lava", "--out", "PKG", "--samples", "300"),
}
"""Commands that are ended by signals."""


def signals(count: int, folder: Path, random: Random) -> Result:
    """End each command by SIGTERM and SIGINT: within five seconds, with its exit code."""
    import neuro_eqprop as ne

    import_all()
    (folder / "sweep.toml").write_text(SWEEP.replace("epochs = 2", "epochs = 300"))
    run = folder / "run"
    ne.train("layered", "digits", hidden=(8,), epochs=1, out=run)
    names, failures, ended = list(SIGNALLED), list[str](), 0
    for k in range(count):
        name, number = names[k // 2 % len(names)], (signal.SIGTERM, signal.SIGINT)[k % 2]
        out = folder / (f"{k}.h5" if name == "simulate" else f"{k}")
        places = {"RUN": str(run), "SWEEP": str(folder / "sweep.toml"), "OUT": str(out)}
        places["PKG"] = str(folder / f"package{k}")
        allowed = ["--yes"] if name.split()[0] in ("train", "learn", "evaluate", "simulate") else []
        process = start(*(places.get(word, word) for word in SIGNALLED[name]), *allowed)
        time.sleep(random.uniform(0.1, 1.0) if name == "report" else random.uniform(1.0, 4.0))
        if process.poll() is not None:
            print(f"{name}: ended before the signal, code {process.code}", file=sys.stderr)
            failures += [f"{name}: code {process.code}"] if process.code else []
            continue
        children, began = below(process.pid), time.monotonic()
        process.send_signal(number)
        code, ended = process.wait(20.0), ended + 1
        seconds = time.monotonic() - began
        if code != 128 + number or seconds > 5:
            failures.append(f"{name}, signal {number}: code {code} after {seconds:.1f} s")
        time.sleep(0.5)
        failures += [f"{name}: {pid} lives" for pid in children if runs(pid)]
        if (out / "study.toml").exists() and not ne.check_run(out, repair=False).ok:
            failures.append(f"{name}: {ne.check_run(out, repair=False)}")
        print(f"{name}, signal {number}: {code} after {seconds:.1f} s", file=sys.stderr, flush=True)
    return ended, ended - len(failures), failures


def runs(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def writers(count: int, folder: Path, random: Random) -> Result:
    """Train into one folder with several processes at once; one consistent run is left."""
    import_all()
    from neuro_eqprop.api.run import open_run
    from neuro_eqprop.runs.check_run import check_run

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


def on_others(attack: Callable[..., Result]) -> Callable[[int, Path, Random], Result]:
    """An attack of `foreign`, whose commands run in copies of this process."""

    def run(count: int, folder: Path, random: Random) -> Result:
        import_all()

        def call(*words: str, said: Path | None = None) -> int:
            return Forked(words, said).wait()

        return attack(count, folder, random, call)

    return run


ATTACKS: dict[str, Callable[[int, Path, Random], Result]] = {
    **{each.__name__: each for each in (kills, disks, parents, signals, writers, soak)},
    **{
        each.__name__: on_others(each)
        for each in (
            *(foreign.links, foreign.force, foreign.locks),
            *(foreign.caches, foreign.traps, foreign.full),
        )
    },
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
