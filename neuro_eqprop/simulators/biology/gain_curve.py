"""The f-I curve of a neuron, measured with its own equations, and its inverse.

Neurons that share their noise receive constant inputs and fire at steady rates. The first inputs
lie far apart; the next ones lie where the curve says that rates are evenly spread, and close to
where firing starts.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from neuro_eqprop.common.arrays import Array, Bits
from neuro_eqprop.simulators.biology.equations import GainCurve, describe
from neuro_eqprop.simulators.biology.rendering import CompiledCells
from neuro_eqprop.simulators.biology.settings import Biology, Refractory
from neuro_eqprop.spiking.ir import Spiking

COARSE, REFINEMENTS = 160, 2
"""Number of inputs of the first curve, and how often it is refined."""
SECONDS, REPEATS = 2.4, 16
"""Length of a run, whose last two thirds count, and the repeats with noise."""
CHUNK, SAMPLED = 200, 7
"""Number of dt that advance at once; if mean voltages are needed, they are read as often."""
TARGETS = np.unique(np.r_[np.linspace(0.0, 0.06, 61), np.linspace(0.06, 1.02, 140)])
"""Drives near which the inputs of a refined curve lie."""
DRIVES = np.unique(np.r_[np.linspace(0.0, 0.1, 51), np.linspace(0.1, 1.0, 181)])
"""Drives of the inverse."""
SILENT = 2e-3
"""Rates below this, as drives, count as silence: noise makes every neuron fire now and then."""


def gain_curve(biology: Biology, neuron: Spiking) -> GainCurve | None:
    """The inverse f-I curve of a neuron; None if it receives its drive unchanged.

    That is `lif` without leak and noise, which fires at its drive by itself, and with a refractory
    period of its own, with which it may never reach rmax.
    """
    held = biology.refractory is not None or biology.refractory_kind is Refractory.HOLD
    linear = not biology.noise and biology.tau_m is None
    if biology.model is None and (held or linear or not biology.invert):
        return None
    alone = replace(
        biology,
        delay=0.0,
        dale=False,
        poisson=False,
        record_dt=None,
        seed=0,
        duration=1.0,
        common_noise=False,
    )
    return inverse(alone, neuron)


@cache
def inverse(biology: Biology, neuron: Spiking) -> GainCurve:
    """The inverse of a measured curve."""
    low, high = span(biology)
    inputs = low + (high - low) * np.linspace(0.0, 1.0, COARSE) ** (1 if low else 2)
    for _ in range(REFINEMENTS):
        rates, _, _ = measure(biology, neuron, inputs)
        inputs = refined(inputs, rates)
    rates, voltages, quiet = measure(biology, neuron, inputs)
    if rates[-1] < 1.0 - SILENT:
        raise ValueError(
            f"neuron {biology.neuron!r} fires at {rates[-1] * biology.rmax:.0f} Hz at most with "
            f"these parameters, below rmax of {biology.rmax:g} Hz; lower rmax or the refractory "
            "period"
        )
    first = int(np.flatnonzero(rates <= SILENT)[-1]) if rates[0] <= SILENT else 0
    last = int(np.flatnonzero(rates >= min(1.0, rates[-1]))[0])
    known = rates[first : last + 1]
    found = np.interp(DRIVES, known, inputs[first : last + 1])
    if quiet.any():  # a drive of zero fires not even at its onset
        found[0] = inputs[np.flatnonzero(quiet)[-1]]
    mean = np.interp(DRIVES, known, voltages[first : last + 1])
    return GainCurve(
        np.r_[-1.0, DRIVES], np.r_[2 * found[0] - found[-1], found], np.r_[mean[0], mean]
    )


def span(biology: Biology) -> tuple[float, float]:
    """The lowest and the highest input of the first curve."""
    noise = biology.noise
    if biology.model is not None:
        largest = biology.model.largest
        return -largest * min(1.0, noise), largest
    leak = 0.0 if biology.tau_m is None else 1.0 / (biology.tau_m * biology.rmax)
    return -4.0 * noise, 2.0 + 2.0 * leak + 2.0 * noise


def refined(inputs: Array, rates: Array) -> Array:
    """Inputs at which the rates are evenly spread, with those around the start of firing."""
    silent = np.flatnonzero(rates <= SILENT)
    first = int(silent[-1]) if len(silent) else 0
    top = int(np.flatnonzero(rates >= min(1.0, rates[-1]))[0])
    known, values = rates[first : top + 1], inputs[first : top + 1]
    between = np.interp(TARGETS, known, values)
    start = np.linspace(inputs[first], inputs[min(first + 1, top)], 20)
    return np.unique(np.r_[inputs[0], between, start, values[-1], inputs[top:][-1]])


def measure(biology: Biology, neuron: Spiking, inputs: Array) -> tuple[Array, Array, Bits]:
    """Of each input the steady rate, as a drive, the mean voltage while not held, if it is silent.

    An input is silent if it gives no spike from the resting state on.
    """
    repeats = REPEATS if biology.noise else 1
    given = np.zeros((3, repeats, inputs.size))
    given[0] = inputs
    cells = CompiledCells(
        describe(biology, neuron, None),
        given,
        np.zeros(inputs.size, dtype=np.bool_),
        (),
        biology.dt,
        round(biology.period / biology.dt),
    )
    rng = np.random.default_rng(0)
    ticks = round(SECONDS / biology.dt)
    conductances = biology.model is not None and biology.model.conductances
    chunk = SAMPLED if conductances else CHUNK
    start, total = ticks // 3, np.zeros((repeats, inputs.size))
    early = np.zeros(inputs.size, dtype=np.bool_)
    first, last = np.full((repeats, inputs.size), -1), np.zeros((repeats, inputs.size))
    voltage, free, seen = np.zeros(inputs.size), np.zeros(inputs.size), 0
    for now in range(0, ticks, chunk):
        drawn = None
        if biology.noise:
            drawn = np.repeat(rng.standard_normal((chunk, repeats, 1)), inputs.size, axis=2)
        cells.advance(chunk, drawn)
        fired = cells.fired
        if now < start:
            early |= fired.any(axis=(0, 1))
            continue
        total += fired.sum(axis=0)
        any_spike = fired.any(axis=0)
        first = np.where((first < 0) & any_spike, now + fired.argmax(axis=0), first)
        latest = now + chunk - 1 - fired[::-1].argmax(axis=0)
        last = np.where(any_spike, latest, last)
        ready = cells.ready
        voltage += np.where(ready, cells["v"], 0.0).sum(axis=0)
        free, seen = free + ready.sum(axis=0), seen + 1
    if biology.noise:
        rates = total.mean(axis=0) / (seen * chunk * biology.dt)
    else:
        interval = (last - first) * biology.dt
        rates = np.divide(total - 1, interval, out=np.zeros_like(total), where=interval > 0)[0]
    quiet = ~early & ~total.any(axis=0)
    return np.maximum.accumulate(rates / biology.rmax), voltage / np.maximum(free, 1.0), quiet
