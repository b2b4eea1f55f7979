"""Mapping of populations to cores: fewest cores, least energy, or balanced.

Fewest cores is often the costliest choice: where idle power is per chip, more cores shorten the
step and so save idle energy. Starting from the fewest cores, the population with the slowest core
gets more until the chips are full; the mapping is chosen among these placements. Capacity limits
are checked by `hardware.placement`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from math import ceil

from neuro_eqprop.chips.energy.core_work import core_work
from neuro_eqprop.chips.limits import Violation
from neuro_eqprop.chips.placement import Placement, PlacementStatus
from neuro_eqprop.chips.profile import Profile, Timing
from neuro_eqprop.chips.workload import NetworkShape, Workload

BALANCED_SLOWDOWN = 2.0
"""Largest time of a balanced mapping, relative to that of the fastest one."""
GROWTH = 6
"""A population with n cores gets max(1, n // GROWTH) more at a time."""
SPACING = 1.06
"""Least ratio of the cores of two consecutive placements whose energy is estimated."""


class MappingGoal(Enum):
    """Objective of a mapping of populations to cores."""

    FEWEST_CORES = "fewest-cores"
    LEAST_ENERGY = "least-energy"
    BALANCED = "balanced"


@dataclass(frozen=True, slots=True)
class MappingCost:
    """Cores of a mapping, and nominal joules and seconds of a sample on them."""

    mapping: str
    cores: int
    chips: int | None
    joules: float | None
    seconds: float | None


Place = Callable[[Mapping[str, int]], Placement]
"""Places the network with at least the given number of cores for each population."""


def placements(
    workload: Workload, profile: Profile, place: Place, *, cores: int | None, learning: bool
) -> Iterator[Placement]:
    """Placements on more and more cores, from the fewest up to `cores` or to all of the chips.

    Only a chip whose time depends on its slowest core gains from more cores; for any other only
    the first placement is returned, unless `cores` are given.
    """
    placement = place({})
    yield placement
    per_chip = profile.limit("cores_per_chip")
    timed = profile.timing is Timing.BARRIER and profile.known("time.barrier") is not None
    if (
        placement.status is PlacementStatus.DOES_NOT_FIT
        or placement.cores is None
        or per_chip is None
    ):
        return
    limit = cores or per_chip * (placement.chips or 1)
    mean = workload.without_steps
    sizes = {each.name: each.size for each in workload.shape.populations}
    while (timed or cores) and placement.cores is not None and placement.cores < limit:
        busy = core_work(mean, placement, profile, learning=learning).busy.max(axis=0)
        slowest_first = sorted(
            placement.allocations,
            key=lambda each: float(busy[each.first_core : each.first_core + each.cores].max()),
            reverse=True,
        )
        # More cores for other populations shorten no step, but given `cores` are all used.
        for each in slowest_first if cores else slowest_first[:1]:
            more = min(max(1, each.cores // GROWTH), limit - placement.cores)
            if cores and each.neurons_per_core > 1:
                fewer = ceil(sizes[each.name] / (each.neurons_per_core - 1)) - each.cores
                more = max(more, fewer)
            wanted = {other.name: other.cores for other in placement.allocations}
            wanted[each.name] += more
            following = place(wanted)
            if following.cores is not None and placement.cores < following.cores <= limit:
                break
        else:
            return
        placement = following
        yield placement


def spaced(found: list[Placement]) -> list[Placement]:
    """Placements that grow by at least a factor SPACING in cores; first and last are kept."""
    kept = found[:1]
    for each in found[1:]:
        if (each.cores or 0) >= SPACING * (kept[-1].cores or 1):
            kept.append(each)
    return kept if kept[-1] is found[-1] else [*kept, found[-1]]


def choose(
    candidates: list[tuple[Placement, MappingCost]], goal: MappingGoal, *, cores: int | None
) -> tuple[Placement, tuple[MappingCost, ...]]:
    """The best candidate for a goal, and the cost for every goal; with `cores`, the largest one."""
    first = candidates[0]
    priced = [each for each in candidates if each[1].joules is not None]
    timed = [each for each in candidates if each[1].seconds is not None]
    chosen = dict.fromkeys(MappingGoal, first)
    if priced:
        chosen[MappingGoal.LEAST_ENERGY] = min(priced, key=lambda each: each[1].joules or 0.0)
    if timed:
        fastest = min(cost.seconds or 0.0 for _, cost in timed)
        chosen[MappingGoal.BALANCED] = next(
            each for each in timed if (each[1].seconds or 0.0) <= BALANCED_SLOWDOWN * fastest
        )
    costs = [replace(cost, mapping=name.value) for name, (_, cost) in chosen.items()]
    if cores is not None:
        placement, cost = candidates[-1]
        return placement, (replace(cost, mapping=f"{cores} cores given"), *costs)
    return chosen[goal][0], tuple(costs)


def too_many_cores(
    shape: NetworkShape, profile: Profile, place: Place, *, cores: int | None, chips: int | None
) -> str:
    """Why the given cores are more than the chips have or the network can use; empty if not."""
    per_chip = profile.limit("cores_per_chip")
    if cores is None or per_chip is None:
        return ""
    available = chips if chips is not None else profile.limit("chips_max")
    if available is not None and cores > per_chip * available:
        have = "one chip has" if available == 1 else f"{available} chips have"
        return f"{have} {per_chip * available} cores, not {cores}; give fewer"
    most = place({each.name: each.size for each in shape.on_chip}).cores
    if most is not None and cores > most:
        return f"the network can use at most {most} cores, not {cores}; give fewer"
    return ""


def too_few_cores(placement: Placement, cores: int) -> Placement:
    """The placement marked as not fitting if it needs more than the given cores."""
    if placement.cores is None or placement.cores <= cores:
        return placement
    reason = f"it needs at least {placement.cores} cores; {cores} are given"
    violation = Violation("cores", reason, curable=False)
    violations = (*placement.violations, violation)
    return replace(
        placement, status=PlacementStatus.DOES_NOT_FIT, violations=violations, binding="cores"
    )
