"""Checked reading of TOML and JSON files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import pytest

from neuro_eqprop.files.toml import FileFormatError, build, read_json, read_toml


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Inner:
    size: int = 1


@dataclass(frozen=True)
class Settings:
    name: str
    rate: float = 0.5
    colour: Colour = Colour.RED
    sizes: tuple[int, ...] = ()
    hashes: Mapping[str, str] = field(default_factory=dict)
    limit: float | None = None
    fast: bool = False
    inner: Inner = field(default_factory=Inner)

    def __post_init__(self) -> None:
        if self.rate > 1:
            raise ValueError(f"rate is {self.rate}; it must not lie above one")


WHOLE = """\
name = "a"
rate = 1
colour = "blue"
sizes = [3, 4]
limit = 2.5
fast = true
[hashes]
x = ""
[inner]
size = 7
"""


def test_a_dataclass_is_built_from_a_toml_file(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(WHOLE)
    assert build(Settings, read_toml(path)) == Settings(
        "a", 1.0, Colour.BLUE, (3, 4), {"x": ""}, 2.5, True, Inner(7)
    )
    path.write_text('name = "a"\n')
    assert build(Settings, read_toml(path)) == Settings("a")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name = "a"', "", "name is missing; it must be a string"),
        ('name = "a"', "name = 3", "name 3; it must be a string"),
        ("rate = 1", 'rate = "1"', "rate '1' is not a finite number"),
        ("rate = 1", "rate = 2", "rate is 2.0; it must not lie above one"),
        ("rate = 1", "rat = 1", "'rat' is not a key here; did you mean 'rate'?"),
        ('"blue"', '"blu"', "colour 'blu' is not known; known: blue, red"),
        ("[3, 4]", "3", "sizes 3; it is a list"),
        ("[3, 4]", "[3, 4.5]", "sizes: 1 4.5 is not an integer"),
        ("fast = true", "fast = 1", "fast 1 is neither true nor false"),
        ("size = 7", "size = -7", "inner: size -7 is negative"),
        ("[inner]\nsize = 7", "", None),
        ("fast = true", "inner = 3", "not readable as TOML"),
    ],
)
def test_an_invalid_file_is_refused_with_file_and_key(
    tmp_path: Path, old: str, new: str, words: str | None
) -> None:
    path = tmp_path / "a.toml"
    path.write_text(WHOLE.replace(old, new))
    if words is None:
        assert build(Settings, read_toml(path)).inner == Inner()
        return
    with pytest.raises(FileFormatError) as error:
        build(Settings, read_toml(path))
    assert str(error.value).startswith(f"{path}: ")
    assert words in str(error.value)


def test_a_file_that_is_missing_or_no_object_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="no such file"):
        read_toml(tmp_path / "none.toml")
    path = tmp_path / "a.json"
    path.write_text("[1]")
    with pytest.raises(FileFormatError, match="holds no JSON object"):
        read_json(path)
