"""Install the wheel in a clean environment of the newest Python here and use it as a user would.

    python sims/wheel/check.py [--python PYTHON] [--work DIR] [--keep]

It builds the wheel, installs it with pip and nothing else, and then, from an empty folder, trains,
evaluates on the emulator and on Brian2, and on Lava through a Python 3.10 in a side environment
(`NEURO_EQPROP_LAVA_PYTHON`). It writes docs/results/wheel.md.
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
VERSIONS = ("3.14", "3.13", "3.12", "3.11")
SIMULATORS = ("rate", "emulator", "snntorch", "brian2", "lava")
TRAIN = ["train", "--dataset", "digits", "--hidden", "64", "--epochs", "5", "--out", "run"]


def find_python(version: str) -> str | None:
    """A Python of this version: on the path, or among those of pyenv and uv."""
    homes = [Path.home() / ".pyenv" / "versions", Path.home() / ".local/share/uv/python"]
    found = [str(path) for home in homes for path in home.glob(f"*{version}.*/bin/python3")]
    for candidate in (f"python{version}", *found):
        path = shutil.which(candidate)
        asked = "import sys, ensurepip; print('%d.%d' % sys.version_info[:2])"
        if path is not None:
            done = subprocess.run([path, "-c", asked], capture_output=True, text=True, check=False)
            if done.stdout.strip() == version:
                return path
    return None


def call(words: list[str], folder: Path, **variables: str) -> str:
    """Run a command; its standard output. An error ends the check."""
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        words, cwd=folder, env=clean | variables, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def install(python: str, wheel: Path, work: Path) -> tuple[Path, float]:
    """A new environment with the wheel in it; its folder of programs, and the seconds."""
    began = time.monotonic()
    call([python, "-m", "venv", "--clear", "env"], work)
    programs = work / "env" / "bin"
    call([str(programs / "python"), "-m", "pip", "install", "--quiet", str(wheel)], work)
    return programs, time.monotonic() - began


def use(programs: Path, work: Path, lava: str) -> list[dict[str, Any]]:
    """Train and evaluate with the installed program, in an empty folder."""
    folder = work / "empty"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    program = str(programs / "neuro-eqprop")
    trained = json.loads(call([program, *TRAIN, "--json"], folder))
    rows = [{"what": "train, 64-64-10, 5 epochs", "accuracy": trained["test_accuracy"]}]
    for on in SIMULATORS:
        words = [program, "evaluate", "run", "--on", on, "--samples", "20", "--json"]
        code = [] if on == "rate" else ["--code", "graded"]
        found = json.loads(call([*words, *code], folder, NEURO_EQPROP_LAVA_PYTHON=lava))
        rows.append({"what": f"evaluate --on {on}", **found})
    call([program, "energy", "run", "--samples", "4", "--profile", "loihi1"], folder)
    call([program, "report", "run"], folder)
    return rows


def page(version: str, lava: str, seconds: float, size: int, rows: list[dict[str, Any]]) -> str:
    """The page of the results."""
    lines = [
        "# The wheel in a clean environment",
        "",
        "Made by `make wheel-test`; do not edit.",
        "",
        f"Python {version}; Lava runs in a side environment of Python {lava}. The wheel has "
        f"{size / 1e6:.1f} MB; `pip install` took {seconds:.0f} s. The first 20 test images of the "
        "digits, graded spikes:",
        "",
        "| step | accuracy | agreement with the rates |",
        "|---|---|---|",
    ]
    for row in rows:
        same = "" if row.get("agreement") is None else f"{100 * row['agreement']:.2f} %"
        lines.append(f"| `{row['what']}` | {100 * row['accuracy']:.2f} % | {same} |")
    lines += ["", "`energy` and `report` also ran.", ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", help="the newest Python here, unless given")
    parser.add_argument("--work", type=Path, help="a folder to keep the environment in")
    args = parser.parse_args()
    python = args.python or next(filter(None, map(find_python, VERSIONS)), None)
    if python is None:
        sys.exit(f"no Python of {', '.join(VERSIONS)} found; name one with --python")
    work = args.work or Path(tempfile.mkdtemp(prefix="wheel-"))
    work.mkdir(parents=True, exist_ok=True)
    call([sys.executable, "-m", "build", "--quiet", "--wheel", "--outdir", str(work)], ROOT)
    wheel = max(work.glob("*.whl"), key=lambda path: path.stat().st_mtime)
    programs, seconds = install(python, wheel, work)
    asked = "import sys; print('.'.join(map(str, sys.version_info[:3])))"
    version = call([str(programs / "python"), "-c", asked], work).strip()
    lava = call([sys.executable, "-c", asked], work).strip()
    rows = use(programs, work, sys.executable)
    PAGE.write_text(page(version, lava, seconds, wheel.stat().st_size, rows), encoding="utf-8")
    sys.stdout.write(PAGE.read_text(encoding="utf-8"))
    if args.work is None:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
