"""The limits of a chip that no number of chips moves: fans, widths, delays, abilities."""

from __future__ import annotations

from dataclasses import dataclass

from neuro_eqprop.hardware.profile import Profile
from neuro_eqprop.hardware.workload import Shapes


@dataclass(frozen=True, slots=True)
class Violation:
    """A limit that the network breaks, and whether more chips would cure that."""

    limit: str
    reason: str
    curable: bool


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A limit that could not be checked; an essential one forbids to say that the network fits."""

    limit: str
    reason: str
    essential: bool


def walls(
    shapes: Shapes, profile: Profile, *, plastic_bits: int | None
) -> tuple[list[Violation], list[Unchecked]]:
    """What the network asks for that the chip does not give, or does not tell."""
    found = Findings([], [])
    fans(shapes, profile, found)
    widths(shapes, profile, found, plastic_bits=plastic_bits)
    abilities(shapes, profile, found)
    return found.violations, found.unchecked


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found so far."""

    violations: list[Violation]
    unchecked: list[Unchecked]

    def wall(self, limit: str, reason: str) -> None:
        """A violation that chips do not cure."""
        self.violations.append(Violation(limit, reason, curable=False))

    def doubt(self, limit: str, reason: str, *, essential: bool) -> None:
        """Something that could not be checked."""
        self.unchecked.append(Unchecked(limit, reason, essential))


def fans(shapes: Shapes, profile: Profile, found: Findings) -> None:
    """How many synapses meet in one neuron, and how many inputs come from outside."""
    fan_in, fan_out = profile.limit("max_fan_in"), profile.limit("max_fan_out")
    for group in shapes.groups:
        arriving = sum(link.max_fan_in for link in shapes.into(group.name))
        leaving = sum(link.max_fan_out for link in shapes.out_of(group.name))
        if fan_in is not None and arriving > fan_in:
            found.wall(
                "fan-in",
                f"a neuron of {group.name!r} has {arriving} synapses, the chip takes {fan_in}; "
                "only splitting it over more neurons helps",
            )
        if fan_out is not None and leaving > fan_out and not group.off_chip:
            found.wall(
                "fan-out",
                f"a neuron of {group.name!r} reaches {leaving} synapses, the chip takes {fan_out}",
            )
    outside = sum(group.size for group in shapes.groups if group.off_chip)
    inputs = profile.limit("inputs_max")
    if inputs is not None and outside > inputs:
        found.wall("inputs", f"{outside} inputs come from outside, the chip takes {inputs}")


def widths(shapes: Shapes, profile: Profile, found: Findings, *, plastic_bits: int | None) -> None:
    """Bits of weights and states, and delays."""
    bits = max((link.bits for link in shapes.links), default=1)
    width = profile.limit("weight_bits")
    if width is None:
        found.doubt("weight bits", "the chip's are unknown", essential=True)
    elif bits > width:
        way = f"; try --bits {width}" if width > 1 else ""
        found.wall("weight bits", f"the weights have {bits} bits, the chip takes {width}{way}")
    state = profile.limit("state_bits")
    if shapes.state_bits is None:
        found.doubt("state bits", "the network does not say what its state needs", essential=False)
    elif state is None:
        found.doubt("state bits", "the chip's are unknown", essential=False)
    elif shapes.state_bits > state:
        found.wall("state bits", f"the state needs {shapes.state_bits} bits, the chip has {state}")
    delay = max((link.delay for link in shapes.links), default=1)
    longest = profile.limit("delay_steps")
    if delay > 1 and longest is None:
        found.doubt("delays", "the chip's longest is unknown", essential=True)
    elif delay > 1 and longest is not None and delay > longest:
        found.wall("delays", f"a spike takes {delay} steps, on the chip at most {longest}")
    if any(link.plastic for link in shapes.links) and plastic_bits is None:
        found.doubt("learning tag", "its bits on the chip are unknown", essential=True)


def abilities(shapes: Shapes, profile: Profile, found: Findings) -> None:
    """What a chip can or cannot do at all."""
    wanted = {
        "steps": (True, "neurons that keep a state from step to step"),
        "recurrence": (shapes.recurrent, "loops between populations"),
        "graded_spikes": (any(g.graded for g in shapes.placed), "spikes with a payload"),
        "subtractive_reset": (any(g.soft_reset for g in shapes.placed), "reset by subtraction"),
        "learning": (any(link.plastic for link in shapes.links), "learning on the chip"),
    }
    for key, (needed, words) in wanted.items():
        able = profile.allows(key)
        if needed and able is None:
            found.doubt(key.replace("_", " "), f"unknown whether it has {words}", essential=True)
        elif needed and not able:
            found.wall(key.replace("_", " "), f"the chip has no {words}")
