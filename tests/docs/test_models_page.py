"""The page on models does what it says: its example runs, its names are those of the program."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from neuro_eqprop.learn.recipe import Nudging, Rule
from neuro_eqprop.study.models import MODELS

TEXT = (Path(__file__).parents[2] / "docs" / "models.md").read_text()


def test_the_example_prints_what_it_says() -> None:
    found = re.search(r"```python\n(.*?)```\n\n((?:    .*\n)+)", TEXT, re.DOTALL)
    assert found
    code, said = found.groups()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == re.sub(r"^    ", "", said, flags=re.MULTILINE).strip()


def test_every_model_rule_and_nudging_has_its_row() -> None:
    rows = set(re.findall(r"`([a-z-]+)`", "\n".join(re.findall(r"^\| `.*", TEXT, re.MULTILINE))))
    names = {*MODELS, *(r.value for r in Rule), *(n.value for n in Nudging)}
    assert names <= rows
