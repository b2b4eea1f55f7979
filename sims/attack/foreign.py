"""Files of others, locks, caches and the current folder; `harness.py` runs these attacks.

`links` plants links to files of others at the names that commands write, `force` gives them folders
with files of others, `locks` lets processes compete for a lock on a file system without `flock`,
`caches` damages compiled code on disk, `traps` watches what commands open in the current folder.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from random import Random

Result = tuple[int, int, list[str]]
Call = Callable[..., int]
"""Runs a command in a copy of this process; its exit code."""

SWEEP = (
    '[settings]\ndataset = "digits"\nhidden = [8]\nepochs = 1\nbatch = 512\n[axes]\nseed = [0]\n'
)
SMALL = ("--hidden", "8", "--epochs", "1", "--batch", "512")
WRITERS: dict[str, tuple[str, ...]] = {
    "train": ("train", *SMALL, "--out", "RUN", "--force", "--traces"),
    "resume": ("train", "--out", "RUN", "--resume"),
    "learn": ("learn", *SMALL, "--samples", "20", "--out", "RUN", "--force", "--traces"),
    "evaluate": ("evaluate", "RUN", "--on", "emulator", "--samples", "2", "--steps", "4"),
    "simulate": ("simulate", "RUN", "--on", "rate", "--samples", "2", "--force"),
    "energy": ("energy", "RUN", "--samples", "2", "--profile", "loihi1"),
    "report": ("report", "RUN"),
    "check": ("check", "RUN"),
    "sweep": ("sweep", "SWEEP", "--workers", "1", "--out", "RUN", "--force"),
    "nir": ("translate", "RUN", "--out", "RUN/net.nir", "--force"),
    "netx": ("translate", "RUN", "--to", "netx", "--out", "RUN/net.net", "--force"),
    "lava": ("translate", "RUN", "--to", "lava", "--out", "RUN/net", "--force", "--samples", "1"),
    "traces npz": ("traces", "export", "TRACE", "--npz", "RUN/out.npz"),
    "traces csv": ("traces", "export", "TRACE", "--csv", "RUN/net"),
    "traces nwb": ("traces", "export", "TRACE", "--nwb", "RUN/out.nwb"),
    "csv": ("energy", "RUN", "--samples", "2", "--profile", "loihi1", "--csv", "RUN/out.csv"),
    "compare": ("compare", "TRACE", "TRACE"),
    "demo": ("demo", "--out", "RUN", "--force"),
}
"""Commands that write, or that hold a lock."""
NAMES = (
    *(".lock", ".before", ".before.moving", "metrics.jsonl", "resume.safetensors"),
    *("best.safetensors", "evaluations.jsonl", "traces.h5", ".traces.h5.lock"),
    *("traces.h5.partial", "traces.h5.before", "energy.json", "report.html", "data.npz"),
    *("sweep.json", "trials", "table.csv", "sweep.html", "best.toml"),
    *("net.nir", "net.net", "net", ".net.before", "out.npz", "out.nwb", "out.csv"),
)
"""What commands write in a folder."""


def make_run(folder: Path) -> Path:
    """A trained run and a trace, which are copied."""
    import neuro_eqprop as ne

    run, data = folder / "template", ne.load_data("digits")
    model = ne.train("layered", data, hidden=(8,), epochs=1, out=run)
    model.record(data.test.x[:2], steps=4).save(folder / "trace.h5")
    (folder / "sweep.toml").write_text(SWEEP)
    return run


def words_of(words: tuple[str, ...], run: Path, folder: Path) -> list[str]:
    """The words of a command with its places."""
    places = {"SWEEP": str(folder / "sweep.toml"), "TRACE": str(folder / "trace.h5")}
    return [places.get(word, word.replace("RUN", str(run))) for word in words]


def contents(folder: Path) -> dict[str, bytes]:
    """The files below a folder and what they hold."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def links(count: int, folder: Path, random: Random, call: Call) -> Result:
    """Plant a link at a name that a command may write; its target stays as it was."""
    template, failures = make_run(folder), list[str]()
    cases = list(product(WRITERS, NAMES, ("file", "new", "folder")))
    for k, (command, name, kind) in enumerate(random.sample(cases, min(count, len(cases)))):
        run, others = folder / f"run{k}", folder / f"others{k}"
        shutil.copytree(template, run)
        (others / "folder").mkdir(parents=True)
        (others / "folder" / "0.json").write_text("precious")
        (others / "file").write_text('{"host": "precious')
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(others / kind)
        before = contents(others)
        code = call(*words_of(WRITERS[command], run, folder))
        if contents(others) != before:
            failures.append(f"{command}: {name} leads to {kind}, code {code}")
        shutil.rmtree(run)
    return k + 1, k + 1 - len(failures), failures


FORCED = {
    name: words
    for name, words in WRITERS.items()
    if name in ("train", "learn", "simulate", "sweep", "nir", "netx", "lava", "demo")
}
"""Commands with `--force`, and where they write."""


