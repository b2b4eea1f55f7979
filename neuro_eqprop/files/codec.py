"""One codec for records in JSON and TOML files: the classes state what a file holds.

A `Format` reads and writes one kind of file. Its class is a dataclass, a `msgspec.Struct` or a
`TypedDict`; the types of the fields are the checks:

    @dataclass(frozen=True, slots=True)
    class Chip:
        name: Text
        cores: Count
        joules: NonNegative | None = None

    CHIP = Format(Chip, "neuro_eqprop.chip/2", error=ChipError, older={"neuro_eqprop.chip/1": up})
    chip = CHIP.read(path)
    CHIP.write(path, chip)

Errors name the file and the path in it: `chip.toml: joules: expected number >= 0, got -1`.

A number with a limit must not stand in a union with a tuple of fixed length, such as
`NonNegative | tuple[float, float]`: msgspec 0.22 then writes beyond its memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Generic,
    NamedTuple,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec
import numpy as np

from neuro_eqprop.common.arrays import UnknownNameError, closest_first
from neuro_eqprop.files.read import (
    FileFormatError,
    Json,
    check_numbers,
    json_lines,
    one_line,
    parse_json,
    parse_toml,
    read_text,
)
from neuro_eqprop.files.write import write_text

T = TypeVar("T")

NonNegative: TypeAlias = Annotated[float, msgspec.Meta(ge=0)]
"""A finite number that is not negative."""
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
"""An integer that is not negative."""
Text: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"\S")]
"""A string that is not blank."""

Upgrade: TypeAlias = Callable[[dict[str, Json]], Mapping[str, Json]]
"""Brings the content of a file of an older schema to the current one."""
WITHOUT_SCHEMA = ""
"""Key in `Format.older` of files without a schema, as version 0.1 wrote them."""

WORDS = {
    "float": "number",
    "int": "integer",
    "str": "text",
    "bool": "true or false",
    "array": "list",
    "object": "table",
    "null": "null",
}
"""Names of types in messages."""
WHERE = re.compile(r" - at `(key in )?\$.*`$", re.DOTALL)
"""End of a message of msgspec, whose paths do not name the keys of mappings."""


@dataclass(frozen=True)
class Format(Generic[T]):
    """A kind of file, JSON or TOML by its suffix, that holds one record of a class."""

    kind: type[T]
    schema: str = ""
    """Name and version that a file states under `schema`; empty for files that state none."""
    error: type[ValueError] = FileFormatError
    """The exception for invalid content."""
    older: Mapping[str, Upgrade] = field(default_factory=dict)
    """Readers of older schemas."""
    more_keys: bool = False
    """Whether keys that the class does not have are ignored instead of refused."""

    def read(self, path: str | Path) -> T:
        """The record in a file."""
        path = Path(path)
        parse = parse_toml if path.suffix == ".toml" else parse_json
        return self.decode(parse(read_text(path, error=self.error), path, self.error), path)

    def decode(self, content: Json, where: object) -> T:
        """The record in the content of a file; `where` names the file in errors."""
        if not isinstance(content, dict):
            raise self.error(f"{where}: the file holds no JSON object")
        check_numbers(content, where, self.error)
        if self.schema:
            content = dict(content)
            stated = content.pop("schema", WITHOUT_SCHEMA)
            if stated != self.schema:
                if not isinstance(stated, str) or stated not in self.older:
                    raise self.error(f"{where}: schema: {stated or None!r} is not {self.schema!r}")
                content = dict(self.older[stated](content))
        return decode(content, self.kind, where, error=self.error, more_keys=self.more_keys)

    def encode(self, record: T) -> dict[str, Json]:
        """The content of a file with a record."""
        stated = {"schema": self.schema} if self.schema else {}
        return {**stated, **to_json(record)}

    def write(self, path: str | Path, record: T) -> Path:
        """Write a record as JSON; return the path."""
        write_text(Path(path), json.dumps(self.encode(record), indent=1, allow_nan=False) + "\n")
        return Path(path)


def with_names(tables: Json) -> Json:
    """Tables by name as a list of tables that hold their `name`; anything else as it is."""
    if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
        return tables
    return [{**table, "name": name} for name, table in tables.items()]


def to_json(record: Any) -> Any:  # noqa: ANN401
    """A record as JSON values: objects, lists, enumerations by value."""
    return msgspec.to_builtins(record, str_keys=True, enc_hook=plain)


def plain(value: Any) -> Any:  # noqa: ANN401
    """A value that JSON does not have, as one that it has."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} is no type of a record")


