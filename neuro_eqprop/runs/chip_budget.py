"""What each layer of a network needs on a chip, beside the limits of its profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from neuro_eqprop.chips.placement import Placement, place
from neuro_eqprop.chips.profile import Profile
from neuro_eqprop.chips.profiles.load import load_profile
from neuro_eqprop.chips.synapse_memory import synapse_memory
from neuro_eqprop.chips.workload import NetworkShape, network_shape
from neuro_eqprop.common.html import html_table
from neuro_eqprop.spiking.input_coding import InputCoding
from neuro_eqprop.spiking.lowered import LoweredNetwork

BITS = 8
"""Bits of a weight of a network in floating point."""
LIMITS = {
    "neurons_per_core": "neurons_per_core",
    "memory_bits": "synapse_bits_per_core",
    "fan_in": "max_fan_in",
    "fan_out": "max_fan_out",
    "weight_bits": "weight_bits",
    "delay": "delay_steps",
}
"""The limit in a profile of each column of a budget."""


class LayerBudget(NamedTuple):
    """What a population needs; memory is that of its fullest core."""

    layer: str
    neurons: int
    cores: int
    neurons_per_core: int
    memory_bits: int
    """Synapse memory of a core."""
    fan_in: int
    fan_out: int
    weight_bits: int
    messages: str
    """What its neurons send: spikes, or graded messages."""
    delay: int
    """Longest delay of its incoming synapses, in steps."""


@dataclass(frozen=True, repr=False)
class ChipBudget:
    """What each layer of a network needs on a chip, and the published limits.

    Parameters
    ----------
    profile : str
        The chip.
    layers : tuple of LayerBudget
        A row for each population.
    limits : mapping of str to float or None
        The limit of the chip for a column of `layers`; None if it is not published.
    placement : Placement
        The cores, as in the energy estimate, with violated and unchecked limits.
    """

    profile: str
    layers: tuple[LayerBudget, ...]
    limits: Mapping[str, float | None]
    placement: Placement

    @property
    def fits(self) -> bool | None:
        """Whether the network fits; None if a limit that decides is unknown."""
        return self.placement.fits

    def __repr__(self) -> str:
        names = LayerBudget._fields
        rows = [names, *([str(value) for value in row] for row in self.layers)]
        shown = ["" if (limit := self.limits.get(n)) is None else f"{limit:g}" for n in names]
        shown[0] = f"limit of {self.profile}"
        rows.append(shown)
        widths = [max(len(str(row[k])) for row in rows) for k in range(len(names))]
        lines = [
            "  ".join(str(v).rjust(w) for v, w in zip(row, widths, strict=True)) for row in rows
        ]
        reasons = [f"{each.limit}: {each.reason}" for each in self.placement.violations]
        return "\n".join([*lines, *reasons])

    def _repr_html_(self) -> str:
        return html_table(f"Budget on {self.profile}", {row.layer: row for row in self.layers})

    def to_json(self) -> dict[str, Any]:
        """Rows, limits and placement as JSON values."""
        return {
            "profile": self.profile,
            "fits": self.fits,
            "layers": [row._asdict() for row in self.layers],
            "limits": dict(self.limits),
            "violations": [asdict(each) for each in self.placement.violations],
        }


def chip_budget(spiking: LoweredNetwork, profile: str | Path | Profile) -> ChipBudget:
    """What each layer of a network needs on a chip, see `SpikingModel.budget`."""
    chip = load_profile(profile)
    shape = network_shape(
        spiking.network,
        bits=spiking.bits or BITS,
        off_chip=spiking.input_populations,
        driven=spiking.input is InputCoding.CURRENT,
    )
    placement = place(shape, chip)
    limits = {column: chip.limit(key) for column, key in LIMITS.items()}
    return ChipBudget(chip.name, tuple(rows(shape, chip, placement)), limits, placement)


def rows(shape: NetworkShape, chip: Profile, placement: Placement) -> list[LayerBudget]:
    """A row for each population on the chip."""
    memory, cores = synapse_memory(shape, chip, tag_bits=None), placement.allocations
    placed = {each.name: each for each in cores}
    found = []
    for each in shape.on_chip:
        into, out = shape.into(each.name), shape.out_of(each.name)
        at = placed.get(each.name)
        per_core = each.size if at is None else at.neurons_per_core
        found.append(
            LayerBudget(
                each.name,
                each.size,
                0 if at is None else at.cores,
                per_core,
                memory.bits(each.name, per_core),
                sum(projection.max_fan_in for projection in into),
                sum(projection.max_fan_out for projection in out),
                max((projection.bits for projection in into), default=0),
                "graded messages" if each.graded else "spikes",
                max((projection.delay for projection in into), default=1),
            )
        )
    return found
