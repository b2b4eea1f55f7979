"""Energy results as text: every table of a report, in at most 100 columns.

A report is one table of a row a chip, of at most 30 lines with all around it; what else there is to
say, and what was asked for by options, follows where it is `verbose` or asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from neuro_eqprop.chips.energy.dense_reference import Outcome
from neuro_eqprop.chips.energy.estimate import REFUSED, Estimate
from neuro_eqprop.chips.energy.mapping import MappingCost
from neuro_eqprop.chips.energy.pareto import SLACK, Point, best, front, pareto_front
from neuro_eqprop.chips.energy.result import (
    CountedEvents,
    CurveSettings,
    EnergyEstimate,
    EnergyReport,
    LearningEvents,
    RunComparison,
    TrainingCost,
)
from neuro_eqprop.chips.energy.table import COLUMNS, FITS, UseRow, use_rows
from neuro_eqprop.chips.energy.term_colours import terminal_colour
from neuro_eqprop.chips.profiles.describe import describe_row
from neuro_eqprop.common.units import si, si_range

ORDER = {True: 0, None: 1, False: 2}
STYLES = {Outcome.WINS: "green", Outcome.LOSES: "red", Outcome.OPEN: "yellow"}
UNKNOWN_FIT = "[dim]unknown whether it fits[/dim]"
MIN_SHARE = 0.01
"""Terms with a smaller share are not named."""
WIDTH = 100


def console_or_default(console: Console | None) -> Console:
    """The given console, or one on standard output; at most 100 columns wide."""
    console = console or Console(highlight=False)
    console.width = min(WIDTH, console.width)
    return console


def print_table(
    console: Console,
    columns: Iterable[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Iterable[str] = (),
    wrap: bool = False,
    dim: Sequence[bool] = (),
) -> None:
    """Print a table without lines, whose cells are markup; a repeated first cell is left blank.

    Columns in `right` are aligned to the right; rows at which `dim` is true are dimmed.
    """
    gap = 2 if console.width >= 90 else 1
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, gap, 0, 0))
    right = set(right)
    for name in columns:
        table.add_column(name, no_wrap=not wrap, justify="right" if name in right else "left")
    previous = ""
    for place, (first, *rest) in enumerate(rows):
        style = "dim" if dim and dim[place] else ""
        table.add_row("" if first == previous and not dim else first, *rest, style=style)
        previous = first
    console.print(table)


def print_remarks(rows: Iterable[tuple[str, str]], console: Console) -> None:
    """Print names beside remarks, which may wrap; a repeated name is left blank."""
    table = Table.grid(padding=(0, 2, 0, 0))
    previous = ""
    for name, remark in rows:
        table.add_row("" if name == previous else escape(name), escape(remark))
        previous = name
    console.print(table)


def short_reason(found: Estimate) -> str:
    """The beginning of the reason why there are no joules, up to the first colon."""
    return found.reason.partition(":")[0] or "unknown"


def print_report(report: EnergyReport, console: Console, *, verbose: bool = False) -> None:
    """Print a row for each chip, what was asked for, and if `verbose` everything else."""
    console = console_or_default(console)
    chips = sorted(report, key=lambda each: ORDER[each.fits])
    print_counted(report.counted, console)
    print_chips(report, console)
    print_changes(chips, console)
    if verbose:
        print_remarks(
            ((each.profile, remark) for each in chips for remark in chip_remarks(each)), console
        )
        print_learning(report, chips, console)
        print_dense(report, console)
    else:
        print_misfits(chips, console)
        print_training_samples(report, chips, console)
        console.print(
            "~ order of magnitude; >= lower bound. `--verbose` shows terms, learning and dense "
            "devices",
            style="dim",
        )
    if report.sensitivity:
        print_sensitivity(chips, console)
    if report.training is not None and (verbose or report.training.target is not None):
        print_training(report.training, console)
    if report.curve is not None:
        (print_pareto if report.curve.pareto else print_curves)(report, report.curve, console)
    if report.beside is not None:
        print_run_comparison(report.counted, report.beside, console)
    for each in report:
        if each.sources:
            console.print(f"\n[bold]{escape(each.profile)}[/bold]")
            print_sources(each.sources, console)
    for name in ("file", "csv", "figure"):
        if getattr(report, name):
            console.print(f"written to {escape(getattr(report, name))}")


def print_changes(chips: Iterable[EnergyEstimate], console: Console) -> None:
    """Print the values that are not those of the profiles, and the assumptions of scenarios."""
    for chip in chips:
        for change in chip.overridden:
            console.print(f"* {escape(chip.profile)}: {escape(change)}")
        if chip.scenario:
            console.print(f"[bold]{escape(chip.profile)}: {escape(chip.scenario)}[/bold]")


def print_training_samples(
    report: EnergyReport, chips: Iterable[EnergyEstimate], console: Console
) -> None:
    """Print the joules of a learning sample and of the whole training, on chips that learn."""
    rows = [UseRow(chip, "learning") for chip in chips if chip.learning.joules is not None]
    listed = "; ".join(f"{row.chip.profile} {cell('joules', row)}" for row in rows)
    samples = next((row.found.samples for row in rows), None)
    if rows:
        whole = "" if samples is None else f" (one of {samples})"
        print_remarks([("learning", f"a training sample{whole}: {listed}")], console)
    elif report.counted.learning.reason:
        print_remarks([("learning", report.counted.learning.reason)], console)


def print_misfits(chips: Iterable[EnergyEstimate], console: Console) -> None:
    """Print the nearest change that would make the network fit, for chips that it does not fit."""
    rows = [
        (each.profile, f"does not fit: {each.placement.violations[0].reason}")
        for each in chips
        if each.placement is not None and each.placement.violations
    ]
    refused = [
        (each.profile, each.inference.reason)
        for each in chips
        if each.inference.reason.startswith(REFUSED)
    ]
    print_remarks([*rows, *refused], console)


def print_counted(counted: CountedEvents, console: Console) -> None:
    """Print the counted events and the accuracy."""
    bits = "" if counted.bits is None else f", {counted.bits}-bit weights"
    code = f" in code {counted.code}" if counted.code else ""
    host = f" ({counted.host_macs:.4g} host MACs a sample)" if counted.host_macs else ""
    console.print(
        f"counted on {counted.samples} samples of {counted.steps} steps{code} "
        f"({escape(counted.source)}){bits}, input as {escape(counted.input_coding)}{host}: "
        f"{counted.spikes:.4g} spikes and {counted.synops:.4g} synops "
        f"a sample, {counted.activity:.3g} spikes a neuron and step\n"
    )


def cell(name: str, row: UseRow) -> str:
    """A cell of the terminal: a short reason instead of joules, a dash for unknown numbers."""
    if name == "joules" and row.found.joules is None:
        return escape(short_reason(row.found))
    text = escape(COLUMNS[name].text(row))
    return text or ("" if name in ("range", "training", "accuracy", "bits") else "-")


def print_chips(report: EnergyReport, console: Console) -> None:
    """Print one row for each chip."""
    names = ["profile", "placed", "joules", "range", "seconds", "always_on"]
    rows = sorted(use_rows(report, ["inference"]), key=lambda row: ORDER[row.chip.fits])
    if any(row.accuracy is not None for row in rows):
        names[2:2] = ["bits", "accuracy"]
    if console.width < WIDTH:
        names = [name for name in names if name not in ("bits", "seconds")]
    rate = next((row.found.duty.rate for row in rows if row.found.duty is not None), None)
    titles = {"joules": "an inference", "always_on": "" if rate is None else f"at {rate:g} Hz"}
    print_table(
        console,
        [titles.get(name, COLUMNS[name].title) for name in names],
        [
            [
                cell(name, row) + ("*" if name == "profile" and row.chip.overridden else "")
                for name in names
            ]
            for row in rows
        ],
        dim=[row.found.joules is None for row in rows],
    )


def chip_remarks(each: EnergyEstimate) -> list[str]:
    """The largest terms of a chip, what is unknown, or why the network does not fit."""
    found, remarks = each.inference, []
    for violation in () if each.placement is None else each.placement.violations:
        cure = "more chips would do" if violation.curable else "more chips do not help"
        remarks.append(f"does not fit: {violation.reason} ({cure})")
    if found.reason.startswith(REFUSED):
        remarks.append(found.reason)
    if found.duty is not None:
        watts = si(found.duty.watts, "W")
        remarks.append(f"at {found.duty.rate:g} samples a second: {watts}, {found.duty.note}")
    if len(found.layers) > 1:
        parts = ", ".join(f"{name} {si(value, 'J')}" for name, value in found.layers.items())
        remarks.append(f"by layer: {parts}")
    if found.joules:
        large = [f"{name} {part:.0%}" for name, part in found.shares.items() if part >= MIN_SHARE]
        remarks.append(", ".join(large))
    others = [each for each in found.mappings if each.mapping != found.mapping]
    if found.mapping and others:
        listed = "; ".join(mapping_text(each) for each in others)
        remarks.append(f"mapped for {found.mapping}; {listed}")
    points = sorted({term.operating_point for term in found.terms if term.operating_point})
    if points:
        remarks.append(f"with costs at other operating points: {'; '.join(points)}")
    if found.missing and each.fits is not False:
        remarks.append(not_included(each, "inference"))
    undecided = () if each.placement is None else each.placement.unchecked
    essential = [limit.limit for limit in undecided if limit.essential]
    if each.fits is None and essential:
        remarks.append(f"unknown whether it fits: {', '.join(essential)}")
    return remarks


def mapping_text(cost: MappingCost) -> str:
    """Cores, joules and seconds of another mapping."""
    joules = "" if cost.joules is None else f", {si(cost.joules, 'J')}"
    seconds = "" if cost.seconds is None else f", {si(cost.seconds, 's')}"
    return f"{cost.mapping}: {cost.cores} cores{joules}{seconds}"


def not_included(chip: EnergyEstimate, use: str) -> str:
    """The unknown terms of a use; empty if there are none."""
    missing = ", ".join(term.name for term in getattr(chip, use).missing)
    return f"not included, because unknown: {missing}" if missing else ""


def print_sensitivity(chips: Iterable[EnergyEstimate], console: Console) -> None:
    """Print the share of each term and the joules if its cost were halved."""
    console.print("\n[bold]sensitivity[/bold]: joules of an inference if one cost were halved")
    rows = [
        (
            escape(each.profile),
            f"[{terminal_colour(name)}]{escape(name)}[/{terminal_colour(name)}]",
            f"{row['share']:.1%}",
            si(row["joules_if_halved"], "J"),
        )
        for each in chips
        for name, row in each.inference.sensitivity.items()
    ]
    print_table(console, ("chip", "term", "share", "joules then"), rows, right=("share",))


def print_learning(report: EnergyReport, chips: Iterable[EnergyEstimate], console: Console) -> None:
    """Print the joules of a learning sample and of the whole training, or why there are none."""
    console.print("\n[bold]learning[/bold]")
    counted = report.counted.learning
    if counted.samples:
        print_phases(counted, console)
    rows = [UseRow(each, "learning") for each in chips]
    known = [row for row in rows if row.found.joules]
    samples = next((row.found.samples for row in known), counted.presentations)
    total = f"all {samples} samples" if samples else "whole training"
    if samples and counted.presentations and samples < counted.presentations:
        total = f"the first {samples} samples"
    if known:
        titles = {"profile": "chip", "placed": "cores", "joules": "one sample", "range": "range"}
        titles |= {"seconds": "time", "training": total}
        if console.width < WIDTH:
            del titles["range"]
        cells = [[cell(name, row) for name in titles] for row in known]
        for texts, row in zip(cells, known, strict=True):
            if texts[-1]:
                texts[-1] += f", {cell('training_seconds', row)}"
        print_table(console, titles.values(), cells)
    print_learning_remarks(rows, console)


def print_learning_remarks(rows: Iterable[UseRow], console: Console) -> None:
    """Print why chips have no joules of learning, or what these leave out, grouped by reason."""
    grouped: dict[str, list[str]] = {}
    for row in rows:
        remark = row.found.reason or "unknown"
        if row.found.joules is not None:
            remark = not_included(row.chip, "learning")
            if row.found.seconds_at_least:
                remark += "; the time is a lower bound, too"
        if remark:
            grouped.setdefault(remark, []).append(row.chip.profile)
    print_remarks(((", ".join(names), remark) for remark, names in grouped.items()), console)


def print_phases(counted: LearningEvents, console: Console) -> None:
    """Print the events of one learning sample, phase by phase."""
    console.print(f"counted on {counted.samples} samples on the emulator; per sample:")
    names = list(dict.fromkeys(name for events in counted.phases.values() for name in events))
    kept = [name for name in names if any(events[name] for events in counted.phases.values())]
    titles = [name.replace("_", " ") for name in kept]
    rows = [
        (escape(phase), *(f"{events[name]:,.0f}" for name in kept))
        for phase, events in counted.phases.items()
    ]
    print_table(console, ["phase", *titles], rows, right=titles)
    if counted.note:
        console.print(escape(counted.note))
    console.print("")


def print_training(training: TrainingCost, console: Console) -> None:
    """Print the dense training of the same network on the devices."""
    console.print(
        f"\n[bold]dense training[/bold] of the same network, {escape(training.note)}: "
        f"{training.samples} samples, three passes of multiplications each"
    )
    rows = [
        (escape(e.device), str(e.batch), si(e.joules, "J"), si_range(e.low, e.high, "J"))
        for e in training.dense
    ]
    columns = ("device", "batch", "joules", "range")
    print_table(console, columns, rows, right=columns[1:3])


def print_dense(report: EnergyReport, console: Console) -> None:
    """Print a dense pass on measured devices, and a sentence on which side needs less."""
    if not report.references:
        return
    console.print(
        f"\n[bold]against dense devices[/bold]: one pass of {report.counted.dense_macs} MACs; each "
        "device at the boundary of its measurement"
    )
    columns = ("device", "batch", "joules", "range", "boundary")
    rows = [
        (
            escape(each.device),
            str(each.batch),
            si(each.joules.value, "J"),
            si_range(each.joules.low, each.joules.high, "J"),
            each.boundary.value.replace("_", " "),
        )
        for each in report.references
    ]
    print_table(console, columns, rows, right=columns[1:3])
    if report.verdicts:
        console.print("\n[bold]do spikes need less?[/bold]")
        sentences = [
            (escape(chip.profile), f"[{STYLES[e.outcome]}]{escape(e.summary)}[/]")
            for chip, e in report.verdicts
        ]
        print_table(console, ("chip", "comparison"), sentences, wrap=True)
        doubtful = [chip.profile for chip in report if chip.comparisons and chip.inference.missing]
        if doubtful:
            bound = "as long as the costs that are unknown are small; see above"
            console.print(f"{', '.join(doubtful)}: {bound}", style="dim")
    for name, ratio in report.arithmetic_ratio.items():
        console.print(
            f"{escape(name)}: dense arithmetic over spiking arithmetic {ratio:.3g} "
            "(a ratio of additions and multiplications, not joules of a device)",
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
    rows = []
    for row in beside.rows:
        sides = ((row.joules, row.other), row.reasons, row.at_least, row.ranges)
        one, two = row.boundaries
        ratio = "-" if row.ratio is None else f"{row.ratio:.3g}"
        if one and two and one != two:
            ratio = f"not compared: {one}, {two}"
        texts = (escape(side_text(*each)) for each in zip(*sides, strict=True))
        rows.append((f"{escape(row.profile)}", row.use, *texts, ratio))
    print_table(console, ("chip", "use", "this run", "the other", "ratio"), rows, wrap=True)


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
    rows = [
        (
            "*" if point in kept else "",
            *(escape(point.profile), point.code, str(point.steps), str(point.bits or "-")),
            *(f"{100 * point.accuracy:.2f} %", si(point.joules, "J"), si(point.seconds, "s")),
            "" if point.fits else UNKNOWN_FIT,
        )
        for point in order
    ]
    columns = ("", "chip", "code", "steps", "bits", "accuracy", "joules", "latency", "")
    print_table(console, columns, rows, wrap=True, dim=[point not in kept for point in order])
    print_left_out(settings, "", console)


def print_curves(report: EnergyReport, settings: CurveSettings, console: Console) -> None:
    """Print the Pareto front of each chip, with the best point marked."""
    console.print(
        f"\n[bold]accuracy against joules[/bold], {settings.samples} samples per setting; the "
        f"Pareto front of each chip. Best trade: the cheapest within {SLACK:.1%} of the most "
        "accurate"
    )
    rows, beaten = [], 0
    for each in (each for each in report if each.curve):
        kept, chosen = front(each.curve), best(each.curve)
        beaten += len(each.curve) - len(kept)
        rows += [(escape(each.profile), *curve_cells(point, chosen)) for point in kept]
    print_table(console, ("chip", "code", "steps", "accuracy", "joules", ""), rows, wrap=True)
    if beaten:
        console.print(f"{beaten} more settings are not on the front", style="dim")
    print_left_out(settings, "code ", console)


def curve_cells(point: Point, chosen: Point) -> tuple[str, ...]:
    """The cells of a point, with a mark of the best trade and whether it is known to fit."""
    mark = "[bold green]<- best trade[/bold green] " if point == chosen else ""
    fits = "" if point.fits else UNKNOWN_FIT
    accuracy = f"{100 * point.accuracy:.2f} %"
    return (point.code, str(point.steps), accuracy, si(point.joules, "J"), mark + fits)


def print_left_out(settings: CurveSettings, what: str, console: Console) -> None:
    """Print the settings without a point, with the reason."""
    for code, reason in settings.left_out.items():
        console.print(f"{what}{code} is left out: {escape(reason)}", style="dim")


def print_terms(each: EnergyEstimate, console: Console) -> None:
    """Print the cost terms of one chip: inference, then learning where it was counted."""
    where = cell("placed", UseRow(each, "inference"))
    console.print(f"[bold]{escape(each.title)}[/bold], {FITS[each.fits]}, {where} cores")
    for title, use in (("an inference", "inference"), ("a learning sample", "learning")):
        row = UseRow(each, use)
        found = row.found
        if found.joules is None:
            console.print(f"{title}: {escape(found.reason or 'unknown')}")
            continue
        shares = found.shares
        rows = [
            (
                escape(term.name),
                si(term.amount, "W") if term.key.startswith("power.") else f"{term.amount:,.4g}",
                si(term.joules.value, "J"),
                si_range(term.joules.low, term.joules.high, "J"),
                f"{shares[term.name]:.1%}",
                escape(term.source),
            )
            for term in sorted(found.terms, key=lambda term: -term.joules.value)
        ]
        time = "" if found.seconds is None else si(found.seconds.value, "s")
        rows.append(("total", time, cell("joules", row), cell("range", row), "", ""))
        columns = (title, "amount", "joules", "range", "share", "source")
        print_table(console, columns, rows, right=("amount", "joules", "share"))
        if found.missing:
            console.print(escape(not_included(each, use)))


def print_sources(rows: Iterable[Mapping[str, Any]], console: Console) -> None:
    """Print quantities of a profile, each with its source below."""
    for row in rows:
        value, origin = describe_row(row)
        meaning = f"{row['meaning']}: " if "meaning" in row else ""
        console.print(f"{row['key']}  [bold]{escape(value)}[/bold]")
        console.print(Padding(escape(meaning + origin), (0, 0, 0, 4)))
