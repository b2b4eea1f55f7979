"""How far spikes travel on a placed network: messages, hops on the mesh, links between chips."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuro_eqprop.arrays import Ints
from neuro_eqprop.hardware.core_allocation import CoreAllocation
from neuro_eqprop.hardware.placement import Placement
from neuro_eqprop.hardware.profile import Profile
from neuro_eqprop.hardware.workload import Link, Shapes


@dataclass(frozen=True, slots=True)
class Mesh:
    """Cores in tiles, tiles in a grid, numbered row by row; a chip after the other."""

    cores_per_chip: int
    cores_per_tile: int
    width: int
    height: int

    def positions(self, seat: CoreAllocation) -> tuple[Ints, Ints, Ints]:
        """Chip, column and row of each core of a seat."""
        cores = np.arange(seat.first_core, seat.first_core + seat.cores, dtype=np.int64)
        chip, within = np.divmod(cores, self.cores_per_chip)
        row, column = np.divmod(within // self.cores_per_tile, self.width)
        return chip, column, row


def mesh(profile: Profile) -> tuple[Mesh, bool]:
    """The mesh of a chip, and whether it is known; else all cores of a chip lie in one place."""
    keys = ("cores_per_chip", "cores_per_tile", "mesh_width", "mesh_height")
    sizes = [profile.limit(key) for key in keys]
    known = [size for size in sizes if size is not None]
    if len(known) == len(sizes):
        return Mesh(*known), True
    cores = sizes[0] or 1
    return Mesh(cores, cores, 1, 1), cores == 1


@dataclass(frozen=True, slots=True)
class Route:
    """What one spike of a population causes on average."""

    messages: float
    """Destination cores."""
    hops_ew: float | None
    """Tiles passed east or west, over the messages that stay on the chip; None if unknown."""
    hops_ns: float | None
    chip_links: float
    """Messages that leave the chip."""


def spread(chips: Ints, places: Ints, *, first: int, shape: tuple[int, int]) -> Ints:
    """How many cores lie in each (chip, place)."""
    table = np.zeros(shape, dtype=np.int64)
    np.add.at(table, (chips - first, places), 1)
    return table


def apart(one: Ints, other: Ints) -> float:
    """Sum over the pairs of cores on the same chip of how many places they are apart."""
    places = np.arange(one.shape[1])
    distance = np.abs(places[:, None] - places[None, :])
    return float(np.einsum("ci,ij,cj->", one, distance, other))


def travel(
    grid: Mesh, source: CoreAllocation, target: CoreAllocation
) -> tuple[float, float, float]:
    """Mean hops east-west and north-south of a message, and the part that leaves the chip."""
    a, b = grid.positions(source), grid.positions(target)
    first = min(int(a[0][0]), int(b[0][0]))
    chips = max(int(a[0][-1]), int(b[0][-1])) - first + 1
    pairs = source.cores * target.cores
    hops = []
    for axis, places in ((1, grid.width), (2, grid.height)):
        tables = [spread(p[0], p[axis], first=first, shape=(chips, places)) for p in (a, b)]
        hops.append(apart(*tables) / pairs)
        same = float((tables[0].sum(axis=1) * tables[1].sum(axis=1)).sum()) / pairs
    return hops[0], hops[1], 1.0 - same


def reached(shapes: Shapes, link: Link, cores: int) -> float:
    """Of the target's cores, how many a spike goes to: all, or as many as it has synapses."""
    return min(float(cores), link.synapses / shapes[link.source].size)


def routes(shapes: Shapes, placement: Placement, profile: Profile) -> dict[str, Route]:
    """The route of each population's spikes; inputs from outside have messages alone."""
    grid, known = mesh(profile)
    found = {}
    for group in shapes.groups:
        messages = east_west = north_south = links = 0.0
        for link in shapes.out_of(group.name):
            target = placement.seat(link.target)
            count = reached(shapes, link, target.cores)
            messages += count
            if not group.off_chip:
                ew, ns, away = travel(grid, placement.seat(group.name), target)
                east_west, north_south = east_west + count * ew, north_south + count * ns
                links += count * away
        hops = (east_west, north_south) if known else (None, None)
        found[group.name] = Route(messages, hops[0], hops[1], links)
    return found
