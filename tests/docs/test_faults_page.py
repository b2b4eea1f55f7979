"""The tests that the page of faults names exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "results" / "faults.md").read_text(encoding="utf-8")


def test_the_tests_that_the_page_names_exist() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    assert len(named) > 20
    for file, name in named:
        assert f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8"), (file, name)


def test_every_fault_has_a_row() -> None:
    assert {int(k) for k in re.findall(r"^\| D(\d+) ", PAGE, re.MULTILINE)} == set(range(1, 16))
