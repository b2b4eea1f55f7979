"""Tutorials written as pages: their code runs, and prints what the pages show."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
PAGES: dict[str, pytest.MarkDecorator | tuple[()]] = {
    "lava-process": pytest.mark.lava,
    "lava-package": pytest.mark.lava,
    "brian2": pytest.mark.brian2,
    "torch": pytest.mark.snntorch,
    "nir": (),
}
DRIVER = """
import contextlib, io, json, subprocess, sys
found, names = [], {"__name__": "tutorial"}
sys.path.insert(0, "")
for kind, text in json.loads(sys.argv[1]):
    shown = io.StringIO()
    if kind == "python":
        with contextlib.redirect_stdout(shown):
            exec(compile(text, "tutorial", "exec"), names)
    else:
        subprocess.run(["sh", "-e", "-c", text], check=True, stdout=subprocess.DEVNULL)
    found.append(shown.getvalue())
print("FOUND" + json.dumps(found))
"""


def blocks(page: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Blocks of code, and the output that the page shows after each."""
    text = (FOLDER / f"{page}.md").read_text()
    code, shown = list[tuple[str, str]](), list[str]()
    for kind, body in re.findall(r"^```(python|sh|text)\n(.*?)^```", text, re.S | re.M):
        if kind == "text":
            shown[-1] = body
        else:
            code.append((kind, body))
            shown.append("")
    return code, shown


def test_every_page_is_run() -> None:
    assert {path.stem for path in FOLDER.glob("*.md")} >= set(PAGES)


@pytest.mark.slow
@pytest.mark.parametrize("page", [pytest.param(name, marks=mark) for name, mark in PAGES.items()])
def test_the_code_of_a_page_prints_what_it_shows(page: str, tmp_path: Path) -> None:
    code, shown = blocks(page)
    bin_folder = str(Path(sys.executable).parent)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", DRIVER, json.dumps(code)],
        cwd=tmp_path,
        env=os.environ | {"PATH": os.pathsep.join([bin_folder, os.environ["PATH"]])},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    printed = next(line for line in done.stdout.splitlines() if line.startswith("FOUND"))
    assert json.loads(printed.removeprefix("FOUND")) == shown
