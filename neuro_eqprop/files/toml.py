"""Checked reading of TOML and JSON files: every error names the file, the key and the reason.

`read_toml` and `read_json` return the top `Table` of a file. A `Table` returns its values checked
(`table.number("value")`); `build` fills a dataclass from a table, field by field, from its type
annotations:

    settings = build(Settings, read_toml(path))
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from math import isfinite
from pathlib import Path
from types import UnionType
from typing import Any, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from neuro_eqprop.common.arrays import UnknownNameError, closest_first
from neuro_eqprop.files import read
from neuro_eqprop.files.read import FileFormatError

__all__ = ["FileFormatError", "Table", "build", "read_json", "read_toml"]

Choice = TypeVar("Choice", bound=Enum)
Built = TypeVar("Built")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a TOML file or an object of a JSON file, whose values are checked when read."""

    content: Mapping[str, Any]
    file: str
    key: str = ""
    """Path of the table in its file, such as `energy.synop`; empty for the top one."""
    error: type[ValueError] = FileFormatError
    """The exception raised for invalid content."""

    def __contains__(self, field: str) -> bool:
        return field in self.content

    def fail(self, reason: str, *, key: str | None = None) -> NoReturn:
        """Raise the error of this table, or of the key with that full path."""
        path = self.key if key is None else key
        raise self.error(f"{self.file}: {path}: {reason}" if path else f"{self.file}: {reason}")

    def path(self, field: str) -> str:
        """The full path of a field."""
        return f"{self.key}.{field}" if self.key else field

    def check_keys(self, known: Iterable[str]) -> None:
        """Reject keys that are not known, and suggest the closest one."""
        known = list(known)
        for field in self.content:
            if field not in known:
                closest = closest_first(str(field), known)[0]
                self.fail(f"{field!r} is not a key here; did you mean {closest!r}?")

    def check_schema(self, schema: str) -> None:
        """Reject a file of another format or version."""
        if self.content.get("schema") != schema:
            self.fail(f"{self.content.get('schema')!r} is not {schema!r}", key="schema")

    def text(self, field: str, default: str | None = None) -> str:
        """A string; one without a default must not be empty."""
        value = self.content.get(field, default)
        if not isinstance(value, str) or (default is None and not value.strip()):
            missing = value is None or value == ""
            self.fail(f"{field} {'is missing' if missing else repr(value)}; it must be a string")
        return value

    def number(self, field: str, default: float | None = None) -> float:
        """A finite number that is not negative."""
        value = self.content.get(field, default)
        if value is None:
            self.fail(f"{field} is missing; it must be a number")
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            self.fail(f"{field} {value!r} is not a finite number")
        if value < 0:
            self.fail(f"{field} {value} is negative")
        return float(value)

    def integer(self, field: str, default: int | None = None) -> int:
        """An integer that is not negative."""
        value = self.content.get(field, default)
        if value is None:
            self.fail(f"{field} is missing; it must be an integer")
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(f"{field} {value!r} is not an integer")
        if value < 0:
            self.fail(f"{field} {value} is negative")
        return value

    def flag(self, field: str, default: bool = False) -> bool:
        """True or false."""
        value = self.content.get(field, default)
        if not isinstance(value, bool):
            self.fail(f"{field} {value!r} is neither true nor false")
        return value

    def choice(self, kind: type[Choice], field: str) -> Choice:
        """A member of an enumeration, given by its value."""
        known = [each.value for each in kind]
        value = self.content.get(field)
        if value is None:
            self.fail(f"{field} is missing; it is one of {', '.join(known)}")
        if value not in known:
            closest = closest_first(str(value), known)
            self.fail(f"{field} {value!r} is not known; known: {', '.join(closest)}")
        return kind(value)

    def table(self, field: str) -> Table:
        """A table below this one; an empty one where there is none."""
        return self.at(field, self.content.get(field, {}))

    def at(self, field: str, value: object) -> Table:
        """A table with the path of a field and the given content."""
        path = self.path(field)
        if not isinstance(value, dict):
            self.fail(f"{value!r} is not a table; write [{path}]", key=path)
        return Table(value, self.file, path, self.error)

    def tables(self, field: str) -> list[Table]:
        """A list of tables; an empty one where there is none."""
        listed = self.content.get(field, [])
        path = self.path(field)
        if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
            self.fail(f"it must be a list of tables ([[{path}]] in TOML)", key=path)
        return [
            Table(each, self.file, f"{path}[{place}]", self.error)
            for place, each in enumerate(listed)
        ]

    def texts(self, field: str) -> tuple[str, ...]:
        """A list of strings; an empty one where there is none."""
        listed = self.content.get(field, [])
        if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
            self.fail("it must be a list of strings", key=self.path(field))
        return tuple(listed)


