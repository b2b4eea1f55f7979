"""Records come back from files as they were written; errors name the file and the path in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, TypedDict

import msgspec
import numpy as np
import pytest

from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.files.codec import (
    WITHOUT_SCHEMA,
    Count,
    Format,
    NonNegative,
    Text,
    read_rows,
    to_json,
)
from neuro_eqprop.files.read import FileFormatError


class BoxError(FileFormatError):
    """A file of this test is invalid."""


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Part:
    size: Count
    colour: Colour = Colour.RED

    def __post_init__(self) -> None:
        if self.size == 13:
            raise ValueError("size 13 is not made")
        if self.size == 14:
            raise UnknownNameError("size", "14", ("12",))


class Tag(msgspec.Struct, frozen=True):
    words: str = msgspec.field(name="text")


@dataclass(frozen=True, slots=True)
class Box:
    name: Text
    weight: NonNegative | None = None
    parts: tuple[Part, ...] = ()
    named: Mapping[str, Part] = field(default_factory=dict)
    ends: tuple[float, float] = (0.0, 1.0)
    tag: Tag = Tag("")  # noqa: RUF009
    loose: Mapping[str, Any] = field(default_factory=dict)
    code: int | str = 0


BOX = Format(
    Box,
    "test.box/2",
    error=BoxError,
    older={
        "test.box/1": lambda content: {"name": content["label"]},
        WITHOUT_SCHEMA: lambda content: {"name": "old", "loose": content},
    },
)
WHOLE = Box(
    "a",
    2.5,
    (Part(1), Part(2, Colour.BLUE)),
    {"left": Part(3)},
    (0.5, 2.0),
    Tag("hello"),
    {"any": [1, {"x": None}]},
    "seven",
)
CONTENT: dict[str, Any] = {
    "schema": "test.box/2",
    "name": "a",
    "weight": 2.5,
    "parts": [{"size": 1, "colour": "red"}, {"size": 2, "colour": "blue"}],
    "named": {"left": {"size": 3, "colour": "red"}},
    "ends": [0.5, 2.0],
    "tag": {"text": "hello"},
    "loose": {"any": [1, {"x": None}]},
    "code": "seven",
}


def test_a_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = BOX.write(tmp_path / "box.json", WHOLE)
    assert path.read_text() == json.dumps(CONTENT, indent=1) + "\n"
    assert BOX.read(path) == WHOLE


def test_toml_gives_the_same_record(tmp_path: Path) -> None:
    path = tmp_path / "box.toml"
    path.write_text(
        'schema = "test.box/2"\nname = "a"\nweight = 2.5\nends = [0.5, 2]\ncode = "seven"\n'
        'parts = [{size = 1}, {size = 2, colour = "blue"}]\n[named.left]\nsize = 3\n'
        '[tag]\ntext = "hello"\n[loose]\nany = [1]\n'
    )
    assert msgspec.structs.replace(BOX.read(path).tag) == Tag("hello")
    assert BOX.read(path).parts == WHOLE.parts
    assert BOX.read(path).ends == (0.5, 2.0)
    path.write_text('schema = "test.box/2"\nname = "a"\nweight = inf\n')
    with pytest.raises(BoxError, match=r"box\.toml: weight: inf is not a finite number"):
        BOX.read(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": 3}, "name: expected text, got 3"),
        ({"name": " "}, "name: expected text that is not blank, got ' '"),
        ({"weight": "x"}, "weight: expected number or null, got 'x'"),
        ({"weight": True}, "weight: expected number or null, got True"),
        ({"weight": -1}, "weight: expected number >= 0.0, got -1"),
        ({"weight": float("nan")}, "weight: nan is not a finite number"),
        ({"parts": {}}, "parts: expected list, got a table of 0"),
        ({"parts": [{"size": 1}, {"size": 1.5}]}, "parts[1].size: expected integer, got 1.5"),
        ({"parts": [{"size": 2**70}]}, "parts[0].size: the integer does not fit into 64 bits"),
        ({"parts": [{}]}, "parts[0]: size is missing"),
        ({"parts": [{"sise": 2}]}, "parts[0]: 'sise' is not a key here; did you mean 'size'?"),
        ({"parts": [{"size": 13}]}, "parts[0]: size 13 is not made"),
        ({"parts": [{"size": 1, "sise": 2}]}, "parts[0]: 'sise' is not a key here; did you mean"),
        ({"named": {"left": {"size": -1}}}, "named.left.size: expected integer >= 0, got -1"),
        ({"named": {"a\nb": {"size": []}}}, "named.a b.size: expected integer, got a list of 0"),
        (
            {"named": {"x": {"size": 1, "colour": "blu"}}},
            "named.x.colour: 'blu' is not known; known: blue, red",
        ),
        ({"ends": [1]}, "ends: expected list of length 2, got a list of 1"),
        ({"ends": [1, "y"]}, "ends[1]: expected number, got 'y'"),
        ({"tag": {"text": 1}}, "tag.text: expected text, got 1"),
        ({"tag": {}}, "tag: text is missing"),
        ({"tag": {"words": "x"}}, "tag: 'words' is not a key here; did you mean 'text'?"),
        ({"code": 1.5}, "code: expected integer or text, got 1.5"),
        ({"nam": 1}, "'nam' is not a key here; did you mean 'name'?"),
        ({"schema": "test.box/9"}, "schema: 'test.box/9' is not 'test.box/2'"),
        ({"schema": [1]}, "schema: [1] is not 'test.box/2'"),
        ({"loose": {"x": "\ud800"}}, "loose.x: an unpaired surrogate is no text"),
    ],
)
def test_an_error_names_the_file_the_path_and_the_value(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    path = tmp_path / "box.json"
    path.write_text(json.dumps(CONTENT | change))
    with pytest.raises(BoxError) as error:
        BOX.read(path)
    assert str(error.value).startswith(f"{path}: {words}")


@pytest.mark.parametrize("text", ["[1]", "", "{", "[" * 100_000, '{"a": ' * 5000, "\udcff"])
def test_what_is_no_record_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "box.json"
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(BoxError, match=r"box\.json: "):
        BOX.read(path)
    with pytest.raises(BoxError, match="no such file"):
        BOX.read(tmp_path / "none.json")


def test_depth_is_limited_where_anything_is_allowed() -> None:
    content: Any = {}
    for _ in range(70):
        content = {"a": content}
    with pytest.raises(BoxError, match="nested too deeply"):
        BOX.decode(CONTENT | {"loose": content}, "here")


def test_older_schemas_and_further_keys_are_read_where_the_format_says_so() -> None:
    assert BOX.decode({"schema": "test.box/1", "label": "b"}, "here") == Box("b")
    assert BOX.decode({"x": 1}, "here") == Box("old", loose={"x": 1})
    tolerant = Format(Box, more_keys=True)
    assert tolerant.decode({"name": "a", "later": 1, "tag": {"text": "", "x": 1}}, "") == Box("a")


def test_an_unknown_name_keeps_its_own_error() -> None:
    with pytest.raises(UnknownNameError, match="unknown size '14'; known: 12"):
        BOX.decode(CONTENT | {"parts": [{"size": 14}]}, "here")


def test_arrays_and_paths_become_json_values() -> None:
    given = {"a": np.arange(2), "b": np.float64(0.5), "c": Path("x"), "d": (Colour.RED,), 3: 1}
    assert json.loads(json.dumps(to_json(given))) == {
        **{"a": [0, 1], "b": 0.5, "c": "x"},
        **{"d": ["red"], "3": 1},
    }
    with pytest.raises(TypeError, match="object is no type of a record"):
        to_json({"a": object()})


def test_what_json_cannot_hold_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        BOX.write(tmp_path / "box.json", Box("a", float("inf")))
    assert list(tmp_path.iterdir()) == []


class RequiredKeys(TypedDict):
    epoch: Count


class MetricsRow(RequiredKeys, total=False):
    loss: float | None
    table: list[list[int]]


def test_rows_keep_what_can_be_read_and_say_what_cannot(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    assert read_rows(path, MetricsRow) == ([], [])
    lines = [
        '{"epoch": 1, "loss": 0.5, "further": {"x": [1]}}',
        '{"epoch": 2, "loss": [1], "table": [[{"a": 1}]]}',
        '{"loss": 1}',
        "7",
        '{"epoch": -3}',
        '{"epoch": 4, "lo',
    ]
    path.write_text("\n".join(lines))
    rows, notes = read_rows(path, MetricsRow)
    assert rows == [{"epoch": 1, "loss": 0.5, "further": {"x": [1]}}, {"epoch": 2}]
    assert [note.split(": ", 1)[1] for note in notes] == [
        "line 2: loss: expected number or null, got a list of 1",
        "line 2: table[0][0]: expected integer, got a table of 1",
        "line 3: epoch is missing",
        "line 4: not a JSON object",
        "line 5: epoch: expected integer >= 0, got -3",
        "line 5: epoch is missing",
        notes[-1].split(": ", 1)[1],
    ]
    assert notes[-1].startswith("rows.jsonl: line 6: not readable as JSON")
    with pytest.raises(FileFormatError, match="not a regular file"):
        read_rows(tmp_path, MetricsRow)
