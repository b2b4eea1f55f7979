"""What `energy` shows to people: a table, bars, what is unknown, and who wins."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape

from neuro_eqprop.cli.command import Json, plain_table
from neuro_eqprop.cli.energy import learning
from neuro_eqprop.cli.energy.bars import LEAST, bars, reason, shares
from neuro_eqprop.cli.energy.versus import beside, dense, trades
from neuro_eqprop.units import si, si_range

FITS = {True: "fits", False: "no", None: "unknown"}
ORDER = {True: 0, None: 1, False: 2}


def show(outcome: Json, console: Console) -> None:
    """Everything, the most asked for first."""
    console.width = min(100, console.width)
    chips = sorted(outcome["profiles"], key=lambda each: ORDER[each["fits"]])
    head(outcome, console)
    table(chips, console)
    bars(chips, console, use="inference")
    remarks(chips, console)
    learning.learning(chips, outcome["counted"]["lessons"], console)
    dense(outcome, console)
    if "curve" in outcome:
        trades(outcome, console)
    if "beside" in outcome:
        beside(outcome, console)
    for name, rows in outcome.get("sources", {}).items():
        sources(name, rows, console)
    if "file" in outcome:
        console.print(f"\nwritten to {escape(outcome['file'])}")


def head(outcome: Json, console: Console) -> None:
    """What was counted, and on what."""
    counted = outcome["counted"]
    bits = "" if counted["bits"] is None else f", weights of {counted['bits']} bits"
    code = f" in code {counted['code']}" if counted["code"] else ""
    host = counted["host_macs_per_sample"]
    product = f" ({host:.4g} host MACs a sample)" if host else ""
    console.print(
        f"counted on {counted['samples']} samples of {counted['steps']} steps{code} "
        f"({escape(counted['from'])}){bits}, input as {escape(outcome['input_coding'])}{product}: "
        f"{counted['spikes_per_sample']:.4g} spikes and {counted['synops_per_sample']:.4g} synops "
        f"a sample, {counted['activity']:.3g} spikes a neuron and step\n"
    )


def table(profiles: Iterable[Json], console: Console) -> None:
    """A chip a row."""
    found = plain_table(console)
    for name in ("chip", "fits", "cores", "an inference", "95 % of draws", "time", "J x s"):
        found.add_column(name, no_wrap=True)
    for each in profiles:
        side = each["inference"]
        name = escape(each["profile"]) + ("*" if each["overridden"] else "")
        cores = "-" if each["cores"] is None else str(each["cores"])
        if each["cores"] is not None and each["chips"] is not None and each["chips"] > 1:
            cores += f" on {each['chips']}"
        product = side["energy_delay_product"]
        found.add_row(
            name,
            FITS[each["fits"]],
            cores,
            escape(joules(side)),
            si_range(side["low"], side["high"], "J") if side["joules"] is not None else "",
            si(side["seconds"], "s"),
            "-" if product is None else f"{product:.1e}".replace("e-0", "e-"),
            style="dim" if side["joules"] is None else "",
        )
    console.print(found)
    for each in profiles:
        for change in each["overridden"]:
            console.print(f"* {escape(each['profile'])}: {escape(change)}")
        if each["scenario"]:
            console.print(f"[bold]{escape(each['profile'])}: {escape(each['scenario'])}[/bold]")


def joules(side: Json) -> str:
    """Joules, `>=` where terms are missing; the first words of the reason where there are none."""
    if side["joules"] is None:
        return reason(side)
    return f"{'>= ' if side['at_least'] else ''}{si(side['joules'], 'J')}"


def remarks(profiles: Iterable[Json], console: Console) -> None:
    """Of each chip what its joules consist of, what is not known, or why it does not fit."""
    from rich.table import Table

    found = Table.grid(padding=(0, 2, 0, 0))
    for each in profiles:
        for place, words in enumerate(remarks_on(each)):
            found.add_row("" if place else escape(each["profile"]), escape(words))
    console.print("")
    console.print(found)


def remarks_on(each: Json) -> list[str]:
    """Sentences on one chip."""
    side, told = each["inference"], []
    for broken in each["violations"]:
        cure = "more chips would do" if broken["curable"] else "no number of chips cures it"
        told.append(f"does not fit: {broken['reason']} ({cure})")
    if side["joules"] is None and side["reason"].startswith("refused"):
        told.append(side["reason"])
    if side["joules"]:
        large = [f"{n} {part:.0%}" for n, part in shares(side).items() if part >= LEAST]
        told.append(", ".join(large))
    points = sorted({t["operating_point"] for t in side["terms"] if t["operating_point"]})
    if points:
        told.append(f"costs of other operating points among them: {'; '.join(points)}")
    missing = ", ".join(unknown["name"] for unknown in side["unpriced"])
    if missing and each["fits"] is not False:
        told.append(f"not counted, because unknown: {missing}")
    if each["fits"] is None and each["undecided"]:
        told.append(f"not known whether it fits: {', '.join(each['undecided'])}")
    return told


def sources(name: str, rows: Iterable[Json], console: Console) -> None:
    """Where the numbers of a chip come from."""
    console.print(f"\n[bold]{escape(name)}[/bold]")
    described(rows, console)


def described(rows: Iterable[Json], console: Console) -> None:
    """Entries of a profile, each with its source below."""
    from rich.padding import Padding

    for row in rows:
        value, origin = describe(row)
        meaning = f"{row['meaning']}: " if "meaning" in row else ""
        console.print(f"{row['key']}  [bold]{escape(value)}[/bold]")
        console.print(Padding(escape(meaning + origin), (0, 0, 0, 4)))


def describe(row: Json) -> tuple[str, str]:
    """Value with range, and origin, of one entry of a profile."""
    if "within" in row:
        return f"inside {row['within']}", row["note"]
    if row.get("unknown"):
        return "unknown", row["note"]
    origin = f"{row['source']}, {row['where']}; {row['basis']}, {row['evidence']}"
    if row["operating_point"]:
        origin += f"; at {row['operating_point']}"
    if row["at"] is not None:
        give = f"give or take {row['tolerance']:.0%}"
        origin += f"; holds at {row['at']:g} events a second and chip, {give}, and nowhere else"
    return amount(row), origin + (f"; {row['note']}" if row["note"] else "")


def amount(row: Json) -> str:
    """A number of a profile with its range, if it has one."""
    unit, value = row["unit"], row["value"]
    if unit == "flag":
        return "yes" if value else "no"
    if unit in ("count", "bit", "step"):
        listed = ", ".join(f"{each:g}" for each in row["choices"])
        return (listed or f"{value:g}") + ("" if unit == "count" else f" {unit}")
    told, low, high = si(value, unit), row["low"], row["high"]
    return told if low == high else f"{told} [{si_range(low, high, unit, digits=4)}]"
