"""Bills, references and trades as the fields of `energy --json`."""

from __future__ import annotations

from dataclasses import asdict

from neuro_eqprop.cli.command import Json
from neuro_eqprop.energy.dense_reference import Comparison, Reference
from neuro_eqprop.energy.estimate import ChipEstimate, Estimate, Side
from neuro_eqprop.energy.monte_carlo import Spread
from neuro_eqprop.energy.pareto import Point, best, front
from neuro_eqprop.energy.terms import Missing
from neuro_eqprop.hardware.placement import Placement, Verdict
from neuro_eqprop.hardware.profile import Device, Included, Profile, Quantity
from neuro_eqprop.hardware.quantities import KEYS

FITS = {Verdict.FITS: True, Verdict.DOES_NOT_FIT: False, Verdict.UNKNOWN: None}


def spread_json(spread: Spread | None, name: str) -> Json:
    """Median, range and nominal sum under their names; null where there is none."""
    if spread is None:
        return {name: None, "low": None, "high": None, "nominal": None}
    return {name: spread.value, "low": spread.low, "high": spread.high, "nominal": spread.nominal}


def estimate_json(found: Estimate) -> Json:
    """An estimate: joules, seconds, terms, unknowns."""
    seconds, product = found.seconds, found.delay_product
    return {
        **spread_json(found.joules, "joules"),
        "at_least": found.at_least,
        "boundary": found.boundary and found.boundary.value,
        "within": {b.value: spread_json(s, "joules") for b, s in found.within.items()},
        "evidence": found.evidence and found.evidence.value,
        "seconds": seconds and seconds.value,
        "seconds_low": seconds and seconds.low,
        "seconds_high": seconds and seconds.high,
        "time": found.time,
        "energy_delay_product": product and product.value,
        "terms": [
            {
                "name": term.name,
                "key": term.key,
                "amount": term.amount,
                **spread_json(term.joules, "joules"),
                "boundary": term.boundary.value,
                "evidence": term.evidence.value,
                "source": term.source,
                "has_range": term.ranged,
                "operating_point": term.operating_point,
            }
            for term in found.terms
        ],
        "unknown": [missing_text(each) for each in found.missing],
        "unpriced": [{"name": each.name, "amount": each.amount} for each in found.missing],
        "inside": list(found.inside),
    }


EMPTY: Json = {
    **{name: None for name in ("joules", "low", "high", "nominal", "boundary", "seconds")},
    **{"at_least": False, "within": {}, "evidence": None, "seconds_low": None},
    **{"seconds_high": None, "time": "", "energy_delay_product": None},
    **{"terms": [], "unknown": [], "unpriced": [], "inside": []},
}


def missing_text(each: Missing) -> str:
    """A term that could not be priced, in words."""
    many = "" if each.amount is None else f" ({each.amount:.4g} a sample)"
    return f"{each.name}{many}: {each.reason}"


def side_json(side: Side, *, presentations: int | None = None) -> Json:
    """Inference or learning, with the reason where there are no joules."""
    found = EMPTY if side.estimate is None else estimate_json(side.estimate)
    outcome: Json = {**found, "reason": side.reason, **placement_json(side.placement)}
    if presentations is not None and side.estimate is not None and side.estimate.joules:
        whole = {name: presentations * outcome[name] for name in ("joules", "low", "high")}
        seconds = outcome["seconds"] and presentations * outcome["seconds"]
        outcome["training"] = {"presentations": presentations, **whole, "seconds": seconds}
    return outcome


def placement_json(placement: Placement) -> Json:
    """Where a network goes, or why it does not."""
    return {
        "fits": FITS[placement.verdict],
        "verdict": placement.verdict.value,
        "cores": placement.cores,
        "chips": placement.chips,
        "binding": placement.binding,
        "utilisation": dict(placement.used),
        "violations": [asdict(each) for each in placement.violations],
        "unchecked": [f"{each.limit}: {each.reason}" for each in placement.unchecked],
        "undecided": [each.limit for each in placement.unchecked if each.essential],
        "populations": [
            {
                "name": seat.name,
                "cores": seat.cores,
                "neurons_per_core": seat.neurons_per_core,
                "compartments": seat.compartments,
                "binding": seat.binding,
            }
            for seat in placement.seats
        ],
    }


def bill_json(bill: ChipEstimate, *, presentations: int | None) -> Json:
    """A chip of the list `profiles`."""
    placed = placement_json(bill.inference.placement)
    return {
        "profile": bill.profile.name,
        "title": bill.profile.title,
        "scenario": bill.profile.scenario,
        "operating_point": dict(bill.profile.operating_point),
        "overridden": list(bill.profile.overridden),
        **{name: placed[name] for name in ("fits", "verdict", "cores", "chips", "binding")},
        **{n: placed[n] for n in ("utilisation", "violations", "unchecked", "undecided")},
        "inference": side_json(bill.inference),
        "learning": side_json(bill.learning, presentations=presentations),
    }


def reference_json(each: Reference) -> Json:
    """A dense pass of the list `reference`."""
    return {
        "device": each.device,
        "batch": each.batch,
        **spread_json(each.joules, "joules"),
        "boundary": each.boundary.value,
        "note": each.note,
    }


def comparison_json(each: Comparison) -> Json:
    """A chip against a device."""
    found = asdict(each)
    return {**found, "outcome": each.outcome.value, "boundary": each.boundary.value}


def trade_json(points: list[Point]) -> Json:
    """The curve of accuracy against joules, its front and its best trade."""
    kept, chosen = front(points), best(points)
    return {
        "points": [
            {**asdict(each), "front": each in kept, "best": each == chosen} for each in points
        ]
    }


LEARNING = (
    *("support.learning", "capacity.tag_bits", "energy.weight_update", "energy.tag_update"),
    *("energy.trace_update", "time.weight_update"),
)
"""What a profile says of learning; the terms are those of `energy`."""


def learning_json(profile: Profile) -> list[Json]:
    """What learning on a chip is charged for, also where the profile is silent."""
    if profile.device is not Device.SPIKING:
        return []
    told = {row["key"]: row for row in explain_json(profile)}
    silent: Json = {"unknown": True, "note": f"{profile.file} does not speak of it"}
    return [
        {**told.get(key, {"key": key, **silent}), "meaning": KEYS[key].meaning} for key in LEARNING
    ]


def explain_json(profile: Profile) -> list[Json]:
    """Every key of a profile with its value, range, source and place."""
    rows: list[Json] = []
    for key, entry in profile.entries.items():
        row: Json = {"key": key}
        if isinstance(entry, Quantity):
            source = profile.sources.get(entry.source)
            row |= {"value": entry.value, "low": entry.low, "high": entry.high, "unit": entry.unit}
            row |= {"kind": entry.kind.value, "basis": entry.basis.value}
            row |= {"evidence": entry.evidence.value, "source": entry.source, "where": entry.where}
            row |= {"boundary": entry.boundary and entry.boundary.value, "note": entry.note}
            row |= {"ref": source.ref if source else "", "choices": list(entry.choices)}
            row |= {"operating_point": entry.operating_point}
            row |= {"at": entry.at, "tolerance": entry.tolerance}
        elif isinstance(entry, Included):
            row |= {"within": entry.within, "note": entry.note}
        else:
            row |= {"unknown": True, "note": entry.note}
        rows.append(row)
    return rows
