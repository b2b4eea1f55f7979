"""Does a network fit a chip, on how many cores, and what stands in its way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from math import ceil

from neuro_eqprop.hardware.core_allocation import CoreAllocation, fullest, occupied, settle, share
from neuro_eqprop.hardware.limits import Unchecked, Violation, walls
from neuro_eqprop.hardware.profile import Profile
from neuro_eqprop.hardware.synapse_memory import Store, store
from neuro_eqprop.hardware.workload import Shapes


class Verdict(Enum):
    """The answer of a placement."""

    FITS = "fits"
    DOES_NOT_FIT = "does not fit"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a network goes on a chip, or why it does not."""

    profile: str
    verdict: Verdict
    seats: tuple[CoreAllocation, ...]
    cores: int | None
    chips: int | None
    binding: str
    violations: tuple[Violation, ...]
    unchecked: tuple[Unchecked, ...]
    used: Mapping[str, float]
    """The fullest use of each limited thing, and of the cores of the chips."""

    def seat(self, name: str) -> CoreAllocation:
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
    if profile.allows("shared_cores"):
        seats = share(seats)
    cores = None if stuck or not seats else occupied(seats)
    number, short = count_chips(shapes, profile, cores=cores, memory=memory, allowed=chips)
    violations = [*violations, *short]
    if number is not None and number > 1 and profile.limit("chips_max") is None and chips is None:
        unchecked.append(
            Unchecked("chips", f"unknown whether {number} work as one", essential=False)
        )
    if cores is None and not violations:
        unchecked.append(Unchecked("cores", "the neurons of a core are unknown", essential=True))
    used = {} if cores is None else fill(seats, profile, cores=cores, chips=number)
    return Placement(
        profile.name,
        judge(violations, unchecked, placed=cores is not None),
        tuple(seats),
        cores,
        number,
        bind(seats, violations),
        tuple(violations),
        tuple(unchecked),
        used,
    )


def judge(violations: list[Violation], unchecked: list[Unchecked], *, placed: bool) -> Verdict:
    """The answer: one violation is enough to say no, one essential doubt not to say yes."""
    if violations:
        return Verdict.DOES_NOT_FIT
    if not placed or any(each.essential for each in unchecked):
        return Verdict.UNKNOWN
    return Verdict.FITS


def bind(seats: list[CoreAllocation], violations: list[Violation]) -> str:
    """What decides: the first violation, else what fills the population with most cores."""
    if violations:
        return violations[0].limit
    return max(seats, key=lambda seat: seat.cores).binding if seats else "unknown"


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


def fill(
    seats: list[CoreAllocation], profile: Profile, *, cores: int, chips: int | None
) -> dict[str, float]:
    """The fullest use of each thing, and how much of the chips' cores are taken."""
    used = fullest(seats)
    per_chip = profile.limit("cores_per_chip")
    if chips is not None and per_chip is not None:
        used["cores"] = cores / (chips * per_chip)
    return used
