"""Install the wheel in clean environments of newer Pythons and use it as a user would.

    python sims/wheel/check.py                          # every Python of VERSIONS that is here
    python sims/wheel/check.py --python 3.13            # one of them, or the path of another
    python sims/wheel/check.py --python 3.13 --work DIR # keep the environments in DIR

It builds the wheel, installs it with pip and nothing else, and then, from an empty folder, trains,
evaluates on every simulator, and on Lava through a Python 3.10 in a side environment
(`NEURO_EQPROP_LAVA_PYTHON`). It writes docs/results/wheel.md, a column for each Python.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "results" / "wheel.md"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
VERSION_OF = "import sys; print('.'.join(map(str, sys.version_info[:3])))"
SIMULATORS = ("rate", "emulator", "snntorch", "brian2", "lava")
TRAIN = ["train", "--dataset", "digits", "--hidden", "64", "--epochs", "5", "--out", "run"]


def find_python(version: str) -> str | None:
    """A Python of this version: on the path, or among those of pyenv and uv."""
    homes = [Path.home() / ".pyenv" / "versions", Path.home() / ".local/share/uv/python"]
    found = [str(path) for home in homes for path in home.glob(f"*{version}.*/bin/python3")]
    for candidate in (f"python{version}", *found):
        path = shutil.which(candidate)
        if path is not None:
            code = f"import ensurepip; {VERSION_OF}"
            done = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
            if done.stdout.startswith(version + "."):
                return path
    return None


def call(command: list[str], folder: Path, **variables: str) -> str:
    """Run a command; its standard output. An error ends the check."""
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=folder, env=clean | variables, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def install(python: str, wheel: Path, work: Path) -> tuple[Path, float]:
    """A new environment with the wheel in it: its folder of programs, and the seconds it took."""
    began = time.monotonic()
    call([python, "-m", "venv", "--clear", "env"], work)
    programs = work / "env" / "bin"
    call([str(programs / "python"), "-m", "pip", "install", "--quiet", str(wheel)], work)
    return programs, time.monotonic() - began


def use(programs: Path, work: Path, lava: str) -> dict[str, str]:
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
        found = json.loads(call([*command, *code], folder, NEURO_EQPROP_LAVA_PYTHON=lava))
        results[f"evaluate --on {on}"] = f"{found['accuracy']:.2%}, {found['agreement']:.0%}"
    for command in (["energy", "run", "--samples", "4", "--profile", "loihi1"], ["report", "run"]):
        call([program, *command], folder)
        results[" ".join(command)] = "ran"
    return results


def check(python: str, wheel: Path, work: Path) -> tuple[str, dict[str, Any]]:
    """The full version of a Python, and what the installed wheel gave there."""
    work.mkdir(parents=True, exist_ok=True)
    programs, seconds = install(python, wheel, work)
    version = call([str(programs / "python"), "-c", VERSION_OF], work).strip()
    results = use(programs, work, sys.executable)
    return version, {"pip install": f"{seconds:.0f} s", **results}


def page(columns: dict[str, dict[str, Any]], size: int) -> str:
    """The page of the results."""
    lava = call([sys.executable, "-c", VERSION_OF], ROOT).strip()
    lines = [
        "# The wheel in a clean environment",
        "",
        "Whether the package installs and runs on newer Pythons, from its wheel alone. Made by "
        "`make wheel-test`; do not edit.",
        "",
        f"The wheel has {size / 1e6:.1f} MB. Lava runs in a side environment of Python {lava}. "
        "Each evaluation is of the first 20 test images of the digits, with graded spikes: "
        "accuracy, then agreement with the rates.",
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
    args = parser.parse_args()
    found = {name: name if os.sep in name else find_python(name) for name in args.python}
    pythons = {name: path for name, path in found.items() if path is not None}
    if not pythons:
        sys.exit(f"no Python of {', '.join(args.python)} found; name the path of one with --python")
    work = args.work or Path(tempfile.mkdtemp(prefix="wheel-"))
    work.mkdir(parents=True, exist_ok=True)
    call([sys.executable, "-m", "build", "--quiet", "--wheel", "--outdir", str(work)], ROOT)
    wheel = max(work.glob("*.whl"), key=lambda path: path.stat().st_mtime)
    columns = {}
    for name, path in pythons.items():
        folder = work / Path(name).name
        version, columns[version] = check(path, wheel, folder)
        if args.work is None:
            shutil.rmtree(folder)  # an environment takes 5 GB
    PAGE.write_text(page(columns, wheel.stat().st_size), encoding="utf-8")
    sys.stdout.write(PAGE.read_text(encoding="utf-8"))
    if args.work is None:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
