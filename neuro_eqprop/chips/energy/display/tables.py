"""The main tables of energy results as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from neuro_eqprop.chips.energy.display.bars import MIN_SHARE, print_bars, short_reason
from neuro_eqprop.chips.energy.display.comparisons import (
    print_curves,
    print_dense,
    print_run_comparison,
)
from neuro_eqprop.chips.energy.display.console import (
    WIDTH,
    console_or_default,
    plain_table,
    remark_table,
)
from neuro_eqprop.chips.energy.display.learning import print_learning
from neuro_eqprop.chips.energy.estimate import REFUSED, Estimate
from neuro_eqprop.chips.energy.mapping import MappingCost
from neuro_eqprop.chips.energy.result import (
    CountedEvents,
    EnergyEstimate,
    EnergyReport,
    TrainingCost,
)
from neuro_eqprop.chips.energy.term_colours import terminal_colour
from neuro_eqprop.chips.profiles.describe import describe_row
from neuro_eqprop.common.units import si, si_range

FITS = {True: "fits", False: "no", None: "unknown"}
ORDER = {True: 0, None: 1, False: 2}


def print_report(report: EnergyReport, console: Console) -> None:
    """Print everything in a report."""
    console = console_or_default(console)
    chips = sorted_chips(report)
    print_counted(report.counted, console)
    print_chips(report, console)
    print_bars(chips, console)
    console.print("")
    console.print(remark_table(row for each in chips for row in chip_rows(each)))
    if report.sensitivity:
        print_sensitivity(chips, console)
    print_learning(chips, report.counted.learning, console)
    if report.training is not None:
        print_training(report.training, console)
    print_dense(report, console)
    if report.curve is not None:
        print_curves(report, report.curve, console)
    if report.beside is not None:
        print_run_comparison(report.counted, report.beside, console)
    for each in report:
        if each.sources:
            console.print(f"\n[bold]{escape(each.profile)}[/bold]")
            print_sources(each.sources, console)
    for name in ("file", "csv", "datasheet", "figure"):
        if getattr(report, name):
            console.print(f"written to {escape(getattr(report, name))}")


def print_sensitivity(chips: Iterable[EnergyEstimate], console: Console) -> None:
    """Print the share of each term and the joules if its cost were halved."""
    console.print("\n[bold]sensitivity[/bold]: joules of an inference if one cost were halved")
    table = plain_table(console, ("chip", "term", "share", "joules then"), right=("share",))
    for each in chips:
        for place, (name, row) in enumerate(each.inference.sensitivity.items()):
            colour = terminal_colour(name)
            table.add_row(
                "" if place else escape(each.profile),
                f"[{colour}]{escape(name)}[/{colour}]",
                f"{row['share']:.1%}",
                si(row["joules_if_halved"], "J"),
            )
    console.print(table)


def print_training(training: TrainingCost, console: Console) -> None:
    """Print the dense training of the same network on the devices."""
    console.print(
        f"\n[bold]dense training[/bold] of the same network, {escape(training.note)}: "
        f"{training.samples} samples, three passes of multiplications each"
    )
    table = plain_table(console, ["device", "batch", "joules", "95 % of draws"])
    for each in training.dense:
        range_ = si_range(each.low, each.high, "J")
        table.add_row(escape(each.device), str(each.batch), si(each.joules, "J"), range_)
    console.print(table)


def sorted_chips(report: EnergyReport) -> list[EnergyEstimate]:
    """The chips that the network fits on first."""
    return sorted(report, key=lambda each: ORDER[each.fits])


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
    if counted.accuracy is not None:
        console.print(
            f"accuracy with {counted.bits}-bit weights: {counted.accuracy:.2%} of "
            f"{counted.accuracy_samples} test samples\n"
        )


def print_chips(report: EnergyReport, console: Console) -> None:
    """Print one row for each chip."""
    columns = ["chip", "fits", "cores", "an inference", "95 % of draws", "time"]
    wide = console.width >= WIDTH
    accuracy = report.counted.accuracy
    known = [] if accuracy is None else [f"{accuracy:.1%}"]
    # Only one of accuracy and samples a second fits; the latter are the inverse of the time.
    extra = [*(["accuracy"] if known else ["1/s"]), "1/J"] if wide else []
    table = plain_table(console, [*columns, *extra])
    chips = sorted_chips(report)
    for each in chips:
        found = each.inference
        joules, speed, yield_ = found.joules, found.frames_per_second, found.frames_per_joule
        table.add_row(
            escape(each.profile) + ("*" if each.overridden else ""),
            FITS[each.fits],
            cores_cell(each),
            escape(joules_cell(found)),
            "" if joules is None else si_range(joules.low, joules.high, "J"),
            (">= " if found.seconds_at_least else "") + si(each.seconds, "s"),
            *((known[0] if joules else "") if known else two_digits(speed), two_digits(yield_))[
                : len(extra)
            ],
            style="dim" if joules is None else "",
        )
    console.print(table)
    for each in chips:
        for change in each.overridden:
            console.print(f"* {escape(each.profile)}: {escape(change)}")
        if each.scenario:
            console.print(f"[bold]{escape(each.profile)}: {escape(each.scenario)}[/bold]")


def two_digits(value: float | None) -> str:
    """A number in two digits."""
    return "-" if value is None else f"{value:.2g}"


def cores_cell(each: EnergyEstimate) -> str:
    """The number of cores, and of chips if there are several."""
    if each.cores is None:
        return "-"
    return f"{each.cores} on {each.chips}" if each.chips and each.chips > 1 else str(each.cores)


def joules_cell(found: Estimate) -> str:
    """Joules, with `>=` where terms are missing, or a short reason."""
    if found.joules is None:
        return short_reason(found)
    return f"{'>= ' if found.at_least else ''}{si(found.joules.value, 'J')}"


def chip_rows(each: EnergyEstimate) -> list[tuple[str, str]]:
    """The remarks on a chip; its name beside the first."""
    names = [each.profile]
    return [(names.pop() if names else "", remark) for remark in chip_remarks(each)]


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
    missing = ", ".join(term.name for term in found.missing)
    if missing and each.fits is not False:
        remarks.append(f"not included, because unknown: {missing}")
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


def print_terms(each: EnergyEstimate, console: Console) -> None:
    """Print the cost terms of one chip: inference, then learning where it was counted."""
    console.print(f"[bold]{escape(each.title)}[/bold], {FITS[each.fits]}, {cores_cell(each)} cores")
    for use, found in (("an inference", each.inference), ("a learning sample", each.learning)):
        if found.joules is None:
            console.print(f"{use}: {escape(found.reason or 'unknown')}")
            continue
        columns = (use, "amount", "joules", "95 % of draws", "share", "source")
        table = plain_table(console, columns, right=("amount", "joules", "share"))
        shares = found.shares
        for term in sorted(found.terms, key=lambda term: -term.joules.value):
            joules = term.joules
            watts = term.key.startswith("power.")
            table.add_row(
                escape(term.name),
                si(term.amount, "W") if watts else f"{term.amount:,.4g}",
                si(joules.value, "J"),
                si_range(joules.low, joules.high, "J"),
                f"{shares[term.name]:.1%}",
                escape(term.source),
            )
        total = found.joules
        time = "" if found.seconds is None else si(found.seconds.value, "s")
        table.add_row("total", time, joules_cell(found), si_range(total.low, total.high, "J"))
        console.print(table)
        if found.missing:
            missing = ", ".join(term.name for term in found.missing)
            console.print(f"not included, because unknown: {escape(missing)}")


def print_sources(rows: Iterable[Mapping[str, Any]], console: Console) -> None:
    """Print quantities of a profile, each with its source below."""
    for row in rows:
        value, origin = describe_row(row)
        meaning = f"{row['meaning']}: " if "meaning" in row else ""
        console.print(f"{row['key']}  [bold]{escape(value)}[/bold]")
        console.print(Padding(escape(meaning + origin), (0, 0, 0, 4)))
