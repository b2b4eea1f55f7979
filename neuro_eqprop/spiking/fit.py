"""Does a network fit a chip, on how many cores, and what stands in its way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from math import ceil, inf

from neuro_eqprop.profiles import Profile
from neuro_eqprop.spiking.memory import Store, store
from neuro_eqprop.spiking.walls import Unchecked, Violation, walls
from neuro_eqprop.spiking.workloads import Group, Shapes

ROUNDS = 60
"""Core counts and the axons between them depend on each other; so often they are balanced."""


class Verdict(Enum):
    """The answer of a placement."""

    FITS = "fits"
    DOES_NOT_FIT = "does not fit"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Seat:
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


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a network goes on a chip, or why it does not."""

    profile: str
    verdict: Verdict
    seats: tuple[Seat, ...]
    cores: int | None
    chips: int | None
    binding: str
    violations: tuple[Violation, ...]
    unchecked: tuple[Unchecked, ...]
    used: Mapping[str, float]
    """The fullest use of each limited thing, and of the cores of the chips."""

    def seat(self, name: str) -> Seat:
        """The seat of a population."""
        for seat in self.seats:
            if seat.name == name:
                return seat
        raise KeyError(name)


def place(
    shapes: Shapes,
    profile: Profile,
    *,
    tag_bits: int | None = None,
    soft_reset: bool | None = None,
    chips: int | None = None,
) -> Placement:
    """Give every population its cores.

    `tag_bits` of a plastic synapse are the profile's unless given; `soft_reset` says whether a
    neuron takes the compartments of one, by default where its code needs it; `chips` are at most
    the machine's unless given.
    """
    if soft_reset is not None:
        groups = tuple(replace(group, soft_reset=soft_reset) for group in shapes.groups)
        shapes = replace(shapes, groups=groups)
    memory = store(shapes, profile, tag_bits=tag_bits)
    violations, unchecked = walls(shapes, profile, plastic_bits=memory.tag_bits)
    told = [Unchecked("as the profile says", words, essential=False) for words in profile.unchecked]
    unchecked = [*unchecked, *memory.unchecked, *told]
    seats, stuck = settle(shapes, profile, memory)
    violations = [*violations, *stuck]
    cores = None if stuck or not seats else sum(seat.cores for seat in seats)
    number, short = count_chips(shapes, profile, cores=cores, memory=memory, allowed=chips)
    violations = [*violations, *short]
    if number is not None and number > 1 and profile.limit("chips_max") is None and chips is None:
        unchecked.append(
            Unchecked("chips", f"unknown whether {number} work as one", essential=False)
        )
    if cores is None and not violations:
        unchecked.append(Unchecked("cores", "the neurons of a core are unknown", essential=True))
    fullest = {} if cores is None else fill(seats, profile, cores=cores, chips=number)
    return Placement(
        profile.name,
        judge(violations, unchecked, placed=cores is not None),
        tuple(seats),
        cores,
        number,
        bind(seats, violations),
        tuple(violations),
        tuple(unchecked),
        fullest,
    )


def judge(violations: list[Violation], unchecked: list[Unchecked], *, placed: bool) -> Verdict:
    """The answer: one violation is enough to say no, one essential doubt not to say yes."""
    if violations:
        return Verdict.DOES_NOT_FIT
    if not placed or any(each.essential for each in unchecked):
        return Verdict.UNKNOWN
    return Verdict.FITS


def bind(seats: list[Seat], violations: list[Violation]) -> str:
    """What decides: the first violation, else what fills the population with most cores."""
    if violations:
        return violations[0].limit
    return max(seats, key=lambda seat: seat.cores).binding if seats else "unknown"


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


def settle(shapes: Shapes, profile: Profile, memory: Store) -> tuple[list[Seat], list[Violation]]:
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
) -> list[Seat]:
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
        seats.append(Seat(group.name, first, cores[group.name], n, size, used, binding))
        first += cores[group.name]
    return seats


def count_chips(
    shapes: Shapes, profile: Profile, *, cores: int | None, memory: Store, allowed: int | None
) -> tuple[int | None, list[Violation]]:
    """How many chips the cores and the memory that chips share ask for."""
    per_chip = profile.limit("cores_per_chip")
    if cores is None or per_chip is None:
        return None, []
    asked = [ceil(cores / per_chip)]
    shared = profile.limit("synapse_bits_per_chip")
    if shared is not None:
        asked.append(ceil(sum(memory.bits(g.name, g.size) for g in shapes.placed) / shared))
    total = profile.limit("synapses_per_chip")
    if total is not None:
        asked.append(ceil(sum(link.synapses for link in shapes.links) / total))
    number = max(asked)
    there = allowed if allowed is not None else profile.limit("chips_max")
    if there is not None and number > there:
        reason = f"{cores} cores need {number} chips, and there are {there}"
        return number, [Violation("chips", reason, curable=True)]
    return number, []


def fill(seats: list[Seat], profile: Profile, *, cores: int, chips: int | None) -> dict[str, float]:
    """The fullest use of each thing, and how much of the chips' cores are taken."""
    names = sorted({name for seat in seats for name in seat.used})
    used = {name: max(seat.used.get(name, 0.0) for seat in seats) for name in names}
    per_chip = profile.limit("cores_per_chip")
    if chips is not None and per_chip is not None:
        used["cores"] = cores / (chips * per_chip)
    return used
