"""Joules of each chip as a bar of its terms, on a logarithmic scale, with the range."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil, floor, log10

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from neuro_eqprop.energy.estimate import Estimate
from neuro_eqprop.energy.monte_carlo import Energy
from neuro_eqprop.energy.result import EnergyEstimate
from neuro_eqprop.hardware.profile import Boundary
from neuro_eqprop.units import si

NAME = 19
"""Columns of the name of a chip."""
COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "red", "bright_cyan", "white")
MARKS = "█▓▒░#*+="
"""Marks distinguish the terms where there is no colour."""
MIN_SHARE = 0.01
"""Terms with a smaller share are not drawn."""
BOUNDARIES = {
    Boundary.CORE_DYNAMIC: "neurons and synapses, above idle",
    Boundary.CHIP_DYNAMIC: "a chip, above idle",
    Boundary.CHIP_TOTAL: "a chip, with idle power",
    Boundary.BOARD_DYNAMIC: "a board, above idle",
    Boundary.BOARD_TOTAL: "a board, with idle power",
    Boundary.SYSTEM_WALL: "the whole system at the wall plug",
}


@dataclass(frozen=True, slots=True)
class Scale:
    """A logarithmic axis of joules over a number of columns."""

    first: int
    last: int
    columns: int

    def column(self, value: float) -> int:
        """The column of a value."""
        part = (log10(value) - self.first) / (self.last - self.first)
        return min(self.columns - 1, max(0, round(part * (self.columns - 1))))

    def ruler(self) -> str:
        """The decades, written at their columns as far as there is room."""
        line = [" "] * self.columns
        free = 0
        for decade in range(self.first, self.last + 1):
            label = si(10.0**decade, "J")
            start = min(self.column(10.0**decade), self.columns - len(label))
            if start >= free:
                line[start : start + len(label)] = label
                free = start + len(label) + 1
        return "".join(line)


def short_reason(found: Estimate) -> str:
    """The beginning of the reason why there are no joules, up to the first colon."""
    return found.reason.partition(":")[0] or "unknown"


def print_bars(chips: Iterable[EnergyEstimate], console: Console) -> None:
    """Print one bar for each chip, grouped by boundary; then the chips without joules."""
    chips = list(chips)
    known = [(each, joules) for each in chips if (joules := each.inference.joules)]
    if not known:
        return
    # One decade of room before the lowest, so that every bar has a body.
    first = floor(log10(min(joules.low for _, joules in known))) - 1
    last = ceil(log10(max(joules.high for _, joules in known)))
    scale = Scale(first, max(last, first + 1), console.width - NAME - 1)
    styles = term_styles(each.inference for each, _ in known)
    console.print("\n[bold]joules of an inference[/bold]")
    console.print(f"{'':<{NAME}}{scale.ruler()}", style="dim")
    for boundary, heading in BOUNDARIES.items():
        group = [(each, joules) for each, joules in known if each.boundary is boundary]
        if group:
            console.print(f"[italic]{heading}[/italic]")
        for each, joules in sorted(group, key=lambda pair: pair[1].value):
            line = Text(f"{each.profile[: NAME - 2]:<{NAME}}")
            console.print(line + bar(each.inference, joules, scale, styles))
    for each in chips:
        if each.inference.joules is None:
            text = f"{each.profile[: NAME - 2]:<{NAME}}{short_reason(each.inference)}"
            console.print(escape(text), style="dim")
    print_legend(styles, console)


def term_styles(estimates: Iterable[Estimate]) -> dict[str, tuple[str, str]]:
    """Mark and colour of every term with a visible share on a chip, largest first."""
    largest: dict[str, float] = {}
    for each in estimates:
        for name, part in each.shares.items():
            largest[name] = max(largest.get(name, 0.0), part)
    names = [name for name, part in largest.items() if part >= MIN_SHARE]
    names.sort(key=lambda name: -largest[name])
    styles = list(zip(MARKS, COLOURS, strict=True))
    return {name: styles[place % len(styles)] for place, name in enumerate(names)}


def bar(
    found: Estimate, joules: Energy, scale: Scale, styles: Mapping[str, tuple[str, str]]
) -> Text:
    """The terms up to the joules, and the range over their end."""
    end = max(1, scale.column(joules.value))
    line = Text()
    drawn, total = 0, 0.0
    for name, part in found.shares.items():
        total += part
        upto = round(end * total)
        mark, colour = styles.get(name, ("·", "dim"))
        line.append(mark * (upto - drawn), style=colour)
        drawn = upto
    low, high = scale.column(joules.low), scale.column(joules.high)
    whisker = "●"
    if low < end:
        whisker = "├" + "─" * (end - low - 1) + whisker
    if high > end:
        whisker += "─" * (high - end - 1) + "┤"
    return line[: min(low, end)] + Text(whisker)


def print_legend(styles: Mapping[str, tuple[str, str]], console: Console) -> None:
    """Print the meaning of the marks, and how to read the bars."""
    legend = Text()
    for name, (mark, colour) in styles.items():
        legend.append(mark, style=colour).append(f" {name}   ")
    console.print(legend)
    console.print(
        "A bar ends at its joules (●, with the central 95 % of the draws); its parts are shares "
        "of the sum. Only bars under one heading compare.",
        style="dim",
    )
