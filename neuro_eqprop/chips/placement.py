"""Placement of a network on the cores of a chip: whether it fits, and the binding limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from math import ceil, inf

from neuro_eqprop.chips.limits import Unchecked, Violation, check_limits
from neuro_eqprop.chips.profile import Profile
from neuro_eqprop.chips.synapse_memory import SynapseMemory, synapse_memory
from neuro_eqprop.chips.workload import NetworkShape, PopulationShape, ProjectionShape
from neuro_eqprop.common.arrays import UnknownNameError

REMEDIES = {
    "synapse memory": "; use fewer bits, or fewer synapses per neuron",
    "synapses": "; use fewer synapses per neuron",
    "in-axons": "; use a smaller fan-in, or split the neuron",
    "out-axons": "; spread its targets over fewer cores",
    "neurons": "; use smaller feature maps",
}
"""Suggestions for a core that lacks a resource."""
MAX_ROUNDS = 60
"""Largest number of iterations of `allocate_cores`."""


class PlacementStatus(Enum):
    """Whether a network fits."""

    FITS = "fits"
    DOES_NOT_FIT = "does not fit"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CoreAllocation:
    """The cores of one population."""

    name: str
    cores: int
    neurons_per_core: int
    compartments: int
    """Compartments per neuron."""
    binding: str
    """The resource that limits the neurons per core."""
    first_core: int = 0
    """Index of the first core; not stored in files."""
    used: Mapping[str, float] = field(default_factory=dict)
    """Used fraction of each limited resource on the fullest core; not stored in files."""
    columns: int = 0
    """Columns of feature maps on a core if columns are not split; else 0."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The cores and chips of a network on one kind of chip, or why it does not fit."""

    status: PlacementStatus
    allocations: tuple[CoreAllocation, ...]
    cores: int | None
    chips: int | None
    binding: str
    """The violated limit, or the resource that determines the number of cores."""
    violations: tuple[Violation, ...] = ()
    unchecked: tuple[Unchecked, ...] = ()
    used: Mapping[str, float] = field(default_factory=dict)
    """Highest used fraction of each limited resource, and of the cores of the chips."""

    def __getitem__(self, name: str) -> CoreAllocation:
        for each in self.allocations:
            if each.name == name:
                return each
        raise UnknownNameError("population", name, [each.name for each in self.allocations])

    @property
    def cores_used(self) -> int:
        """The number of cores that hold neurons."""
        return cores_used(self.allocations)

    @property
    def fits(self) -> bool | None:
        """Whether the network fits; None if unknown."""
        return {PlacementStatus.FITS: True, PlacementStatus.DOES_NOT_FIT: False}.get(self.status)


def place(
    shape: NetworkShape,
    profile: Profile,
    *,
    tag_bits: int | None = None,
    soft_reset: bool | None = None,
    chips: int | None = None,
    at_least: Mapping[str, int] | None = None,
) -> Placement:
    """Place a network on as few cores as possible.

    Parameters
    ----------
    shape
        The sizes of the network.
    profile
        The chip.
    tag_bits
        Bits of the learning tag of a plastic synapse; None for those of the profile.
    soft_reset
        Whether neurons use the compartments of a soft reset; None if their code needs it.
    chips
        Number of available chips; None for the largest machine of the profile.
    at_least
        By population, the least number of cores to spread it over; None for as few as possible.
    """
    if soft_reset is not None:
        populations = tuple(replace(each, soft_reset=soft_reset) for each in shape.populations)
        shape = replace(shape, populations=populations)
    memory = synapse_memory(shape, profile, tag_bits=tag_bits)
    check = check_limits(shape, profile, tag_bits=memory.tag_bits)
    unchecked = [
        *check.unchecked,
        *memory.unchecked,
        *(Unchecked("stated by the profile", each, essential=False) for each in profile.unchecked),
    ]
    allocations, stuck = allocate_cores(shape, profile, memory, at_least or {})
    if profile.allows("shared_cores"):
        allocations = share_cores(allocations)
    stuck = [*stuck, *check_target_cores(shape, profile, memory, allocations)]
    cores = cores_used(allocations) if allocations else None
    number, short = count_chips(shape, profile, cores=cores, memory=memory, available=chips)
    violations = [*check.violations, *stuck, *short]
    if number is not None and number > 1 and profile.limit("chips_max") is None and chips is None:
        reason = f"unknown whether {number} chips work as one machine"
        unchecked.append(Unchecked("chips", reason, essential=False))
    if cores is None and not violations:
        unchecked.append(Unchecked("cores", "neurons per core are unknown", essential=True))
    status = PlacementStatus.FITS
    if violations:
        status = PlacementStatus.DOES_NOT_FIT
    elif cores is None or any(each.essential for each in unchecked):
        status = PlacementStatus.UNKNOWN
    return Placement(
        status,
        tuple(allocations),
        cores,
        number,
        binding_limit(allocations, violations),
        tuple(violations),
        tuple(unchecked),
        {} if cores is None else utilisation(allocations, profile, cores=cores, chips=number),
    )