def decode(
    content: Json,
    kind: type[T],
    where: object,
    *,
    error: type[ValueError] = FileFormatError,
    more_keys: bool = False,
) -> T:
    """An instance of `kind` from JSON values; `where` names their file in errors.

    `content` may be a part of a file that was read with the functions of `files.read`.
    """
    try:
        record = msgspec.convert(content, kind)
    except msgspec.ValidationError:
        if not more_keys:  # first, since a misspelled key is also a missing one
            check_keys(kind, content, "", where, error)
        fault = find_fault(kind, content)
        assert fault is not None
        if isinstance(fault.reason.__cause__, UnknownNameError):
            raise fault.reason.__cause__ from None
        raise error(f"{where}: {fault.sentence}") from fault.reason
    if not more_keys:
        check_keys(kind, content, "", where, error)
    return record


class Fault(NamedTuple):
    """The innermost value of a file that is not what its class says."""

    sentence: str
    """Its path and what is wrong with it."""
    reason: msgspec.ValidationError


def find_fault(kind: Any, content: Json, path: str = "") -> Fault | None:  # noqa: ANN401
    """What is wrong with a value; None if it is of its kind."""
    try:
        msgspec.convert(content, kind)
    except msgspec.ValidationError as reason:
        inner = (find_fault(of, part, place) for place, of, part in parts(kind, content, path))
        sentence = f"{path}: " * bool(path) + explain(reason, kind, content)
        return next((fault for fault in inner if fault is not None), Fault(sentence, reason))
    return None


def explain(reason: msgspec.ValidationError, kind: Any, value: Json) -> str:  # noqa: ANN401
    """What is wrong with a value, without its place."""
    if reason.__cause__ is not None:  # raised by the class itself
        return str(reason.__cause__)
    kind, text = bare(kind), WHERE.sub("", str(reason))
    if isinstance(kind, type) and issubclass(kind, Enum):
        known = ", ".join(closest_first(str(value), [str(member.value) for member in kind]))
        return f"{shown(value)} is not known; known: {known}"
    if missing := re.fullmatch(r"Object missing required field `(.*)`", text, re.DOTALL):
        return f"{missing[1]} is missing"
    if "matching regex" in text:
        return f"expected text that is not blank, got {shown(value)}"
    text = re.sub(
        "`(.*?)`", lambda m: " or ".join(WORDS.get(t, t) for t in m[1].split(" | ")), text
    )
    text = text[:1].lower() + text[1:].partition(", got ")[0]
    return f"{text}, got {shown(value)}"


def shown(value: Json) -> str:
    """A value in a message; lists and tables by their size."""
    if isinstance(value, list | dict):
        return f"a {'list' if isinstance(value, list) else 'table'} of {len(value)}"
    return one_line(repr(value), 80)


def check_keys(
    kind: Any,  # noqa: ANN401
    content: Json,
    path: str,
    where: object,
    error: type[ValueError],
) -> None:
    """Raise `error` for a key that the classes do not have, and suggest the closest one."""
    known = keys(kind)
    if known is not None and isinstance(content, Mapping):
        for key in content:
            if key not in known:
                closest = "".join(f"; did you mean {k!r}?" for k in closest_first(key, known)[:1])
                at = f"{where}: {path}" if path else f"{where}"
                raise error(f"{at}: {one_line(repr(key), 80)} is not a key here{closest}")
    for part_path, part_kind, part in parts(kind, content, path):
        check_keys(part_kind, part, part_path, where, error)


