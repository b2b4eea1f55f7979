"""Random recurrent networks in which every population is active."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count, product

import numpy as np

from neuro_eqprop.common.arrays import Array, Shape
from neuro_eqprop.dynamics.schedules import three_phase
from neuro_eqprop.networks.activations import HARD_SIGMOID, RELU, TANH, box
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.simulators.testing.case import (
    Case,
    CaseRun,
    in_fixed_point,
    record_everything,
    run_case,
)
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
from neuro_eqprop.spiking.synapses import (
    ConvolutionSynapses,
    DenseSynapses,
    DiagonalSynapses,
    Synapses,
    csr,
)

GRID = 2.0**-12
SAMPLES = 2


def on_grid(values: Array) -> Array:
    """The nearest multiples of the grid."""
    return np.asarray(GRID * np.rint(values / GRID))


def draw_spiking(rng: np.random.Generator) -> Spiking:
    """A random spiking neuron."""
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
    """A random graded neuron."""
    curves = (HARD_SIGMOID, RELU, TANH, box(2.0))
    return Graded(
        curves[int(rng.integers(len(curves)))],
        theta=float(rng.choice([2.0**-3, 2.0**-5, 2.0**-6])),
        damping=float(rng.choice([1.0, 0.5, 0.3])),
    )


def draw_population(name: str, neuron: Neuron, rng: np.random.Generator) -> Population:
    """A population with random biases.

    In a spiking population, unit 0 fires in every step and unit 1 starts exactly at its threshold.
    """
    size = int(rng.integers(4, 13))
    scale = neuron.threshold if isinstance(neuron, Spiking) else 1.0
    bias = on_grid(scale * rng.uniform(-0.25, 0.6, size))
    if isinstance(neuron, Spiking):
        bias[0] = 2 * scale
        bias[1] = scale - (1 - neuron.voltage_decay) * (scale / 2)
    return Population(name, neuron, bias)


def without_input(population: Population, values: Array) -> Array:
    """`values` (units last) with zeros for units 0 and 1 of a spiking population."""
    if isinstance(population.neuron, Spiking):
        values[..., :2] = 0.0
    return values


def draw_projections(
    populations: list[Population], rng: np.random.Generator, kinds: np.random.Generator
) -> tuple[Projection, ...]:
    """Random projections, which include one to the next population and one to itself.

    `kinds` draws the kind of synapses.
    """
    pairs = [pair for pair in product(populations, repeat=2) if rng.random() < 0.3]
    pairs += zip(populations, populations[1:] + populations[:1], strict=True)
    pairs += [(p, p) for p in populations]
    drawn = []
    for source, target in pairs:
        inputs_of_target = sum(other is target for _, other in pairs)
        scale = target.neuron.threshold if isinstance(target.neuron, Spiking) else 0.5
        weight = rng.normal(
            0.0, 2 * scale / (inputs_of_target * np.sqrt(source.size)), (target.size, source.size)
        )
        weight[rng.random(weight.shape) < 0.3] = 0.0
        weight = without_input(target, on_grid(weight).T).T.copy()
        gain = Gain.BETA if rng.random() < 0.3 else Gain.ONE
        synapses = draw_synapses(weight, target, kinds)
        drawn.append(
            Projection(source.name, target.name, synapses, int(rng.choice([1, 1, 2, 4])), gain)
        )
    return tuple(drawn)


def draw_synapses(weight: Array, target: Population, rng: np.random.Generator) -> Synapses:
    """Synapses of a random kind, with weights of the scale of the matrix."""
    kind = str(rng.choice(["dense", "sparse", "convolution", "transposed", "diagonal"]))
    if kind == "diagonal" and weight.shape[0] == weight.shape[1]:
        return DiagonalSynapses(np.diag(weight))
    if kind in ("convolution", "transposed"):
        return draw_convolution(weight, target, rng, transposed=kind == "transposed")
    if kind == "sparse":
        return csr(weight * (rng.random(weight.shape) < 0.5))
    return DenseSynapses(weight)


def draw_convolution(
    weight: Array, target: Population, rng: np.random.Generator, *, transposed: bool
) -> Synapses:
    """A random convolution with the shape of `weight`; units 0 and 1 get no input if spiking."""
    outputs, inputs = weight.shape[::-1] if transposed else weight.shape
    shapes = [
        (image, kernel, stride, padding, pool)
        for image in factors(inputs)
        for pool in (1, 2)
        if image[1] % pool == image[2] % pool == 0
        for kernel in product(range(1, 4), repeat=2)
        for stride in (1, 2)
        for padding in (0, 1)
        if padded_outputs(image, kernel, stride, padding=padding, pool=pool, size=outputs)
    ]
    image, kernel, stride, padding, pool = shapes[int(rng.integers(len(shapes)))]
    channels = padded_outputs(image, kernel, stride, padding=padding, pool=pool, size=outputs)
    size = weight.std() * np.sqrt(weight.shape[1]) / np.sqrt(image[0] * np.prod(kernel))
    drawn = on_grid(rng.normal(0.0, size, (channels, image[0], *kernel)))
    made = ConvolutionSynapses(drawn, image, stride, padding, pool, transposed=transposed)
    if isinstance(target.neuron, Spiking):
        rows = drawn.transpose(1, 0, 2, 3) if transposed else drawn
        rows[: -(-2 * len(rows) // target.size)] = 0.0
        made = made.with_values(drawn)
    return made if made.count else DenseSynapses(weight)


def factors(size: int) -> list[tuple[int, int, int]]:
    """All image shapes (channels, height, width) with `size` pixels."""
    pairs = [(c, h) for c in range(1, size + 1) for h in range(1, size + 1) if size % (c * h) == 0]
    return [(c, h, size // (c * h)) for c, h in pairs]


def padded_outputs(
    image: Shape, kernel: Shape, stride: int, *, padding: int, pool: int, size: int
) -> int:
    """Number of output channels for which a convolution has `size` outputs; 0 if impossible."""
    sides = [
        (n // pool + 2 * padding - k) // stride + 1 for n, k in zip(image[1:], kernel, strict=True)
    ]
    if min(sides) < 1 or size % (sides[0] * sides[1]):
        return 0
    return size // (sides[0] * sides[1])


def attempt_case(seed: int, number: int, *, attempt: int) -> Case:
    """A random network with a schedule of three phases."""
    rng = np.random.default_rng([seed, number, attempt])
    kinds = ("spiking", "graded", "spiking", "mixed")[number % 4]
    populations = []
    for k in range(int(rng.integers(2, 4))):
        spiking = kinds == "spiking" or (kinds == "mixed" and k % 2 == 0)
        neuron = draw_spiking(rng) if spiking else draw_graded(rng)
        populations.append(draw_population(f"population {k}", neuron, rng))
    projections = draw_projections(
        populations, rng, np.random.default_rng([seed, number, attempt, 1])
    )
    network = SpikingNetwork(1e-3, tuple(populations), projections, populations[-1].name)
    first, last = populations[0], populations[-1]
    current = without_input(first, on_grid(rng.uniform(-0.25, 0.5, (SAMPLES, first.size))))
    pull = without_input(last, on_grid(rng.uniform(-1.0, 1.0, (SAMPLES, last.size))))
    schedule = three_phase(beta=float(rng.choice([0.5, 0.3])), free=14, nudged=10)
    stimulus = Stimulus(SAMPLES, {first.name: current}, {last.name: pull})
    name = f"random {kinds} network {number} of seed {seed}"
    return Case(name, network, stimulus, schedule, record_everything(network))


def ties(case: Case, run: CaseRun) -> bool:
    """Whether some voltage of each spiking population was exactly at its threshold."""
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


def active(case: Case, run: CaseRun) -> bool:
    """Whether all populations send, and spiking ones have a tie and a unit that always fires."""
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
    """Random network `number` of `seed`: the first draw that is active."""
    for attempt in count():
        case = attempt_case(seed, number, attempt=attempt)
        if active(case, run_case(load_backend("reference"), case)):
            return case
    raise AssertionError("an endless count has ended")


def lengthened(case: Case, steps: int) -> Case:
    """The first sample of a case, with a three-phase schedule of `steps` steps in total."""
    nudged = steps // 3
    beta = max(phase.beta for phase in case.schedule)
    schedule = three_phase(beta=beta, free=steps - 2 * nudged, nudged=nudged)
    return replace(case, schedule=schedule, stimulus=case.stimulus.take(0, 1))


BITS = (8, 4, 12, 9, 3, 16)


def draw_whole_case(seed: int, number: int) -> Case:
    """Random network `number` of `seed` in fixed point, with a rounding chosen by `number`."""
    rounding = Rounding(BITS[number % 6], tuple(Scaling)[number % 2], even=number % 3 == 0)
    return in_fixed_point(draw_case(seed, number), rounding)


def draw_cases(seed: int, networks: int) -> Iterator[Case]:
    """`networks` random networks; every fifth of them also in fixed point."""
    for number in range(networks):
        yield draw_case(seed, number)
        if number % 5 == 0:
            yield draw_whole_case(seed, number)
