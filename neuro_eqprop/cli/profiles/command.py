"""`neuro-eqprop profiles`: the chips, their numbers and sources, and how well they predict."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from neuro_eqprop.cli.command import FAILURE, Command, Json
from neuro_eqprop.cli.profiles.tables import show

if TYPE_CHECKING:
    from neuro_eqprop.energy.validation import Check
    from neuro_eqprop.hardware.profile import Profile

VERBS = ("list", "show", "explain", "validate")


def options(parser: ArgumentParser) -> None:
    """A verb, and the name of a profile where it needs one."""
    parser.add_argument("verb", choices=VERBS, help="what to do")
    parser.add_argument("name", nargs="?", metavar="NAME", help="a profile, or a TOML file")
    parser.add_argument("--override", action="append", default=[], metavar="CHIP.SECTION.KEY=VALUE")
    parser.add_argument(
        "--cases", type=Path, action="append", default=[], help="further cases, as TOML"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the draws")


def run(args: Namespace) -> Json:
    """List, show, explain or validate."""
    if args.verb == "list":
        return listing()
    if args.verb == "validate":
        return validate(args)
    if args.name is None:
        raise ValueError(
            f"profiles {args.verb} needs the NAME of a profile; `profiles list` has all"
        )
    from neuro_eqprop.io.profile.load import load_profiles

    profile = load_profiles([args.name], args.override)[0]
    return {"verb": args.verb, **whole(profile)}


def listing() -> Json:
    """Every shipped profile in a line."""
    from neuro_eqprop.io.profile.load import load_profile, profile_folder, profile_names

    return {
        "verb": "list",
        "folder": str(profile_folder()),
        "profiles": [in_short(load_profile(name)) for name in profile_names()],
    }


def in_short(profile: Profile) -> Json:
    """What a profile covers."""
    from neuro_eqprop.hardware.profile import Quantity, Unknown

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


def whole(profile: Profile) -> Json:
    """Everything a profile says."""
    from neuro_eqprop.cli.energy.json import explain_json, learning_json

    return {
        **in_short(profile),
        "file": profile.file,
        "timing": profile.timing.value,
        "notes": list(profile.notes),
        "unchecked": list(profile.unchecked),
        "overridden": list(profile.overridden),
        "waits_for": [f"scale.{name}" for name in profile.missing],
        "sources": {
            each.name: {"ref": each.ref, "doi": each.doi, "caveat": each.caveat}
            for each in profile.sources.values()
        },
        "entries": explain_json(profile),
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


def validate(args: Namespace) -> Json:
    """Predict every published measurement; it is an error if one that should hold does not."""
    from neuro_eqprop.energy.validation import check
    from neuro_eqprop.io.profile.load import load_profile, parse_override
    from neuro_eqprop.io.published_cases import case_files, read_cases

    cases = [case for path in (*case_files(), *args.cases) for case in read_cases(path)]
    given = overrides(args.override)
    checks: list[Check] = []
    loaded: dict[tuple[object, ...], Profile] = {}
    for case in cases:
        if args.name in (None, case.profile):
            changed = dict(map(parse_override, given.get(case.profile, ()))) | dict(case.overrides)
            key = (case.profile, *changed.items())
            if key not in loaded:
                loaded[key] = load_profile(case.profile, changed)
            checks.append(check(case, loaded[key], seed=args.seed))
    if not checks:
        raise ValueError(f"there is no published measurement for profile {args.name!r}")
    outcome = {"verb": "validate", "cases": [check_json(c) for c in checks], **verdict(checks)}
    failed = [each for each in checks if each.holds is False]
    if failed:
        worst = "; ".join(
            f"{each.case.name}: predicted {each.predicted.value:.4g}, measured "
            f"{each.case.measured:.4g} {each.case.measure.value}"
            for each in failed
        )
        outcome[FAILURE] = (
            f"{len(failed)} of {len(checks)} cases that should hold do not ({worst}); look at the "
            "constants of the profile or at its overrides"
        )
    return outcome


def overrides(given: list[str]) -> dict[str, tuple[str, ...]]:
    """The user's own values, by profile."""
    found: dict[str, tuple[str, ...]] = {}
    for each in given:
        name, _, rest = each.partition(".")
        found[name] = (*found.get(name, ()), rest)
    return found


def check_json(each: Check) -> Json:
    """A case of `profiles validate`."""
    case = each.case
    return {
        "id": case.name,
        "profile": case.profile,
        "role": case.role.value,
        "grade": case.grade,
        "unit": case.measure.value,
        "boundary": case.boundary.value,
        "measured": case.measured,
        "uncertainty": case.uncertainty,
        "predicted": each.predicted.value,
        "low": each.predicted.low,
        "high": each.predicted.high,
        "nominal": each.predicted.nominal,
        "error": each.error,
        "within": each.within,
        "tolerance": case.tolerance,
        "must_be_in_range": case.in_range,
        "holds": each.holds,
        "validates": each.validates,
        "source": f"{case.source}, {case.where}",
        "note": case.note,
    }


def verdict(checks: list[Check]) -> Json:
    """How many predictions there are, and how far off they lie."""
    counting = [each for each in checks if each.validates]
    return {
        "predictions": len(counting),
        "predictions_within": sum(each.within for each in counting),
        "worst_prediction": max((abs(each.error) for each in counting), default=None),
        "consistency": sum(not each.validates for each in checks),
    }


COMMAND = Command("profiles", "the chips: limits, costs and their sources", options, run, show)
