"""Random recurrent networks, drawn so that no part of them is idle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count, product

import numpy as np

from neuro_eqprop.activations import HARD_SIGMOID, RELU, TANH, box
from neuro_eqprop.arrays import Array
from neuro_eqprop.backends.registry import load_backend
from neuro_eqprop.schedules import three_phase
from neuro_eqprop.spiking.ir import (
    Gain,
    Graded,
    Neuron,
    Population,
    Projection,
    Reset,
    Spiking,
    SpikingNetwork,
    Stimulus,
)
from neuro_eqprop.spiking.rounding import Rounding, Scaling
from neuro_eqprop.testing.case import Case, Run, in_fixed_point, record_everything, run_case

GRID = 2.0**-12
SAMPLES = 2


def on_grid(values: Array) -> Array:
    """The nearest multiples of the grid."""
    return np.asarray(GRID * np.rint(values / GRID))


def draw_spiking(rng: np.random.Generator) -> Spiking:
    """A spiking neuron of any kind."""
    threshold = float(rng.choice([0.75, 1.0, 2.0]))
    return Spiking(
        current_decay=float(rng.choice([1.0, 1.0, 0.5, 0.3])),
        voltage_decay=float(rng.choice([0.0, 0.0, 0.125, 0.1])),
        threshold=threshold,
        reset=Reset.SUBTRACT if rng.random() < 0.6 else Reset.ZERO,
        floor=threshold * float(rng.choice([-1.0, -0.25, 0.0])),
        ceiling=threshold * float(rng.choice([0.75, 1.0, 2.0])),
    )


def draw_graded(rng: np.random.Generator) -> Graded:
    """A graded neuron of any kind."""
    curves = (HARD_SIGMOID, RELU, TANH, box(2.0))
    return Graded(
        curves[int(rng.integers(len(curves)))],
        theta=float(rng.choice([2.0**-3, 2.0**-5, 2.0**-6])),
        damping=float(rng.choice([1.0, 0.5, 0.3])),
    )


def draw_population(name: str, neuron: Neuron, rng: np.random.Generator) -> Population:
    """Random biases; a spiking population starts with a saturated unit and one that ties."""
    size = int(rng.integers(4, 13))
    scale = neuron.threshold if isinstance(neuron, Spiking) else 1.0
    bias = on_grid(scale * rng.uniform(-0.25, 0.6, size))
    if isinstance(neuron, Spiking):
        bias[0] = 2 * scale
        bias[1] = scale - (1 - neuron.voltage_decay) * (scale / 2)
    return Population(name, neuron, bias)


def spared(population: Population, values: Array) -> Array:
    """`values` (units last) without those of the two units that must not change."""
    if isinstance(population.neuron, Spiking):
        values[..., :2] = 0.0
    return values


def draw_projections(
    populations: list[Population], rng: np.random.Generator
) -> tuple[Projection, ...]:
    """Most pairs, some twice; every population hears of its neighbour and of itself."""
    pairs = [pair for pair in product(populations, repeat=2) if rng.random() < 0.3]
    pairs += zip(populations, populations[1:] + populations[:1], strict=True)
    pairs += [(p, p) for p in populations]
    drawn = []
    for source, target in pairs:
        heard = sum(other is target for _, other in pairs)
        scale = target.neuron.threshold if isinstance(target.neuron, Spiking) else 0.5
        weight = rng.normal(
            0.0, 2 * scale / (heard * np.sqrt(source.size)), (target.size, source.size)
        )
        weight[rng.random(weight.shape) < 0.3] = 0.0
        weight = spared(target, on_grid(weight).T).T.copy()
        gain = Gain.BETA if rng.random() < 0.3 else Gain.ONE
        drawn.append(
            Projection(source.name, target.name, weight, int(rng.choice([1, 1, 2, 4])), gain)
        )
    return tuple(drawn)


def attempt_case(seed: int, number: int, *, attempt: int) -> Case:
    """A random network over the phases of one sample of three phases."""
    rng = np.random.default_rng([seed, number, attempt])
    kinds = ("spiking", "graded", "spiking", "mixed")[number % 4]
    populations = []
    for k in range(int(rng.integers(2, 4))):
        spiking = kinds == "spiking" or (kinds == "mixed" and k % 2 == 0)
        neuron = draw_spiking(rng) if spiking else draw_graded(rng)
        populations.append(draw_population(f"population {k}", neuron, rng))
    projections = draw_projections(populations, rng)
    network = SpikingNetwork(1e-3, tuple(populations), projections, populations[-1].name)
    first, last = populations[0], populations[-1]
    current = spared(first, on_grid(rng.uniform(-0.25, 0.5, (SAMPLES, first.size))))
    pull = spared(last, on_grid(rng.uniform(-1.0, 1.0, (SAMPLES, last.size))))
    schedule = three_phase(beta=float(rng.choice([0.5, 0.3])), free=14, nudged=10)
    stimulus = Stimulus(SAMPLES, {first.name: current}, {last.name: pull})
    name = f"random {kinds} network {number} of seed {seed}"
    return Case(name, network, stimulus, schedule, record_everything(network))


def ties(case: Case, run: Run) -> bool:
    """Whether in each spiking population some voltage met its threshold exactly."""
    for population in case.network.populations:
        neuron, name = population.neuron, population.name
        if not isinstance(neuron, Spiking):
            continue
        found = False
        for recording in run.recordings:
            after = recording.signals[name, "voltage"]
            before = np.vstack([np.full((1, population.size), neuron.threshold / 2), after[:-1]])
            reached = (1 - neuron.voltage_decay) * before + recording.signals[name, "drive"]
            found = found or bool((reached == neuron.threshold).any())
        if not found:
            return False
    return True


def lively(case: Case, run: Run) -> bool:
    """Whether all populations send, and the spiking ones have a saturated unit and a tie."""
    for population in case.network.populations:
        rasters = [recording.spikes[population.name] for recording in run.recordings]
        if not all(raster.any() for raster in rasters):
            return False
        if isinstance(population.neuron, Spiking) and not all(
            raster.all(axis=0).any() for raster in rasters
        ):
            return False
    return ties(case, run)


def draw_case(seed: int, number: int) -> Case:
    """Random network `number` of `seed`: the first drawn that is lively."""
    for attempt in count():
        case = attempt_case(seed, number, attempt=attempt)
        if lively(case, run_case(load_backend("reference"), case)):
            return case
    raise AssertionError("an endless count has ended")


def lengthened(case: Case, steps: int) -> Case:
    """The first sample of a case over `steps` steps: free, pulled away, pulled towards."""
    nudged = steps // 3
    beta = max(phase.beta for phase in case.schedule)
    schedule = three_phase(beta=beta, free=steps - 2 * nudged, nudged=nudged)
    return replace(case, schedule=schedule, stimulus=case.stimulus.take(0, 1))


BITS = (8, 4, 12, 9, 3, 16)


def draw_whole_case(seed: int, number: int) -> Case:
    """Random network `number` of `seed` in fixed point; every way to round weights comes up."""
    rounding = Rounding(BITS[number % 6], tuple(Scaling)[number % 2], even=number % 3 == 0)
    return in_fixed_point(draw_case(seed, number), rounding)


def draw_cases(seed: int, networks: int) -> Iterator[Case]:
    """`networks` random networks, and every fifth of them in fixed point too."""
    for number in range(networks):
        yield draw_case(seed, number)
        if number % 5 == 0:
            yield draw_whole_case(seed, number)
