"""What NIR leaves open about the steps of a graph, and how each framework decides it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.spiking.ir import Reset

STARTS = ("reset", "leak")
"""Voltages of a neuron at which a sample may start."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Settings that NIR leaves open.

    Parameters
    ----------
    dt : float
        Duration of a step, in seconds; a graph with `dt` in its metadata has that.
    delay : int
        Steps that each edge between neurons takes. With 0, edges to the next layer take none and
        those from a layer to itself one, as in PyTorch; the network then runs `latency` steps late.
    reset : Reset
        What happens to the voltage after a spike: zero (or `v_reset`), or minus the threshold.
    floor, ceiling : float
        Limits of the voltage.
    start : float or str, optional
        The voltage at which a sample starts: a number, "reset" for that after a spike, or "leak"
        for that without input; None means half the threshold.
    strict : bool
        Whether a neuron fires only above its threshold, not at it.
    exact : bool
        Whether time constants decay as exp(-dt / tau), not as 1 - dt / tau (forward Euler).
    spikes : bool, optional
        Whether the input arrives as spikes at rates of 0..1, not as a constant current; None means
        as a current where the graph can take one, and else as spikes, with a warning.
    any_r : bool
        Whether an IF or LIF ignores its `r`: what arrives counts as it is.
    tau_times_dt : bool
        Whether time constants shorter than a step were multiplied by `dt` when they were written.

    Examples
    --------
    >>> from neuro_eqprop.simulators.nir.assume import find_assumptions
    >>> find_assumptions("snntorch").strict
    True
    """

    dt: float
    delay: int = 1
    reset: Reset = Reset.ZERO
    floor: float = -inf
    ceiling: float = inf
    start: float | str | None = None
    strict: bool = False
    exact: bool = False
    spikes: bool | None = None
    any_r: bool = False
    tau_times_dt: bool = False

    def __post_init__(self) -> None:
        if not 0.0 < self.dt < inf or self.delay < 0:
            raise ValueError(
                f"dt must be above zero and delay at least 0, not {self.dt} and {self.delay}"
            )
        if isinstance(self.start, str) and self.start not in STARTS:
            raise UnknownNameError("start", self.start, STARTS)


PRESETS: Mapping[str, Assumptions] = {
    "snntorch": Assumptions(1e-4, delay=0, start=0.0, strict=True),
    "norse": Assumptions(1e-3, delay=0, start="leak", strict=True, any_r=True, tau_times_dt=True),
    "spikingjelly": Assumptions(1e-4, delay=0, start="reset"),
    "sinabs": Assumptions(1.0, delay=0, start=0.0, reset=Reset.SUBTRACT, exact=True, any_r=True),
    "rockpool": Assumptions(1e-3, delay=0, start=0.0, reset=Reset.SUBTRACT, exact=True),
    "lava-dl": Assumptions(1e-3, delay=1, start=0.0, strict=True),
}
"""How frameworks run the graphs that they export."""
UNPROVED = {
    "sinabs": "its neurons send several spikes in a step",
    "rockpool": "its importer reads no spiking neurons",
    "lava-dl": "it has no importer",
}
"""Presets whose frameworks could not be made to confirm them, and why."""


def find_assumptions(assume: str | Assumptions) -> Assumptions:
    """The assumptions of a framework; others are returned unchanged."""
    if isinstance(assume, Assumptions):
        return assume
    if assume not in PRESETS:
        raise UnknownNameError("framework", assume, PRESETS)
    if assume in UNPROVED:
        warnings.warn(
            f"how {assume} runs a graph was not compared with {assume} itself: {UNPROVED[assume]}",
            stacklevel=3,
        )
    return PRESETS[assume]
