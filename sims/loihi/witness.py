"""The fixed-point step against Brian2Loihi, which is independent: writes a results page.

    python sims/loihi/witness.py

Brian2Loihi (Michaelis, Lehr, Oed & Tetzlaff 2022) was compared with a Loihi 1 chip by its authors.
Networks here are described by `neuro_eqprop.spiking.ir` in fixed point and run on the reference
simulator; Brian2Loihi gets the integer weights, decays and thresholds, and the recorded spikes of
the input population. Compared are voltages and spikes of every neuron in every step.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.dynamics.schedules import free_only
from neuro_eqprop.simulators.brian2.setup import simulator
from neuro_eqprop.simulators.recordings import MemorySink, Record
from neuro_eqprop.simulators.reference.simulator import Reference
from neuro_eqprop.spiking.arithmetic import FRACTION
from neuro_eqprop.spiking.fixed_point import weights
from neuro_eqprop.spiking.ir import (
    FixedPoint,
    Population,
    Projection,
    Reset,
    Spiking,
    SpikingNetwork,
    Stimulus,
)

PAGE = Path(__file__).parents[2] / "docs" / "results" / "loihi-arithmetic.md"
CELLS, INPUT = "cells", "input"
UNIT = 2.0**-12


@dataclass(frozen=True)
class Case:
    """Random neurons with even integer weights times 2^exponent, fed by regular spikes."""

    name: str
    units: int
    current_decay: int
    """Decays count 1/4096."""
    voltage_decay: int
    threshold: int = 1000
    """In units of the weights; Loihi's mantissa of the threshold."""
    exponent: int = 0
    inputs: int = 12
    recurrent: bool = False
    largest: int = 126
    reset: Reset = Reset.ZERO
    steps: int = 2000

    def network(self) -> SpikingNetwork:
        """The network of `neuro_eqprop`, in fixed point."""
        rng = np.random.default_rng(self.units)
        # Neurons of the input count in the same units and fire at rates between 1/4 and 1/32.
        rate = np.rint(1.0 / rng.uniform(4, 32, self.inputs) / UNIT) * UNIT
        wide = np.inf
        regular = Spiking(1.0, 0.0, 1.0, Reset.SUBTRACT, -wide, wide)
        cell = Spiking(
            self.current_decay / 4096,
            self.voltage_decay / 4096,
            self.threshold * UNIT,
            self.reset,
            -wide,
            wide,
        )
        projections = [Projection(INPUT, CELLS, self.weight(rng, self.inputs))]
        if self.recurrent:
            projections.append(Projection(CELLS, CELLS, self.weight(rng, self.units)))
        return SpikingNetwork(
            1e-3,
            (Population(INPUT, regular, rate), Population(CELLS, cell, np.zeros(self.units))),
            tuple(projections),
            CELLS,
            FixedPoint({INPUT: UNIT, CELLS: UNIT}),
        )

    def weight(self, rng: np.random.Generator, sources: int) -> Array:
        """Even weights of both signs: Loihi drops the last bit of weights of mixed sign."""
        half = self.largest // 2
        return (
            2.0 * rng.integers(-half, half + 1, (self.units, sources)) * 2.0**self.exponent * UNIT
        )


CASES = (
    Case("single neurons, no leak", 8, 4096, 0),
    Case("single neurons, leaky voltage", 8, 4096, 128, threshold=200),
    Case("single neurons, leaky current and voltage", 8, 512, 128),
    Case("single neurons, slow decays", 8, 40, 16, largest=6),
    Case("single neurons, weight exponent 4", 8, 512, 1024, exponent=4),
    Case("recurrent network", 32, 1024, 256, recurrent=True),
    Case(
        "recurrent network, reset by subtraction",
        32,
        1024,
        256,
        recurrent=True,
        reset=Reset.SUBTRACT,
    ),
    Case(
        "recurrent network, neurons of code rate",
        32,
        4096,
        0,
        recurrent=True,
        reset=Reset.SUBTRACT,
    ),
)
OVERFLOW = Case("current beyond 24 bits", 4, 1, 4096, threshold=131071, exponent=6, inputs=24)
"""Its current hardly decays, so it leaves the 24 bits of Loihi."""
TIE = Case("single neurons whose voltage meets the threshold", 8, 4096, 0, threshold=64, largest=64)
"""Its voltages are multiples of a 32nd of the threshold."""


@dataclass(frozen=True)
class Activity:
    """Voltages and spikes (steps, units), and the spikes of the input."""

    voltage: Ints
    spikes: Ints
    fed: Ints
    overflows: int = 0
    """Currents that wrapped and voltages that saturated."""


def ours(case: Case) -> Activity:
    """The reference simulator; voltages in the integers of the chip."""
    network, sink = case.network(), MemorySink()
    record = Record(frozenset({INPUT, CELLS}), frozenset({(CELLS, "voltage")}))
    schedule = free_only(steps=case.steps, window=1)
    result = Reference().run(network, Stimulus(1, {}, {}), schedule, record=record, sink=sink)
    found = sink.recordings[0]
    return Activity(
        np.rint(found.signals[CELLS, "voltage"] / UNIT * FRACTION).astype(np.int64),
        found.spikes[CELLS].astype(np.int64),
        found.spikes[INPUT].astype(np.int64),
        result.overflows[CELLS].wraps + result.overflows[CELLS].saturations,
    )


