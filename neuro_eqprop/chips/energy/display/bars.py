"""Joules of each chip as a dot with its range, on a logarithmic scale."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, floor, log10

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from neuro_eqprop.chips.boundary import Boundary
from neuro_eqprop.chips.energy.estimate import Estimate
from neuro_eqprop.chips.energy.monte_carlo import Energy
from neuro_eqprop.chips.energy.result import EnergyEstimate
from neuro_eqprop.common.units import si

NAME = 19
"""Columns of the name of a chip."""
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
class JoulesAxis:
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
    """Print one dot for each chip, grouped by boundary; then the chips without joules."""
    chips = list(chips)
    known = [(each, joules) for each in chips if (joules := each.inference.joules)]
    if not known:
        return
    first = floor(log10(min(joules.low for _, joules in known)))
    last = ceil(log10(max(joules.high for _, joules in known)))
    scale = JoulesAxis(first, max(last, first + 1), console.width - NAME - 1)
    console.print("\n[bold]joules of an inference[/bold]")
    console.print(f"{'':<{NAME}}{scale.ruler()}", style="dim")
    for boundary, heading in BOUNDARIES.items():
        group = [(each, joules) for each, joules in known if each.boundary is boundary]
        if group:
            console.print(f"[italic]{heading}[/italic]")
        for each, joules in sorted(group, key=lambda pair: pair[1].value):
            line = Text(f"{each.profile[: NAME - 2]:<{NAME}}")
            console.print(line + dot(joules, scale))
    for each in chips:
        if each.inference.joules is None:
            text = f"{each.profile[: NAME - 2]:<{NAME}}{short_reason(each.inference)}"
            console.print(escape(text), style="dim")
    console.print(
        "A dot is the joules, with the central 95 % of the draws, on a logarithmic scale. "
        "Compare only chips under the same heading.",
        style="dim",
    )


def dot(joules: Energy, scale: JoulesAxis) -> Text:
    """The joules as a dot, and their range."""
    low, place, high = (scale.column(v) for v in (joules.low, joules.value, joules.high))
    line = " " * low
    line += "├" + "─" * (place - low - 1) if low < place else ""
    line += "●"
    line += "─" * (high - place - 1) + "┤" if high > place else ""
    return Text(line)
