"""What `energy` shows beside a chip: dense machines, a second run, accuracy for joules."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape

from neuro_eqprop.cli.base import Json
from neuro_eqprop.cli.units import si

VERSUS = {
    "spikes win": "spikes win against",
    "spikes lose": "spikes lose against",
    "the ranges overlap": "the ranges overlap with",
    "not compared": "not compared with",
}


def dense(outcome: Json, console: Console) -> None:
    """The dense pass on measured devices, and an honest line for each comparison."""
    from rich.table import Table

    if not outcome["reference"]:
        return
    title = f"a dense pass of {outcome['counted']['dense_macs']} MACs, above the device's idle"
    console.print(f"\n{title}")
    found = Table("device", "batch", "joules", "measured at")
    for each in outcome["reference"]:
        joule = si(each["joules"], "J")
        found.add_row(each["device"], str(each["batch"]), joule, each["boundary"])
    console.print(found)
    compared(outcome["comparison"], console)
    for name, ratio in outcome["arithmetic_ratio"].items():
        console.print(
            f"{escape(name)}: dense arithmetic over spiking arithmetic {ratio:.3g} "
            "(a ratio of additions and multiplications, no joules of any machine)"
        )


def compared(rows: list[Json], console: Console) -> None:
    """Who uses less: of each chip, the devices that share an outcome in one line."""
    for chip in dict.fromkeys(row["profile"] for row in rows):
        mine = [row for row in rows if row["profile"] == chip]
        for outcome in dict.fromkeys(row["outcome"] for row in mine):
            told = [row for row in mine if row["outcome"] == outcome]
            shown = "; ".join(versus(row) for row in told)
            words = VERSUS[outcome]
            console.print(f"[bold]{escape(chip)}: {words}[/bold] {escape(shown)}")
    met = {row["outcome"] for row in rows}
    if "not compared" in met:
        console.print("not compared: inside different boundaries a lower figure proves nothing")
    if met & {"spikes win", "the ranges overlap"}:
        console.print("a chip that uses `at least` so much may lose what is won here")
    if any(row["stops_at"] is not None for row in rows):
        console.print("up to: spikes a neuron and step above which the chip uses more")


def versus(row: Json) -> str:
    """A device with both sides' joules, and up to which activity spikes would win."""
    words = f"{row['device']} batch {row['batch']}"
    if row["spiking"] is not None:
        words += f" ({si(row['spiking'], 'J')} : {si(row['dense'], 'J')}"
        words += ")" if row["stops_at"] is None else f", up to {row['stops_at']:.2g})"
    return words


def second(row: Json, console: Console) -> None:
    """One chip of two runs."""
    line = f"{row['profile']}: {si(row['joules'], 'J')} beside {si(row['other'], 'J')}"
    if row["times"] is None:
        line += f", not compared (boundaries {row['boundaries'][0]}, {row['boundaries'][1]})"
    else:
        line += f", {row['times']:.3g} times"
    console.print(escape(line))


def trade(name: str, points: Iterable[Json], console: Console) -> None:
    """Accuracy against joules on one chip."""
    from rich.table import Table

    found = Table("code", "steps", "accuracy", "joules", "", title=f"{name}: accuracy for joules")
    for each in sorted(points, key=lambda point: float(point["joules"])):
        mark = "best trade" if each["best"] else "nothing beats it" if each["front"] else ""
        accuracy = f"{100 * each['accuracy']:.2f} %"
        found.add_row(each["code"], str(each["steps"]), accuracy, si(each["joules"], "J"), mark)
    console.print(found)
