"""Format of `energy.json`: an `EnergyReport` as JSON, read back into the same classes.

The classes are the schema. What the file calls otherwise stands in a table of names; joules and
seconds with their ranges are written side by side instead of in a table of their own. Files of
version 0.1 have no `schema` and are read as well. Keys that are not read, such as those of a later
version, are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from neuro_eqprop.chips.energy.dense_reference import DenseComparison, DenseReference
from neuro_eqprop.chips.energy.estimate import Estimate
from neuro_eqprop.chips.energy.metrics import DutyCycle
from neuro_eqprop.chips.energy.pareto import Point, best, front
from neuro_eqprop.chips.energy.result import (
    CountedEvents,
    CurveSettings,
    EnergyEstimate,
    EnergyReport,
    LearningEvents,
    RunComparison,
    RunComparisonRow,
    TrainingCost,
)
from neuro_eqprop.chips.energy.terms import Term
from neuro_eqprop.chips.placement import CoreAllocation, Placement
from neuro_eqprop.files.codec import decode, to_json
from neuro_eqprop.files.read import FileFormatError, read_json
from neuro_eqprop.files.write import write_text

Json: TypeAlias = dict[str, Any]
T = TypeVar("T")

SCHEMA = "neuro_eqprop.energy/1"
AGAIN = "make the file again with `neuro-eqprop energy`"
JOULES = {"value": "joules", "low": "low", "high": "high", "nominal": "nominal"}
SECONDS = {"value": "seconds", "low": "seconds_low", "high": "seconds_high"}
USE = {"included": "inside", "duty": "duty_cycle"}
PLACED = {"status": "verdict", "used": "utilisation", "allocations": "populations"}
COUNTED = {
    "source": "from",
    "spikes": "spikes_per_sample",
    "synops": "synops_per_sample",
    "host_macs": "host_macs_per_sample",
    "learned": "learning",
    "learning": "lessons",
}
LEARNING = {"samples": "lessons"}
COMPARED = {"sentence": "words"}
BESIDE = {"ratio": "times"}
"""Keys in the file of fields with other names, by class."""
BESIDE_COUNTS = (
    *("code", "steps", "input_coding", "activity", "spikes_per_sample", "synops_per_sample"),
)
"""Keys of the counted events of another run."""
OF_NETWORK = (
    *("fits", "verdict", "cores", "chips", "binding", "utilisation", "violations", "unchecked"),
    "undecided",
)
"""Keys of the placement that each chip of the list `profiles` repeats."""
WRITTEN = ("file", "csv", "figure", "failure")
"""Fields of a report that a command prints and no file keeps."""


class EnergyFileError(FileFormatError):
    """An energy file has invalid content; the message names file, key and reason."""


def write_energy(report: EnergyReport, path: Path) -> Path:
    """Write a report as JSON; return the path."""
    kept = replace(report, **dict.fromkeys(WRITTEN, ""))  # type: ignore[arg-type]
    content = {"schema": SCHEMA, **report_json(kept)}
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n")
    return path


def read_energy(path: str | Path) -> EnergyReport:
    """The report in an energy file."""
    content = read_json(Path(path), EnergyFileError)
    if content.get("schema", SCHEMA) != SCHEMA:
        raise EnergyFileError(f"{path}: schema: {content['schema']!r} is not {SCHEMA!r}")
    return replace(read_report(content, path), file=str(path))


# Results to JSON.


def row_of(record: Any, names: Mapping[str, str] = {}, without: tuple[str, ...] = ()) -> Json:  # noqa: ANN401
    """The fields of a record by their keys in the file."""
    return {
        names.get(each.name, each.name): to_json(getattr(record, each.name))
        for each in fields(record)
        if each.name not in without
    }


def side_by_side(record: Any, names: Mapping[str, str]) -> Json:  # noqa: ANN401
    """A number with its range, by keys; null where there is none."""
    row = {key: None if record is None else getattr(record, name) for name, key in names.items()}
    if record is not None and row.get("nominal", 0.0) is None:
        row["nominal"] = record.value
    return row


def use_json(found: Estimate) -> Json:
    """JSON object of the inference or the learning of a chip."""
    apart = ("joules", "seconds", "within", "terms", "missing", "placement", "samples")
    content: Json = {
        **row_of(found, USE, apart),
        **side_by_side(found.joules, JOULES),
        **side_by_side(found.seconds, SECONDS),
        "at_least": found.at_least,
        "within": {each.value: side_by_side(sum_, JOULES) for each, sum_ in found.within.items()},
        "terms": [
            {**row_of(each, without=("joules", "counted")), **side_by_side(each.joules, JOULES)}
            for each in found.terms
        ],
        "unknown": list(found.unknown),
        "unpriced": [row_of(each, without=("reason", "boundary")) for each in found.missing],
        "frames_per_second": found.frames_per_second,
        "frames_per_joule": found.frames_per_joule,
        "sensitivity": found.sensitivity,
    }
    if found.duty is not None:
        content["duty_cycle"]["keeps_up"] = found.duty.keeps_up
    if found.placement is not None:
        content |= placement_json(found.placement)
    if found.training is not None:
        whole = side_by_side(found.training, JOULES)
        del whole["nominal"]
        seconds = found.training_seconds
        content["training"] = {"presentations": found.samples, **whole, "seconds": seconds}
    return content


def placement_json(placement: Placement) -> Json:
    """JSON object of a placement: cores and chips, or why the network does not fit."""
    return {
        **row_of(placement, PLACED),
        "fits": placement.fits,
        "unchecked": [f"{each.limit}: {each.reason}" for each in placement.unchecked],
        "undecided": [each.limit for each in placement.unchecked if each.essential],
        "populations": [
            row_of(each, without=("first_core", "used")) for each in placement.allocations
        ],
    }


def estimate_json(found: EnergyEstimate) -> Json:
    """JSON object of one chip, an item of the list `profiles`."""
    inference = use_json(found.inference)
    uses = ("inference", "learning", "comparisons", "curve", "sources")
    return {
        **row_of(found, without=uses),
        **{name: inference[name] for name in OF_NETWORK if name in inference},
        "inference": inference,
        "learning": use_json(found.learning),
    }


def counted_json(counted: CountedEvents) -> Json:
    """JSON object of the counted events."""
    learning = counted.learning
    lessons: Json = {"lessons": 0, "reason": learning.reason}
    if learning.samples:
        lessons = row_of(learning, LEARNING, without=("reason",))
    return row_of(counted, COUNTED, without=("input_coding",)) | {"lessons": lessons}


def comparison_json(found: DenseComparison) -> Json:
    """JSON object of a chip compared with a dense device."""
    return {**row_of(found, COMPARED), "ratio": found.ratio, "verdict": found.summary}


def curve_json(points: tuple[Point, ...]) -> Json:
    """JSON object of accuracy against joules; marks the Pareto front and the best point."""
    kept, chosen = front(points), best(points)
    marks = [{"front": each in kept, "best": each == chosen} for each in points]
    return {"points": [row_of(each) | mark for each, mark in zip(points, marks, strict=True)]}


def report_json(report: EnergyReport) -> Json:
    """JSON object of a report, as `energy --json` prints it."""
    content: Json = {
        "run": report.run,
        "input_coding": report.counted.input_coding,
        "counted": counted_json(report.counted),
        "seed": report.seed,
        "options": list(report.options),
        "profiles": [estimate_json(each) for each in report],
        "reference": [
            row_of(each, without=("joules", "joules_per_mac")) | side_by_side(each.joules, JOULES)
            for each in report.references
        ],
        "comparison": [comparison_json(each) for chip in report for each in chip.comparisons],
        "arithmetic_ratio": dict(report.arithmetic_ratio),
    }
    if any(each.sources for each in report):
        content["sources"] = {each.profile: list(each.sources) for each in report}
    if report.curve is not None:
        content["curve"] = {each.profile: curve_json(each.curve) for each in report if each.curve}
        content["curve_counted"] = row_of(report.curve)
    if report.beside is not None:
        other = report.beside.counted
        counted = counted_json(other) | {"input_coding": other.input_coding}
        content["beside"] = {
            "run": report.beside.run,
            "counted": {name: counted[name] for name in BESIDE_COUNTS},
            "profiles": [row_of(each, BESIDE) for each in report.beside.rows],
        }
    if report.training is not None:
        known = row_of(report.training).items()
        content["training"] = {name: value for name, value in known if value is not None}
    return content | {name: each for name in WRITTEN if (each := getattr(report, name))}


# JSON to results: rows become what the classes decode; what is no table is left to the codec.


def fields_of(row: Any, kind: type[Any], names: Mapping[str, str] = {}) -> Any:  # noqa: ANN401
    """A row of the file by the fields of its class."""
    if not isinstance(row, dict):
        return row
    keys = {each.name: names.get(each.name, each.name) for each in fields(kind)}
    return {name: row[key] for name, key in keys.items() if key in row}


def rows_of(rows: Any, change: Callable[[Any], Any]) -> Any:  # noqa: ANN401
    """Every row of a list, changed."""
    return [change(row) for row in rows] if isinstance(rows, list) else rows


def together(row: Any, names: Mapping[str, str]) -> Any:  # noqa: ANN401
    """A number with its range as a table; None where there is none."""
    if not isinstance(row, dict) or row.get(names["value"]) is None:
        return None
    return {name: row[key] for name, key in names.items() if key in row}


def with_joules(row: Any, kind: type[Any]) -> Any:  # noqa: ANN401
    """The fields of a class with joules."""
    return (
        fields_of(row, kind) | {"joules": together(row, JOULES)} if isinstance(row, dict) else row
    )


def read_missing(row: Json) -> list[Json]:
    """The missing terms: `unpriced` has their names and amounts, `unknown` names and reasons."""
    listed, reasons = row.get("unpriced", []), row.get("unknown", [])
    if not isinstance(listed, list) or not isinstance(reasons, list):
        raise EnergyFileError("unknown and unpriced must be lists")
    if len(listed) != len(reasons):
        raise EnergyFileError("unknown and unpriced have different lengths")
    return [
        {**each, "reason": str(text).partition(": ")[2]} if isinstance(each, dict) else each
        for each, text in zip(listed, reasons, strict=True)
    ]


def read_placement(row: Json) -> Json:
    """The placement in the row of a chip."""
    essential = row.get("undecided", [])
    if not isinstance(essential, list):
        raise EnergyFileError("undecided must be a list")

    def unchecked(text: Any) -> Any:  # noqa: ANN401
        limit, _, reason = str(text).partition(": ")
        return {"limit": limit, "reason": reason, "essential": limit in essential}

    return {
        **fields_of(row, Placement, PLACED),
        "allocations": rows_of(
            row.get("populations"), lambda each: fields_of(each, CoreAllocation)
        ),
        "unchecked": rows_of(row.get("unchecked", []), unchecked),
    }


def read_use(row: Any) -> Any:  # noqa: ANN401
    """Inference or learning of a chip."""
    if not isinstance(row, dict):
        return row
    within, training = row.get("within", {}), row.get("training", {})
    if isinstance(within, dict):
        within = {boundary: together(sums, JOULES) for boundary, sums in within.items()}
    return fields_of(row, Estimate, USE) | {
        "joules": together(row, JOULES),
        "seconds": together(row, SECONDS),
        "terms": rows_of(row.get("terms", []), lambda each: with_joules(each, Term)),
        "missing": read_missing(row),
        "within": within,
        "duty": fields_of(row.get("duty_cycle"), DutyCycle),
        "placement": read_placement(row) if "verdict" in row else None,
        "samples": training.get("presentations") if isinstance(training, dict) else training,
    }


def read_chip(row: Any) -> Any:  # noqa: ANN401
    """A chip of the list `profiles`."""
    if not isinstance(row, dict):
        return row
    for use in ("inference", "learning"):
        if use not in row:
            raise EnergyFileError(f"{use} is missing; {AGAIN}")
    uses = {use: read_use(row[use]) for use in ("inference", "learning")}
    return {"title": row.get("profile"), **fields_of(row, EnergyEstimate), **uses}


def read_counted(row: Any) -> Any:  # noqa: ANN401
    """The counted events."""
    lessons = fields_of(
        row.get("lessons", {}) if isinstance(row, dict) else {}, LearningEvents, LEARNING
    )
    found = fields_of(row, CountedEvents, COUNTED)
    return {**found, "learning": lessons} if isinstance(found, dict) else found


def read_beside(row: Any) -> Any:  # noqa: ANN401
    """The comparison with another run, chip by chip."""
    if not isinstance(row, dict):
        return row
    return {
        "run": row.get("run", ""),
        "counted": read_counted(row.get("counted", {})),
        "rows": rows_of(
            row.get("profiles", []), lambda each: fields_of(each, RunComparisonRow, BESIDE)
        ),
    }


def read_report(top: Json, file: object) -> EnergyReport:
    """A report from the top object of an energy file."""
    if "profiles" not in top:
        raise EnergyFileError(f"{file}: profiles is missing; {AGAIN}")

    def part(key: str, kind: type[T], change: Callable[[Any], Any], value: Any) -> T:  # noqa: ANN401
        where = f"{file}: {key}"
        try:
            content = change(value)
        except EnergyFileError as error:
            raise EnergyFileError(f"{where}: {error}") from None
        return decode(content, kind, where, error=EnergyFileError, more_keys=True)

    def whole(value: Any) -> Any:  # noqa: ANN401
        return value

    def listed(key: str, kind: type[T], change: Callable[[Any], Any]) -> tuple[T, ...]:
        rows = part(key, list[Any], whole, top.get(key, []))
        return tuple(part(f"{key}[{k}]", kind, change, row) for k, row in enumerate(rows))

    def optional(key: str, kind: type[T], change: Callable[[Any], Any]) -> T | None:
        return part(key, kind, change, top[key]) if top.get(key) is not None else None

    sources = optional("sources", dict[str, tuple[dict[str, Any], ...]], whole) or {}
    curves = optional("curve", dict[str, dict[str, tuple[Point, ...]]], whole) or {}
    compared = listed(
        "comparison", DenseComparison, lambda row: fields_of(row, DenseComparison, COMPARED)
    )
    estimates = tuple(
        replace(
            each,
            comparisons=tuple(row for row in compared if row.profile == each.profile),
            curve=curves.get(each.profile, {}).get("points", ()),
            sources=sources.get(each.profile, ()),
        )
        for each in listed("profiles", EnergyEstimate, read_chip)
    )
    counted = optional("counted", CountedEvents, read_counted) or CountedEvents()
    return EnergyReport(
        estimates,
        replace(counted, input_coding=optional("input_coding", str, whole) or ""),
        listed("reference", DenseReference, lambda row: with_joules(row, DenseReference)),
        optional("arithmetic_ratio", dict[str, float], whole) or {},
        run=optional("run", str, whole),
        seed=optional("seed", int, whole) or 0,
        options=optional("options", tuple[str, ...], whole) or (),
        curve=optional("curve_counted", CurveSettings, whole),
        beside=optional("beside", RunComparison, read_beside),
        training=optional("training", TrainingCost, whole),
    )
