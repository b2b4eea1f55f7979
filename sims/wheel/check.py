"""Install the wheel in clean environments of all Pythons that are here and use it as a user would.

    python sims/wheel/check.py                          # every Python of VERSIONS that is here
    python sims/wheel/check.py --python 3.13            # one of them, or the path of another
    python sims/wheel/check.py --python 3.13 --work DIR # keep the environments in DIR
    python sims/wheel/check.py --installer uv           # with uv, which takes a fifth of the time

It builds the wheel and the source archive, has twine check them, installs the wheel and, above
Python 3.10, Lava by `neuro-eqprop lava install`. From an empty folder it then trains, evaluates on
every simulator and runs the README's Lava script, whose messages must equal those of `--on lava`.
It writes docs/results/wheel.md, a column for each Python.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "results" / "wheel.md"
VERSIONS = ("3.10", "3.11", "3.12", "3.13")
VERSION_OF = "import sys; print('.'.join(map(str, sys.version_info[:3])))"
SIMULATORS = ("rate", "emulator", "snntorch", "brian2", "lava")
TRAIN = ["train", "--dataset", "digits", "--hidden", "64", "--epochs", "5", "--out", "run"]
COMPARE = """
import numpy as np
sent = spiking.record(data.test.x[:20], on="lava", steps=32).spikes["output"]
expected = np.zeros((640, 10))
expected[sent.step, sent.unit] = sent.value
print(f"{int((messages.T == expected).sum())} of {expected.size} equal")
"""
"""Behind the README's Lava script: its messages against those of the backend."""


def find_python(version: str) -> str | None:
    """A Python of this version: on the path, or among those of pyenv and uv."""
    done = subprocess.run(
        [str(ROOT / ".ci" / "find-python"), version], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or None


def call(command: list[str], folder: Path) -> str:
    """Run a command; its standard output. An error ends the check."""
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=folder, env=clean, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def build(folder: Path) -> Path:
    """The wheel, after twine has checked it and the source archive."""
    call([sys.executable, "-m", "build", "--quiet", "--outdir", str(folder)], ROOT)
    built = [*folder.glob("*.whl"), *folder.glob("*.tar.gz")]
    call([sys.executable, "-m", "twine", "check", "--strict", *map(str, built)], folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install(python: str, wheel: Path, work: Path, installer: str) -> tuple[Path, dict[str, str]]:
    """A new environment with the wheel and Lava in it: its folder of programs, and the times."""
    call([python, "-m", "venv", "--clear", "env"], work)
    programs = work / "env" / "bin"
    inside = str(programs / "python")
    began = time.monotonic()
    if installer == "uv":
        call([sys.executable, "-m", "uv", "pip", "install", "--python", inside, str(wheel)], work)
    else:
        call([inside, "-m", "pip", "install", "--quiet", str(wheel)], work)
    installed = time.monotonic()
    call([str(programs / "neuro-eqprop"), "lava", "install"], work)
    return programs, {
        f"{'uv ' if installer == 'uv' else ''}pip install": f"{installed - began:.0f} s",
        "neuro-eqprop lava install": f"{time.monotonic() - installed:.0f} s",
    }


def lava_script() -> str:
    """The README's Python that builds a Lava graph, and the comparison behind it."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    (script,) = (block for block in blocks if "lava.magma" in block)
    return script + COMPARE


def use(programs: Path, work: Path) -> dict[str, str]:
    """Train and evaluate with the installed program in an empty folder: a result by command."""
    folder = work / "empty"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    program = str(programs / "neuro-eqprop")
    trained = json.loads(call([program, *TRAIN, "--json"], folder))
    results = {"train, 64-64-10, 5 epochs": f"{trained['test_accuracy']:.2%}"}
    for on in SIMULATORS:
        command = [program, "evaluate", "run", "--on", on, "--samples", "20", "--json"]
        code = [] if on == "rate" else ["--code", "graded"]
        found = json.loads(call([*command, *code], folder))
        results[f"evaluate --on {on}"] = f"{found['accuracy']:.2%}, {found['agreement']:.0%}"
    script = call([str(programs / "python"), "-c", lava_script()], folder)
    results["the README's Lava script: messages"] = script.strip().splitlines()[-1]
    for command in (["energy", "run", "--samples", "4", "--profile", "loihi1"], ["report", "run"]):
        call([program, *command], folder)
        results[" ".join(command)] = "ran"
    return results


def check(python: str, wheel: Path, work: Path, installer: str) -> tuple[str, dict[str, str]]:
    """The full version of a Python, and what the installed wheel gave there."""
    work.mkdir(parents=True, exist_ok=True)
    programs, times = install(python, wheel, work, installer)
    version = call([str(programs / "python"), "-c", VERSION_OF], work).strip()
    return version, times | use(programs, work)


def page(columns: dict[str, dict[str, str]], size: int) -> str:
    """The page of the results."""
    lines = [
        "# The wheel in a clean environment",
        "",
        "Whether the package installs and runs on every Python from its wheel alone, Lava "
        "included. Made by `make wheel-test`; do not edit.",
        "",
        f"The wheel has {size / 1e6:.1f} MB, and `twine check --strict` passes it and the source "
        "archive. Each evaluation is of the first 20 test images of the digits, with graded "
        "spikes: accuracy, then agreement with the rates.",
        "",
        "| command | " + " | ".join(f"Python {version}" for version in columns) + " |",
        "|---" * (1 + len(columns)) + "|",
    ]
    for command in next(iter(columns.values())):
        cells = " | ".join(column[command] for column in columns.values())
        lines.append(f"| `{command}` | {cells} |")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", nargs="+", default=VERSIONS, help="versions, or paths")
    parser.add_argument("--work", type=Path, help="a folder to keep the environments in")
    parser.add_argument("--installer", choices=("pip", "uv"), default="pip")
    args = parser.parse_args()
    found = {name: name if os.sep in name else find_python(name) for name in args.python}
    pythons = {name: path for name, path in found.items() if path is not None}
    if not pythons:
        sys.exit(f"no Python of {', '.join(args.python)} found; name the path of one with --python")
    work = args.work or Path(tempfile.mkdtemp(prefix="wheel-"))
    work.mkdir(parents=True, exist_ok=True)
    wheel = build(Path(tempfile.mkdtemp(prefix="dist-", dir=work)))
    columns = {}
    for name, path in pythons.items():
        folder = work / Path(name).name
        version, columns[version] = check(path, wheel, folder, args.installer)
        sys.stderr.write(f"{version}: {columns[version]}\n")
        if args.work is None:
            shutil.rmtree(folder)  # an environment takes 5 GB
    PAGE.write_text(page(columns, wheel.stat().st_size), encoding="utf-8")
    sys.stdout.write(PAGE.read_text(encoding="utf-8"))
    if args.work is None:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
