"""Limits that apply to any number of chips: fan-in, fan-out, bit widths, delays, features."""

from __future__ import annotations

from dataclasses import dataclass, field

from neuro_eqprop.chips.profile import Profile
from neuro_eqprop.chips.quantities import KEYS
from neuro_eqprop.chips.workload import NetworkShape


@dataclass(frozen=True, slots=True)
class Violation:
    """A limit that the network exceeds; `curable` if more chips would help."""

    limit: str
    reason: str
    curable: bool


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A limit that could not be checked; if it is essential, the fit is unknown."""

    limit: str
    reason: str
    essential: bool


@dataclass(frozen=True, slots=True)
class LimitCheck:
    """The violated and the unchecked limits of a network."""

    violations: list[Violation] = field(default_factory=list)
    unchecked: list[Unchecked] = field(default_factory=list)

    def violate(self, limit: str, reason: str) -> None:
        """Add a violation that more chips would not cure."""
        self.violations.append(Violation(limit, reason, curable=False))

    def leave_open(self, limit: str, reason: str, *, essential: bool) -> None:
        """Add a limit that could not be checked."""
        self.unchecked.append(Unchecked(limit, reason, essential))


def check_limits(shape: NetworkShape, profile: Profile, *, tag_bits: int | None) -> LimitCheck:
    """The limits of a chip that a network violates, and those that could not be checked."""
    check = LimitCheck()
    check_fans(shape, profile, check)
    check_widths(shape, profile, check, tag_bits=tag_bits)
    check_abilities(shape, profile, check)
    return check


def check_fans(shape: NetworkShape, profile: Profile, check: LimitCheck) -> None:
    """Check fan-in, fan-out and the number of off-chip inputs."""
    fan_in, fan_out = profile.limit("max_fan_in"), profile.limit("max_fan_out")
    for each in shape.populations:
        arriving = sum(projection.max_fan_in for projection in shape.into(each.name))
        leaving = sum(projection.max_fan_out for projection in shape.out_of(each.name))
        if fan_in is not None and arriving > fan_in:
            check.violate(
                "fan-in",
                f"a neuron of {each.name!r} has {arriving} input synapses, the chip allows "
                f"{fan_in}; keep {fan_in} of them, or split it over more neurons",
            )
        if fan_out is not None and leaving > fan_out and not each.off_chip:
            check.violate(
                "fan-out",
                f"a neuron of {each.name!r} has {leaving} output synapses, the chip allows "
                f"{fan_out}",
            )
    outside = sum(each.size for each in shape.populations if each.off_chip)
    inputs = profile.limit("inputs_max")
    if inputs is not None and outside > inputs:
        check.violate("inputs", f"{outside} inputs arrive from outside, the chip allows {inputs}")


def check_widths(
    shape: NetworkShape, profile: Profile, check: LimitCheck, *, tag_bits: int | None
) -> None:
    """Check the bits of weights, states and tags, and the delays."""
    bits = max((each.bits for each in shape.projections), default=1)
    width = profile.limit("weight_bits")
    if width is None:
        check.leave_open("weight bits", "those of the chip are unknown", essential=True)
    elif bits > width:
        reason = f"weights have {bits} bits, the chip allows {width}; use bits={width}"
        check.violate("weight bits", reason)
    state = profile.limit("state_bits")
    if shape.state_bits is None:
        check.leave_open("state bits", "the network does not state its own", essential=False)
    elif state is None:
        check.leave_open("state bits", "those of the chip are unknown", essential=False)
    elif shape.state_bits > state:
        reason = f"the state needs {shape.state_bits} bits, the chip has {state}"
        check.violate("state bits", reason)
    delay = max((each.delay for each in shape.projections), default=1)
    longest = profile.limit("delay_steps")
    if delay > 1 and longest is None:
        check.leave_open("delays", "the longest of the chip is unknown", essential=True)
    elif delay > 1 and longest is not None and delay > longest:
        check.violate("delays", f"a delay is {delay} steps long, the chip allows {longest}")
    if shape.plastic and tag_bits is None:
        check.leave_open("learning tag", "its bits on the chip are unknown", essential=True)


def check_abilities(shape: NetworkShape, profile: Profile, check: LimitCheck) -> None:
    """Check the features that the network needs against the section `support` of the profile."""
    needed = {
        "steps": True,
        "recurrence": shape.recurrent,
        "graded_spikes": any(each.graded for each in shape.on_chip),
        "subtractive_reset": any(each.soft_reset for each in shape.on_chip),
        "learning": shape.plastic,
    }
    if shape.driven and profile.allows("input_current") is False:
        check.violate(
            "input current",
            "the chip takes no current into its neurons; bring the input as spikes (input='rate')",
        )
    elif shape.driven and profile.allows("input_current") is None:
        reason = "unknown whether the chip takes a current into its neurons"
        check.leave_open("input current", reason, essential=False)
    for key in (key for key, wanted in needed.items() if wanted):
        able, meaning = profile.allows(key), KEYS[f"support.{key}"].meaning
        if able is None:
            reason = f"unknown whether the chip has {meaning}"
            check.leave_open(key.replace("_", " "), reason, essential=True)
        elif not able:
            check.violate(key.replace("_", " "), f"the chip has no {meaning}")