def force(count: int, folder: Path, random: Random, call: Call) -> Result:
    """Write by force into a home, a link, a run and a folder with files; foreign files are kept."""
    template, failures, tried = make_run(folder), list[str](), 0
    foreign = (*NAMES[3:], "thesis.tex", "src/main.py", "model.safetensors", "study.toml")
    for command, kind in list(product(FORCED, ("home", "link", "run", "files")))[:count]:
        place, run = folder / f"place{tried}", folder / "template"
        if kind == "run":
            shutil.copytree(template, place)
        place.mkdir(exist_ok=True)
        for name in foreign if kind in ("home", "link") else ("thesis.tex", "src/main.py"):
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).write_text(f"precious {name}")
        named = place
        if kind == "link":
            named = folder / f"link{tried}"
            named.symlink_to(place)
        before = contents(place)
        out = str(named / {"nir": "net.nir", "netx": "net.net"}.get(command, ""))
        words = [
            out if word.startswith("RUN") and before_word in ("--out", "--traces") else word
            for before_word, word in zip(("", *FORCED[command]), FORCED[command], strict=False)
        ]
        if command == "simulate":
            words += ["--traces", str(named / "traces.h5")]
        code = call(*words_of(tuple(words), run, folder))
        after = contents(place)
        kept = [name for name in before if before[name].startswith(b"precious")]
        lost = [name for name in kept if after.get(name) != before[name]]
        if kind == "run" and command in ("lava", "nir", "netx", "simulate"):
            lost += [name for name in before if after.get(name) != before[name]]
        failures += [f"{command} into {kind}, code {code}: {lost} lost"] * bool(lost)
        tried += 1
    return tried, tried - len(failures), failures


COMPETE = """
import json, os, random, socket, sys, time
from pathlib import Path
from neuro_eqprop.files import lock
lock.lock_now = lambda handle: None
folder, count, random = Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[3]))
ended = json.dumps({"host": socket.gethostname(), "pid": 2**22 + 1, "since": "then"})
held = double = 0
while held < count:
    if random.random() < 0.1:
        (folder / f"{sys.argv[3]}").write_text(ended)
        try:
            os.link(folder / f"{sys.argv[3]}", folder / ".lock")
        except FileExistsError:
            pass
        os.unlink(folder / f"{sys.argv[3]}")
    try:
        with lock.FileLock(folder / ".lock"):
            held += 1
            try:
                os.mkdir(folder / "inside")
            except FileExistsError:
                double += 1
            else:
                os.rmdir(folder / "inside")
    except lock.LockedError:
        time.sleep(random.random() / 2000)
print(double)
"""


