"""Checked reading: sizes before contents, bounded numbers, UTF-8, errors that name file and key.

Every function takes the error class to raise, so that a caller's errors keep their type.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from stat import S_ISREG
from typing import Any, Protocol, TypeAlias

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Json: TypeAlias = Any
"""A JSON value: an object, a list, a string, a number, a boolean or None."""

MAX_TEXT = 2**28
"""Largest text file in bytes that is read."""
MAX_INTEGER = 2**63 - 1
"""Largest magnitude of an integer in a file: NumPy, HDF5 and JavaScript go no further."""
MAX_DIGITS = 4000
"""Digits above which Python itself refuses to convert an integer."""
MAX_DEPTH = 64
"""Largest depth of nested tables or lists."""
MOST_ENDS = 100
"""Largest number of reads at the end of a stream; some libraries would never stop."""
MAX_GZIP_RATIO = 1032
"""Deflate compresses by no more than this."""


class FileFormatError(ValueError):
    """A file has invalid content; the message names file, key and reason."""


def file_size(path: Path, error: type[ValueError] = FileFormatError, *, empty: bool = True) -> int:
    """Bytes of a regular file; pipes, devices and folders are errors, since they may not end.

    Without `empty`, a size of zero is an error, too. The files of /proc claim it, and some of them
    never end.
    """
    try:
        status = path.stat()
    except FileNotFoundError:
        raise error(f"{path}: there is no such file") from None
    except (OSError, ValueError) as reason:
        raise error(f"{path}: cannot be read ({reason})") from reason
    if not S_ISREG(status.st_mode):
        raise error(f"{path}: not a regular file")
    if not status.st_size and not empty:
        raise error(f"{path}: the file is empty")
    return status.st_size


def read_bytes(
    path: Path, most: int = MAX_TEXT, error: type[ValueError] = FileFormatError
) -> bytes:
    """The content of a file of at most `most` bytes; larger ones are not read."""
    size = file_size(path, error)
    if size > most:
        raise error(f"{path}: holds {size} bytes, more than the {most} that such a file may have")
    try:
        with path.open("rb") as file:
            return file.read(size)  # not more, if it grows
    except OSError as reason:
        raise error(f"{path}: cannot be read ({reason})") from reason


def read_text(path: Path, most: int = MAX_TEXT, error: type[ValueError] = FileFormatError) -> str:
    """The content of a UTF-8 file, whatever the locale."""
    try:
        return read_bytes(path, most, error).decode("utf-8")
    except UnicodeDecodeError as reason:
        raise error(f"{path}: not UTF-8 text ({reason})") from None


def parse_json(text: str, where: object, error: type[ValueError] = FileFormatError) -> Json:
    """The value of a JSON text; `where` names its file in errors."""
    try:
        value = json.loads(text, parse_int=parse_integer)
    except RecursionError:
        raise error(f"{where}: nested too deeply") from None
    except ValueError as reason:
        raise error(f"{where}: not readable as JSON: {reason}") from reason
    check_numbers(value, where, error)
    return value


def parse_toml(text: str, where: object, error: type[ValueError] = FileFormatError) -> Json:
    """The top table of a TOML text; `where` names its file in errors."""
    try:
        value = tomllib.loads(text)
    except RecursionError:
        raise error(f"{where}: nested too deeply") from None
    # Besides its own error, the parser lets those of dates and of huge integers through.
    except (ValueError, OverflowError) as reason:
        raise error(f"{where}: not readable as TOML: {reason}") from reason
    check_numbers(value, where, error, special=True)
    return value


def parse_integer(digits: str) -> int:
    """An integer of JSON; the time to convert one grows with the square of its length."""
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number has {len(digits)} digits")
    return int(digits)


def check_numbers(
    value: Json, where: object, error: type[ValueError], *, special: bool = False
) -> None:
    """Raise `error`, which names the key, for integers beyond 64 bits and numbers not finite.

    An unpaired surrogate is an error, too: JSON can hold one, but UTF-8 cannot encode it.

    With `special`, infinity and NaN pass: TOML has them, and the reader of the key decides.
    """
    waiting: list[tuple[str, Json, int]] = [("", value, 0)]
    while waiting:
        key, found, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise error(f"{where}: {key[:80]}: nested too deeply")
        for text in (key, found) if isinstance(found, str) else (key,):
            if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
                raise error(f"{where}: {one_line(key, 80)}: an unpaired surrogate is no text")
        if isinstance(found, dict):
            waiting += [(f"{key}.{k}" if key else str(k), v, depth + 1) for k, v in found.items()]
        elif isinstance(found, list):
            waiting += [(f"{key}[{k}]", v, depth + 1) for k, v in enumerate(found)]
        elif isinstance(found, int) and abs(found) > MAX_INTEGER:
            raise error(f"{where}: {key or 'the value'}: the integer does not fit into 64 bits")
        elif isinstance(found, float) and not isfinite(found) and not special:
            raise error(f"{where}: {key or 'the value'}: {found} is not a finite number")


def read_json(path: Path, error: type[ValueError] = FileFormatError) -> dict[str, Json]:
    """The object in a JSON file."""
    value = parse_json(read_text(path, error=error), path, error)
    if not isinstance(value, dict):
        raise error(f"{path}: the file holds no JSON object")
    return value


def read_toml(path: Path, error: type[ValueError] = FileFormatError) -> dict[str, Json]:
    """The top table of a TOML file."""
    value: dict[str, Json] = parse_toml(read_text(path, error=error), path, error)
    return value


@dataclass(frozen=True, slots=True)
class JsonLine:
    """A line of a JSONL file: its number from 1, and its object or the reason why it has none."""

    number: int
    row: dict[str, Json] | None
    reason: str = ""
    unfinished: bool = False
    """Whether it is the last line and lacks its end, as a writer that is killed leaves it."""


def json_lines(path: Path, error: type[ValueError] = FileFormatError) -> Iterator[JsonLine]:
    """The lines of a JSONL file that are not empty."""
    lines = read_bytes(path, error=error).split(b"\n")
    for number, line in enumerate(lines, start=1):
        where = f"{path}: line {number}"
        try:
            row = parse_json(line.decode("utf-8"), where) if line.strip() else None
        except ValueError as reason:
            sentence = str(reason).removeprefix(f"{where}: ")
            yield JsonLine(number, None, sentence, unfinished=number == len(lines))
            continue
        if isinstance(row, dict):
            yield JsonLine(number, row)
        elif line.strip():
            yield JsonLine(number, None, "not a JSON object")


def read_jsonl(path: Path, error: type[ValueError] = FileFormatError) -> list[dict[str, Json]]:
    """The objects of a JSONL file; none if there is no file, an error for a damaged line.

    An unfinished last line is left out.
    """
    if not path.exists():
        return []
    rows = []
    for line in json_lines(path, error):
        if line.row is not None:
            rows.append(line.row)
        elif not line.unfinished:
            raise error(f"{path}: line {line.number}: {line.reason}")
    return rows


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, count: int = -1, /) -> bytes:
        """At most `count` bytes; all if negative."""


class BoundedReader:
    """The first bytes of a stream; reading beyond `most` of them is an error.

    For compressed files, whose size says little about their content.
    """

    def __init__(self, file: Readable, most: int, name: object, error: type[ValueError]) -> None:
        self.file, self.left, self.most, self.name, self.error = file, most, most, name, error
        self.ends = 0

    def read(self, count: int = -1, /) -> bytes:
        """At most `count` bytes."""
        wanted = self.left + 1 if count < 0 else min(count, self.left + 1)
        content = self.file.read(wanted)
        self.left -= len(content)
        self.ends += not content
        if self.ends > MOST_ENDS:  # a library that seeks to a place that was claimed
            raise self.error(f"{self.name}: claims to hold more than it does")
        if self.left < 0:
            raise self.error(
                f"{self.name}: unpacks to more than the {self.most} bytes that it may have"
            )
        return content


def one_line(text: object, most: int = 300) -> str:
    """A text without line breaks and control characters, cut to `most` characters."""
    clean = "".join(c if c.isprintable() else " " for c in str(text))
    return " ".join(clean.split())[:most]
