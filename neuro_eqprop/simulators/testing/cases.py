"""Small networks that each test one thing a simulator can get wrong."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np

from neuro_eqprop.dynamics.schedules import Phase, free_only
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR, RELU, TANH
from neuro_eqprop.simulators.recordings import NOTHING
from neuro_eqprop.simulators.testing.case import Case, build, group, in_fixed_point, link, rows
from neuro_eqprop.spiking.ir import (
    DecreasingGain,
    FixedPoint,
    Gain,
    Graded,
    Neuron,
    RateTracking,
    Reset,
    Spiking,
)
from neuro_eqprop.spiking.rounding import Rounding, Scaling

PLAIN = Spiking(
    current_decay=1.0,
    voltage_decay=0.0,
    threshold=1.0,
    reset=Reset.SUBTRACT,
    floor=-1.0,
    ceiling=2.0,
)
ZERO = replace(PLAIN, reset=Reset.ZERO)
LEAKY = replace(PLAIN, current_decay=0.3, voltage_decay=0.1)
SIGMA_DELTA = Graded(HARD_SIGMOID, theta=1 / 16, damping=0.5)

# Fires for the first time in step eight, when the voltages of its targets are at a limit.
LATE = group("late", PLAIN, 1 / 16)
A, B = group("a", PLAIN, 0.375, 0.75), group("b", PLAIN, 0.125, 0.25, 0.0)
GRADED_A = group("a", SIGMA_DELTA, 0.25, 0.8125)
GRADED_B = group("b", SIGMA_DELTA, 0.125, -0.25, 0.5)
ACROSS = rows([0.5, -0.25], [0.75, 0.5], [-0.5, 1.25])
BACK = ACROSS.T.copy()
PULL = {"b": rows([1.0, -0.5, 0.75], [-0.25, 1.0, 0.3125])}
UNEQUAL = (Phase("strong", 0.75, 7, 3), Phase("off", 0.0, 9, 9), Phase("weak", -0.3, 8, 1))


def resets() -> list[Case]:
    """Cases of threshold and reset."""
    bias, current = (0.3125, 0.75, 1.0, 1.375, 1.5), {"a": rows([0.0] * 5, [0.25] * 5)}
    tie = (0.5, 0.25, 0.125, 0.4375)
    leaky_tie = group("a", replace(PLAIN, voltage_decay=0.25), 0.625, 0.4375)
    leaky = [replace(A, neuron=LEAKY), replace(B, neuron=LEAKY)]
    silent = [group("a", PLAIN, 0.0, -0.5), group("b", PLAIN, 0.0)]
    busy = [group("a", PLAIN, 1.0, 1.75), group("b", ZERO, 0.0, 1.0)]
    return [
        build("reset by subtraction", [group("a", PLAIN, *bias)], current=current),
        build("reset to zero", [group("a", ZERO, *bias)], current=current),
        build("tie at the threshold", [group("a", PLAIN, *tie), group("b", ZERO, *tie)]),
        build("tie of a leaky voltage", [leaky_tie]),
        build("leaky decays", leaky, [link("a", "b", ACROSS), link("b", "a", BACK)]),
        build("silence", silent, [link("a", "b", rows([1.0, 1.0]))]),
        build("saturation", busy, [link("a", "b", rows([2.0, 1.0], [1.5, 3.0]))]),
    ]


def limits() -> list[Case]:
    """Cases of floor and ceiling of the voltage."""
    kick = rows([4.0], [2.0])
    free = group("b", replace(PLAIN, floor=-inf, ceiling=inf), -0.5, 1.5)
    high_floor = group("a", replace(ZERO, floor=0.25), 0.375, -0.5, 0.75)
    low_ceiling = group("a", replace(PLAIN, ceiling=0.625), 0.25, 0.375, 0.5)
    return [
        build("floor", [LATE, group("b", PLAIN, -0.5, -1.0)], [link("late", "b", kick)]),
        build("ceiling", [LATE, group("b", PLAIN, 1.5, 2.0)], [link("late", "b", -kick)]),
        build("floor above the reset", [high_floor]),
        build("ceiling below the threshold", [low_ceiling]),
        build("no limits", [LATE, free], [link("late", "b", rows([4.0], [-9.0]))]),
    ]


def sizes() -> list[Case]:
    """Cases of the smallest sizes, of several samples, of unusual names and of no recording."""
    pair = [group("a", PLAIN, 0.0), group("b", LEAKY, 0.0)]
    loop = [link("a", "b", rows([0.75]), delay=3), link("b", "a", rows([-0.5]))]
    current = {"a": rows([1.5], [0.0], [-1.5], [0.125])}
    once = free_only(steps=1, window=1)
    names = [replace(A, name="v"), replace(B, name="layer 1.x/beta")]
    quiet = build("nothing recorded", [A, GRADED_B], [link("a", "b", ACROSS / 4)])
    return [
        build("one neuron", [group("a", PLAIN, 0.40625)]),
        build("one sample, one step", [group("a", PLAIN, 0.5, 0.25)], samples=1, schedule=once),
        build("samples start from rest", pair, loop, current=current, samples=4),
        build("awkward names", names, [link("v", "layer 1.x/beta", ACROSS)]),
        replace(quiet, record=NOTHING),
    ]


def paths() -> list[Case]:
    """Cases of delays, gains and weights of projections."""
    beta = Gain.BETA
    two = [link("a", "b", ACROSS, delay=2), link("a", "b", -ACROSS / 2, delay=5)]
    gated = link("a", "b", 2 * ACROSS, gain=beta)
    nudge = [link("a", "b", ACROSS), link("b", "a", BACK), link("b", "b", -np.eye(3), gain=beta)]
    empty = [
        link("a", "b", np.zeros((3, 2))),
        link("b", "a", BACK),
        link("b", "b", np.zeros((3, 3)), delay=2, gain=beta),
    ]
    several = [
        link("a", "b", ACROSS),
        link("a", "b", ACROSS),
        link("a", "b", ACROSS[::-1], delay=2),
        link("a", "b", -ACROSS, gain=beta),
        link("a", "b", ACROSS / 2, delay=2, gain=beta),
    ]
    return [
        build("two delays into one target", [A, B], [*two, link("b", "a", BACK, delay=3)]),
        build("gain read on arrival", [A, B], [gated], schedule=UNEQUAL),
        build("gain read on late arrival", [A, B], [replace(gated, delay=4)]),
        build("pull", [B], pull=PULL),
        build("nudge", [A, B], nudge, pull=PULL, schedule=UNEQUAL),
        build("empty projection", [A, B], empty),
        build("self-projection", [A], [link("a", "a", rows([0.25, 0.0], [-0.5, 0.125]))]),
        build("several projections between two populations", [A, B], several),
    ]


def sums() -> list[Case]:
    """Cases of the order of additions.

    Floats cannot represent tenths exactly: summed in another order, they miss a tie by one bit.
    Each target has only one source, so that the order of the sum over spikes does not matter.
    """
    drawn = np.random.default_rng(9).integers(-3, 4, (6, 64))
    bias, current, one = drawn[0] / 10, drawn[1:3] / 10, drawn[3] / 10
    pull, by_beta = drawn[4].astype(float), drawn[5].astype(float)
    paths = [
        link("one", "sum", one[:, None]),
        link("one", "sum", by_beta[:, None], gain=Gain.BETA),
    ]
    schedule = (Phase("weak", 0.1, 12, 4), Phase("strong", 0.3, 12, 4))
    neurons: dict[str, Neuron] = {
        "spikes": replace(PLAIN, current_decay=0.0),
        "messages": Graded(LINEAR, theta=0.2, damping=1.0),
    }
    return [
        build(
            f"order of additions, {name}",
            [group("one", PLAIN, 1.0), group("sum", neuron, *bias)],
            paths,
            current={"sum": current},
            pull={"sum": np.stack([pull, -pull])},
            schedule=schedule,
        )
        for name, neuron in neurons.items()
    ]


def graded() -> list[Case]:
    """Cases of graded messages."""
    pair, loop = [GRADED_A, GRADED_B], [link("a", "b", ACROSS / 2), link("b", "a", BACK / 4)]
    relu, tanh = replace(SIGMA_DELTA, activation=RELU), replace(SIGMA_DELTA, activation=TANH)
    nudge = link("b", "b", -np.eye(3), delay=2, gain=Gain.BETA)
    gated = [*loop, nudge, link("a", "b", ACROSS / 8, delay=4)]
    mixed = [link("a", "b", ACROSS / 4), link("b", "a", BACK, delay=3)]
    coarse = Graded(LINEAR, theta=0.25, damping=1.0)
    halves = group("a", coarse, 0.125, 0.375, 0.625, -0.125, -0.375, -0.625)
    current = {"a": rows([0.0, 0.5], [1.0, -1.0])}
    return [
        build("graded hard sigmoid", pair, loop, current=current),
        build("graded relu", [replace(p, neuron=relu) for p in pair], loop),
        build("graded tanh", [replace(p, neuron=tanh) for p in pair], loop),
        build("graded gain and delay", pair, gated, pull=PULL, schedule=UNEQUAL),
        build("ties in round", [halves]),
        build("spikes and messages", [A, GRADED_B], mixed),
    ]


def following() -> list[Case]:
    """Cases of neurons that track a rate."""
    slow, fast = DecreasingGain(0.5, 0.0), DecreasingGain(1.0, 0.5)
    predicting = replace(PLAIN, follow=RateTracking(HARD_SIGMOID, gain=fast, step=slow))
    drawn = replace(
        PLAIN,
        follow=RateTracking(HARD_SIGMOID, DecreasingGain(1.0, 0.0), DecreasingGain(1.0, 0.75), 7),
    )
    loop = [link("a", "b", ACROSS / 2), link("b", "a", BACK / 4, delay=2)]
    return [
        build(
            name,
            [replace(A, neuron=neuron), replace(B, neuron=neuron)],
            [*loop, link("b", "b", -np.eye(3), gain=Gain.BETA)],
            pull=PULL,
        )
        for name, neuron in {"spikes that predict": predicting, "spikes by chance": drawn}.items()
    ]


def overflowing() -> list[Case]:
    """Cases of overflow in 24 bits: currents wrap; voltages and states without limits saturate.

    All values are multiples of 2^-14 for spikes, and of 2^-18 for messages.
    """
    free = replace(PLAIN, floor=-inf, ceiling=inf)
    slow = replace(free, current_decay=1 / 64)
    spikes = [group("a", slow, 1.5, 0.75), group("b", free, 1.5, -1.5, 0.75)]
    busy = [link("a", "b", 2 * ACROSS), link("a", "a", rows([1.5, 0.5], [1.0, 0.75]))]
    sums = [group("a", SIGMA_DELTA, 0.25, 0.8125), group("b", Graded(RELU, 1 / 16, 0.25), 30, 20)]
    heavy = [link("a", "b", rows([24.0, 31.0], [-40.0, 17.0])), link("b", "b", np.eye(2) / 2)]
    long = (Phase("free", 0.0, 40, 8), Phase("nudged", 0.5, 40, 8))
    cases = {
        2.0**-14: build("overflow of spikes", spikes, busy, schedule=long),
        2.0**-18: build("overflow of messages", sums, heavy, schedule=long),
    }
    return [
        replace(case, network=replace(case.network, fixed=FixedPoint({"a": unit, "b": unit})))
        for unit, case in cases.items()
    ]


EIGHT, FOUR = Rounding(8), Rounding(4, Scaling.NEURON, even=True)
ROUNDINGS = {
    "reset by subtraction": EIGHT,
    "reset to zero": EIGHT,
    "tie at the threshold": EIGHT,
    "leaky decays": FOUR,
    "floor above the reset": EIGHT,
    "no limits": EIGHT,
    "two delays into one target": FOUR,
    "nudge": EIGHT,
    "graded hard sigmoid": EIGHT,
    "graded tanh": FOUR,
    "graded gain and delay": EIGHT,
    "ties in round": EIGHT,
    "spikes and messages": FOUR,
}
"""Cases that also run in fixed point, with the rounding of their weights."""

FLOAT_CASES = (*resets(), *limits(), *sizes(), *paths(), *sums(), *graded(), *following())
CASES: tuple[Case, ...] = (
    *FLOAT_CASES,
    *(in_fixed_point(case, ROUNDINGS[case.name]) for case in FLOAT_CASES if case.name in ROUNDINGS),
    *overflowing(),
)
"""All handwritten cases; each is a short run of few samples."""