def locks(count: int, folder: Path, random: Random, call: Call) -> Result:
    """Four processes compete for a lock without `flock`, some left by ended ones; one holds it."""
    each = -(-count // 4)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", COMPETE, str(folder), str(each), str(random.random())[2:]],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    doubles = [int(process.communicate()[0] or each) for process in processes]
    return 4 * each, 4 * each - sum(doubles), [f"{n} double wins" for n in doubles if n]


POWER = """
from neuro_eqprop.common.jit import outer

@outer
def power(x, n):
    result = x
    for _ in range(n):
        result = result * x
    return result
"""


def caches(count: int, folder: Path, random: Random, call: Call) -> Result:
    """Damage compiled code on disk: flipped, cut, empty or removed; results are the same."""
    from numba.core import config

    from neuro_eqprop.common import jit  # noqa: F401 - pins the configuration of Numba

    vars(config)["CACHE_DIR"], failures = "", list[str]()
    (folder / "power.py").write_text(POWER)
    code = compile(POWER, str(folder / "power.py"), "exec")

    def power() -> float:
        space: dict[str, object] = {"__name__": "power", "__file__": str(folder / "power.py")}
        exec(code, space)
        found: float = space["power"](2.0, 3)  # type: ignore[operator]
        return found

    power()
    for k in range(count):
        for path in (folder / "__pycache__").iterdir():
            damage(path, random)
        try:
            if power() != 16.0 or power() != 16.0:
                failures.append(f"{k}: another result")
        except Exception as error:
            failures.append(f"{k}: {type(error).__name__}: {error}")
    return count, count - len(failures), failures


def damage(path: Path, random: Random) -> None:
    """Flip a bit of a file, cut it, empty it, make it a folder or remove it."""
    content = bytearray(path.read_bytes()) if path.is_file() else bytearray()
    match random.randrange(5):
        case 0 | 1 if content:
            content[random.randrange(len(content))] ^= 1 << random.randrange(8)
            path.write_bytes(content)
        case 2 if content:
            path.write_bytes(content[: random.randrange(len(content))])
        case 3 if content:
            path.write_bytes(b"")
        case _:
            shutil.rmtree(path, ignore_errors=True)
            path.unlink(missing_ok=True)


def full(count: int, folder: Path, random: Random, call: Call) -> Result:
    """Let the disk be full during each command; one sentence, and no file that is half written.

    The disk is a file system in memory, which root alone can mount.
    """
    from neuro_eqprop.runs.check_run import check_run

    template, failures, names = make_run(folder), list[str](), list(WRITERS)
    for k in range(count):
        command, disk, said = names[k % len(names)], folder / f"disk{k}", folder / f"said{k}"
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
        subprocess.run(mount, check=True)
        try:
            run = disk / "run"
            shutil.copytree(template, run)
            with (disk / "filler").open("wb") as filler, suppress(OSError):
                filler.write(bytes(2**22))
            os.truncate(disk / "filler", (disk / "filler").stat().st_size - random.choice(SPACES))
            code = call(*words_of(WRITERS[command], run, folder), said=said)
            text = said.read_text(errors="replace")
            found = check_run(run, repair=False) if (run / "study.toml").exists() else None
            damaged = [f for f in found.findings if f.state == "damaged"] if found else []
            if code not in (0, 1) or "Traceback" in text or (damaged and command != "check"):
                last = (text.strip().splitlines() or [""])[-1]
                failures.append(f"{command}: code {code}, {damaged}, {last[:200]}")
        finally:
            subprocess.run(["umount", str(disk)], check=True)
    return count, count - len(failures), failures


SPACES = (0, 4096, 2**14, 2**16, 2**17)
"""Bytes that are left on a full disk."""
TRAPPED: dict[str, tuple[str, ...]] = {
    **{
        f"evaluate on {on}": ("evaluate", "run", "--on", on, "--samples", "1", "--steps", "4")
        for on in ("rate", "emulator", "reference", "snntorch", "brian2", "lava")
    },
    "train": ("train", *SMALL, "--out", "new"),
    "learn": ("learn", *SMALL, "--samples", "10", "--out", "learned"),
    "simulate": ("simulate", "run", "--on", "emulator", "--samples", "1", "--traces", "s.h5"),
    "energy": ("energy", "run", "--samples", "2", "--profile", "loihi1", "--csv", "e.csv"),
    "report": ("report", "run"),
    "translate": ("translate", "run", "--to", "lava", "--out", "pkg", "--samples", "1"),
    "c": ("translate", "run", "--to", "c", "--out", "net", "--samples", "1"),
    "sweep": ("sweep", "sweep.toml", "--workers", "2", "--out", "swept"),
    "doctor": ("doctor",),
    "check": ("check", "run"),
}
TRAPS = (
    *(".numba_config.yaml", "brian_preferences", "matplotlibrc", "pip.conf", "setup.cfg"),
    *("json.py", "numpy.py", "h5py.py", "sitecustomize.py", "usercustomize.py", "torch.py"),
    *("pyvenv.cfg", ".pdbrc", "dask.yaml", "pytest.ini", "numba.py", "ctypes.py", ".env"),
    *("libgcc_s.so.1", "libc.so.6", "crt1.o", "specs"),
)
"""Files that a library may read in the current folder, or import from it."""
OPENED = re.compile(
    r'(?:openat\(AT_FDCWD|openat\((?P<at>\d+)[^,]*|open\(|execve\()[, ]*"(?P<path>[^"]*)".* = \d+'
)


def traps(count: int, folder: Path, random: Random, call: Call) -> Result:
    """Run commands in a folder of traps; nothing is opened there that the user did not name."""
    run, program, failures = make_run(folder), Path(sys.executable).parent, list[str]()
    ran = folder / "ran"
    for k, (name, words) in enumerate(list(TRAPPED.items())[:count]):
        here = folder / f"here{k}"
        shutil.copytree(run, here / "run")
        shutil.copy(folder / "sweep.toml", here)
        for trap in TRAPS:
            (here / trap).write_text(f"open({str(ran)!r}, 'w').write({trap!r})\n")
        (here / ".numba_config.yaml").write_text("cache_dir: cache\ndebug_frontend: 1\n")
        (here / "matplotlibrc").write_text("backend: module://boom\n")
        log = folder / f"trace{k}"
        command = ["strace", "-f", "-qq", "-e", "trace=open,openat,execve,chdir", "-o", str(log)]
        command += [str(program / "neuro-eqprop"), *words]
        done = subprocess.run(command, cwd=here, check=False, capture_output=True, text=True)
        opened = sorted(set(unasked(log.read_text(errors="replace"), here)) & set(TRAPS))
        if opened or ran.exists() or done.returncode:
            last = (done.stderr.strip().splitlines() or [""])[-1]
            failures.append(f"{name}: opened {opened}, ran {ran.exists()}, {last[:200]}")
            ran.unlink(missing_ok=True)
        shutil.rmtree(here)
    return k + 1, k + 1 - len(failures), failures


def unasked(log: str, here: Path) -> Iterator[str]:
    """The names of files directly in a folder that a process opened, by the log of strace."""
    for match in OPENED.finditer(log):
        path = Path(match["path"])
        place = path if path.is_absolute() else here / path
        if os.path.normpath(place.parent) == str(here):
            yield place.name
