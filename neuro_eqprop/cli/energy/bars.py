"""The joules of each chip as a bar of its terms, on a logarithmic scale, with the range drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil, floor, log10

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from neuro_eqprop.cli.command import Json
from neuro_eqprop.units import si

NAME = 19
"""Columns of a chip's name."""
COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "red", "bright_cyan", "white")
MARKS = "█▓▒░#*+="
"""The marks tell terms apart where there is no colour."""
LEAST = 0.01
"""A part below this is not drawn."""
INSIDE = {
    "core_dynamic": "neurons and synapses alone, above idle",
    "chip_dynamic": "a chip, above idle",
    "chip_total": "a chip, all that it draws",
    "board_dynamic": "a board, above idle",
    "board_total": "a board, all that it draws",
    "system_wall": "everything behind the plug",
}
"""What a boundary encloses."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Decades of joules on so many columns."""

    first: int
    last: int
    columns: int

    def at(self, value: float) -> int:
        """The column of a value."""
        part = (log10(value) - self.first) / (self.last - self.first)
        return min(self.columns - 1, max(0, round(part * (self.columns - 1))))

    def ruler(self) -> str:
        """The decades, written where they lie, as far as there is room."""
        line = [" "] * self.columns
        free = 0
        for decade in range(self.first, self.last + 1):
            told = si(10.0**decade, "J")
            start = self.at(10.0**decade)
            start = min(start, self.columns - len(told))
            if start >= free:
                line[start : start + len(told)] = told
                free = start + len(told) + 1
        return "".join(line)


def reason(side: Json) -> str:
    """The first words of why there are no joules."""
    return str(side["reason"]).partition(":")[0] or "unknown"


def bars(profiles: Iterable[Json], console: Console, *, use: str) -> None:
    """A bar a chip, those inside of the same boundary together; then the chips without joules."""
    chips = list(profiles)
    known = [each for each in chips if each[use]["joules"]]
    if not known:
        return
    # A decade of room before the lowest, so that every bar has a body.
    first = floor(log10(min(each[use]["low"] for each in known))) - 1
    last = ceil(log10(max(each[use]["high"] for each in known)))
    scale = Scale(first, max(last, first + 1), console.width - NAME - 1)
    names = drawn(known, use)
    console.print(
        f"\n[bold]joules of {'an inference' if use == 'inference' else 'a lesson'}[/bold]"
    )
    console.print(f"{'':<{NAME}}{scale.ruler()}", style="dim")
    for boundary, words in INSIDE.items():
        mine = [each for each in known if each[use]["boundary"] == boundary]
        if mine:
            console.print(f"[italic]{words}[/italic]")
        for each in sorted(mine, key=lambda chip: float(chip[use]["joules"])):
            line = Text(f"{each['profile'][: NAME - 2]:<{NAME}}")
            console.print(line + bar(each[use], scale, names))
    for each in chips:
        if not each[use]["joules"]:
            told = f"{each['profile'][: NAME - 2]:<{NAME}}{reason(each[use])}"
            console.print(escape(told), style="dim")
    legend(names, console)


def drawn(known: Iterable[Json], use: str) -> dict[str, tuple[str, str]]:
    """Mark and colour of every term that is large enough on some chip, largest first."""
    largest: dict[str, float] = {}
    for each in known:
        for name, part in shares(each[use]).items():
            largest[name] = max(largest.get(name, 0.0), part)
    names = sorted((n for n, part in largest.items() if part >= LEAST), key=lambda n: -largest[n])
    looks = list(zip(MARKS, COLOURS, strict=True))
    return {name: looks[place % len(looks)] for place, name in enumerate(names)}


def shares(side: Json) -> dict[str, float]:
    """The part of each term in the sum, largest first."""
    whole = sum(term["joules"] for term in side["terms"])
    terms = sorted(side["terms"], key=lambda term: -term["joules"])
    return {term["name"]: term["joules"] / whole for term in terms}


def bar(side: Json, scale: Scale, names: Mapping[str, tuple[str, str]]) -> Text:
    """The terms up to the joules, and the range over their end."""
    end = max(1, scale.at(side["joules"]))
    line = Text()
    done, sum_ = 0, 0.0
    for name, part in shares(side).items():
        sum_ += part
        upto = round(end * sum_)
        mark, colour = names.get(name, ("·", "dim"))
        line.append(mark * (upto - done), style=colour)
        done = upto
    low, high = scale.at(side["low"]), scale.at(side["high"])
    whisker = "●"
    if low < end:
        whisker = "├" + "─" * (end - low - 1) + whisker
    if high > end:
        whisker += "─" * (high - end - 1) + "┤"
    return line[: min(low, end)] + Text(whisker)


def legend(names: Mapping[str, tuple[str, str]], console: Console) -> None:
    """What the marks mean, and how to read the bars."""
    told = Text()
    for name, (mark, colour) in names.items():
        told.append(mark, style=colour).append(f" {name}   ")
    console.print(told)
    console.print(
        "A bar ends at its joules (●, with the range of 95 % of the draws); its parts are shares "
        "of the sum. Only bars under one heading compare.",
        style="dim",
    )
