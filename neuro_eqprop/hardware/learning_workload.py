"""A network that learns by its shapes, and lessons as a workload.

What brings samples in, the input and the unit that is always on, has its place outside of the chip:
axons with a trace each. Every synapse that learns has its place at any weight.
"""

from __future__ import annotations

from collections.abc import Mapping

from neuro_eqprop.hardware.workload import Group, Link, Shapes, Workload, full, measure
from neuro_eqprop.spiking.fixed_point import state_bits
from neuro_eqprop.spiking.ir import Gain, Graded, Population, Reset
from neuro_eqprop.spiking.make_plastic import ALWAYS
from neuro_eqprop.spiking.plasticity import PlasticNetwork
from neuro_eqprop.traces import Counts


def describe_learning(plastic: PlasticNetwork, *, entry: str, bits: int) -> Shapes:
    """The shapes of a network that learns, its samples coming in by the population `entry`."""
    network = plastic.network
    groups = {p.name: group(p, outside=p.name in (entry, ALWAYS)) for p in network.populations}
    links: list[Link] = []
    for projection in network.projections:
        if projection.gain is Gain.ONE and projection.name in plastic.learns:
            ends = groups[projection.source], groups[projection.target]
            links.append(full(*ends, bits=bits, plastic=True))
        else:
            links.append(measure(projection, bits=bits))
    return Shapes(tuple(groups.values()), tuple(links), network.output, state_bits(network))


def group(population: Population, *, outside: bool) -> Group:
    """A population by its size and what its neurons need."""
    neuron = population.neuron
    graded = isinstance(neuron, Graded)
    soft = not isinstance(neuron, Graded) and neuron.reset is Reset.SUBTRACT
    return Group(population.name, population.size, soft, graded, off_chip=outside)


def lessons_load(
    plastic: PlasticNetwork,
    counts: Mapping[tuple[str, str], Counts],
    *,
    entry: str,
    bits: int,
    lessons: int,
    coding: str,
    dense_macs: int,
) -> Workload:
    """What so many lessons did."""
    shapes = describe_learning(plastic, entry=entry, bits=bits)
    steps = plastic.rule.schedule[0].steps
    return Workload(shapes, counts, lessons, steps, coding, dense_macs)
