"""What `energy` shows beside a chip: dense machines, a second run, accuracy for joules."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from neuro_eqprop.cli.command import Json, plain_table
from neuro_eqprop.energy.verdict import sentence
from neuro_eqprop.units import si

STYLES = {
    "spikes win": "green",
    "spikes lose": "red",
    "the ranges overlap": "yellow",
    "not compared": "dim",
}


def dense(outcome: Json, console: Console) -> None:
    """The dense pass on measured devices, beside each chip, and an honest line on who wins."""
    references = outcome["reference"]
    if not references:
        return
    macs, host = (outcome["counted"][name] for name in ("dense_macs", "host_macs_per_sample"))
    fed = f", the host's {host:.4g} MACs at the machine's own price" if host else ""
    console.print(
        f"\n[bold]against dense machines[/bold]: one pass of {macs} MACs at a stated batch, above "
        f"the machine's idle; of each chip how many times these joules it uses{fed}"
    )
    chips = list(dict.fromkeys(row["profile"] for row in outcome["comparison"]))
    cells = {(r["profile"], r["device"], r["batch"]): r for r in outcome["comparison"]}
    found = plain_table(console)
    for name in ("machine", "batch", "joules"):
        found.add_column(name, justify="left" if name == "machine" else "right", no_wrap=True)
    for name in chips:
        found.add_column(escape(name), justify="right", overflow="fold")
    for place, each in enumerate(references):
        new = place == 0 or references[place - 1]["device"] != each["device"]
        told = (times(cells[chip, each["device"], each["batch"]]) for chip in chips)
        name = each["device"] if new else ""
        found.add_row(escape(name), str(each["batch"]), si(each["joules"], "J"), *told)
    console.print(found)
    for chip in chips:
        words = sentence(row for row in outcome["comparison"] if row["profile"] == chip)
        console.print(f"[bold]{escape(chip)}[/bold]: {escape(words)}")
    for name, ratio in outcome["arithmetic_ratio"].items():
        console.print(
            f"{escape(name)}: dense arithmetic over spiking arithmetic {ratio:.3g} "
            "(a ratio of additions and multiplications, no joules of any machine)",
            style="dim",
        )


def times(row: Json) -> str:
    """The joules of a chip over those of a machine, in the colour of the outcome."""
    style = STYLES[row["outcome"]]
    if row["outcome"] == "not compared":
        return f"[{style}]-[/{style}]"
    mark = {"spikes lose": "", "spikes win": "!", "the ranges overlap": "?"}[row["outcome"]]
    return f"[{style}]{row['spiking'] / row['dense']:.3g}{mark}[/{style}]"


def beside(outcome: Json, console: Console) -> None:
    """Two runs, chip by chip."""
    other = outcome["beside"]
    console.print(f"\n[bold]beside {escape(other['run'])}[/bold]")
    for name, counted in (
        ("this run", {**outcome["counted"], "input_coding": outcome["input_coding"]}),
        ("the other", other["counted"]),
    ):
        console.print(
            f"{name}: {counted['steps']} steps, input as {escape(counted['input_coding'])}, "
            f"{counted['spikes_per_sample']:.4g} spikes and {counted['synops_per_sample']:.4g} "
            "synops a sample"
        )
    found = plain_table(console)
    for name in ("chip", "use", "this run", "the other", "times"):
        found.add_column(name)
    for row in other["profiles"]:
        sides = zip((row["joules"], row["other"]), row["reasons"], strict=True)
        shown = (si(j, "J") if j else short(reason) for j, reason in sides)
        one, two = row["boundaries"]
        apart = one and two and one != two
        times_ = f"not compared: {one}, {two}" if apart else "-"
        times_ = times_ if row["times"] is None else f"{row['times']:.3g}"
        found.add_row(escape(row["profile"]), row["use"], *map(escape, shown), times_)
    console.print(found)


def short(reason: str) -> str:
    """The first words of a reason."""
    return str(reason).partition(":")[0] or "unknown"


def trades(outcome: Json, console: Console) -> None:
    """Of each chip the settings that no other beats, with the best trade marked."""
    counted = outcome["curve_counted"]
    console.print(
        f"\n[bold]accuracy for joules[/bold], {counted['samples']} samples a setting; of each chip "
        "the settings that no other beats. Best trade: the cheapest within half a percent of the "
        "most accurate"
    )
    found = plain_table(console)
    for name in ("chip", "code", "steps", "accuracy", "joules", ""):
        found.add_column(name)
    beaten = 0
    for name, curve in outcome["curve"].items():
        kept = [point for point in curve["points"] if point["front"]]
        beaten += len(curve["points"]) - len(kept)
        for place, each in enumerate(sorted(kept, key=lambda point: float(point["joules"]))):
            found.add_row(
                "" if place else escape(name),
                each["code"],
                str(each["steps"]),
                f"{100 * each['accuracy']:.2f} %",
                si(each["joules"], "J"),
                remark(each),
            )
    console.print(found)
    if beaten:
        console.print(f"{beaten} settings more are beaten by these", style="dim")
    for code, why in counted["left_out"].items():
        console.print(f"code {code} is left out: {escape(why)}", style="dim")


def remark(point: Json) -> str:
    """What is said of a setting."""
    best = "[bold green]<- best trade[/bold green] " if point["best"] else ""
    return best if point["fits"] else f"{best}[dim]not known whether it fits[/dim]"
