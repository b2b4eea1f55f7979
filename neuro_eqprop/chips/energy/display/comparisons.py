"""Comparisons as text: dense devices, a second run, accuracy against joules."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from neuro_eqprop.chips.energy.dense_reference import Outcome
from neuro_eqprop.chips.energy.display.console import plain_table
from neuro_eqprop.chips.energy.pareto import SLACK, Point, best, front, pareto_front
from neuro_eqprop.chips.energy.result import (
    CountedEvents,
    CurveSettings,
    EnergyReport,
    RunComparison,
)
from neuro_eqprop.common.units import si, si_range

STYLES = {
    Outcome.WINS: ("green", "!"),
    Outcome.LOSES: ("red", ""),
    Outcome.OPEN: ("yellow", "?"),
    Outcome.REFUSED: ("dim", ""),
}
"""Colour and mark of each outcome."""


def print_dense(report: EnergyReport, console: Console) -> None:
    """Print a dense pass on measured devices, and a sentence on which side needs less."""
    if not report.references:
        return
    counted = report.counted
    console.print(
        f"\n[bold]against dense devices[/bold]: one pass of {counted.dense_macs} MACs; each device "
        "at the boundary of its measurement"
    )
    columns = ("device", "batch", "joules", "95 % of draws", "boundary")
    table = plain_table(console, columns, right=columns[1:3])
    previous = ""
    for reference in report.references:
        name = reference.device if reference.device != previous else ""
        previous, joules = reference.device, reference.joules
        table.add_row(
            escape(name),
            str(reference.batch),
            si(joules.value, "J"),
            si_range(joules.low, joules.high, "J"),
            reference.boundary.value.replace("_", " "),
        )
    console.print(table)
    print_summaries(report, console)
    for name, ratio in report.arithmetic_ratio.items():
        console.print(
            f"{escape(name)}: dense arithmetic over spiking arithmetic {ratio:.3g} "
            "(a ratio of additions and multiplications, not joules of a device)",
            style="dim",
        )


def print_summaries(report: EnergyReport, console: Console) -> None:
    """Print a row for each chip and device at batch 1; other batches are in the file."""
    rows = [
        (chip, each)
        for chip in report
        for each in chip.comparisons
        if each.batch == 1 and each.outcome is not Outcome.REFUSED
    ]
    if not rows:
        return
    console.print("\n[bold]do spikes need less?[/bold]")
    table = plain_table(console, ("chip", "comparison"), wrap=True)
    previous = ""
    for chip, each in rows:
        style, _ = STYLES[each.outcome]
        name = "" if chip.profile == previous else escape(chip.profile)
        previous = chip.profile
        table.add_row(name, f"[{style}]{escape(each.summary)}[/{style}]")
    console.print(table)
    doubtful = [chip.profile for chip in report if chip.comparisons and chip.inference.missing]
    if doubtful:
        console.print(
            f"{', '.join(doubtful)}: as long as the costs that are unknown are small; see above",
            style="dim",
        )


def print_run_comparison(counted: CountedEvents, beside: RunComparison, console: Console) -> None:
    """Print two runs, chip by chip."""
    console.print(f"\n[bold]compared with {escape(beside.run)}[/bold]")
    for name, each in (("this run", counted), ("the other", beside.counted)):
        console.print(
            f"{name}: {each.steps} steps, input as {escape(each.input_coding)}, "
            f"{each.spikes:.4g} spikes and {each.synops:.4g} synops a sample"
        )
    table = plain_table(console, ("chip", "use", "this run", "the other", "ratio"), wrap=True)
    for row in beside.rows:
        sides = ((row.joules, row.other), row.reasons, row.at_least, row.ranges)
        shown = (side_text(*each) for each in zip(*sides, strict=True))
        one, two = row.boundaries
        ratio = "-" if row.ratio is None else f"{row.ratio:.3g}"
        if one and two and one != two:
            ratio = f"not compared: {one}, {two}"
        table.add_row(escape(row.profile), row.use, *map(escape, shown), ratio)
    console.print(table)


def side_text(joules: float | None, reason: str, at_least: bool, ends: tuple[float, ...]) -> str:
    """Joules of one of two runs with their range, `>=` for a lower bound, or why there are none."""
    if not joules:
        return reason.partition(":")[0] or "unknown"
    spread = f"\n{si_range(*ends[:2], 'J')}" if len(ends) == 2 else ""
    return f"{'>= ' if at_least else ''}{si(joules, 'J')}{spread}"


def print_pareto(report: EnergyReport, settings: CurveSettings, console: Console) -> None:
    """Print all settings by joules, those that are Pareto-optimal over all chips marked."""
    points = [point for chip in report for point in chip.curve]
    kept = pareto_front(points)
    order = sorted(points, key=lambda point: (point.joules, -point.accuracy))
    console.print(
        f"\n[bold]Pareto front[/bold] of {len(points)} settings over chips, codes, steps and bits, "
        f"{settings.samples} samples each; *: no other is better in accuracy, joules and latency"
    )
    columns = ("", "chip", "code", "steps", "bits", "accuracy", "joules", "latency", "")
    table = plain_table(console, columns, wrap=True)
    for point in order:
        table.add_row(
            "*" if point in kept else "",
            escape(point.profile),
            point.code,
            str(point.steps),
            str(point.bits or "-"),
            f"{100 * point.accuracy:.2f} %",
            si(point.joules, "J"),
            si(point.seconds, "s"),
            "" if point.fits else "[dim]unknown whether it fits[/dim]",
            style="" if point in kept else "dim",
        )
    console.print(table)
    for code, reason in settings.left_out.items():
        console.print(f"{code} is left out: {escape(reason)}", style="dim")


def print_curves(report: EnergyReport, settings: CurveSettings, console: Console) -> None:
    """Print the Pareto front of each chip, with the best point marked."""
    if settings.pareto:
        print_pareto(report, settings, console)
        return
    console.print(
        f"\n[bold]accuracy against joules[/bold], {settings.samples} samples per setting; the "
        f"Pareto front of each chip. Best trade: the cheapest within {SLACK:.1%} of the most "
        "accurate"
    )
    columns = ("chip", "code", "steps", "accuracy", "joules", "")
    table = plain_table(console, columns, wrap=True)
    beaten = 0
    for each in (each for each in report if each.curve):
        kept, chosen = front(each.curve), best(each.curve)
        beaten += len(each.curve) - len(kept)
        for place, point in enumerate(kept):
            table.add_row(
                "" if place else escape(each.profile),
                point.code,
                str(point.steps),
                f"{100 * point.accuracy:.2f} %",
                si(point.joules, "J"),
                point_remark(point, chosen),
            )
    console.print(table)
    if beaten:
        console.print(f"{beaten} more settings are not on the front", style="dim")
    for code, reason in settings.left_out.items():
        console.print(f"code {code} is left out: {escape(reason)}", style="dim")


def point_remark(point: Point, chosen: Point) -> str:
    """Whether a point is the best trade, and whether it is known to fit."""
    remark = "[bold green]<- best trade[/bold green] " if point == chosen else ""
    return remark if point.fits else f"{remark}[dim]unknown whether it fits[/dim]"
