"""Published measurements, and the data from which they are predicted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from math import prod

import numpy as np

from neuro_eqprop.chips.convolution import ConvolutionShape
from neuro_eqprop.chips.profile import Boundary, Overhead
from neuro_eqprop.chips.workload import (
    FREE,
    NetworkShape,
    PopulationShape,
    Workload,
    convolution_projection,
    dense_projection,
)
from neuro_eqprop.simulators.recordings import Counts


class Role(Enum):
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

    x: tuple[float, float]
    y: tuple[float, float]
    at: float
    rounding: float
    """Half the last published digit of the points."""

    def __post_init__(self) -> None:
        if self.x[0] == self.x[1]:
            raise ValueError("the two points have the same x")


@dataclass(frozen=True, slots=True)
class PublishedLayer:
    """A layer of a published network: its size, and its input from the previous layer.

    With a `kernel`, the input is a convolution, otherwise it is dense; the first layer has none.
    """

    name: str
    shape: tuple[int, ...]
    """(channels, height, width) or (neurons,)."""
    kernel: tuple[int, ...] = ()
    stride: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0)
    spikes: float = 0.0
    """Mean number of spikes of the layer per step."""
    spikes_by_step: tuple[int, ...] = ()
    """Spikes of the layer in each step, if known."""
    off_chip: bool = False
    soft_reset: bool = False
    graded: bool = False

    def __post_init__(self) -> None:
        if len(self.shape) not in (1, 3):
            raise ValueError(
                f"shape {list(self.shape)} is neither [neurons] nor [channels, height, width]"
            )
        for name in ("kernel", "stride", "padding"):
            if len(getattr(self, name)) not in ((0, 2) if name == "kernel" else (2,)):
                raise ValueError(f"{name} takes two numbers, height and width")


@dataclass(frozen=True, slots=True)
class PublishedNetwork:
    """A published network, described by its layers, to be placed on a chip."""

    name: str
    layer: tuple[PublishedLayer, ...]
    bits: int = 8

    def shape(self) -> NetworkShape:
        """The populations and projections of the network."""
        populations = tuple(
            PopulationShape(
                each.name, prod(each.shape), each.soft_reset, each.graded, each.off_chip
            )
            for each in self.layer
        )
        links = []
        for k, (before, after) in enumerate(pairwise(self.layer)):
            if not after.kernel:
                links.append(dense_projection(*populations[k : k + 2], bits=self.bits))
                continue
            if not len(before.shape) == len(after.shape) == 3:
                raise ValueError(
                    f"layer {after.name!r} has a kernel, which needs feature maps on both sides"
                )
            geometry = ConvolutionShape(
                (before.shape[0], before.shape[1], before.shape[2]),
                (after.shape[0], after.shape[1], after.shape[2]),
                (after.kernel[0], after.kernel[1]),
                (after.stride[0], after.stride[1]),
                (after.padding[0], after.padding[1]),
            )
            links.append(convolution_projection(before.name, after.name, geometry, bits=self.bits))
        return NetworkShape(populations, tuple(links), self.layer[-1].name)

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
class Case:
    """A published measurement, with the events and the time it covers."""

    name: str
    profile: str
    role: Role
    grade: str
    """A: events and time are published; B: one of them is inferred; C: order of magnitude."""
    measure: Measure
    measured: float
    uncertainty: float
    """Uncertainty of the measurement: half its last digit, or one standard deviation."""
    boundary: Boundary
    source: str
    where: str
    events: Mapping[str, tuple[float, float]]
    """Lowest and highest number of events, by key of the section `energy`."""
    seconds: float = 0.0
    """Published duration in seconds; 0 if it is not needed or is predicted."""
    macs: int = 0
    """Multiplications of one inference on a dense device."""
    reference_macs: int = 0
    """Multiplications of the network that the device's time was measured with."""
    network: PublishedNetwork | None = None
    """The network to place; used instead of `events`."""
    steps: int = 1
    """Steps that the measurement covers."""
    chips: int = 1
    mapping: str = "balanced"
    """How the network is mapped, unless `cores` are published."""
    cores: Mapping[str, int] = field(default_factory=dict)
    """Published cores of each layer."""
    supply: float = 0.0
    """Supply voltage of the measurement, in volts; 0 for that of the profile."""
    line: Line | None = None
    clock_hz: float | None = None
    overhead: Overhead | None = None
    overrides: Mapping[str, str] = field(default_factory=dict)
    """Values that replace those of the profile, by key."""
    tolerance: float | None = None
    """Largest allowed relative error of the prediction."""
    in_range: bool = False
    """Whether the measurement must lie in the predicted range."""
    note: str = ""

    def __post_init__(self) -> None:
        if not (self.events or self.macs or self.network or self.line):
            raise ValueError(
                "there is nothing to predict from: give events, macs, a network or a line"
            )
        if self.network is None and self.measure in (Measure.CORES, Measure.MESSAGES):
            raise ValueError(f"{self.measure.value} are predicted for a network; name one")
        if self.measured == 0:
            raise ValueError("measured is zero; the relative error of zero is undefined")
