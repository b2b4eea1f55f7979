"""Published measurements, the data from which they are predicted, and their files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import pairwise
from math import prod
from pathlib import Path

import numpy as np

from neuro_eqprop.chips.boundary import Boundary
from neuro_eqprop.chips.convolution import ConvolutionShape
from neuro_eqprop.chips.profile import Overhead
from neuro_eqprop.chips.profiles.load import profile_folder
from neuro_eqprop.chips.profiles.schema import check_key
from neuro_eqprop.chips.workload import (
    FREE,
    NetworkShape,
    PopulationShape,
    Workload,
    convolution_projection,
    dense_projection,
)
from neuro_eqprop.files.codec import Count, Format, NonNegative, Text
from neuro_eqprop.files.read import FileFormatError
from neuro_eqprop.simulators.recordings import Counts


class CaseRole(Enum):
    """Whether the constants of a prediction are independent of the measurement."""

    PREDICTION = "prediction"
    """They come from another source: agreement validates them."""
    CONSISTENCY = "consistency"
    """They come from the same source: agreement only shows that the formula holds."""


class Measure(Enum):
    """The measured quantity, named by its SI unit or by what was counted."""

    POWER = "W"
    ENERGY = "J"
    TIME = "s"
    CORES = "cores"
    MESSAGES = "messages"


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line through two published points, and the x of the held-out point."""

    x: tuple[NonNegative, NonNegative]
    y: tuple[NonNegative, NonNegative]
    at: NonNegative
    rounding: NonNegative
    """Half the last published digit of the points."""

    def __post_init__(self) -> None:
        if self.x[0] == self.x[1]:
            raise ValueError("the two points have the same x")


@dataclass(frozen=True, slots=True)
class PublishedLayer:
    """A layer of a published network: its size, and its input from the previous layer.

    With a `kernel`, the input is a convolution, otherwise it is dense; the first layer has none.
    """

    name: Text
    shape: tuple[Count, ...]
    """(channels, height, width) or (neurons,)."""
    kernel: tuple[Count, Count] | None = None
    stride: tuple[Count, Count] = (1, 1)
    padding: tuple[Count, Count] = (0, 0)
    spikes: NonNegative = 0.0
    """Mean number of spikes of the layer per step."""
    spikes_by_step: tuple[Count, ...] = ()
    """Spikes of the layer in each step, if known."""
    off_chip: bool = False
    soft_reset: bool = False
    graded: bool = False

    def __post_init__(self) -> None:
        if len(self.shape) not in (1, 3):
            raise ValueError(
                f"shape {list(self.shape)} is neither [neurons] nor [channels, height, width]"
            )

    def convolve(self, before: PublishedLayer) -> ConvolutionShape | None:
        """The geometry of the convolution of the previous layer; None if the input is dense."""
        if self.kernel is None:
            return None
        if not len(before.shape) == len(self.shape) == 3:
            raise ValueError(
                f"layer {self.name!r} has a kernel, which needs feature maps on both sides"
            )
        (a, b, c), (d, e, f) = before.shape, self.shape
        return ConvolutionShape((a, b, c), (d, e, f), self.kernel, self.stride, self.padding)


@dataclass(frozen=True, slots=True)
class PublishedNetwork:
    """A published network, described by its layers, to be placed on a chip."""

    name: Text
    layer: tuple[PublishedLayer, ...]
    bits: Count = 8

    def shape(self) -> NetworkShape:
        """The populations and projections of the network."""
        sizes = [
            PopulationShape(
                layer.name, prod(layer.shape), layer.soft_reset, layer.graded, layer.off_chip
            )
            for layer in self.layer
        ]
        links = []
        for (before, after), ends in zip(pairwise(self.layer), pairwise(sizes), strict=True):
            geometry = after.convolve(before)
            links.append(
                dense_projection(*ends, bits=self.bits)
                if geometry is None
                else convolution_projection(before.name, after.name, geometry, bits=self.bits)
            )
        return NetworkShape(tuple(sizes), tuple(links), self.layer[-1].name)

    def workload(self, steps: int) -> Workload:
        """The workload of one sample of `steps` steps with the published spikes."""
        shape, counts, by_step = self.shape(), {}, {}
        for each, size in zip(self.layer, shape.populations, strict=True):
            spikes = round(each.spikes * steps)
            fan_out = sum(link.synapses for link in shape.out_of(each.name)) / size.size
            counts[each.name, FREE] = Counts(
                steps=steps,
                spikes=spikes,
                synops=round(spikes * fan_out),
                updates_active=spikes,
                updates_idle=max(0, steps * size.size - spikes),
            )
            if each.spikes_by_step:
                by_step[each.name] = np.asarray(each.spikes_by_step, dtype=np.int64)[:, None]
        macs = sum(link.synapses for link in shape.projections)
        return Workload(shape, counts, 1, steps, "rate", macs, by_step)