def parts(kind: Any, content: Json, path: str) -> Iterator[tuple[str, Any, Json]]:  # noqa: ANN401
    """Path, kind and value of each part of a table or list that its kind describes."""
    known, kind = keys(kind), bare(kind)
    origin, inner = get_origin(kind), get_args(kind)
    prefix = f"{path}." if path else ""
    if isinstance(content, Mapping):
        if known is not None:
            for key in known:
                if key in content:
                    yield prefix + key, known[key], content[key]
        elif isinstance(origin, type) and issubclass(origin, Mapping):
            for key, value in content.items():
                yield f"{prefix}{one_line(key, 80)}", inner[1], value
    elif isinstance(content, list | tuple) and inner and origin is not Union:
        fixed = origin is tuple and inner[-1] is not Ellipsis
        if not fixed or len(inner) == len(content):
            for place, value in enumerate(content):
                yield f"{path}[{place}]", inner[place if fixed else 0], value


def bare(kind: Any) -> Any:  # noqa: ANN401
    """A type without its limits, and without None."""
    if get_origin(kind) is Annotated:
        return bare(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        inner = [part for part in get_args(kind) if part is not NoneType]
        return bare(inner[0]) if len(inner) == 1 else Union[tuple(inner)]  # noqa: UP007
    return kind


def keys(kind: Any) -> Mapping[str, Any] | None:  # noqa: ANN401
    """The types of the values of a class by key; None for what is no class of records."""
    kind = bare(kind)
    return class_keys(kind) if isinstance(kind, type) else None


@cache
def class_keys(kind: Any) -> Mapping[str, Any] | None:  # noqa: ANN401
    """`keys` of a class."""
    if issubclass(kind, msgspec.Struct):
        return {each.encode_name: each.type for each in msgspec.structs.fields(kind)}
    if is_dataclass(kind):
        types = get_type_hints(kind, include_extras=True)
        return {each.name: types[each.name] for each in fields(kind) if each.init}
    return get_type_hints(kind, include_extras=True) if is_typeddict(kind) else None


def read_rows(
    path: Path, kind: type[T], *, error: type[ValueError] = FileFormatError
) -> tuple[list[T], list[str]]:
    """The rows of a JSONL file that can be read, and a note for each thing that cannot.

    `kind` is a `TypedDict`, of which a row keeps keys that it does not name. A key with a wrong
    value is left out of its row; a row that lacks a required key, or is no JSON object, is left out
    itself. No file has no rows. `error` is raised if the file cannot be read at all.
    """
    if not path.exists():
        return [], []
    rows, notes = [], []
    for line in json_lines(path, error):
        name = f"line {line.number}"
        if line.row is None:
            notes.append(f"{path.name}: {name}: {line.reason}")
            continue
        row, wrong = check_row(line.row, kind)
        notes += [f"{path.name}: {name}: {reason}" for reason in wrong]
        if row is not None:
            rows.append(row)
    return rows, notes


def check_row(row: Mapping[str, Json], kind: type[T]) -> tuple[T | None, list[str]]:
    """A row without the keys whose values are wrong, and why; None if it lacks a required key."""
    known, kept, notes = keys(kind) or {}, dict(row), list[str]()
    for key in [key for key in known if key in row]:
        fault = find_fault(known[key], row[key], key)
        if fault is not None:
            notes.append(fault.sentence)
            del kept[key]
    lost = [key for key in sorted(kind.__required_keys__) if key not in kept]  # type: ignore[attr-defined]
    if lost:
        return None, [*notes, f"{lost[0]} is missing"]
    return kept, notes  # type: ignore[return-value]