def check_target_cores(
    shape: NetworkShape,
    profile: Profile,
    memory: SynapseMemory,
    allocations: list[CoreAllocation],
) -> list[Violation]:
    """Violations by neurons that send spikes to more cores than the chip allows."""
    limit = profile.limit("target_cores")
    if limit is None:
        return []
    found, cores = [], {each.name: each for each in allocations}
    for population in shape.on_chip if allocations else ():
        reached: set[int] = set()
        for projection in shape.out_of(population.name):
            target = cores[projection.target]
            count = memory.reach(projection, target.cores)[1]
            reached |= set(range(target.first_core, target.first_core + count))
        if len(reached) > limit:
            reason = (
                f"a neuron of {population.name!r} sends spikes to {len(reached)} cores, the chip "
                f"allows {limit}; place {len(reached)} copies of it, or fewer neurons after it"
            )
            found.append(Violation("target cores", reason, curable=False))
    return found


def compartments(population: PopulationShape, profile: Profile) -> int:
    """Compartments of one neuron."""
    return (profile.limit("soft_reset_compartments") or 1) if population.soft_reset else 1


def core_usage(
    population: PopulationShape,
    profile: Profile,
    memory: SynapseMemory,
    *,
    n: int,
    cores: Mapping[str, int],
) -> dict[str, tuple[float, float]]:
    """Use and limit of each resource on a core with `n` neurons of a population."""
    name = population.name
    used = {
        "neurons": (n * compartments(population, profile), "neurons_per_core"),
        "synapse memory": (memory.bits(name, n), "synapse_bits_per_core"),
        "synapses": (memory.synapses(name, n), "synapses_per_core"),
        "in-axons": (memory.axons(name, n), "in_axons_per_core"),
        "out-axons": (memory.out_axons(name, n, cores), "out_axons_per_core"),
    }
    limits = {resource: profile.limit(key) for resource, (_, key) in used.items()}
    return {
        resource: (use, inf if (limit := limits[resource]) is None else limit)
        for resource, (use, _) in used.items()
    }


def exceeded(usage: Mapping[str, tuple[float, float]]) -> list[str]:
    """The resources whose use exceeds the limit."""
    return [name for name, (use, limit) in usage.items() if use > limit]


def max_neurons(
    population: PopulationShape,
    profile: Profile,
    memory: SynapseMemory,
    *,
    cores: Mapping[str, int],
) -> int:
    """Largest number of neurons of a population that fits on one core; 0 if none."""

    def fits(n: int) -> bool:
        return not exceeded(core_usage(population, profile, memory, n=n, cores=cores))

    return memory.division(population.name).largest(fits)


def allocate_cores(
    shape: NetworkShape, profile: Profile, memory: SynapseMemory, at_least: Mapping[str, int]
) -> tuple[list[CoreAllocation], list[Violation]]:
    """The cores of each population, with `at_least` the given numbers, or why they do not exist.

    More cores need more axons, which can need more cores, so this iterates to a fixed point.
    """
    if profile.limit("neurons_per_core") is None:
        return [], []
    cores = {
        each.name: memory.division(each.name).cores(
            memory.division(each.name).neurons(min(each.size, at_least.get(each.name, 1)))
        )
        for each in shape.on_chip
    }
    for _ in range(MAX_ROUNDS):
        before = dict(cores)
        for each in shape.on_chip:
            now = memory.division(each.name).neurons(before[each.name])
            if not exceeded(core_usage(each, profile, memory, n=now, cores=before)):
                continue
            n = max_neurons(each, profile, memory, cores=before)
            if n == 0:
                return [], [single_neuron_violation(each, profile, memory, before)]
            needed = memory.division(each.name).cores(n)
            cores[each.name] = max(before[each.name], needed)
        if cores == before:
            spread = spread_over_cores(shape, profile, memory, cores=cores, full=not at_least)
            return spread, []
    name = max(cores, key=lambda each: cores[each])
    reason = f"the more cores {name!r} gets, the more axons each of them needs"
    return [], [Violation("out-axons", reason, curable=False)]


def single_neuron_violation(
    population: PopulationShape,
    profile: Profile,
    memory: SynapseMemory,
    cores: Mapping[str, int],
) -> Violation:
    """The limit that a single neuron, or column of a feature map, exceeds."""
    column = memory.division(population.name).column
    usage = core_usage(population, profile, memory, n=column or 1, cores=cores)
    name = exceeded(usage)[0]
    use, limit = usage[name]
    part = "one column" if column else "one neuron"
    remedy = REMEDIES.get(name, "")
    reason = f"{part} of {population.name!r} needs {use:g} {name} of a core's {limit:g}{remedy}"
    return Violation(name, reason, curable=False)


