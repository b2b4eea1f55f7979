"""Network-on-chip traffic of a placed network: messages, hops on the mesh, links between chips."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuro_eqprop.chips.deliveries import messages_per_spike
from neuro_eqprop.chips.placement import CoreAllocation, Placement
from neuro_eqprop.chips.profile import Profile
from neuro_eqprop.chips.workload import NetworkShape
from neuro_eqprop.common.arrays import Ints


@dataclass(frozen=True, slots=True)
class Mesh:
    """Cores in tiles on a 2D mesh, numbered row by row and chip by chip."""

    cores_per_chip: int
    cores_per_tile: int
    width: int
    height: int

    def positions(self, allocation: CoreAllocation) -> tuple[Ints, Ints, Ints]:
        """Chip, column and row of each core of a population."""
        first = allocation.first_core
        cores = np.arange(first, first + allocation.cores, dtype=np.int64)
        chip, within = np.divmod(cores, self.cores_per_chip)
        row, column = np.divmod(within // self.cores_per_tile, self.width)
        return chip, column, row


def mesh_of(profile: Profile) -> tuple[Mesh, bool]:
    """The mesh of a chip, and whether it is known; an unknown mesh becomes a single tile."""
    keys = ("cores_per_chip", "cores_per_tile", "mesh_width", "mesh_height")
    sizes = [profile.limit(key) for key in keys]
    known = [size for size in sizes if size is not None]
    if len(known) == len(sizes):
        return Mesh(*known), True
    cores = sizes[0] or 1
    return Mesh(cores, cores, 1, 1), cores == 1


@dataclass(frozen=True, slots=True)
class SpikeTraffic:
    """Mean traffic of one spike of a population."""

    messages: float
    """Number of destination cores."""
    hops_ew: float | None
    """Hops east or west, summed over the messages that stay on the chip; None if unknown."""
    hops_ns: float | None
    """Hops north or south, summed in the same way."""
    chip_links: float
    """Messages that leave the chip."""


def count_cores(chips: Ints, places: Ints, *, first: int, shape: tuple[int, int]) -> Ints:
    """The number of cores in each (chip, column) or (chip, row)."""
    table = np.zeros(shape, dtype=np.int64)
    np.add.at(table, (chips - first, places), 1)
    return table


def total_distance(source: Ints, target: Ints) -> float:
    """Sum of the distances along one axis over all pairs of cores on the same chip."""
    places = np.arange(source.shape[1])
    distance = np.abs(places[:, None] - places[None, :])
    return float(np.einsum("ci,ij,cj->", source, distance, target))


def mean_hops(
    mesh: Mesh, source: CoreAllocation, target: CoreAllocation
) -> tuple[float, float, float]:
    """Mean hops east-west and north-south of a message, and the fraction that leaves the chip."""
    a, b = mesh.positions(source), mesh.positions(target)
    first = min(int(a[0][0]), int(b[0][0]))
    chips = max(int(a[0][-1]), int(b[0][-1])) - first + 1
    pairs = source.cores * target.cores
    hops = []
    for axis, places in ((1, mesh.width), (2, mesh.height)):
        tables = [count_cores(p[0], p[axis], first=first, shape=(chips, places)) for p in (a, b)]
        hops.append(total_distance(*tables) / pairs)
        same = float((tables[0].sum(axis=1) * tables[1].sum(axis=1)).sum()) / pairs
    return hops[0], hops[1], 1.0 - same


def noc_traffic(
    shape: NetworkShape, placement: Placement, profile: Profile
) -> dict[str, SpikeTraffic]:
    """Mean traffic of one spike, by population; off-chip input counts messages but no hops."""
    mesh, known = mesh_of(profile)
    found = {}
    for each in shape.populations:
        messages = east_west = north_south = links = 0.0
        for projection in shape.out_of(each.name):
            target = placement[projection.target]
            count = messages_per_spike(shape, projection, target)
            messages += count
            if not each.off_chip:
                ew, ns, away = mean_hops(mesh, placement[each.name], target)
                east_west, north_south = east_west + count * ew, north_south + count * ns
                links += count * away
        hops = (east_west, north_south) if known else (None, None)
        found[each.name] = SpikeTraffic(messages, hops[0], hops[1], links)
    return found
