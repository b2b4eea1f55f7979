"""Results of an energy estimate: `EnergyEstimate` of one chip and `EnergyReport` of several.

The same objects are printed, drawn, written to `energy.json` and shown on the report page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuro_eqprop.chips.boundary import Boundary
from neuro_eqprop.chips.energy.dense_reference import DenseComparison, DenseReference, Outcome
from neuro_eqprop.chips.energy.estimate import Estimate
from neuro_eqprop.chips.energy.pareto import Point
from neuro_eqprop.chips.energy.terms import Term
from neuro_eqprop.chips.placement import Placement
from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.common.html import html_table
from neuro_eqprop.common.units import si, si_range
from neuro_eqprop.files.codec import Count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.console import Console


@dataclass(frozen=True, repr=False)
class EnergyEstimate:
    """Energy and time of a network on one chip, per sample.

    The attributes `joules`, `low`, `high`, `seconds`, `terms`, `unknown`, `boundary` and `fits`
    are those of inference; `learning` has the same for one learning sample. The estimate is
    counted events times published costs, not a measurement. With unknown terms, the joules are a
    lower bound.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> data = ne.load_data("digits")
    >>> model = ne.train("layered", data, hidden=(16,), epochs=1)
    >>> run = model.to_spiking(input="rate").run(data.test.x[:4], on="emulator", steps=16)
    >>> estimate = ne.estimate_energy(run, "loihi1", mapping="fewest-cores")
    >>> estimate.boundary.value, estimate.binding
    ('chip_total', 'neurons')
    >>> [term.name for term in estimate.terms][:2]
    ['idle after boot', 'loaded above idle']
    """

    profile: str
    """Name of the hardware profile."""
    title: str
    inference: Estimate
    learning: Estimate
    scenario: str = ""
    """The assumption of a what-if profile; else empty."""
    operating_point: Mapping[str, str] = field(default_factory=dict)
    bits: int | None = None
    """Bits of the weights that were counted: the widest that the chip takes, unless given."""
    accuracy: float | None = None
    """Fraction of right predictions with these weights; None where it was not evaluated."""
    overridden: tuple[str, ...] = ()
    """Values that differ from those of the profile, as text."""
    comparisons: tuple[DenseComparison, ...] = ()
    """Comparisons with a dense pass on measured devices."""
    curve: tuple[Point, ...] = ()
    """Accuracy and joules over codes and steps."""
    sources: tuple[Mapping[str, Any], ...] = ()
    """The quantities that were used, with value, range and source."""

    def __repr__(self) -> str:
        return f"EnergyEstimate({self.profile}: {self.summary})"

    def _repr_html_(self) -> str:
        shares = ", ".join(f"{name} {part:.0%}" for name, part in self.inference.shares.items())
        rows = {
            "inference": self.summary,
            "learning, one sample": summary(self.learning),
            "boundary": self.boundary.value.replace("_", " ") if self.boundary else "-",
            "cores": "-" if self.cores is None else self.cores,
            "terms": shares or "-",
            "unknown": ", ".join(each.name for each in self.inference.missing) or "-",
        }
        return html_table(f"Energy on {self.title}", rows)

    @property
    def summary(self) -> str:
        """Joules with their range and seconds of an inference, or why there are none."""
        return summary(self.inference)

    @property
    def joules(self) -> float | None:
        """Joules of an inference; None where they are unknown."""
        return None if self.inference.joules is None else self.inference.joules.value

    @property
    def low(self) -> float | None:
        """The low end of the range of the joules."""
        return None if self.inference.joules is None else self.inference.joules.low

    @property
    def high(self) -> float | None:
        """The high end of the range of the joules."""
        return None if self.inference.joules is None else self.inference.joules.high

    @property
    def seconds(self) -> float | None:
        """Seconds of an inference; None where they are unknown."""
        return None if self.inference.seconds is None else self.inference.seconds.value

    @property
    def terms(self) -> tuple[Term, ...]:
        """The cost terms of an inference."""
        return self.inference.terms

    @property
    def unknown(self) -> tuple[str, ...]:
        """The terms that are missing because they are unknown."""
        return self.inference.unknown

    @property
    def boundary(self) -> Boundary | None:
        """The boundary of the joules: the parts of the system that they include."""
        return self.inference.boundary

    @property
    def placement(self) -> Placement | None:
        """The cores and chips of the network."""
        return self.inference.placement

    @property
    def fits(self) -> bool | None:
        """Whether the network fits on the chip; None where that is unknown."""
        return None if self.placement is None else self.placement.fits

    @property
    def cores(self) -> int | None:
        """The number of cores."""
        return None if self.placement is None else self.placement.cores

    @property
    def chips(self) -> int | None:
        """The number of chips."""
        return None if self.placement is None else self.placement.chips

    @property
    def binding(self) -> str:
        """The limit or the resource that decides the number of cores."""
        return "unknown" if self.placement is None else self.placement.binding

    @property
    def unchecked(self) -> tuple[str, ...]:
        """Limits that could not be checked."""
        found = () if self.placement is None else self.placement.unchecked
        return tuple(f"{each.limit}: {each.reason}" for each in found)

    def table(self, console: Console | None = None) -> None:
        """Print the cost terms as a table of at most 100 columns."""
        from neuro_eqprop.chips.energy.text import console_or_default, print_terms

        print_terms(self, console_or_default(console))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the cost terms of an inference as bars; return the axes."""
        from neuro_eqprop.chips.energy.figures import plot_terms

        axes: Axes = plot_terms(self, ax)
        return axes

    def to_json(self) -> dict[str, Any]:
        """The estimate as a JSON object, as in the list `profiles` of `energy --json`."""
        from neuro_eqprop.chips.energy.file import estimate_json

        return estimate_json(self)

    def save(self, path: str | Path) -> Path:
        """Write the estimate as an energy file with one chip; return its path."""
        return EnergyReport((self,)).save(path)


