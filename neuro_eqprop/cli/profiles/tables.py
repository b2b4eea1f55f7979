"""What `profiles` shows to people."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape

from neuro_eqprop.cli.command import Json, plain_table, print_facts
from neuro_eqprop.cli.energy.tables import describe, described
from neuro_eqprop.units import si, si_range


def show(outcome: Json, console: Console) -> None:
    """The outcome of each verb in its own way."""
    {"list": listing, "show": single, "explain": explained, "validate": validated}[outcome["verb"]](
        outcome, console
    )


def listing(outcome: Json, console: Console) -> None:
    """A profile a row."""
    table = plain_table(console)
    for name in ("profile", "what", "device", "known", "unknown"):
        table.add_column(name)
    for each in outcome["profiles"]:
        counts = str(each["known"]), str(each["unknown"])
        table.add_row(escape(each["profile"]), escape(each["title"]), each["device"], *counts)
    console.print(table)
    console.print(f"files in {escape(outcome['folder'])}; README.md there tells how to add a chip")


def head(outcome: Json, console: Console) -> None:
    """Name, operating point, notes."""
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


def single(outcome: Json, console: Console) -> None:
    """The numbers of a profile, without their sources."""
    head(outcome, console)
    table = plain_table(console)
    for name in ("quantity", "value [range]", "basis", "evidence"):
        table.add_column(escape(name), no_wrap=True)
    for row in outcome["entries"]:
        table.add_row(row["key"], escape(describe(row)[0]), row.get("basis"), row.get("evidence"))
    console.print(table)
    for point in outcome["curve"]:
        cost = si(point["joules_per_mac"], "J")
        console.print(f"batch {point['batch']}: {cost} a MAC, {point['boundary']}")


def explained(outcome: Json, console: Console) -> None:
    """Every number with its source."""
    head(outcome, console)
    console.print("")
    described(outcome["entries"], console)
    for point in outcome["curve"]:
        cost = si(point["joules_per_mac"], "J")
        console.print(escape(f"  batch {point['batch']}: {cost} a MAC; {point['where']}"))
    if outcome["learning"]:
        console.print("\n[bold]what learning is charged for[/bold]")
        described(outcome["learning"], console)
    console.print("\n[bold]sources[/bold]")
    for name, source in outcome["sources"].items():
        doi = f", doi {source['doi']}" if source["doi"] else ""
        caveat = f" ({source['caveat']})" if source["caveat"] else ""
        console.print(escape(f"  {name}: {source['ref']}{doi}{caveat}"))


ROLES = {
    "prediction": "predictions: the constants come from elsewhere, so agreement validates them",
    "consistency": "consistency: constants of the same source, so it shows that the formula holds",
}


def validated(outcome: Json, console: Console) -> None:
    """Predictions beside measurements; what counts and what does not."""
    for role, words in ROLES.items():
        cases = [each for each in outcome["cases"] if each["role"] == role]
        if cases:
            console.print(f"[bold]{words}[/bold]")
            checked(cases, console)
            console.print("")
    worst = outcome["worst_prediction"]
    far = "" if worst is None else f", the worst {100 * worst:.0f} % off"
    console.print(
        f"{outcome['predictions']} predictions count as validation: "
        f"{outcome['predictions_within']} lie in the predicted range{far}. The other "
        f"{outcome['consistency']} cases do not count. `ok`: what is asked of the case holds."
    )


def checked(cases: Iterable[Json], console: Console) -> None:
    """A case a row."""
    found = plain_table(console)
    for name in ("case", "measured", "predicted", "95 % of draws", "error", "", "in it"):
        found.add_column(name, no_wrap=True, justify="right" if name == "error" else "left")
    for each in cases:
        asked = {None: "", True: "[green]ok[/green]", False: "[bold red]NO[/bold red]"}
        found.add_row(
            escape(each["id"]),
            si(each["measured"], each["unit"]),
            si(each["predicted"], each["unit"]),
            si_range(each["low"], each["high"], each["unit"]),
            f"{100 * each['error']:+.1f} %",
            asked[each["holds"]],
            "yes" if each["within"] else "no",
        )
    console.print(found)
