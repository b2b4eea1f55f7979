"""What `profiles` shows to people."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from neuro_eqprop.cli.base import Json, facts
from neuro_eqprop.cli.energy_show import described
from neuro_eqprop.cli.units import si


def show(outcome: Json, console: Console) -> None:
    """The outcome of each verb in its own way."""
    {"list": listing, "show": single, "explain": explained, "validate": validated}[outcome["verb"]](
        outcome, console
    )


def listing(outcome: Json, console: Console) -> None:
    """A profile a row."""
    from rich.table import Table

    table = Table("profile", "what", "device", "known", "unknown", pad_edge=False)
    for each in outcome["profiles"]:
        counts = str(each["known"]), str(each["unknown"])
        table.add_row(escape(each["profile"]), escape(each["title"]), each["device"], *counts)
    console.print(table)
    console.print(f"files in {escape(outcome['folder'])}; README.md there tells how to add a chip")


def head(outcome: Json, console: Console) -> None:
    """Name, operating point, notes."""
    console.print(f"[bold]{escape(outcome['title'])}[/bold] ({escape(outcome['file'])})")
    facts({k: escape(v) for k, v in outcome["operating_point"].items()}, console)
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
    from rich.table import Table

    head(outcome, console)
    table = Table("quantity", "value", "low", "high", "basis", "evidence", pad_edge=False)
    for row in outcome["entries"]:
        if "within" in row:
            table.add_row(row["key"], f"inside {row['within']}", "", "", "", "")
        elif row.get("unknown"):
            table.add_row(row["key"], "unknown", "", "", "", "")
        else:
            numbers = (plain(row[name], row["unit"]) for name in ("value", "low", "high"))
            table.add_row(row["key"], *numbers, row["basis"], row["evidence"])
    console.print(table)
    for point in outcome["curve"]:
        cost = si(point["joules_per_mac"], "J")
        console.print(f"batch {point['batch']}: {cost} a MAC, {point['boundary']}")


def plain(value: float, unit: str) -> str:
    """A number of a profile."""
    if unit in ("count", "bit", "step", "flag"):
        return f"{value:g}" + ("" if unit in ("count", "flag") else f" {unit}")
    return si(value, unit)


def explained(outcome: Json, console: Console) -> None:
    """Every number with its source."""
    head(outcome, console)
    console.print("")
    console.print(described(outcome["entries"]))
    for point in outcome["curve"]:
        cost = si(point["joules_per_mac"], "J")
        console.print(escape(f"  batch {point['batch']}: {cost} a MAC; {point['where']}"))
    if outcome["learning"]:
        console.print("\n[bold]what learning is charged for[/bold]")
        console.print(described(outcome["learning"]))
    console.print("\n[bold]sources[/bold]")
    for name, source in outcome["sources"].items():
        doi = f", doi {source['doi']}" if source["doi"] else ""
        caveat = f" ({source['caveat']})" if source["caveat"] else ""
        console.print(escape(f"  {name}: {source['ref']}{doi}{caveat}"))


def validated(outcome: Json, console: Console) -> None:
    """Predictions beside measurements; what counts and what does not."""
    from rich.table import Table

    table = Table("case", "role", "measured", "predicted", "range", "error", "in", pad_edge=False)
    for each in outcome["cases"]:
        unit = each["unit"]
        span = f"{si(each['low'], unit)}..{si(each['high'], unit)}"
        asked = "" if each["holds"] is None else " ok" if each["holds"] else " NO"
        table.add_row(
            escape(each["id"]),
            each["role"],
            si(each["measured"], unit),
            si(each["predicted"], unit),
            span,
            f"{100 * each['error']:+.1f} %{asked}",
            "yes" if each["within"] else "no",
        )
    console.print(table)
    worst = outcome["worst_prediction"]
    far = "" if worst is None else f", the worst {100 * worst:.0f} % off"
    console.print(
        f"{outcome['predictions']} predictions count as validation: "
        f"{outcome['predictions_within']} lie in the predicted range{far}. The other "
        f"{outcome['consistency']} cases share their source with the constants and show only that "
        "the formula holds. `ok`: what is asked of the case holds."
    )