@dataclass(frozen=True, slots=True)
class PublishedCase:
    """A published measurement, with the events and the time it covers."""

    name: Text
    profile: Text
    role: CaseRole
    grade: Text
    """A: events and time are published; B: one of them is inferred; C: order of magnitude."""
    measure: Measure
    measured: NonNegative
    uncertainty: NonNegative
    """Uncertainty of the measurement: half its last digit, or one standard deviation."""
    boundary: Boundary
    source: Text
    where: Text
    events: Mapping[str, NonNegative | tuple[NonNegative, ...]] = field(default_factory=dict)
    """Number of events, or the lowest and highest number, by key of the section `energy`."""
    seconds: NonNegative = 0.0
    """Published duration in seconds; 0 if it is not needed or is predicted."""
    macs: Count = 0
    """Multiplications of one inference on a dense device."""
    reference_macs: Count = 0
    """Multiplications of the network that the device's time was measured with."""
    network: PublishedNetwork | str = ""
    """The network to place, which files give by name; used instead of `events`."""
    steps: Count = 1
    """Steps that the measurement covers."""
    chips: Count = 1
    mapping: str = ""
    """How the network is mapped, unless `cores` are published; empty for the default."""
    cores: Mapping[str, Count] = field(default_factory=dict)
    """Published cores of each layer."""
    supply: NonNegative = 0.0
    """Supply voltage of the measurement, in volts; 0 for that of the profile."""
    line: Line | None = None
    clock_hz: NonNegative | None = None
    overhead: Overhead | None = None
    overrides: tuple[str, ...] = ()
    """Values that replace those of the profile: "energy.synop=30pJ"."""
    tolerance: NonNegative | None = None
    """Largest allowed relative error of the prediction."""
    in_range: bool = False
    """Whether the measurement must lie in the predicted range."""
    note: str = ""

    def __post_init__(self) -> None:
        if not (self.events or self.macs or self.network or self.line):
            raise ValueError(
                "there is nothing to predict from: give events, macs, a network or a line"
            )
        for name, number in self.events.items():
            check_key(f"energy.{name}", "events")
            ends = number if isinstance(number, tuple) else (number, number)
            if len(ends) != 2:
                raise ValueError(f"events.{name}: give a number, or the lowest and the highest")
            if ends[0] > ends[1]:
                raise ValueError(f"events.{name}: low {ends[0]:g} is above high {ends[1]:g}")
        if not self.network and self.measure in (Measure.CORES, Measure.MESSAGES):
            raise ValueError(f"{self.measure.value} are predicted for a network; name one")
        if self.measured == 0:
            raise ValueError("measured is zero; the relative error of zero is undefined")


@dataclass(frozen=True, slots=True)
class CasesTables:
    """The tables of a file of published measurements."""

    case: tuple[PublishedCase, ...]
    network: tuple[PublishedNetwork, ...] = ()

    def __post_init__(self) -> None:
        if not self.case:
            raise ValueError("case: there is none; a case is a table [[case]]")


CASES = Format(CasesTables, "neuro_eqprop.cases/1")


def case_files() -> list[Path]:
    """The files of published measurements that ship with the profiles."""
    return sorted((profile_folder() / "validation").glob("*.toml"))


def read_cases(path: Path) -> list[PublishedCase]:
    """The published measurements of a file, with their networks."""
    tables = CASES.read(path)
    networks: dict[PublishedNetwork | str, PublishedNetwork] = {
        network.name: network for network in tables.network
    }
    for place, case in enumerate(tables.case):
        if case.network and case.network not in networks:
            listed = ", ".join(map(str, networks)) or "none"
            raise FileFormatError(
                f"{path}: case[{place}].network: {case.network!r} is not one of the tables "
                f"[[network]]: {listed}"
            )
    return [
        replace(case, network=networks[case.network]) if case.network else case
        for case in tables.case
    ]
