"""The README does what it says: its Python runs, its commands exist, its links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from neuro_eqprop.cli.program import COMMANDS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
PYTHON = [code for language, code in BLOCKS if language == "python"]
SHELL = [code for language, code in BLOCKS if language in {"sh", "bash", "console"}]


def test_it_is_at_most_two_screens() -> None:
    assert len(README.splitlines()) <= 70
    assert len(README.split()) <= 640


def test_there_is_something_to_try() -> None:
    assert PYTHON
    assert SHELL
    assert README.count("```") == 2 * len(BLOCKS), "a block without a language is not tested"


LAVA = next(code for code in PYTHON if "lava.magma" in code)
COMPARE = """
import numpy as np
train = spiking.record(data.test.x[:20], on="lava", steps=32).spikes["output"]
expected = np.zeros((640, 10))
expected[train.step, train.unit] = train.value
assert np.array_equal(messages.T, expected)
assert train.step.size > 100
"""


@pytest.mark.slow
@pytest.mark.lava
@pytest.mark.parametrize("kind", ["graded", "rate"])
def test_every_message_of_the_lava_example_equals_that_of_the_backend_lava(
    kind: str, tmp_path: Path
) -> None:
    assert '"graded"' in LAVA
    code = (LAVA + COMPARE).replace('"graded"', f'"{kind}"')
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize("code", PYTHON, ids=range(len(PYTHON)))
def test_python_runs_in_an_empty_folder(code: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("code", PYTHON, ids=range(len(PYTHON)))
def test_the_example_is_about_ten_lines_and_uses_what_it_imports(code: str) -> None:
    lines = [line for line in code.splitlines() if line.strip()]
    body = [line for line in lines if not line.startswith(("import ", "from "))]
    assert len(body) <= 10
    for line in set(lines) - set(body):
        name = re.split(r"[ .]", line)[-1]
        assert re.search(rf"\b{name}\b", "\n".join(body)), f"{name} is imported and not used"


def commands() -> set[str]:
    """Every command in the README: after the program's name, or in a paragraph on its help."""
    called = set(re.findall(r"neuro-eqprop ([a-z]+)", README))
    on_help = [part for part in README.split("\n\n") if "neuro-eqprop --help" in part]
    return called | set(re.findall(r"`([a-z]+)`", "\n".join(on_help)))


def test_every_command_that_is_named_exists() -> None:
    assert {"train", "evaluate"} <= commands()
    assert commands() <= set(COMMANDS)


def test_every_make_target_that_is_named_exists() -> None:
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = set(re.findall(r"\bmake ([a-z]+)\b", "\n".join(SHELL)))
    assert {"demo", "test"} <= named
    assert named <= set(targets)


LINKS = re.findall(r"\]\(([^)#]+)[^)]*\)", README)


@pytest.mark.parametrize("link", [link for link in LINKS if "://" not in link])
def test_every_link_leads_to_a_file(link: str) -> None:
    assert (ROOT / link).exists()
