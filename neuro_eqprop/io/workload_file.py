"""Counted events on disk: a network by its shapes and what a run of it did, as JSON.

    {"schema": "neuro_eqprop.counts/1",
     "populations": [{"name": "hidden", "size": 256, "soft_reset": true}, ...],
     "projections": [{"source": "hidden", "target": "output"}, ...],
     "output": "output", "samples": 32, "steps": 64, "input_coding": "current",
     "dense_macs": 203264,
     "counts": [{"population": "hidden", "phase": "free", "steps": 2048, "spikes": ..., ...}]}

A population may also be `graded` or `off_chip` (its spikes come in from outside). A projection is
dense unless it has `synapses`, with `max_fan_in` and `max_fan_out`; it may have `bits` (8) and
`delay` (1). Counts are those of `neuro_eqprop.traces.Counts`, summed over all samples.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from neuro_eqprop.arrays import closest_first
from neuro_eqprop.hardware.workload import Group, Link, Shapes, Workload
from neuro_eqprop.io.atomic import write_text
from neuro_eqprop.traces import Counts

SCHEMA = "neuro_eqprop.counts/1"
TOP = (
    *("schema", "populations", "projections", "output", "samples", "steps", "input_coding"),
    *("dense_macs", "counts", "state_bits"),
)
COUNTS = tuple(each.name for each in fields(Counts))


class CountsError(ValueError):
    """A file of counts says something that cannot be; the message names file, place and reason."""


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON object, whole or not at all."""
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CountsError(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise CountsError(f"{path}: not readable as JSON: {error}") from error
    if not isinstance(content, dict):
        raise CountsError(f"{path}: it holds no JSON object")
    return content


@dataclass(frozen=True, slots=True)
class Reader:
    """One object of a file: hands out checked fields, and complains with the object's place."""

    content: dict[str, Any]
    where: str

    def text(self, key: str) -> str:
        """A field of words."""
        found = self.content.get(key)
        if not isinstance(found, str) or not found:
            raise CountsError(f"{self.where}: {key} is missing; it takes a text")
        return found

    def whole(self, key: str, default: int | None = None) -> int:
        """A field that is a whole number and not negative."""
        found = self.content.get(key, default)
        if isinstance(found, bool) or not isinstance(found, int):
            raise CountsError(f"{self.where}: {key} {found!r} is not a whole number")
        if found < 0:
            raise CountsError(f"{self.where}: {key} {found} is negative")
        return found

    def flag(self, key: str) -> bool:
        """A field that is true or false; false where it is missing."""
        found = self.content.get(key, False)
        if not isinstance(found, bool):
            raise CountsError(f"{self.where}: {key} {found!r} is neither true nor false")
        return found

    def items(self, key: str, known: Iterable[str]) -> list[Reader]:
        """A field that is a list of objects."""
        found = self.content.get(key)
        if not isinstance(found, list):
            raise CountsError(f"{self.where}: {key} is missing; it takes a list")
        return [reader(each, f"{self.where}: {key}[{k}]", known) for k, each in enumerate(found)]


def reader(content: object, where: str, known: Iterable[str]) -> Reader:
    """The reader of an object whose keys are all known."""
    if not isinstance(content, dict):
        raise CountsError(f"{where}: it is not an object")
    known = tuple(known)
    for key in content:
        if key not in known:
            closest = closest_first(str(key), known)[0]
            raise CountsError(f"{where}: {key!r} is not known; did you mean {closest!r}?")
    return Reader(content, where)


def group(given: Reader) -> Group:
    """A population of the file."""
    flags = (given.flag(name) for name in ("soft_reset", "graded", "off_chip"))
    return Group(given.text("name"), given.whole("size"), *flags)


def link(given: Reader, groups: Mapping[str, Group]) -> Link:
    """A projection of the file."""
    source, target = given.text("source"), given.text("target")
    for end in (source, target):
        if end not in groups:
            raise CountsError(f"{given.where}: there is no population {end!r}")
    bits, delay = given.whole("bits", 8), given.whole("delay", 1)
    sizes = (groups[source].size, groups[target].size)
    numbers = (sizes[0] * sizes[1], *sizes)
    if "synapses" in given.content:
        numbers = (given.whole("synapses"), given.whole("max_fan_in"), given.whole("max_fan_out"))
    return Link(source, target, *numbers, bits=bits, delay=delay)


def read(path: Path) -> Workload:
    """The workload of a file."""
    top = reader(read_json(path), str(path), TOP)
    if top.text("schema") != SCHEMA:
        raise CountsError(f"{path}: schema {top.content['schema']!r} is not {SCHEMA!r}")
    try:
        listed = top.items("populations", ("name", "size", "soft_reset", "graded", "off_chip"))
        groups = {each.text("name"): group(each) for each in listed}
        if len(groups) != len(listed):
            raise CountsError(f"{path}: two populations share a name")
        ends = ("source", "target", "synapses", "max_fan_in", "max_fan_out", "bits", "delay")
        links = tuple(link(each, groups) for each in top.items("projections", ends))
        state = top.whole("state_bits") if "state_bits" in top.content else None
        shapes = Shapes(tuple(groups.values()), links, top.text("output"), state)
        counts = {
            (each.text("population"), each.text("phase")): Counts(
                *(each.whole(name, 0) for name in COUNTS)
            )
            for each in top.items("counts", ("population", "phase", *COUNTS))
        }
        sizes = (top.whole("samples"), top.whole("steps"))
        coding, macs = top.text("input_coding"), top.whole("dense_macs")
        return Workload(shapes, counts, *sizes, coding, macs)
    except CountsError:
        raise
    except ValueError as error:
        raise CountsError(f"{path}: {error}") from error


def to_json(workload: Workload) -> dict[str, Any]:
    """The content of the file that `read` reads."""
    shapes = workload.shapes
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "populations": [
            {f.name: getattr(each, f.name) for f in fields(Group)} for each in shapes.groups
        ],
        "projections": [
            {f.name: getattr(each, f.name) for f in fields(Link) if f.name != "plastic"}
            for each in shapes.links
        ],
        "output": shapes.output,
        "samples": workload.samples,
        "steps": workload.steps,
        "input_coding": workload.input_coding,
        "dense_macs": workload.dense_macs,
        "counts": [
            {"population": name, "phase": phase, **{f: getattr(counts, f) for f in COUNTS}}
            for (name, phase), counts in workload.counts.items()
        ],
    }
    if shapes.state_bits is not None:
        content["state_bits"] = shapes.state_bits
    return content
