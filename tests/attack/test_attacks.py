"""Some of the attacks of sims/attack; more of them are run by hand, see docs/results/attacks.md."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from random import Random

import pytest

SIMS = Path(__file__).parents[2] / "sims" / "attack"
sys.path.insert(0, str(SIMS))
fuzz, harness, readers = (importlib.import_module(n) for n in ("fuzz", "harness", "readers"))
sys.path.remove(str(SIMS))

SLOW = ("trace", "unfinished trace", "NIR")
"""Readers that let a child process read a file first."""


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("valid")
    readers.make_valid_files(folder)
    return folder


@pytest.mark.parametrize("name", readers.readers())
def test_mutated_files_are_read_or_refused_by_name(name: str, valid: Path, tmp_path: Path) -> None:
    count = 5 if name in SLOW else 15
    found = fuzz.attack(name, valid, count, seed=3, keep=tmp_path)
    assert set(found) <= {"read", "refused"}
    assert sum(found.values()) == count
    assert name == "report" or found["refused"] > count // 4


@pytest.mark.parametrize(("name", "count"), [("disks", 2), ("parents", 1), ("soak", 20)])
def test_the_harness_finds_nothing(name: str, count: int, tmp_path: Path) -> None:
    tried, held, failures = harness.ATTACKS[name](count, tmp_path, Random(1))
    assert (tried, failures) == (held, [])
