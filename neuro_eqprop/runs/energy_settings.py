"""The settings of `estimate_energy`, documented once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from neuro_eqprop.chips.energy.result import EnergyReport
from neuro_eqprop.chips.energy.settings import EstimateSettings
from neuro_eqprop.chips.quantities import parse_amount
from neuro_eqprop.common.arrays import UnknownNameError


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergySettings(EstimateSettings):
    """The settings of `estimate_energy`: those below and those of `EstimateSettings`.

    Parameters
    ----------
    samples : int
        Test samples to count inference on, and training samples to count learning on.
    steps : int, optional
        Steps of each phase; default: those of the code.
    code : str, optional
        Spike code; default: ``"rate"``, or ``"graded"`` where the network needs it.
    bits : int or "auto", optional
        Bits of a weight; events are then counted in fixed point. Default: ``"auto"``, the widest
        weights that each chip takes, at most 8 bits, with the accuracy of the network at these
        bits. Of 8 bits, events are counted in floating point.
    input : {"rate", "graded", "current"}, optional
        Input coding. Default: spikes on the chip, ``"graded"`` for codes with graded spikes, else
        ``"rate"``. With ``"current"``, a host multiplies the input by the first weights, and its
        MACs are charged at the cost of a small microcontroller (cortex_m33).
    presentations : int, optional
        Samples presented in the whole training; default: those of the run.
    supply : str or float, optional
        Supply voltage, as 0.9 or ``"0.9V"``, for chips with a known voltage scaling.
    target : float, optional
        Test accuracy in (0, 1]; the energy of learning is that until the first epoch that reaches
        it.
    curve : sequence of int, optional
        Numbers of steps at which accuracy and energy are estimated, for several codes.
    curve_samples : int
        Test samples per point of the curve and of the Pareto grid.
    pareto : bool
        Whether to estimate accuracy, energy and latency over codes, steps and bits on all chips,
        and to mark the Pareto-optimal settings.
    pareto_steps : sequence of int
        Numbers of steps of the Pareto grid.
    pareto_bits : sequence of int
        Weight bits of the Pareto grid.
    beside : str, Path or EnergyReport, optional
        A second run with its own estimate, to compare with.
    """

    samples: int = 32
    steps: int | None = None
    code: str | None = None
    bits: int | None = None
    input: str | None = None
    presentations: int | None = None
    supply: float | None = None
    target: float | None = None
    curve: Sequence[int] | None = None
    curve_samples: int = 500
    pareto: bool = False
    pareto_steps: Sequence[int] = (4, 8, 16, 32)
    pareto_bits: Sequence[int] = (8, 4)
    beside: str | Path | EnergyReport | None = None

    def __post_init__(self) -> None:
        EstimateSettings.__post_init__(self)
        for name in ("code", "input"):
            given = getattr(self, name)
            object.__setattr__(self, name, getattr(given, "name", given))
        if isinstance(self.bits, str):
            if self.bits != "auto":
                raise ValueError(f'bits is {self.bits!r}; give a number, or "auto"')
            object.__setattr__(self, "bits", None)
        if self.supply is not None:
            object.__setattr__(self, "supply", parse_amount(self.supply, "V"))
        if self.target is not None and not 0 < self.target <= 1:
            raise ValueError(f"target is {self.target:g}; an accuracy is above 0 and at most 1")

    @classmethod
    def of(cls, given: dict[str, Any]) -> EnergySettings:
        """The settings of keyword arguments; an unknown name is refused with the known ones."""
        known = [each.name for each in fields(cls)]
        for name in given:
            if name not in known:
                raise UnknownNameError("setting", name, known)
        return cls(**given)
