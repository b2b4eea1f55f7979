"""Format of `energy.json`: an `EnergyReport` written as JSON and read back into the same classes.

Files of version 0.1 have no `schema` and are read as well. Keys that are not read, such as those of
a later version, are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from neuro_eqprop.chips.boundary import Boundary
from neuro_eqprop.chips.energy.dense_reference import Comparison, Reference
from neuro_eqprop.chips.energy.estimate import Estimate
from neuro_eqprop.chips.energy.mapping import MappingCost
from neuro_eqprop.chips.energy.metrics import DutyCycle
from neuro_eqprop.chips.energy.monte_carlo import Energy, Interval
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
from neuro_eqprop.chips.energy.terms import MissingTerm, Term
from neuro_eqprop.chips.limits import Unchecked, Violation
from neuro_eqprop.chips.placement import CoreAllocation, Placement, PlacementStatus
from neuro_eqprop.chips.profile import Evidence
from neuro_eqprop.files.toml import FileFormatError, Table, build, read_json
from neuro_eqprop.files.write import write_text

Json: TypeAlias = dict[str, Any]
Built = TypeVar("Built")

SCHEMA = "neuro_eqprop.energy/1"
PLACEMENT_KEYS = (
    *("fits", "verdict", "cores", "chips", "binding", "utilisation", "violations", "unchecked"),
    "undecided",
)
"""Keys of `placement_json` that each chip of the list `profiles` repeats."""


class EnergyFileError(FileFormatError):
    """An energy file has invalid content; the message names file, key and reason."""


def write_energy(report: EnergyReport, path: Path) -> Path:
    """Write a report as JSON; return the path."""
    content = {
        "schema": SCHEMA,
        **report_json(replace(report, file="", csv="", datasheet="", figure="", failure="")),
    }
    write_text(path, json.dumps(content, indent=1, allow_nan=False) + "\n")
    return path


def read_energy(path: str | Path) -> EnergyReport:
    """The report in an energy file."""
    top = read_json(Path(path), EnergyFileError)
    if "schema" in top:
        top.check_schema(SCHEMA)
    return replace(read_report(top), file=str(path))


# Results to JSON.


def energy_json(joules: Energy | None) -> Json:
    """JSON of joules: median, range and nominal sum; null where they are unknown."""
    if joules is None:
        return dict.fromkeys(("joules", "low", "high", "nominal"))
    return {
        "joules": joules.value,
        "low": joules.low,
        "high": joules.high,
        "nominal": joules.nominal,
    }


def use_json(found: Estimate) -> Json:
    """JSON object of the inference or the learning of a chip."""
    seconds = found.seconds
    content: Json = {
        **energy_json(found.joules),
        "at_least": found.at_least,
        "boundary": found.boundary and found.boundary.value,
        "within": {each.value: energy_json(sum_) for each, sum_ in found.within.items()},
        "evidence": found.evidence and found.evidence.value,
        "seconds": seconds and seconds.value,
        "seconds_low": seconds and seconds.low,
        "seconds_high": seconds and seconds.high,
        "time": found.time,
        "energy_delay_product": found.energy_delay_product,
        "terms": [term_json(each) for each in found.terms],
        "unknown": list(found.unknown),
        "unpriced": [{"name": each.name, "amount": each.amount} for each in found.missing],
        "inside": list(found.included),
        "reason": found.reason,
        "seconds_at_least": found.seconds_at_least,
        "frames_per_second": found.frames_per_second,
        "frames_per_joule": found.frames_per_joule,
        "layers": dict(found.layers),
        "phases": dict(found.phases),
        "sensitivity": found.sensitivity,
        "duty_cycle": None
        if found.duty is None
        else {**asdict(found.duty), "keeps_up": found.duty.keeps_up},
        "mapping": found.mapping,
        "mappings": [asdict(each) for each in found.mappings],
        **({} if found.placement is None else placement_json(found.placement)),
    }
    training = found.training
    if training is not None:
        whole = {"joules": training.value, "low": training.low, "high": training.high}
        time = found.training_seconds
        content["training"] = {"presentations": found.samples, **whole, "seconds": time}
    return content


def term_json(term: Term) -> Json:
    """JSON object of a cost term."""
    return {
        "name": term.name,
        "key": term.key,
        "amount": term.amount,
        **energy_json(term.joules),
        "boundary": term.boundary.value,
        "evidence": term.evidence.value,
        "source": term.source,
        "has_range": term.has_range,
        "operating_point": term.operating_point,
    }


def placement_json(placement: Placement) -> Json:
    """JSON object of a placement: cores and chips, or why the network does not fit."""
    return {
        "fits": placement.fits,
        "verdict": placement.status.value,
        "cores": placement.cores,
        "chips": placement.chips,
        "binding": placement.binding,
        "utilisation": dict(placement.used),
        "violations": [asdict(each) for each in placement.violations],
        "unchecked": [f"{each.limit}: {each.reason}" for each in placement.unchecked],
        "undecided": [each.limit for each in placement.unchecked if each.essential],
        "populations": [
            {
                "name": each.name,
                "cores": each.cores,
                "neurons_per_core": each.neurons_per_core,
                "compartments": each.compartments,
                "binding": each.binding,
                "columns": each.columns,
            }
            for each in placement.allocations
        ],
    }


def estimate_json(found: EnergyEstimate) -> Json:
    """JSON object of one chip, an item of the list `profiles`."""
    inference = use_json(found.inference)
    return {
        "profile": found.profile,
        "title": found.title,
        "scenario": found.scenario,
        "operating_point": dict(found.operating_point),
        "overridden": list(found.overridden),
        **{name: inference[name] for name in PLACEMENT_KEYS if name in inference},
        "inference": inference,
        "learning": use_json(found.learning),
    }


def counted_json(counted: CountedEvents) -> Json:
    """JSON object of the counted events."""
    return {
        "from": counted.source,
        "samples": counted.samples,
        "steps": counted.steps,
        "code": counted.code,
        "bits": counted.bits,
        "activity": counted.activity,
        "spikes_per_sample": counted.spikes,
        "synops_per_sample": counted.synops,
        "host_macs_per_sample": counted.host_macs,
        "dense_macs": counted.dense_macs,
        "learning": counted.learned,
        "lessons": learning_json(counted.learning),
        "accuracy": counted.accuracy,
        "accuracy_samples": counted.accuracy_samples,
    }


def learning_json(learning: LearningEvents) -> Json:
    """JSON object of the counted events of learning."""
    if not learning.samples:
        return {"lessons": 0, "reason": learning.reason}
    return {
        "lessons": learning.samples,
        "input_coding": learning.input_coding,
        "presentations": learning.presentations,
        "note": learning.note,
        "phases": {phase: dict(events) for phase, events in learning.phases.items()},
    }


def curve_json(points: tuple[Point, ...]) -> Json:
    """JSON object of accuracy against joules; marks the Pareto front and the best point."""
    kept, chosen = front(points), best(points)
    return {
        "points": [
            {**asdict(each), "front": each in kept, "best": each == chosen} for each in points
        ]
    }


def comparison_json(found: Comparison) -> Json:
    """JSON object of a chip compared with a dense device."""
    content = asdict(found)
    sentence = content.pop("sentence")
    return {
        **content,
        "outcome": found.outcome.value,
        "boundary": found.boundary.value,
        "words": sentence,
        "ratio": found.ratio,
        "verdict": found.summary,
    }


def run_comparison_json(beside: RunComparison) -> Json:
    """JSON object of the comparison with another run, chip by chip."""
    counted = counted_json(beside.counted)
    names = ("code", "steps", "activity", "spikes_per_sample", "synops_per_sample")
    return {
        "run": beside.run,
        "counted": {
            "input_coding": beside.counted.input_coding,
            **{name: counted[name] for name in names},
        },
        "profiles": [
            {
                "profile": each.profile,
                "joules": each.joules,
                "other": each.other,
                "times": each.ratio,
                "boundaries": list(each.boundaries),
                "reasons": list(each.reasons),
                "use": each.use,
                "at_least": list(each.at_least),
                "ranges": [list(ends) for ends in each.ranges],
            }
            for each in beside.rows
        ],
    }


def report_json(report: EnergyReport) -> Json:
    """JSON object of a report, as `energy --json` prints it."""
    content: Json = {
        "run": report.run,
        "input_coding": report.counted.input_coding,
        "counted": counted_json(report.counted),
        "seed": report.seed,
        "options": list(report.options),
        "profiles": [estimate_json(each) for each in report.estimates],
        "reference": [
            {
                "device": each.device,
                "batch": each.batch,
                **energy_json(each.joules),
                "boundary": each.boundary.value,
                "note": each.note,
            }
            for each in report.references
        ],
        "comparison": [
            comparison_json(each) for chip in report.estimates for each in chip.comparisons
        ],
        "arithmetic_ratio": dict(report.arithmetic_ratio),
    }
    if any(each.sources for each in report.estimates):
        content["sources"] = {each.profile: list(each.sources) for each in report.estimates}
    if report.curve is not None:
        curves = {each.profile: each.curve for each in report.estimates if each.curve}
        content["curve"] = {name: curve_json(points) for name, points in curves.items()}
        content["curve_counted"] = asdict(report.curve) | {"steps": list(report.curve.steps)}
    if report.beside is not None:
        content["beside"] = run_comparison_json(report.beside)
    if report.training is not None:
        known = asdict(report.training).items()
        content["training"] = {name: value for name, value in known if value is not None}
    if report.failure:
        content["failure"] = report.failure
    for name in ("file", "csv", "datasheet", "figure"):
        if getattr(report, name):
            content[name] = getattr(report, name)
    return content


# JSON to results.


def build_known(kind: type[Built], table: Table, **given: object) -> Built:
    """`build`, with the keys of the table that are no fields of the dataclass ignored."""
    return build(kind, table, ignore=table.content, **given)


def optional(table: Table, field: str) -> float | None:
    """A number, or None where it is null or missing."""
    return None if table.content.get(field) is None else table.number(field)


def optional_int(table: Table, field: str) -> int | None:
    """An integer, or None where it is null or missing."""
    return None if table.content.get(field) is None else table.integer(field)


def read_joules(table: Table) -> Energy:
    """Joules with their range."""
    return Energy(*(table.number(name) for name in ("joules", "low", "high", "nominal")))


def read_term(table: Table) -> Term:
    """A cost term."""
    operating_point = table.text("operating_point", "")
    return build_known(Term, table, joules=read_joules(table), operating_point=operating_point)


def read_missing(table: Table) -> tuple[MissingTerm, ...]:
    """The missing terms.

    The list `unpriced` has their names and amounts, the list `unknown` their names and reasons.
    """
    reasons, listed = table.texts("unknown"), table.tables("unpriced")
    if len(reasons) != len(listed):
        table.fail("unknown and unpriced have different lengths")
    found = []
    for row, text in zip(listed, reasons, strict=True):
        named = MissingTerm(row.text("name"), optional(row, "amount"), "")
        found.append(replace(named, reason=text.removeprefix(f"{named.title}: ")))
    return tuple(found)


def read_placement(table: Table) -> Placement:
    """The cores and chips of a network."""
    essential = table.texts("undecided")
    unchecked = []
    for each in table.texts("unchecked"):
        limit, _, reason = each.partition(": ")
        unchecked.append(Unchecked(limit, reason, limit in essential))
    return Placement(
        table.choice(PlacementStatus, "verdict"),
        tuple(build(CoreAllocation, each) for each in table.tables("populations")),
        optional_int(table, "cores"),
        optional_int(table, "chips"),
        table.text("binding"),
        tuple(build(Violation, each) for each in table.tables("violations")),
        tuple(unchecked),
        numbers(table.table("utilisation")),
    )


def numbers(table: Table) -> dict[str, float]:
    """A table of numbers."""
    return {name: table.number(name) for name in table.content}


def read_use(table: Table) -> Estimate:
    """Inference or learning on a chip."""
    seconds = None
    if table.content.get("seconds") is not None:
        names = ("seconds", "seconds_low", "seconds_high")
        seconds = Interval(*(table.number(name) for name in names))
    within = table.table("within")
    known = table.content.get("boundary") is not None
    rate_given = table.content.get("duty_cycle") is not None
    return Estimate(
        joules=None if table.content.get("joules") is None else read_joules(table),
        seconds=seconds,
        energy_delay_product=optional(table, "energy_delay_product"),
        terms=tuple(read_term(each) for each in table.tables("terms")),
        missing=read_missing(table),
        included=table.texts("inside"),
        boundary=table.choice(Boundary, "boundary") if known else None,
        within={
            boundary: read_joules(within.table(boundary.value))
            for boundary in Boundary
            if boundary.value in within
        },
        evidence=table.choice(Evidence, "evidence") if known else None,
        time=table.text("time", ""),
        reason=table.text("reason", ""),
        placement=read_placement(table) if "verdict" in table else None,
        samples=optional_int(table.table("training"), "presentations"),
        mapping=table.text("mapping", ""),
        mappings=tuple(build_known(MappingCost, each) for each in table.tables("mappings")),
        seconds_at_least=table.flag("seconds_at_least"),
        layers=numbers(table.table("layers")),
        phases=numbers(table.table("phases")),
        duty=build_known(DutyCycle, table.table("duty_cycle")) if rate_given else None,
    )


def read_estimate(
    table: Table, comparisons: Iterable[Comparison], curve: Table, sources: Iterable[Json]
) -> EnergyEstimate:
    """A chip of the list `profiles`."""
    name = table.text("profile")
    for use in ("inference", "learning"):
        if use not in table:
            table.fail(f"{use} is missing; make the file again with `neuro-eqprop energy`")
    operating_point = table.table("operating_point").content
    return EnergyEstimate(
        name,
        table.text("title", name),
        read_use(table.table("inference")),
        read_use(table.table("learning")),
        scenario=table.text("scenario", ""),
        operating_point={key: str(value) for key, value in operating_point.items()},
        overridden=table.texts("overridden"),
        comparisons=tuple(each for each in comparisons if each.profile == name),
        curve=tuple(build_known(Point, each) for each in curve.tables("points")),
        sources=tuple(sources),
    )


def read_counted(top: Table) -> CountedEvents:
    """The counted events."""
    table = top.table("counted")
    learning = table.table("lessons")
    phases = learning.table("phases")
    return CountedEvents(
        source=table.text("from", ""),
        samples=table.integer("samples", 0),
        steps=table.integer("steps", 0),
        code=None if table.content.get("code") is None else table.text("code"),
        bits=optional_int(table, "bits"),
        input_coding=top.text("input_coding", ""),
        activity=table.number("activity", 0.0),
        spikes=table.number("spikes_per_sample", 0.0),
        synops=table.number("synops_per_sample", 0.0),
        host_macs=table.number("host_macs_per_sample", 0.0),
        dense_macs=table.integer("dense_macs", 0),
        learned=table.flag("learning"),
        accuracy=optional(table, "accuracy"),
        accuracy_samples=table.integer("accuracy_samples", 0),
        learning=LearningEvents(
            samples=learning.integer("lessons", 0),
            reason=learning.text("reason", ""),
            input_coding=learning.text("input_coding", ""),
            presentations=optional_int(learning, "presentations"),
            note=learning.text("note", ""),
            phases={phase: numbers(phases.table(phase)) for phase in phases.content},
        ),
    )


def read_reference(table: Table) -> Reference:
    """A dense pass of the list `reference`."""
    return Reference(
        table.text("device"),
        table.integer("batch"),
        read_joules(table),
        table.choice(Boundary, "boundary"),
        table.text("note", ""),
    )


def read_run_comparison(table: Table) -> RunComparison:
    """The comparison with another run, chip by chip."""
    rows = []
    for each in table.tables("profiles"):
        boundaries, reasons = (list(each.content.get(n, [])) for n in ("boundaries", "reasons"))
        if len(boundaries) != 2 or len(reasons) != 2:
            each.fail("boundaries and reasons must have two values")
        rows.append(
            RunComparisonRow(
                each.text("profile"),
                each.text("use"),
                *(optional(each, "joules"), optional(each, "other"), optional(each, "times")),
                boundaries=(boundaries[0], boundaries[1]),
                reasons=(str(reasons[0]), str(reasons[1])),
                at_least=tuple(bool(e) for e in each.content.get("at_least", (False, False))),
                ranges=tuple(tuple(e) for e in each.content.get("ranges", ((), ()))),
            )
        )
    counted = Table(
        {"counted": table.content.get("counted", {}), **table.table("counted").content},
        table.file,
        table.key,
        table.error,
    )
    return RunComparison(table.text("run", ""), read_counted(counted), tuple(rows))


def read_report(top: Table) -> EnergyReport:
    """A report from the top object of an energy file."""
    if "profiles" not in top:
        top.fail("profiles is missing; make the file again with `neuro-eqprop energy`")
    comparisons = [
        build_known(Comparison, each, sentence=each.text("words", ""))
        for each in top.tables("comparison")
    ]
    curves, sources = top.table("curve"), top.content.get("sources", {})
    estimates = tuple(
        read_estimate(
            each,
            comparisons,
            curves.table(each.text("profile")),
            sources.get(each.text("profile"), ()),
        )
        for each in top.tables("profiles")
    )
    settings = top.table("curve_counted")
    return EnergyReport(
        estimates,
        read_counted(top),
        tuple(read_reference(each) for each in top.tables("reference")),
        numbers(top.table("arithmetic_ratio")),
        run=None if top.content.get("run") is None else str(top.content["run"]),
        seed=top.integer("seed", 0),
        options=top.texts("options"),
        curve=build_known(CurveSettings, settings) if settings.content else None,
        beside=read_run_comparison(top.table("beside")) if "beside" in top else None,
        training=build(TrainingCost, top.table("training")) if "training" in top else None,
    )
