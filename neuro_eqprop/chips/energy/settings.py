"""How energy is estimated: the settings of an estimate, documented once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from neuro_eqprop.chips.energy.mapping import MappingGoal
from neuro_eqprop.chips.energy.time import Clock
from neuro_eqprop.chips.profile import Overhead, Quantity
from neuro_eqprop.chips.quantities import parse_amount
from neuro_eqprop.common.arrays import parse_enum


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateSettings:
    """How joules and seconds follow from counted events; names and units are parsed.

    Parameters
    ----------
    clock : {"model", "tick", "sanafe"}, optional
        Model of the time per step; default: that of the profile. ``"sanafe"`` runs SANA-FE in its
        cycle mode, where it is installed, on recorded spikes of chips with a barrier.
    step_seconds : float, optional
        Measured seconds per step, used instead of the model.
    overhead : {"loaded_idle", "static_and_host"}, optional
        Which power counts as idle power; default: loaded idle where it is known.
    tag_bits : int, optional
        Bits of a synapse's learning tag; default: those of the profile.
    soft_reset : bool, optional
        Whether neurons use the extra compartments of a soft reset; default: if the code needs it.
    chips : int, optional
        Number of available chips; default: the largest machine of the profile.
    mapping : {"balanced", "least-energy", "fewest-cores"}
        Goal of the placement. ``"balanced"`` takes the fewest cores with at most twice the shortest
        time, as published mappings do; ``"least-energy"`` minimises the joules per sample.
    cores : int, optional
        Use this number of cores, distributed so that the slowest is as fast as possible.
    allocation : mapping of str to int, optional
        The least cores of each population, instead of a mapping.
    rate : str or float
        Samples per second of a chip that is always on, as 10 or ``"10Hz"``, for its average power.
    batch : int, optional
        Batch size of the dense devices; default: all that were measured.
    explain : bool
        Whether to add the sources of all quantities that were used.
    host_mac : Quantity, optional
        Cost of a multiplication on the host that computes input currents; default: left out.
    """

    clock: Clock | None = None
    step_seconds: float | None = None
    overhead: Overhead | None = None
    tag_bits: int | None = None
    soft_reset: bool | None = None
    chips: int | None = None
    mapping: MappingGoal = MappingGoal.BALANCED
    cores: int | None = None
    allocation: Mapping[str, int] | None = None
    rate: float = 10.0
    batch: int | None = None
    explain: bool = False
    host_mac: Quantity | None = None

    def __post_init__(self) -> None:
        parsed: dict[str, Callable[[Any], object]] = {
            "clock": lambda clock: parse_enum("clock", Clock, clock),
            "overhead": lambda overhead: parse_enum("overhead", Overhead, overhead),
            "mapping": lambda mapping: parse_enum("mapping", MappingGoal, mapping),
            "rate": lambda rate: parse_amount(rate, "Hz"),
        }
        for name, parse in parsed.items():
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, parse(given))
