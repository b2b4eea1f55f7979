"""The table of an energy report: a row for each chip and use, columns with units.

Terminal, page and CSV file choose columns of it and format them alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from neuro_eqprop.chips.energy.estimate import Estimate
from neuro_eqprop.chips.energy.result import EnergyEstimate, EnergyReport
from neuro_eqprop.chips.profile import Tier
from neuro_eqprop.common.units import si, si_range

FITS = {True: "fits", False: "no", None: "unknown"}
USES = ("inference", "learning")


@dataclass(frozen=True, slots=True)
class UseRow:
    """One use of one chip."""

    chip: EnergyEstimate
    use: str
    """Inference or learning."""

    @property
    def accuracy(self) -> float | None:
        """Fraction of right predictions with the weights that the chip takes, of inference."""
        return self.chip.accuracy if self.use == "inference" else None

    @property
    def found(self) -> Estimate:
        """The estimate of this use."""
        found: Estimate = getattr(self.chip, self.use)
        return found


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name in files, its title for people, its SI unit and its values."""

    name: str
    title: str
    unit: str
    value: Callable[[UseRow], Any]
    """The value of a row: a number, text, low and high of a range, or None."""
    at_least: Callable[[Estimate], bool] | None = None
    """Whether the value is a lower bound."""

    def text(self, row: UseRow, amount: Callable[[float, str], str] = si) -> str:
        """The value as text; `amount` formats a number with a unit."""
        value = self.value(row)
        if value is None:
            return ""
        rough = row.found.tier is Tier.ORDER_OF_MAGNITUDE and self.unit in ("J", "W")
        rough = rough and not isinstance(value, tuple)
        least = "~ " if rough else ""
        least += ">= " if self.at_least is not None and self.at_least(row.found) else ""
        if isinstance(value, tuple):
            low, high = value
            return least + si_range(low, high, self.unit)
        if self.unit in ("J", "s", "W"):
            return least + amount(value, self.unit)
        if self.unit == "%":
            return f"{value:.1%}"
        return f"{value:.2g}" if isinstance(value, float) else str(value)


def of(path: str) -> Callable[[UseRow], Any]:
    """The attribute of an estimate at a path of names; None where one of them is None."""

    def value(row: UseRow) -> Any:  # noqa: ANN401
        found: Any = row.found
        for name in path.split("."):
            found = None if found is None else getattr(found, name)
        return found

    return value


def range_of(found: Estimate) -> tuple[float, float] | None:
    """Low and high of the joules."""
    return None if found.joules is None else (found.joules.low, found.joules.high)


def plural(value: int, noun: str) -> str:
    """A number of things."""
    return f"{value:,} {noun}{'' if value == 1 else 's'}".replace(",", "\u202f")


def placement_text(found: Estimate) -> str:
    """Whether the network fits, and on how many cores and chips."""
    placement = found.placement
    if placement is None:
        return "unknown whether it fits"
    if placement.fits is False:
        return "does not fit"
    if placement.cores is None or placement.chips is None:
        return "fits" if placement.fits else "unknown whether it fits"
    where = f"{plural(placement.cores, 'core')} of {plural(placement.chips, 'chip')}"
    return f"fits on {where}" if placement.fits else f"takes {where}; unknown whether it fits"


def cores_text(row: UseRow) -> str:
    """The number of cores, and of chips if there are several."""
    placement = row.found.placement
    if placement is None or placement.cores is None:
        return "-"
    several = placement.chips is not None and placement.chips > 1
    return f"{placement.cores} on {placement.chips}" if several else str(placement.cores)


def boundary_text(found: Estimate) -> str:
    """The name of the boundary of the joules, as words."""
    return "" if found.boundary is None else found.boundary.value.replace("_", " ")


COLUMNS = {
    each.name: each
    for each in (
        Column("profile", "chip", "", lambda row: row.chip.profile),
        Column("title", "chip", "", lambda row: row.chip.title),
        Column("use", "use", "", lambda row: row.use),
        Column("fits", "fits", "", of("placement.fits")),
        Column("fit", "fits", "", lambda row: FITS[row.chip.fits]),
        Column("cores", "cores", "", of("placement.cores")),
        Column("chips", "chips", "", of("placement.chips")),
        Column("placed", "cores", "", cores_text),
        Column("mapping", "mapping", "", of("mapping")),
        Column("joules", "joules", "J", of("joules.value"), lambda found: found.at_least),
        Column("low", "low", "J", of("joules.low")),
        Column("high", "high", "J", of("joules.high")),
        Column("nominal", "nominal", "J", of("joules.nominal")),
        Column("range", "range", "J", lambda row: range_of(row.found)),
        Column("lower_bound", "lower bound", "", of("at_least")),
        Column("boundary", "boundary", "", of("boundary.value")),
        Column("inside", "boundary", "", lambda row: boundary_text(row.found)),
        Column("seconds", "time", "s", of("seconds.value"), lambda found: found.seconds_at_least),
        Column("seconds_low", "least time", "s", of("seconds.low")),
        Column("seconds_high", "longest time", "s", of("seconds.high")),
        Column("frames_per_second", "1/s", "1/s", of("frames_per_second")),
        Column("frames_per_joule", "1/J", "1/J", of("frames_per_joule")),
        Column("energy_delay_product", "energy x delay", "J s", of("energy_delay_product")),
        Column("rate", "samples a second", "1/s", of("duty.rate")),
        Column("average_watts", "average power", "W", of("duty.watts")),
        Column("always_on", "always on", "W", of("duty.watts")),
        Column("tier", "tier", "", of("tier.value")),
        Column("bits", "bits", "", lambda row: row.chip.bits),
        Column("accuracy", "accuracy", "%", lambda row: row.accuracy),
        Column("training", "training", "J", of("training.value"), lambda found: found.at_least),
        Column("training_seconds", "its time", "s", of("training_seconds")),
        Column("reason", "reason", "", of("reason")),
        Column(
            *("remark", "remark", ""),
            lambda row: (
                row.found.reason
                or (
                    ""
                    if row.found.placement and row.found.placement.fits
                    else placement_text(row.found)
                )
            ),
        ),
    )
}
"""All columns by name."""


def use_rows(report: EnergyReport, uses: Iterable[str] = USES) -> list[UseRow]:
    """The rows of a report: each chip with each of its uses."""
    return [UseRow(chip, use) for chip in report for use in uses]
