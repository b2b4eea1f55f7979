from __future__ import annotations

import sys
from pathlib import Path

import pytest

from neuro_eqprop.arrays import UnknownNameError
from neuro_eqprop.plugins import PluginError, Registry, entry_points

GROUP = "neuro_eqprop.tests_of_plugins"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on sys.path with a package that declares three entry points."""
    info = tmp_path / "plugged-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{GROUP}]\nfour = plugged:FOUR\nword = plugged:WORD\nbroken = plugged_missing:X\n"
    )
    (tmp_path / "plugged.py").write_text("FOUR = 4\nWORD = 'four'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def registry() -> Registry[int]:
    return Registry("number", int, {"max_size": "sys:maxsize"}, GROUP)


def test_entry_points_are_loaded_only_when_used(installed: Path) -> None:
    assert installed.exists()
    sys.modules.pop("plugged", None)
    found = entry_points(GROUP)
    assert set(found) == {"four", "word", "broken"}
    assert "plugged" not in sys.modules
    assert found["four"]() == 4


def test_a_registry_lists_built_in_entries_then_plug_ins(installed: Path) -> None:
    assert installed.exists()
    numbers = registry()
    assert list(numbers) == ["max_size", "four", "word", "broken"]
    assert (numbers["max_size"], numbers["four"], len(numbers)) == (sys.maxsize, 4, 4)
    assert "four" in numbers


def test_an_unknown_name_lists_those_that_exist_closest_first(installed: Path) -> None:
    assert installed.exists()
    with pytest.raises(UnknownNameError, match="unknown number 'fuor'; known: four"):
        registry().find("fuor")
    with pytest.raises(KeyError):
        registry()["fuor"]


def test_a_plug_in_that_fails_to_load_is_named(installed: Path) -> None:
    assert installed.exists()
    with pytest.raises(PluginError, match=r"plug-in 'broken' \(plugged_missing:X.*cannot be load"):
        registry().find("broken")
    with pytest.raises(PluginError, match=r"number 'word' is a str; .* must name a int"):
        registry().find("word")