def spread_over_cores(
    shape: NetworkShape,
    profile: Profile,
    memory: SynapseMemory,
    *,
    cores: Mapping[str, int],
    full: bool,
) -> list[CoreAllocation]:
    """Consecutive cores for the populations, each spread evenly over its cores.

    If cores are `full`, the binding resource is the one that more neurons would exceed, else the
    one with the largest used fraction.
    """
    allocations = []
    first = 0
    for each in shape.on_chip:
        division = memory.division(each.name)
        n = division.neurons(cores[each.name])
        usage = core_usage(each, profile, memory, n=n, cores=cores)
        used = {name: use / limit for name, (use, limit) in usage.items() if limit < inf}
        most = max_neurons(each, profile, memory, cores=cores) if full else each.size
        more = most + max(1, division.column)
        beyond = (
            []
            if most >= each.size
            else exceeded(core_usage(each, profile, memory, n=more, cores=cores))
        )
        largest = max(used, key=lambda name: used[name], default="unknown")
        binding = beyond[0] if beyond else largest
        allocations.append(
            CoreAllocation(
                each.name,
                cores[each.name],
                n,
                compartments(each, profile),
                binding,
                first_core=first,
                used=used,
                columns=n // division.column if division.column else 0,
            )
        )
        first += cores[each.name]
    return allocations


def share_cores(allocations: list[CoreAllocation]) -> list[CoreAllocation]:
    """The allocations with several small populations on a core, for chips that support it.

    A population of one core is put on the first core that has room for it.
    """
    room: dict[int, dict[str, float]] = {}
    shared = []
    ahead = 0
    for each in allocations:
        if each.cores > 1:
            shared.append(replace(each, first_core=ahead))
            ahead += each.cores
            continue
        core = next((core for core, used in room.items() if has_room(used, each)), ahead)
        ahead = max(ahead, core + 1)
        used = room.setdefault(core, {})
        for name, part in each.used.items():
            used[name] = used.get(name, 0.0) + part
        shared.append(replace(each, first_core=core))
    return shared


def has_room(used: Mapping[str, float], allocation: CoreAllocation) -> bool:
    """Whether a core with these used fractions has room for a population."""
    return all(used.get(name, 0.0) + part <= 1.0 for name, part in allocation.used.items())


def cores_used(allocations: Iterable[CoreAllocation]) -> int:
    """The number of cores of all populations."""
    return max((each.first_core + each.cores for each in allocations), default=0)


def binding_limit(allocations: list[CoreAllocation], violations: list[Violation]) -> str:
    """The first violated limit, else the binding resource of the population with most cores."""
    if violations:
        return violations[0].limit
    return max(allocations, key=lambda each: each.cores).binding if allocations else "unknown"


def count_chips(
    shape: NetworkShape,
    profile: Profile,
    *,
    cores: int | None,
    memory: SynapseMemory,
    available: int | None,
) -> tuple[int | None, list[Violation]]:
    """Number of chips for the cores and the shared memory, and a violation if too many."""
    per_chip = profile.limit("cores_per_chip")
    if cores is None or per_chip is None:
        return None, []
    needed = [ceil(cores / per_chip)]
    shared = profile.limit("synapse_bits_per_chip")
    if shared is not None:
        bits = sum(memory.bits(each.name, each.size) for each in shape.on_chip)
        needed.append(ceil(bits / shared))
    total = profile.limit("synapses_per_chip")
    if total is not None:
        needed.append(
            ceil(sum(stored_synapses(each, memory) for each in shape.projections) / total)
        )
    number = max(needed)
    limit = available if available is not None else profile.limit("chips_max")
    if limit is not None and number > limit:
        reason = f"{cores} cores need {number} chips; {limit} are available"
        return number, [Violation("chips", reason, curable=True)]
    return number, []


def stored_synapses(projection: ProjectionShape, memory: SynapseMemory) -> int:
    """Number of synapses that a chip stores; a shared kernel is stored once."""
    return projection.synapses if memory.shares(projection) is None else projection.parameters


def utilisation(
    allocations: list[CoreAllocation], profile: Profile, *, cores: int, chips: int | None
) -> dict[str, float]:
    """Highest used fraction of each resource on a core, and the fraction of cores in use."""
    by_core: dict[int, dict[str, float]] = {}
    for each in allocations:
        used = by_core.setdefault(each.first_core, {})
        for name, part in each.used.items():
            used[name] = used.get(name, 0.0) + part
    names = sorted({name for used in by_core.values() for name in used})
    highest = {name: max(used.get(name, 0.0) for used in by_core.values()) for name in names}
    per_chip = profile.limit("cores_per_chip")
    if chips is not None and per_chip is not None:
        highest["cores"] = cores / (chips * per_chip)
    return highest
