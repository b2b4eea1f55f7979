"""Seconds of a step compared with SANA-FE in its cycle mode, on drawn networks of six kinds.

    python sims/step_times/run.py [NETWORKS OF EACH KIND] [KIND ...]

Spikes are drawn, the network is placed on Loihi 1 by the default mapping, and both sides take these
spikes on these cores with the constants of the profile. SANA-FE has to be installed (`pip install
sanafe`); docs/results/step-times.md has the last result.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from neuro_eqprop.chips.convolution import ConvolutionShape
from neuro_eqprop.chips.energy.estimate import map_workload
from neuro_eqprop.chips.energy.sanafe import sanafe_seconds
from neuro_eqprop.chips.energy.settings import EstimateSettings
from neuro_eqprop.chips.energy.time import duration
from neuro_eqprop.chips.profiles.load import load_profile
from neuro_eqprop.chips.workload import (
    NetworkShape,
    PopulationShape,
    ProjectionShape,
    Workload,
    convolution_projection,
    dense_projection,
)
from neuro_eqprop.simulators.recordings import Counts

STEPS = 12
KINDS = ("dense", "conv", "local", "rows", "loops", "sources")


@dataclass
class Drawing:
    """A network that is being drawn."""

    populations: dict[str, PopulationShape] = field(default_factory=dict)
    projections: list[ProjectionShape] = field(default_factory=list)

    def add(self, name: str, size: int) -> None:
        """Add a population."""
        self.populations[name] = PopulationShape(name, size)

    def connect(self, source: str, target: str) -> None:
        """Add a dense projection."""
        ends = self.populations[source], self.populations[target]
        self.projections.append(dense_projection(*ends, bits=8))

    def connect_spans(self, source: str, target: str, spans: np.ndarray) -> None:
        """Add a projection with a range of targets for each source."""
        size = self.populations[target].size
        fan_out = spans[:, 1] - spans[:, 0] + 1
        targets = np.arange(size)
        inside = (spans[:, :1] <= targets) & (targets <= spans[:, 1:])
        fans = int(inside.sum(axis=0).max()), int(fan_out.max())
        total = int(fan_out.sum())
        self.projections.append(ProjectionShape(source, target, total, *fans, spans=spans))


def draw(kind: str, rng: np.random.Generator) -> Drawing:
    """A network of a kind."""
    drawn = Drawing()
    sizes = [int(size) for size in rng.integers(30, 250, size=4)]
    if kind in ("dense", "loops"):
        names = [f"p{k}" for k in range(int(rng.integers(2, 5)) if kind == "dense" else 3)]
        for name, size in zip(names, sizes, strict=False):
            drawn.add(name, size)
        for source, target in pairwise(names):
            drawn.connect(source, target)
        for source, target in (("p2", "p1"), ("p1", "p1")) if kind == "loops" else ():
            drawn.connect(source, target)
    elif kind == "sources":
        names = [f"s{k}" for k in range(int(rng.integers(2, 4)))]
        for name, size in zip([*names, "target"], sizes, strict=False):
            drawn.add(name, size)
        for name in names:
            drawn.connect(name, "target")
    elif kind == "conv":
        channels, side, maps = (int(rng.integers(*ends)) for ends in ((1, 3), (8, 15), (4, 10)))
        geometry = ConvolutionShape((channels, side, side), (maps, side - 2, side - 2), (3, 3))
        drawn.add("image", channels * side**2)
        drawn.add("maps", maps * (side - 2) ** 2)
        drawn.projections.append(convolution_projection("image", "maps", geometry))
        drawn.add("output", 10)
        drawn.connect("maps", "output")
    elif kind == "local":
        drawn.add("a", 2 * sizes[0])
        drawn.add("b", 2 * sizes[1])
        middle = np.arange(2 * sizes[0]) * sizes[1] // sizes[0]
        width = int(rng.integers(3, 25))
        ends = np.stack([middle - width, middle + width], axis=1)
        drawn.connect_spans("a", "b", np.clip(ends, 0, 2 * sizes[1] - 1))
    else:
        rows, each = int(rng.integers(2, 6)), int(rng.integers(20, 100))
        drawn.add("a", sizes[0])
        drawn.add("b", rows * each)
        first = np.arange(sizes[0]) * rows // sizes[0] * each
        drawn.connect_spans("a", "b", np.stack([first, first + each - 1], axis=1))
    return drawn


def compare(kind: str, seed: int) -> tuple[int, float, float]:
    """Cores, SANA-FE's seconds of a step, and the relative error of ours."""
    rng, chip = np.random.default_rng([KINDS.index(kind), seed]), load_profile("loihi1")
    drawn = draw(kind, rng)
    shape = NetworkShape(
        tuple(drawn.populations.values()), tuple(drawn.projections), [*drawn.populations][-1]
    )
    activity = float(rng.choice([0.05, 0.15, 0.3]))
    spikes, counts = {}, {}
    for name, each in drawn.populations.items():
        spikes[name] = (rng.random((STEPS, each.size)) < activity).astype(np.int64)
        sent = int(spikes[name].sum())
        fan_out = sum(link.synapses for link in shape.out_of(name)) / each.size
        idle = STEPS * each.size - sent
        counts[name, "free"] = Counts(STEPS, sent, round(sent * fan_out), sent, idle)
    workload = Workload(shape, counts, 1, STEPS, "rate", 1, spikes)
    placement, _ = map_workload(workload, chip, EstimateSettings(), learning=False)
    theirs = sanafe_seconds(workload, placement, chip)
    ours = duration(workload, placement, chip, learning=False).seconds
    assert ours is not None
    return placement.cores or 0, theirs / STEPS, ours.value / theirs - 1


def main(number: int, kinds: list[str]) -> None:
    """Compare networks of each kind, and print a row for each and for each kind."""
    every = []
    for kind in kinds:
        errors = []
        for seed in range(number):
            cores, step, error = compare(kind, seed)
            errors.append(abs(error))
            print(f"{kind:8} {seed} {cores:4} cores {1e6 * step:7.2f} us {error:+.1%}", flush=True)
        every += errors
        print(f"{kind}: median {np.median(errors):.1%}, worst {max(errors):.1%}", flush=True)
    print(f"all: median {np.median(every):.1%}, worst {max(every):.1%}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5, sys.argv[2:] or list(KINDS))
