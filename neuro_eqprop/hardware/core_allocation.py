"""Populations on cores: how many neurons a core takes, and which populations share one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil, inf

from neuro_eqprop.hardware.limits import Violation
from neuro_eqprop.hardware.profile import Profile
from neuro_eqprop.hardware.synapse_memory import Store
from neuro_eqprop.hardware.workload import Group, Shapes

ROUNDS = 60
"""Core counts and the axons between them depend on each other; so often they are balanced."""


@dataclass(frozen=True, slots=True)
class CoreAllocation:
    """A population on its cores, which it shares with no other."""

    name: str
    first_core: int
    cores: int
    neurons_per_core: int
    compartments: int
    """Compartments that one neuron takes."""
    used: Mapping[str, float]
    """Of each limited thing of its fullest core, the part in use."""
    binding: str
    """What keeps more neurons from its cores."""


def compartments(group: Group, profile: Profile) -> int:
    """How many compartments a neuron of this kind takes."""
    return (profile.limit("soft_reset_compartments") or 1) if group.soft_reset else 1


def needs(
    group: Group, profile: Profile, memory: Store, *, n: int, destinations: int
) -> dict[str, tuple[float, float]]:
    """Use and limit of each thing on a core with `n` neurons of a population."""
    found: dict[str, tuple[float, float]] = {}

    def against(name: str, use: float, limit: int | None) -> None:
        found[name] = (use, inf if limit is None else limit)

    against("neurons", n * compartments(group, profile), profile.limit("neurons_per_core"))
    against("synapse memory", memory.bits(group.name, n), profile.limit("synapse_bits_per_core"))
    against("synapses", memory.synapses(group.name, n), profile.limit("synapses_per_core"))
    against("in-axons", memory.axons(group.name, n), profile.limit("in_axons_per_core"))
    against("out-axons", n * destinations, profile.limit("out_axons_per_core"))
    return found


def over(found: Mapping[str, tuple[float, float]]) -> list[str]:
    """The things of which more is used than there is."""
    return [name for name, (use, limit) in found.items() if use > limit]


def most(group: Group, profile: Profile, memory: Store, *, destinations: int) -> int:
    """The most neurons of a population that one core takes; 0 if it takes none."""
    low, high = 0, group.size
    while low < high:
        middle = (low + high + 1) // 2
        if over(needs(group, profile, memory, n=middle, destinations=destinations)):
            high = middle - 1
        else:
            low = middle
    return low


def settle(
    shapes: Shapes, profile: Profile, memory: Store
) -> tuple[list[CoreAllocation], list[Violation]]:
    """Seats for all; more cores need more axons, which need more cores, until nothing changes."""
    if profile.limit("neurons_per_core") is None:
        return [], []
    cores = {group.name: 1 for group in shapes.placed}
    for _ in range(ROUNDS):
        before = dict(cores)
        for group in shapes.placed:
            destinations = memory.destinations(group.name, before)
            n = most(group, profile, memory, destinations=destinations)
            if n == 0:
                return [], [stuck(group, profile, memory, destinations=destinations)]
            cores[group.name] = max(before[group.name], ceil(group.size / n))
        if cores == before:
            return seat_all(shapes, profile, memory, cores=cores), []
    name = max(cores, key=lambda each: cores[each])
    reason = f"the cores of {name!r} need more axons the more of them there are"
    return [], [Violation("out-axons", reason, curable=False)]


def stuck(group: Group, profile: Profile, memory: Store, *, destinations: int) -> Violation:
    """Why not even one neuron of a population fits a core."""
    found = needs(group, profile, memory, n=1, destinations=destinations)
    name = over(found)[0]
    use, limit = found[name]
    reason = f"one neuron of {group.name!r} alone needs {use:g} {name} of a core's {limit:g}"
    return Violation(name, reason, curable=False)


def seat_all(
    shapes: Shapes, profile: Profile, memory: Store, *, cores: Mapping[str, int]
) -> list[CoreAllocation]:
    """The seats, one population after the other, each spread evenly over its cores."""
    seats = []
    first = 0
    for group in shapes.placed:
        n = ceil(group.size / cores[group.name])
        destinations = memory.destinations(group.name, cores)
        found = needs(group, profile, memory, n=n, destinations=destinations)
        used = {name: use / limit for name, (use, limit) in found.items() if limit < inf}
        most_here = most(group, profile, memory, destinations=destinations)
        beyond = needs(group, profile, memory, n=most_here + 1, destinations=destinations)
        full = over(beyond) if most_here < group.size else []
        binding = full[0] if full else max(used, key=lambda name: used[name], default="unknown")
        size = compartments(group, profile)
        seats.append(CoreAllocation(group.name, first, cores[group.name], n, size, used, binding))
        first += cores[group.name]
    return seats


def share(seats: list[CoreAllocation]) -> list[CoreAllocation]:
    """The same with small populations together on cores, for chips whose cores take several.

    A population that takes one core at most joins the first that has room for it.
    """
    room: dict[int, dict[str, float]] = {}
    shared = []
    ahead = 0
    for seat in seats:
        if seat.cores > 1:
            shared.append(replace(seat, first_core=ahead))
            ahead += seat.cores
            continue
        core = next((core for core, used in room.items() if joins(seat, used)), ahead)
        ahead = max(ahead, core + 1)
        used = room.setdefault(core, {})
        for name, part in seat.used.items():
            used[name] = used.get(name, 0.0) + part
        shared.append(replace(seat, first_core=core))
    return shared


def joins(seat: CoreAllocation, used: Mapping[str, float]) -> bool:
    """Whether a core of which so much is in use has room for a population."""
    return all(used.get(name, 0.0) + part <= 1.0 for name, part in seat.used.items())


def occupied(seats: list[CoreAllocation]) -> int:
    """How many cores are taken."""
    return max((seat.first_core + seat.cores for seat in seats), default=0)


def fullest(seats: list[CoreAllocation]) -> dict[str, float]:
    """Of each limited thing, the part in use on the core that uses most of it."""
    cores: dict[int, dict[str, float]] = {}
    for seat in seats:
        used = cores.setdefault(seat.first_core, {})
        for name, part in seat.used.items():
            used[name] = used.get(name, 0.0) + part
    names = sorted({name for used in cores.values() for name in used})
    return {name: max(used.get(name, 0.0) for used in cores.values()) for name in names}