def summary(found: Estimate) -> str:
    """Joules with their range, tier and seconds, or why there are none."""
    if found.joules is None:
        return found.reason or "unknown"
    least = "at least " if found.at_least else ""
    time = "" if found.seconds is None else f", {si(found.seconds.value, 's')}"
    joules, tier = found.joules, "" if found.tier is None else f"{found.tier.value}: "
    return f"{least}{si(joules.value, 'J')} ({tier}{si_range(joules.low, joules.high, 'J')}){time}"


@dataclass(frozen=True, slots=True)
class LearningEvents:
    """Counted events of learning, per sample, or why there are none."""

    samples: int = 0
    reason: str = ""
    input_coding: str = ""
    presentations: int | None = None
    """Samples of the whole training: samples times epochs."""
    note: str = ""
    """Work that is not counted."""
    phases: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By phase and event."""


@dataclass(frozen=True, slots=True)
class CountedEvents:
    """The counted events behind an estimate, per sample."""

    source: str = ""
    samples: Count = 0
    steps: Count = 0
    code: str | None = None
    bits: int | None = None
    input_coding: str = ""
    activity: float = 0.0
    """Spikes per neuron and step."""
    spikes: float = 0.0
    synops: float = 0.0
    host_macs: float = 0.0
    dense_macs: Count = 0
    learned: bool = False
    """Whether the run changed weights itself."""
    learning: LearningEvents = field(default_factory=LearningEvents)
    accuracy: float | None = None
    """Fraction of right predictions of the counted network, as it would run on the chip."""
    accuracy_samples: Count = 0


@dataclass(frozen=True, slots=True)
class RunComparisonRow:
    """One use of one chip in two runs."""

    profile: str
    use: str
    """Inference or learning."""
    joules: float | None
    other: float | None
    ratio: float | None
    """None where the boundaries differ or joules are unknown."""
    boundaries: tuple[str | None, str | None]
    reasons: tuple[str, str]
    at_least: tuple[bool, ...] = (False, False)
    """Whether the joules of this run and of the other are lower bounds."""
    ranges: tuple[tuple[float, ...], ...] = ((), ())
    """Low and high of both; empty where they are unknown."""


@dataclass(frozen=True, slots=True)
class RunComparison:
    """A report compared with that of another run, chip by chip."""

    run: str
    counted: CountedEvents
    rows: tuple[RunComparisonRow, ...]


@dataclass(frozen=True, slots=True)
class DenseTraining:
    """The training of the same network on a dense device, estimated from its multiplications."""

    device: str
    batch: int
    joules: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class TrainingCost:
    """Samples that a training takes until an accuracy, and its cost as dense training."""

    samples: int
    note: str
    dense: tuple[DenseTraining, ...] = ()
    target: float | None = None
    """Accuracy to reach; None for the whole training."""


@dataclass(frozen=True, slots=True)
class CurveSettings:
    """How the points of accuracy against joules were made."""

    samples: int
    steps: tuple[int, ...]
    left_out: Mapping[str, str]
    """Codes without a point, with the reason."""
    pareto: bool = False
    """Whether the points are settings of which the Pareto front over all chips is marked."""


@dataclass(frozen=True, repr=False)
class EnergyReport:
    """Energy estimates of a network on several chips, with dense references.

    Iterate over it, or index it with the name of a profile, to get an `EnergyEstimate`.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> data = ne.load_data("digits")
    >>> model = ne.train("layered", data, hidden=(16,), epochs=1)
    >>> run = model.to_spiking(code="rate").run(data.test.x[:4], on="emulator", steps=16)
    >>> report = ne.estimate_energy(run, ["loihi1", "spinnaker1"])
    >>> {each.profile: (each.fits, each.bits) for each in report}
    {'loihi1': (True, 8), 'spinnaker1': (True, 8)}
    """

    estimates: tuple[EnergyEstimate, ...]
    counted: CountedEvents = field(default_factory=CountedEvents)
    references: tuple[DenseReference, ...] = ()
    arithmetic_ratio: Mapping[str, float] = field(default_factory=dict)
    run: str | None = None
    seed: int = 0
    options: tuple[str, ...] = ()
    """Options of the command `energy` that make this report again."""
    curve: CurveSettings | None = None
    beside: RunComparison | None = None
    file: str = ""
    """Where it was written to or read from."""
    training: TrainingCost | None = None
    """Samples until a target accuracy, and the dense training of the same network."""
    sensitivity: bool = False
    """Whether the sensitivity is printed; not kept in files."""
    verbose: bool = False
    """Whether more than one line a chip is printed; not kept in files."""
    failure: str = ""
    """Which limits were exceeded, as text; empty if none."""
    csv: str = ""
    figure: str = ""
    """Where these were written to."""

    def __len__(self) -> int:
        return len(self.estimates)

    def __iter__(self) -> Iterator[EnergyEstimate]:
        return iter(self.estimates)

    def __getitem__(self, profile: str) -> EnergyEstimate:
        for each in self.estimates:
            if each.profile == profile:
                return each
        raise UnknownNameError("profile", profile, [each.profile for each in self.estimates])

    def __repr__(self) -> str:
        shown = ", ".join(f"{each.profile} {si(each.joules, 'J')}" for each in self.estimates[:4])
        more = ", ..." if len(self) > 4 else ""
        return f"EnergyReport({len(self)} chips: {shown}{more})"

    def _repr_html_(self) -> str:
        rows = {each.title: each.summary for each in self.estimates}
        return html_table("Energy of an inference", rows)

    def table(self, console: Console | None = None) -> None:
        """Print one row for each chip, in at most 100 columns."""
        from neuro_eqprop.chips.energy.text import console_or_default, print_chips

        print_chips(self, console_or_default(console))

    def show(self, console: Console | None = None, *, verbose: bool = False) -> None:
        """Print the chips, and if `verbose` terms, learning, dense references and sources too."""
        from neuro_eqprop.chips.energy.text import console_or_default, print_report

        print_report(self, console_or_default(console), verbose=verbose)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the joules of every chip as dots with their ranges; return the axes."""
        from neuro_eqprop.chips.energy.figures import plot_chips

        axes: Axes = plot_chips(self, ax)
        return axes

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object, as `energy --json` prints it."""
        from neuro_eqprop.chips.energy.file import report_json

        return report_json(self)

    def save(self, path: str | Path) -> Path:
        """Write the report as JSON (the file `energy.json` of a run); return its path."""
        from neuro_eqprop.chips.energy.file import write_energy

        return write_energy(self, Path(path))

    @property
    def judged(self) -> list[tuple[EnergyEstimate, DenseComparison]]:
        """The comparisons with devices at batch 1 that could be decided; others are in the file."""
        return [
            (chip, each)
            for chip in self.estimates
            for each in chip.comparisons
            if each.batch == 1 and each.outcome is not Outcome.REFUSED
        ]

    @property
    def verdicts(self) -> list[tuple[EnergyEstimate, DenseComparison]]:
        """Of each chip, the comparison with the device that needs the fewest joules."""
        found: dict[str, tuple[EnergyEstimate, DenseComparison]] = {}
        for chip, each in self.judged:
            best = found.get(chip.profile)
            if best is None or each.dense < best[1].dense:
                found[chip.profile] = (chip, each)
        return list(found.values())

    def exceeding(
        self, *, joules: float | None = None, seconds: float | None = None
    ) -> tuple[str, ...]:
        """The chips whose inference exceeds a limit, or is unknown, as text.

        Of several chips, those without joules are passed over; a single one must have them.
        """
        found = []
        for each in self.estimates:
            if each.joules is None and len(self) > 1:
                continue
            for limit, value, unit in (
                (joules, each.joules, "J"),
                (seconds, each.seconds, "s"),
            ):
                if limit is not None and (value is None or value > limit):
                    shown = "unknown" if value is None else si(value, unit)
                    found.append(f"{each.profile}: {shown}, above {si(limit, unit)}")
        return tuple(found)

    def compare_run(self, other: EnergyReport) -> RunComparison:
        """Compare with the report of another run, on the chips of both."""
        theirs = {each.profile: each for each in other}
        rows = [
            compare_use(each.profile, use, getattr(each, use), getattr(theirs[each.profile], use))
            for use in ("inference", "learning")
            for each in self
            if each.profile in theirs
        ]
        return RunComparison(other.run or "", other.counted, tuple(rows))


def compare_use(profile: str, use: str, mine: Estimate, other: Estimate) -> RunComparisonRow:
    """One use of one chip in two runs; no ratio between different boundaries."""
    values = [None if each.joules is None else each.joules.value for each in (mine, other)]
    ratio = None
    if mine.boundary is other.boundary and values[0] and values[1]:
        ratio = values[0] / values[1]
    return RunComparisonRow(
        profile,
        use,
        values[0],
        values[1],
        ratio,
        (mine.boundary and mine.boundary.value, other.boundary and other.boundary.value),
        (mine.reason, other.reason),
        (mine.at_least, other.at_least),
        tuple(() if e.joules is None else (e.joules.low, e.joules.high) for e in (mine, other)),
    )
