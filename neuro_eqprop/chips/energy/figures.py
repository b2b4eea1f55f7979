"""Figures of energy results: terms, chips, accuracy against joules, calibration."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

from neuro_eqprop.chips.energy.pareto import front
from neuro_eqprop.chips.energy.result import EnergyEstimate, EnergyReport
from neuro_eqprop.chips.energy.term_colours import colour_of
from neuro_eqprop.chips.energy.validation import ProfileValidation
from neuro_eqprop.files.write import atomic

Axes: TypeAlias = Any
"""matplotlib.axes.Axes; matplotlib is imported when a figure is drawn."""
MARKERS = "os^Dvx*P"


def new_axes(width: float = 6.0, height: float = 4.0) -> Axes:
    """Axes of a new figure, without a window."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained").add_subplot()


def save_figure(axes: Axes, path: Path) -> Path:
    """Write the figure of some axes in the format of the file name extension; return the path."""
    known = sorted(axes.figure.canvas.get_supported_filetypes())
    if path.suffix.lstrip(".").lower() not in known:
        raise ValueError(f"{path} has no known ending for a figure; use one of {', '.join(known)}")
    if not path.absolute().parent.is_dir():
        raise ValueError(f"{path.parent} is no folder; make it first")
    with atomic(path) as temporary:
        axes.figure.savefig(temporary, dpi=150, format=path.suffix.lstrip("."))
    return path


def plot_terms(estimate: EnergyEstimate, ax: Axes | None = None) -> Axes:
    """The cost terms of an inference on one chip, as bars on a linear scale."""
    terms = sorted(estimate.terms, key=lambda term: term.joules.value)
    axes = ax or new_axes(6.0, 1.2 + 0.3 * len(terms))
    for place, term in enumerate(terms):
        spread = [
            [max(0.0, term.joules.value - term.joules.low)],
            [max(0.0, term.joules.high - term.joules.value)],
        ]
        axes.barh(place, term.joules.value, xerr=spread, color=colour_of(term.name), ecolor="grey")
    axes.set_yticks(range(len(terms)), [term.name for term in terms])
    axes.set_xlabel("joules of an inference, with the range")
    axes.set_title(f"{estimate.title}: {estimate.summary}", fontsize="medium")
    return axes


def plot_chips(report: EnergyReport, ax: Axes | None = None) -> Axes:
    """The joules of an inference on each chip, as dots with their ranges on a log scale."""
    known = sorted(
        (each for each in report if each.joules is not None), key=lambda e: -(e.joules or 0.0)
    )
    axes = ax or new_axes(6.0, 1.2 + 0.3 * len(known))
    for place, each in enumerate(known):
        joules = each.inference.joules
        assert joules is not None
        axes.plot([joules.low, joules.high], [place, place], color="tab:blue", linewidth=1.5)
        # A lower bound points to larger values.
        axes.plot(joules.value, place, ">" if each.unknown else "o", color="tab:blue")
    axes.set_yticks(range(len(known)), [each.profile for each in known])
    axes.set_xscale("log")
    axes.set_xlabel("joules of an inference, with the range; triangles: at least")
    return axes


def plot_calibration(validation: ProfileValidation) -> Axes:
    """Measured over predicted of each prediction with its range, chip by chip."""
    checks = sorted(validation.predictions, key=lambda c: (c.case.profile, c.case.name))
    axes = new_axes(7.0, 1.2 + 0.22 * len(checks))
    for place, check in enumerate(checks):
        colour = "tab:blue" if check.within else "tab:red"
        low, high = (
            check.case.measured / end for end in (check.predicted.high, check.predicted.low)
        )
        axes.plot([low, high], [place, place], color=colour, linewidth=1)
        axes.plot(
            check.case.measured / check.predicted.value, place, "o", color=colour, markersize=4
        )
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(checks)), [check.case.name for check in checks], fontsize=7)
    axes.set_xlabel("measured over predicted, with the range; red: the range misses 1")
    coverage, width = validation.coverage, validation.width
    if coverage is not None and width is not None:
        axes.set_title(f"coverage {coverage:.0%}, median range a factor of {width:.2g}")
    return axes


def plot_pareto(report: EnergyReport) -> Axes:
    """Accuracy against joules over all chips, codes, steps and bits, with the Pareto front."""
    points = [point for chip in report for point in chip.curve]
    kept = front(points)
    axes = new_axes(7.0, 4.5)
    chips = list(dict.fromkeys(point.profile for point in points))
    for place, chip in enumerate(chips):
        own = [point for point in points if point.profile == chip]
        axes.errorbar(
            [point.joules for point in own],
            [100 * point.accuracy for point in own],
            xerr=[
                [max(0.0, point.joules - point.low) for point in own],
                [max(0.0, point.high - point.joules) for point in own],
            ],
            fmt=MARKERS[place % len(MARKERS)],
            markersize=4,
            linewidth=0.6,
            label=chip,
        )
    axes.plot(
        [point.joules for point in kept],
        [100 * point.accuracy for point in kept],
        color="black",
        linewidth=1,
        label="Pareto front",
    )
    axes.set_xscale("log")
    axes.set_xlabel("joules of an inference, with the range")
    axes.set_ylabel("accuracy [%]")
    axes.legend(fontsize="small")
    return axes
