"""What `energy` shows to people: a table, bars, what is unknown, and who wins."""

from __future__ import annotations

from collections.abc import Iterable
from math import log10

from rich.console import Console
from rich.markup import escape

from neuro_eqprop.cli import energy_learning
from neuro_eqprop.cli.base import Json
from neuro_eqprop.cli.energy_versus import dense, second, trade
from neuro_eqprop.cli.units import si

AXIS = 48
BAR = 40
COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "red", "white", "bright_black")
MARKS = "█▓▒░#*+="


def joules(side: Json) -> str:
    """Joules and their range in one cell; the reason where there are none."""
    if side["joules"] is None:
        return short(side["reason"])
    least = ">= " if side["at_least"] else ""
    return f"{least}{si(side['joules'], 'J')} [{si(side['low'], 'J')} .. {si(side['high'], 'J')}]"


def show(outcome: Json, console: Console) -> None:
    """Everything, the most asked for first."""
    head(outcome, console)
    energy_learning.head(outcome["counted"]["lessons"], console)
    table(outcome["profiles"], console)
    axis(outcome["profiles"], console)
    shares(outcome["profiles"], console)
    doubts(outcome["profiles"], console)
    energy_learning.learning(outcome["profiles"], console)
    dense(outcome, console)
    for row in outcome.get("beside", []):
        second(row, console)
    for name, curve in outcome.get("curve", {}).items():
        trade(name, curve["points"], console)
    for name, rows in outcome.get("sources", {}).items():
        sources(name, rows, console)
    if "file" in outcome:
        console.print(f"written to {escape(outcome['file'])}")


def head(outcome: Json, console: Console) -> None:
    """What was counted, and on what."""
    counted = outcome["counted"]
    console.print(
        f"counted on {counted['samples']} samples of {counted['steps']} steps "
        f"({escape(counted['from'])}), input as {escape(outcome['input_coding'])}: "
        f"{counted['spikes_per_sample']:.4g} spikes, {counted['synops_per_sample']:.4g} synops, "
        f"{counted['host_macs_per_sample']:.4g} host MACs a sample"
    )


def table(profiles: Iterable[Json], console: Console) -> None:
    """A chip a row."""
    from rich.table import Table

    found = Table("chip", "fits", "cores", "inference", "time", "learning", pad_edge=False)
    words = {True: "fits", False: "no", None: "unknown"}
    for each in profiles:
        name = escape(each["profile"]) + ("*" if each["overridden"] else "")
        cores = "-" if each["cores"] is None else f"{each['cores']} on {each['chips']}"
        inference, learning = each["inference"], each["learning"]
        found.add_row(
            name,
            words[each["fits"]],
            cores,
            escape(joules(inference)),
            si(inference["seconds"], "s"),
            brief(learning),
        )
    console.print(found)
    for each in profiles:
        for change in each["overridden"]:
            console.print(f"* {escape(each['profile'])}: {escape(change)}")
        if each["scenario"]:
            console.print(f"[bold]{escape(each['profile'])}: {escape(each['scenario'])}[/bold]")


def brief(side: Json) -> str:
    """Joules without their range, or the first words of the reason."""
    if side["joules"] is None:
        return escape(short(side["reason"]))
    return f"{'>= ' if side['at_least'] else ''}{si(side['joules'], 'J')}"


def short(reason: str) -> str:
    """The first words of a reason."""
    return str(reason).partition(":")[0] or "-"


def axis(profiles: Iterable[Json], console: Console) -> None:
    """Joules of an inference on a logarithmic axis, with their ranges."""
    known = [each for each in profiles if each["inference"]["joules"]]
    if not known:
        return
    lows = [each["inference"]["low"] for each in known]
    highs = [each["inference"]["high"] for each in known]
    first, last = log10(min(lows)), log10(max(highs))
    first, last = int(first // 1), int(-(-last // 1))
    last = max(last, first + 1)

    def at(value: float) -> int:
        return round((log10(value) - first) / (last - first) * (AXIS - 1))

    title = "joules of an inference, logarithmic"
    console.print(f"\n{title}: {si(10.0**first, 'J')} .. {si(10.0**last, 'J')}")
    for each in profiles:
        name = f"{each['profile'][:18]:<18} "
        side = each["inference"]
        if not side["joules"]:
            console.print(escape(f"{name}{short(side['reason'])}"), style="dim")
            continue
        line = [" "] * AXIS
        for place in range(at(side["low"]), at(side["high"]) + 1):
            line[place] = "─"
        line[at(side["low"])], line[at(side["high"])] = "├", "┤"
        line[at(side["joules"])] = "●"
        where = f" {side['boundary']}, {side['evidence']}"
        console.print(escape(f"{name}{''.join(line)}{where}"))


def shares(profiles: Iterable[Json], console: Console) -> None:
    """What each chip's joules consist of, as a bar of parts."""
    for each in profiles:
        side = each["inference"]
        if not side["joules"]:
            continue
        terms = sorted(side["terms"], key=lambda term: -term["joules"])
        whole = sum(term["joules"] for term in terms)
        bar, legend = "", []
        for place, term in enumerate(terms):
            mark = MARKS[place % len(MARKS)]
            colour = COLOURS[place % len(COLOURS)]
            part = term["joules"] / whole
            bar += f"[{colour}]{mark * round(BAR * part)}[/{colour}]"
            if part >= 0.005:
                legend.append(f"[{colour}]{mark}[/{colour}] {escape(term['name'])} {part:.0%}")
        product = side["energy_delay_product"]
        delay = "" if product is None else f" energy x delay {product:.3g} J s"
        console.print(f"\n[bold]{escape(each['profile'])}[/bold] {bar}{delay}")
        console.print("  " + "  ".join(legend))
        points = sorted({term["operating_point"] for term in terms if term["operating_point"]})
        if points:
            console.print(
                escape(f"  costs of other operating points among them: {'; '.join(points)}")
            )


def doubts(profiles: Iterable[Json], console: Console) -> None:
    """What is not known, and why a network does not fit."""
    console.print("")
    for each in profiles:
        name, side = escape(each["profile"]), each["inference"]
        for broken in each["violations"]:
            cure = "more chips would do" if broken["curable"] else "no number of chips cures it"
            console.print(f"{name}: does not fit: {escape(broken['reason'])} ({cure})")
        missing = ", ".join(unknown["name"] for unknown in side["unpriced"])
        if missing and each["fits"] is not False:
            console.print(f"{name}: not counted, because unknown: {escape(missing)}")
        gaps = ", ".join(each["undecided"])
        if gaps and each["fits"] is None:
            console.print(f"{name}: not known whether it fits: {escape(gaps)}")


def sources(name: str, rows: Iterable[Json], console: Console) -> None:
    """Where the numbers of a chip come from."""
    console.print(f"\n[bold]{escape(name)}[/bold]")
    for row in rows:
        console.print(escape(describe(row)))


def describe(row: Json) -> str:
    """One entry of a profile in a line."""
    if "within" in row:
        return f"  {row['key']}: inside {row['within']} ({row['note']})"
    if row.get("unknown"):
        return f"  {row['key']}: unknown ({row['note']})"
    value = f"{row['value']:.4g} [{row['low']:.4g} .. {row['high']:.4g}] {row['unit']}"
    origin = f"{row['basis']}, {row['evidence']}; {row['source']}, {row['where']}"
    if row["operating_point"]:
        origin += f"; at {row['operating_point']}"
    return f"  {row['key']}: {value}; {origin}" + (f"; {row['note']}" if row["note"] else "")