def brian2_loihi(case: Case, fed: Ints, *, threshold: str = ">=") -> Activity:
    """Brian2Loihi with the same integers.

    Its neuron fires at v > threshold and is reset to zero. The comparison and, for a reset by
    subtraction, the reset are set here; currents, decays and synapses are its own.
    """
    logging.getLogger("brian2").setLevel(logging.ERROR)
    brian2 = simulator()
    brian2.start_scope()
    from brian2_loihi import (
        LoihiNetwork,
        LoihiNeuronGroup,
        LoihiSpikeGeneratorGroup,
        LoihiSpikeMonitor,
        LoihiStateMonitor,
        LoihiSynapses,
        synapse_sign_mode,
    )

    step, unit = np.nonzero(fed[:-1])
    # A spike of our input arrives one step later; Brian2Loihi's generator sends at once.
    source = LoihiSpikeGeneratorGroup(case.inputs, unit, step + 1)
    cells = LoihiNeuronGroup(
        case.units,
        threshold_v_mant=case.threshold,
        decay_v=case.voltage_decay,
        decay_I=case.current_decay,
    )
    top = case.threshold * FRACTION
    cells.events["spike"] = f"v {threshold} {top}"
    if case.reset is Reset.SUBTRACT:
        cells.event_codes["spike"] = f"v -= {top}"
    cells.v = top // 2  # where a sample starts
    parts: list[Any] = [source, cells]
    network = case.network()
    for projection in network.projections:
        origin = source if projection.source == INPUT else cells
        joint = LoihiSynapses(origin, cells, w_exp=case.exponent, sign_mode=synapse_sign_mode.MIXED)
        joint.connect()
        mantissa = weights(network, projection) >> case.exponent
        joint.w = mantissa.T.ravel()  # Brian2 connects source by source
        parts.append(joint)
    voltage, spikes = LoihiStateMonitor(cells, "v"), LoihiSpikeMonitor(cells)
    LoihiNetwork(*parts, voltage, spikes).run(case.steps)
    fired = np.zeros((case.steps, case.units), dtype=np.int64)
    fired[np.rint(np.asarray(spikes.t)).astype(int), np.asarray(spikes.i)] = 1  # times are steps
    return Activity(np.rint(np.asarray(voltage.v)).astype(np.int64).T, fired, fed)


def first_difference(a: Activity, b: Activity) -> int | None:
    """The first step in which a voltage or a spike differs; None if all are equal."""
    differs = (a.voltage != b.voltage).any(axis=1) | (a.spikes != b.spikes).any(axis=1)
    return int(np.argmax(differs)) if differs.any() else None


def row(case: Case, *, threshold: str = ">=") -> str:
    """A line of the table."""
    a = ours(case)
    b = brian2_loihi(case, a.fed, threshold=threshold)
    first = first_difference(a, b)
    found = "equal" if first is None else f"differ from step {first}"
    return (
        f"| {case.name} | {case.units} | {case.current_decay} / {case.voltage_decay} "
        f"| {case.steps} | {int(a.spikes.sum())} | {int(b.spikes.sum())} "
        f"| {a.overflows} | {found} |"
    )


def page() -> str:
    """The page."""
    names = ("case", "neurons", "decays", "steps", "spikes", "spikes there", "overflows", "found")
    head = f"| {' | '.join(names)} |\n{'|---' * len(names)}|\n"
    body = "\n".join(row(case) for case in CASES)
    untouched = row(CASES[2], threshold=">")
    equality = row(TIE, threshold=">")
    over = row(OVERFLOW)
    return f"""# Fixed point against Brian2Loihi

The integer step compared with an independent emulator of Loihi 1. Written by
`python sims/loihi/witness.py`. [Brian2Loihi](https://github.com/sagacitysite/brian2_loihi)
(Michaelis, Lehr, Oed & Tetzlaff 2022, Frontiers in Neuroinformatics 16) emulates Loihi 1 in
Brian2; its authors compared it with the chip. It shares no code with this project, so it
is an independent check of the integer step in
`neuro_eqprop.spiking.ir`. The networks are random, with even integer weights of 8 bits and both
signs; the input population fires regularly. Decays are those of current and voltage, in multiples
of 1/4096. Spikes are those counted here and in Brian2Loihi; overflows count currents that wrapped
and voltages that saturated here.

{head}{body}

Voltages and spikes of every neuron are equal in every step: decays that round towards zero, a
current with 6 fractional bits, weights with an exponent, and the order of current, voltage, spike
and reset.

Brian2Loihi's own neuron fires at v > threshold and resets to zero. For the table above, its
comparison was set to >= and, where the case says so, its reset to a subtraction, in Brian2's own
expressions. Without these changes:

{head}{untouched}
{equality}

What differs:

- **The threshold.** Loihi fires at v > threshold, this project at v >= threshold. They differ in
  steps in which a voltage equals the threshold exactly, as they do in these two lines; the
  voltages of the second are multiples of a 32nd of its threshold.
- **The reset.** Loihi 1 resets to zero; code `rate` subtracts the threshold. Lava's `ATRLIF` does
  the same on stock processes ([what runs on a chip](../reference/on-a-chip.md)).
- **Overflow.** Here a current wraps at 24 bits and a voltage saturates, as in Lava's bit-accurate
  model. Brian2Loihi limits neither:

{head}{over}

- **Weights.** Loihi drops the last bit of a weight of mixed sign, and clips weights at 21 bits;
  here a weight is any integer that fits its unit. Even weights, as `to_lava(neurons="stock",
  bits=8)` writes them, are the same on both.
- **Bias, floor, ceiling, graded messages.** Brian2Loihi has none; they were not compared.
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())
    print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
