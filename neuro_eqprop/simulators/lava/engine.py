"""The rule of `neuro_eqprop.spiking.plasticity` for Lava's learning engine.

The engine has a trace x1 of the source, factors y1, y2, y3 that the target sends, a tag t and a
weight w. In floating point its rule after every step is

    dt = x1 y1 y2 - t y3            (2 x1 y1 y2 for a graded source, whose x1 is half of r_pre)
    dw = share t y1 y3

In a step of a phase, a target sends y1 = r_post, y2 = f and y3 = 0, where f is zero outside the
window. In a commit it sends y1 = eta / share, y2 = 0 and y3 = 1. In integers, where the engine
multiplies only by powers of two, the rule is

    dt = 2^-7 x1 y1 y2 - t y3
    dw = 2^exponent t y3

with y3 = 32 in a commit, which represents 1.
"""

from __future__ import annotations

from math import frexp, log2

from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.spiking.ir import Gain, Projection
from neuro_eqprop.spiking.plasticity import (
    UNSIGNED_PAYLOAD,
    IntegerArithmetic,
    LoihiEngine,
    Plastic,
    PlasticNetwork,
)

PULSE = 32
"""y3 of a commit in integers, which represents 1."""


def engine_of(plastic: PlasticNetwork) -> LoihiEngine | None:
    """The settings of the integer learning engine; None in floating point."""
    numbers = plastic.rule.numbers
    return numbers if isinstance(numbers, LoihiEngine) else None


def learns(plastic: PlasticNetwork, projection: Projection) -> bool:
    """Whether the weights of a projection change."""
    return projection.gain is Gain.ONE and projection.name in plastic.learns


def learner_of(plastic: PlasticNetwork, name: str) -> Plastic:
    """The plasticity of a projection; a mirror has its own, since Lava trains it, too."""
    part = plastic.part_of(name)
    if part.mirror != name:
        return part
    factor = part.mirrored
    return Plastic(name, factor * part.limit, share=factor * part.share, scale=part.scale)


def exponent_of(plastic: PlasticNetwork, projection: Projection) -> int:
    """Base-2 exponent of one weight step in units of the target; 0 in floating point."""
    fixed = plastic.network.fixed
    if fixed is None:
        return 0
    return round(log2(plastic.part_of(projection.name).scale / fixed.units[projection.target]))


def literal(share: float, name: str) -> str:
    """The factor `share` in the syntax of Lava's learning rules: n 2^k with an integer n < 8."""
    mantissa, exponent = frexp(share)
    factor, exponent = mantissa * 8, exponent - 3
    while factor % 2 == 0:
        factor, exponent = factor / 2, exponent + 1
    if factor != int(factor) or not -7 <= exponent <= 8:
        raise BackendError(
            f"lava: {name!r} learns at {share!r} of the rate, which its rules cannot "
            "express: they allow integers below 8 times a power of two; use the emulator"
        )
    return "" if share == 1.0 else f"{int(factor)}*2^{exponent}*"


def formulas(plastic: PlasticNetwork, projection: Projection) -> tuple[str, str]:
    """The formulas dw and dt of a projection, in the syntax of Lava."""
    engine = engine_of(plastic)
    if engine is not None:
        return f"2^{engine.exponent}*u0*t*y3", "2^-7*u0*x1*y1*y2 - u0*t*y3"
    twice = "2*" if plastic.network[projection.source].neuron.graded else ""
    share = literal(learner_of(plastic, projection.name).share, projection.name)
    return f"{share}u0*t*y1*y3", f"{twice}u0*x1*y1*y2 - u0*t*y3"


def check_engine(plastic: PlasticNetwork) -> None:
    """Raise an error if Lava's engine cannot train the network."""
    network = plastic.network
    graded = any(population.neuron.graded for population in network.populations)
    if isinstance(plastic.rule.numbers, IntegerArithmetic) and graded:
        raise BackendError(f"lava: {UNSIGNED_PAYLOAD}")
    if isinstance(plastic.rule.numbers, IntegerArithmetic):
        raise BackendError(
            "lava rounds integer weights differently, with one random number per step; learn "
            "with engine = true, or on the emulator"
        )
    for projection in network.projections:
        if learns(plastic, projection):
            formulas(plastic, projection)
    if engine_of(plastic) is not None:
        check_sums(plastic)


def check_sums(plastic: PlasticNetwork) -> None:
    """Raise an error if synaptic input at the largest weights can exceed Lava's 32 bits."""
    for population in plastic.network.populations:
        fed = plastic.network.into(population.name, Gain.ONE)
        most = sum(256 * p.weight.shape[1] << exponent_of(plastic, p) for p in fed)
        if most >= 2**31:
            raise BackendError(
                f"lava: the input of {population.name!r} may exceed 32 bits; use fewer units"
            )
