"""Hardware profiles as JSON objects and as text: values, ranges and sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from neuro_eqprop.chips.profile import Device, Profile, Quantity, Unknown
from neuro_eqprop.chips.quantities import KEYS
from neuro_eqprop.common.units import si, si_range
from neuro_eqprop.files.codec import to_json

Json: TypeAlias = dict[str, Any]

LEARNING_KEYS = (
    *("support.learning", "capacity.tag_bits", "energy.weight_update", "energy.tag_update"),
    *("energy.trace_update", "time.weight_update"),
)
"""The quantities of learning on a chip."""


def profile_summary(profile: Profile) -> Json:
    """A profile in one row: its name, device and number of known quantities."""
    entries = profile.entries.values()
    return {
        "profile": profile.name,
        "title": profile.title,
        "device": profile.device.value,
        "scenario": profile.scenario,
        "known": sum(isinstance(entry, Quantity) for entry in entries) + len(profile.batches),
        "unknown": sum(isinstance(entry, Unknown) for entry in entries),
        "batches": [point.batch for point in profile.batches],
        "operating_point": dict(profile.operating_point),
    }


def profile_json(profile: Profile) -> Json:
    """All content of a profile."""
    return {
        **profile_summary(profile),
        "file": profile.file,
        "timing": profile.timing.value,
        "notes": list(profile.notes),
        "unchecked": list(profile.unchecked),
        "overridden": list(profile.overridden),
        "waits_for": [f"scale.{name}" for name in profile.missing],
        "sources": to_json(profile.sources),
        "entries": entries_json(profile),
        "calibration": to_json(profile.calibration),
        "fit": to_json(profile.fit),
        "learning": learning_json(profile),
        "curve": [
            {
                "batch": point.batch,
                "joules_per_mac": point.joules_per_mac.value,
                "inferences_per_second": point.inferences_per_second,
                "boundary": point.joules_per_mac.boundary and point.joules_per_mac.boundary.value,
                "where": point.joules_per_mac.where,
            }
            for point in profile.batches
        ],
    }


def learning_json(profile: Profile) -> list[Json]:
    """The quantities of learning, also those that the profile does not have."""
    if profile.device is not Device.SPIKING:
        return []
    known = {row["key"]: row for row in entries_json(profile)}
    missing: Json = {"unknown": True, "note": f"not in {profile.file}"}
    return [
        {**known.get(key, {"key": key, **missing}), "meaning": KEYS[key].meaning}
        for key in LEARNING_KEYS
    ]


def entries_json(profile: Profile) -> list[Json]:
    """Every quantity of a profile with value, range and source."""
    rows: list[Json] = []
    for key, entry in profile.entries.items():
        row: Json = {"key": key, **to_json(entry)}
        if isinstance(entry, Quantity):
            row |= {"source": row.pop("src"), "choices": list(entry.choices)}
            row["ref"] = profile.sources[entry.src].ref if entry.src in profile.sources else ""
        elif isinstance(entry, Unknown):
            row["unknown"] = True
        rows.append(row)
    return rows


def describe_row(row: Mapping[str, Any]) -> tuple[str, str]:
    """Value with range, and origin, of a row of `entries_json`."""
    if "within" in row:
        return f"included in {row['within']}", row["note"]
    if row.get("unknown"):
        return "unknown", row["note"]
    origin = f"{row['source']}, {row['where']}; {row['basis']}, {row['evidence']}"
    if row["operating_point"]:
        origin += f"; at {row['operating_point']}"
    if row["at"] is not None:
        tolerance = f"within {row['tolerance']:.0%}"
        origin += f"; holds only at {row['at']:g} events a second and chip, {tolerance}"
    return value_text(row), origin + (f"; {row['note']}" if row["note"] else "")


def value_text(row: Mapping[str, Any]) -> str:
    """A quantity with its range, if it has one."""
    unit, value = row["unit"], row["value"]
    if unit == "flag":
        return "yes" if value else "no"
    if unit in ("count", "bit", "step"):
        listed = ", ".join(f"{each:g}" for each in row["choices"])
        return (listed or f"{value:g}") + ("" if unit == "count" else f" {unit}")
    text, low, high = si(value, unit), row["low"], row["high"]
    return text if low == high else f"{text} [{si_range(low, high, unit, digits=4)}]"
