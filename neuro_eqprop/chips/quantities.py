"""The quantities of hardware profiles, and their units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from neuro_eqprop.chips.boundary import Boundary

DIMENSIONS: Mapping[str, Mapping[str, float]] = {
    "J": {"J": 1.0, "mJ": 1e-3, "uJ": 1e-6, "nJ": 1e-9, "pJ": 1e-12, "fJ": 1e-15},
    "W": {"W": 1.0, "mW": 1e-3, "uW": 1e-6, "nW": 1e-9},
    "W/Hz": {"W/Hz": 1.0, "uW/MHz": 1e-12, "mW/MHz": 1e-9},
    "s": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "Hz": {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6},
    "V": {"V": 1.0, "mV": 1e-3},
    "count": {"count": 1.0},
    "bit": {"bit": 1.0, "byte": 8.0, "KiB": 8192.0, "MiB": 8388608.0},
    "step": {"step": 1.0},
    "flag": {"flag": 1.0},
}
"""Conversion factors to SI units, by dimension and unit."""


def parse_amount(text: str | float, dimension: str) -> float:
    """A positive number in SI units, from text with a unit such as "5ms", or from a number.

    A flag may be zero.

    >>> parse_amount("5ms", "s")
    0.005
    """
    units = DIMENSIONS[dimension]
    amount = str(text).strip()
    longest_first = sorted(units, key=len, reverse=True)
    unit = next((name for name in longest_first if amount.endswith(name)), "")
    number = amount[: len(amount) - len(unit)] if unit else amount
    try:
        value = float(number) * (units[unit] if unit else 1.0)
    except ValueError:
        known = ", ".join(units)
        raise ValueError(
            f"{amount!r} is not a quantity; write a number and one of {known}"
        ) from None
    if not (0 < value < inf or (dimension == "flag" and value == 0)):
        raise ValueError(f"{amount!r} is not above zero and finite")
    return value


@dataclass(frozen=True, slots=True)
class Key:
    """A quantity of a profile: its dimension, its meaning, and the boundary of its cost."""

    dimension: str
    meaning: str
    boundary: Boundary | None = None


_CORE, _CHIP, _TOTAL = Boundary.CORE_DYNAMIC, Boundary.CHIP_DYNAMIC, Boundary.CHIP_TOTAL

KEYS: Mapping[str, Key] = {
    "energy.synop": Key("J", "one spike through one synapse", _CORE),
    "energy.synop_all_in": Key("J", "chip power over synop rate at one operating point", _TOTAL),
    "energy.neuron_update": Key("J", "one step of a neuron that does not fire", _CORE),
    "energy.neuron_spiking": Key("J", "one step of a neuron that fires", _CORE),
    "energy.spike": Key("J", "one spike sent, besides the neuron's update", _CORE),
    "energy.message": Key("J", "one spike to one destination core", _CHIP),
    "energy.hop_ew": Key("J", "one message one tile east or west", _CHIP),
    "energy.hop_ns": Key("J", "one message one tile north or south", _CHIP),
    "energy.chip_link": Key("J", "one message from chip to chip", Boundary.BOARD_DYNAMIC),
    "energy.weight_update": Key("J", "one synaptic weight changed by learning", _CORE),
    "energy.tag_update": Key("J", "one synaptic tag changed by learning", _CORE),
    "energy.trace_update": Key("J", "one activity trace changed by learning", _CORE),
    "energy.input": Key("J", "one spike or value sent to the chip", _CHIP),
    "energy.output": Key("J", "one spike or value read out", _CHIP),
    "energy.barrier": Key("J", "the synchronisation that ends a step, per chip", _CHIP),
    "energy.chip_reset": Key("J", "reset of a chip's state between samples", _CHIP),
    "energy.mac": Key("J", "one multiply-accumulate; only for ratios", _CORE),
    "energy.ac": Key("J", "one addition; only for ratios", _CORE),
    "power.static": Key("W", "an idle chip", _TOTAL),
    "power.host": Key("W", "processors on the chip beside the cores", _CHIP),
    "power.idle_boot": Key("W", "a chip after boot, nothing loaded", _TOTAL),
    "power.idle_loaded": Key("W", "a chip with a network loaded, not running it", _TOTAL),
    "power.active": Key("W", "a running chip, independent of its load", _TOTAL),
    "power.clock": Key("W/Hz", "idle power by clock frequency", _TOTAL),
    "power.board": Key("W", "an idle board with its chips", Boundary.BOARD_TOTAL),
    "time.message_in": Key("s", "one message accepted by a core"),
    "time.message_out": Key("s", "one message sent by a core"),
    "time.hop_ew": Key("s", "one message one tile east or west"),
    "time.hop_ns": Key("s", "one message one tile north or south"),
    "time.synop": Key("s", "one spike through one synapse, within a core"),
    "time.neuron_update": Key("s", "one step of a neuron that does not fire"),
    "time.neuron_rest": Key("s", "one step of a neuron at rest, without bias and input so far"),
    "time.neuron_spiking": Key("s", "one step of a neuron that fires"),
    "time.weight_update": Key("s", "one weight changed by learning, within a core"),
    "time.tag_update": Key("s", "one tag changed by learning, within a core"),
    "time.barrier": Key("s", "the synchronisation that ends a step, on one tile"),
    "time.barrier_tiles": Key("s", "increase of the barrier time when the number of tiles doubles"),
    "time.barrier_far": Key("s", "the same beyond four tiles, where it differs"),
    "time.barrier_chips": Key("s", "increase of the barrier time when the number of chips doubles"),
    "time.tick": Key("s", "a step in real time"),
    "time.clock": Key("Hz", "clock frequency of the profile"),
    "capacity.chips_max": Key("count", "chips that work as one machine"),
    "capacity.chips_per_board": Key("count", "chips on a board"),
    "capacity.cores_per_chip": Key("count", "cores"),
    "capacity.cores_per_tile": Key("count", "cores that share a router"),
    "capacity.mesh_width": Key("count", "tiles east to west"),
    "capacity.mesh_height": Key("count", "tiles north to south"),
    "capacity.neurons_per_core": Key("count", "neurons, or compartments"),
    "capacity.synapses_per_core": Key("count", "synapses, where their number is the limit"),
    "capacity.synapses_per_chip": Key("count", "synapses of a whole chip"),
    "capacity.synapse_bits_per_core": Key("bit", "memory for synapses"),
    "capacity.synapse_bits_per_chip": Key("bit", "memory for synapses that a chip's cores share"),
    "capacity.synapse_block": Key("count", "synapses of an axon stored as one block"),
    "capacity.synapse_block_bits": Key("bit", "overhead of a block"),
    "capacity.synapse_word_bits": Key("bit", "word size of the memory"),
    "capacity.synapse_bits": Key("bit", "memory of a synapse besides weight, delay and tag"),
    "capacity.in_axons_per_core": Key("count", "sources that can reach a core"),
    "capacity.out_axons_per_core": Key("count", "(neuron, destination core) pairs"),
    "capacity.target_cores": Key("count", "cores that one neuron can send spikes to"),
    "capacity.row_synapses": Key("count", "synapses processed per spike, used or not"),
    "capacity.inputs_max": Key("count", "input sources outside the chip"),
    "capacity.max_fan_in": Key("count", "synapses onto one neuron"),
    "capacity.max_fan_out": Key("count", "synapses from one neuron"),
    "capacity.weight_bits": Key("bit", "bits of a weight, sign included"),
    "capacity.index_bits": Key("bit", "bits of a target's index where weights are sparse"),
    "capacity.state_bits": Key("bit", "bits of the membrane potential"),
    "capacity.tag_bits": Key("bit", "bits of a plastic synapse besides its weight"),
    "capacity.delay_steps": Key("step", "longest delay"),
    "capacity.soft_reset_compartments": Key("count", "compartments of a soft-reset neuron"),
    "support.steps": Key("flag", "neurons that keep a state from step to step"),
    "support.recurrence": Key("flag", "loops between populations"),
    "support.graded_spikes": Key("flag", "spikes with a payload"),
    "support.subtractive_reset": Key("flag", "reset by subtraction"),
    "support.learning": Key("flag", "learning on the chip"),
    "support.input_current": Key("flag", "a current into every neuron, set for each sample"),
    "support.shared_kernels": Key("flag", "one copy of a kernel per core; false by default"),
    "support.column_split": Key(
        "flag", "feature maps split by columns, in powers of two; by channels by default"
    ),
    "support.updates_all": Key(
        "flag", "every neuron of a chip updated in a step, used or not; false by default"
    ),
    "support.shared_cores": Key("flag", "several populations on one core; false by default"),
}
"""Quantities by key."""

REQUIRED = (
    "energy.synop",
    "energy.neuron_update",
    "energy.neuron_spiking",
    "power.static",
    "capacity.cores_per_chip",
    "capacity.neurons_per_core",
    "capacity.weight_bits",
)
"""Keys that the profile of a spiking chip must list, even if the value is unknown."""