def read_toml(path: Path, error: type[ValueError] = FileFormatError) -> Table:
    """The top table of a TOML file."""
    return Table(read.read_toml(path, error), str(path), error=error)


def read_json(path: Path, error: type[ValueError] = FileFormatError) -> Table:
    """The top object of a JSON file."""
    return Table(read.read_json(path, error), str(path), error=error)


def build(kind: type[Built], table: Table, *, ignore: Collection[str] = (), **given: Any) -> Built:  # noqa: ANN401
    """An instance of a dataclass, filled from a table that has its fields as keys.

    Fields may be `str`, `int`, `float`, `bool`, an `Enum`, a dataclass, `tuple[T, ...]`,
    `Mapping[str, T]`, or one of these `| None`. Fields in `given` are not read from the table, nor
    are keys in `ignore`. A `ValueError` of the dataclass itself gets file and key in front.
    """
    hints = get_type_hints(kind)
    wanted = {field.name: field for field in fields(kind) if field.init}  # type: ignore[arg-type]
    table.check_keys([*wanted, *ignore])
    values = dict(given)
    for name, field in wanted.items():
        if name in given:
            continue
        required = field.default is MISSING and field.default_factory is MISSING
        if name in table or required:
            values[name] = convert(hints[name], table, name, required=required)
    try:
        return kind(**values)
    except UnknownNameError:
        raise
    except ValueError as error:
        table.fail(str(error))


def convert(hint: Any, table: Table, field: str, *, required: bool = True) -> Any:  # noqa: ANN401
    """The value of a field, checked and converted to the type `hint`."""
    if get_origin(hint) in (Union, UnionType):
        if field in table and table.content[field] is None:  # null in JSON
            return None
        hint = next(each for each in get_args(hint) if each is not type(None))
    if hint is str:
        return table.text(field, None if required else "")
    if isinstance(hint, type) and issubclass(hint, Enum):
        return table.choice(hint, field)
    if is_dataclass(hint) and isinstance(hint, type):
        return build(hint, table.table(field))
    readers = {bool: table.flag, int: table.integer, float: table.number}
    if hint in readers:
        return readers[hint](field)
    return convert_container(hint, table, field)


def convert_container(hint: Any, table: Table, field: str) -> tuple[Any, ...] | dict[str, Any]:  # noqa: ANN401
    """The list or the table in a field, with its items converted to the type in `hint`."""
    if get_origin(hint) is tuple:
        listed = table.content.get(field)
        if not isinstance(listed, list):
            table.fail(f"{field} {'is missing' if listed is None else repr(listed)}; it is a list")
        parts = get_args(hint)
        if parts[-1] is not Ellipsis and len(parts) != len(listed):
            table.fail(f"{field} takes {len(parts)} values, not {len(listed)}")
        content = {str(place): value for place, value in enumerate(listed)}
        items = Table(content, table.file, table.path(field), table.error)
        return tuple(convert(parts[0], items, place) for place in content)
    if get_origin(hint) in (Mapping, dict):
        part = table.table(field)
        kind = get_args(hint)[1]
        return {name: convert(kind, part, name, required=False) for name in part.content}
    raise TypeError(f"{field}: values of type {hint} are not supported")
