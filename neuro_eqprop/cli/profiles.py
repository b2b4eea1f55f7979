"""`neuro-eqprop profiles`: list, show, explain and validate chip profiles."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from math import exp
from pathlib import Path

from rich.console import Console
from rich.markup import escape

import neuro_eqprop as ne
from neuro_eqprop.chips.energy.figures import plot_calibration, save_figure
from neuro_eqprop.chips.energy.text import print_sources
from neuro_eqprop.chips.energy.validation import validate_profiles
from neuro_eqprop.chips.profile import ORDER_OF_MAGNITUDE
from neuro_eqprop.chips.profiles.describe import describe_row, profile_json, profile_summary
from neuro_eqprop.chips.profiles.load import (
    name_of,
    overrides_by_profile,
    profile_folder,
    profile_names,
)
from neuro_eqprop.cli.command import (
    FAILURE,
    Command,
    Json,
    UsageError,
    plain_table,
    print_facts,
    set_completions,
)
from neuro_eqprop.common.units import si, si_range

COUNTED = ("cores", "messages")
VERBS = ("list", "show", "explain", "validate", "fit")
ROLES = {
    "prediction": "predictions: the constants come from elsewhere, so agreement validates them",
    "consistency": "consistency: constants of the same source, so the formula is checked",
}


def options(parser: ArgumentParser) -> None:
    """Add the verb, the name of a profile, and the options of `validate`."""
    add = parser.add_argument
    add("verb", choices=VERBS, help="list all, show one, explain its sources, validate, fit")
    chips = profile_names()
    meaning = f"a chip or a TOML file: {', '.join(chips)}"
    set_completions(add("name", nargs="?", metavar="NAME", help=meaning), chips)
    value = "replace a value, as in loihi1.energy.synop=30pJ; repeatable"
    add("--override", action="append", default=[], metavar="CHIP.SECTION.KEY=VALUE", help=value)
    cases = "further published measurements, as TOML; repeatable"
    add("--cases", type=Path, action="append", default=[], metavar="FILE", help=cases)
    measured = "measured runs, as TOML or CSV; required by `fit`"
    add("--measured", type=Path, metavar="FILE", help=measured)
    out = "where the fitted profile is written, as TOML; required by `fit`"
    add("--out", type=Path, metavar="PROFILE.toml", help=out)
    plot = "write the calibration of `validate` as a figure (.png, .svg or .pdf; default: none)"
    add("--plot", type=Path, metavar="FILE", help=plot)


def run(args: Namespace) -> Json:
    """List, show, explain or validate."""
    if args.verb == "validate":
        return {"verb": "validate", **validate(args)}

    if args.verb == "list":
        profiles = [profile_summary(ne.load_profile(name)) for name in profile_names()]
        return {"verb": "list", "folder": str(profile_folder()), "profiles": profiles}
    if args.verb == "fit" and (args.name is None or args.measured is None or args.out is None):
        raise UsageError("profiles fit needs a NAME, --measured FILE and --out PROFILE.toml")
    if args.name is None:
        raise UsageError(f"profiles {args.verb} needs the NAME of a profile; see `profiles list`")
    if args.verb == "fit":
        fitted = ne.fit_profile(args.name, args.measured, out=args.out)
        return {"verb": "fit", **profile_json(fitted), "out": str(args.out)}
    name = name_of(args.name)
    overrides = overrides_by_profile([name], args.override)[name]
    return {"verb": args.verb, **profile_json(ne.load_profile(args.name, overrides))}


def validate(args: Namespace) -> Json:
    """Predict the published measurements; a case whose conditions do not hold is a failure."""
    found = validate_profiles(args.name, cases=args.cases, overrides=args.override)
    outcome = found.to_json()
    if args.plot is not None:
        outcome["plot"] = str(save_figure(plot_calibration(found), args.plot))
    if found.failed:
        listed = "; ".join(
            f"{each.case.name}: predicted {each.predicted.value:.4g}, measured "
            f"{each.case.measured:.4g} {each.case.measure.value}"
            for each in found.failed
        )
        outcome[FAILURE] = (
            f"{len(found.failed)} of {len(found.checks)} cases do not hold ({listed}); check the "
            "constants of the profile, or the overrides"
        )
    return outcome


def show(outcome: Json, console: Console) -> None:
    """Print the outcome of a verb."""
    printers = {
        "list": show_list,
        "show": show_profile,
        "explain": show_sources,
        "validate": show_validation,
        "fit": show_fit,
    }
    printers[outcome["verb"]](outcome, console)


def show_list(outcome: Json, console: Console) -> None:
    """Print a row for each profile."""
    table = plain_table(console)
    for name in ("profile", "what", "device", "known", "unknown"):
        table.add_column(name)
    for each in outcome["profiles"]:
        counts = str(each["known"]), str(each["unknown"])
        table.add_row(escape(each["profile"]), escape(each["title"]), each["device"], *counts)
    console.print(table)
    console.print(f"files in {escape(outcome['folder'])}; its README.md explains how to add a chip")


def show_head(outcome: Json, console: Console) -> None:
    """Print the title, operating point and notes of a profile."""
    console.print(f"[bold]{escape(outcome['title'])}[/bold] ({escape(outcome['file'])})")
    print_facts({k: escape(v) for k, v in outcome["operating_point"].items()}, console)
    if outcome["scenario"]:
        console.print(f"[bold]SCENARIO[/bold]: {escape(outcome['scenario'])}")
    for factor in outcome["waits_for"]:
        console.print(f"waits for your factor: --override {outcome['profile']}.{factor}=FACTOR")
    for note in outcome["notes"]:
        console.print(f"- {escape(note)}")
    for change in outcome["overridden"]:
        console.print(f"* changed: {escape(change)}")


def show_profile(outcome: Json, console: Console) -> None:
    """Print the quantities of a profile, without their sources."""
    show_head(outcome, console)
    table = plain_table(console)
    for name in ("quantity", "value [range]", "basis", "evidence"):
        table.add_column(escape(name), no_wrap=True)
    for row in outcome["entries"]:
        value = escape(describe_row(row)[0])
        table.add_row(row["key"], value, row.get("basis"), row.get("evidence"))
    console.print(table)
    for point in outcome["curve"]:
        cost = si(point["joules_per_mac"], "J")
        console.print(f"batch {point['batch']}: {cost} a MAC, {point['boundary']}")


def show_sources(outcome: Json, console: Console) -> None:
    """Print every quantity of a profile with its source."""
    show_head(outcome, console)
    console.print("")
    print_sources(outcome["entries"], console)
    for point in outcome["curve"]:
        cost = si(point["joules_per_mac"], "J")
        console.print(escape(f"  batch {point['batch']}: {cost} a MAC; {point['where']}"))
    if outcome["learning"]:
        console.print("\n[bold]quantities of learning[/bold]")
        print_sources(outcome["learning"], console)
    console.print("\n[bold]sources[/bold]")
    for name, source in outcome["sources"].items():
        doi = f", doi {source['doi']}" if source["doi"] else ""
        caveat = f" ({source['caveat']})" if source["caveat"] else ""
        console.print(escape(f"  {name}: {source['ref']}{doi}{caveat}"))


def show_fit(outcome: Json, console: Console) -> None:
    """Print the fitted constants and the error of each run when it is left out."""
    table = plain_table(console)
    for name in ("constant", "value [range]"):
        table.add_column(escape(name), no_wrap=True)
    for row in outcome["entries"]:
        if row["key"] in outcome["fit"]["keys"]:
            table.add_row(row["key"], escape(describe_row(row)[0]))
    console.print(table)
    for name, error in outcome["fit"]["left_out"].items():
        shown = f"{100 * (exp(-error) - 1):+.0f} %"
        console.print(f"{escape(name)}: {shown} when it is left out of the fit")
    for change in outcome["overridden"]:
        console.print(f"* {escape(change)}")
    if unpriced := ", ".join(outcome["fit"]["unpriced"]):
        console.print(
            f"not fitted, since the profile has no value: {escape(unpriced)}; the other constants "
            "take their joules. Give a first guess in a profile that extends it"
        )
    found = outcome["calibration"].get("energy")
    if found is None:
        console.print("fewer than four runs: an order of magnitude, not calibrated")
    else:
        rough = found["factor"] >= ORDER_OF_MAGNITUDE
        words = "not calibrated, an order of magnitude" if rough else "calibrated"
        console.print(
            f"{words}: within a factor of {found['factor']:g}, which held for {found['inside']} of "
            f"{found['points']} runs when they were left out"
        )
    console.print(f"written to {escape(outcome['out'])}")


def show_validation(outcome: Json, console: Console) -> None:
    """Print predictions beside measurements."""
    for role, heading in ROLES.items():
        cases = [each for each in outcome["cases"] if each["role"] == role]
        if cases:
            console.print(f"[bold]{heading}[/bold]")
            show_cases(cases, console)
            console.print("")
    worst = outcome["worst_prediction"]
    error = "" if worst is None else f", the largest error is {100 * worst:.0f} %"
    console.print(
        f"{outcome['predictions']} predictions count as validation: "
        f"{outcome['predictions_within']} lie in the predicted range{error}. The other "
        f"{outcome['consistency']} cases do not count. `ok`: the conditions of the case hold."
    )
    if outcome["misses"]:
        console.print(f"outside their range: {escape(', '.join(outcome['misses']))}")
    bounds = outcome["lower_bounds"]
    if bounds:
        listed = escape(", ".join(bounds))
        console.print(
            f"lower bounds, because costs are unknown; not counted if they hold: {listed}"
        )
    for name, reason in outcome["unpredicted"].items():
        console.print(f"not predicted: {escape(name)}: {escape(reason)}")
    show_scores(outcome, console)
    if outcome.get("plot"):
        console.print(f"calibration plot written to {escape(outcome['plot'])}")


def show_scores(outcome: Json, console: Console) -> None:
    """Print coverage, median width and interval score of the predictions, whole and by chip."""
    rows = {"all predictions": outcome, **outcome["by_chip"]}
    if outcome["calibrated"]["cases"]:
        rows = {"calibrated chips, A and B": outcome["calibrated"], **rows}
    table = plain_table(console)
    for name in ("", "cases", "inside", "median high / low", "interval score"):
        table.add_column(name, justify="left" if not name else "right")
    for name, row in rows.items():
        if row["coverage"] is None:
            continue
        number = outcome["predictions"] if row is outcome else row["cases"]
        table.add_row(
            *(escape(name), str(number), f"{row['coverage']:.0%}"),
            *(f"{row['width']:.3g}", f"{row['score']:.2f}"),
        )
    console.print(table)
    console.print(
        "the score is the logarithm of the width, and ten times the distance of a miss; lower is "
        "better",
        style="dim",
    )


def range_of(case: Json) -> str:
    """Format the range of a prediction."""
    if case["unit"] in COUNTED:
        return f"{case['low']:,.0f} .. {case['high']:,.0f}"
    return si_range(case["low"], case["high"], case["unit"])


def amount(value: float, unit: str) -> str:
    """Format a number with an SI prefix, or as a count."""
    return f"{value:,.0f}" if unit in COUNTED else si(value, unit)


def show_cases(cases: Iterable[Json], console: Console) -> None:
    """Print a row for each case."""
    table = plain_table(console)
    for name in ("case", "tier", "measured", "predicted", "range", "error", "", "within"):
        table.add_column(
            name, no_wrap=name != "case", justify="right" if name == "error" else "left"
        )
    holds = {None: "", True: "[green]ok[/green]", False: "[bold red]NO[/bold red]"}
    for each in cases:
        table.add_row(
            escape(each["id"]),
            each["tier"].partition(" ")[0],
            amount(each["measured"], each["unit"]),
            (">= " if each["missing"] else "") + amount(each["predicted"], each["unit"]),
            range_of(each),
            f"{100 * each['error']:+.1f} %",
            holds[each["holds"]],
            "yes" if each["within"] else "no",
        )
    console.print(table)


COMMAND = Command(
    "profiles",
    options,
    run,
    show,
    (
        "neuro-eqprop profiles list",
        "neuro-eqprop profiles show loihi1",
        "neuro-eqprop profiles explain loihi1 --json",
        "neuro-eqprop profiles validate loihi1",
    ),
)
