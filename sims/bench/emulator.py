"""How much faster the emulator is than the other simulators: ratios of one run, the same work each.

The network has the size and the activity of a 784-256-10 network on MNIST, its input as a current.
A simulator's time for a step of a sample is that of a long run less that of a short one, divided by
the steps between; so starting up and building are left out on every side. One thread each.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from neuro_eqprop.arrays import Array
from neuro_eqprop.backends.base import Backend, load
from neuro_eqprop.schedules import free_only, tail
from neuro_eqprop.spiking.ir import (
    Gain,
    Population,
    Projection,
    Reset,
    Spiking,
    SpikingNetwork,
    Stimulus,
)
from neuro_eqprop.traces import NOTHING, Recording

HIDDEN, OUTPUT, STEPS = 256, 10, 32
LENGTHS = {
    "emulator": {1: (64, 20_064), 256: (32, 288)},
    "snntorch": {1: (32, 544), 256: (32, 288)},
    "brian2": {1: (32, 544), 256: (32, 160)},
    "reference": {1: (32, 544), 256: (32, 160)},
    "lava": {1: (32, 1056)},
}
"""Steps of the short and of the long run, by simulator and samples at a time."""


@dataclass(frozen=True, slots=True)
class Nowhere:
    """A sink that keeps nothing."""

    def sample(self, index: int, recording: Recording) -> None:
        """Forget it."""


def on_grid(values: Array) -> Array:
    return np.asarray(np.rint(values * 4096) / 4096)


def network() -> SpikingNetwork:
    rng = np.random.default_rng(0)
    weight = on_grid(rng.normal(0.0, 0.06, (OUTPUT, HIDDEN)))
    neuron = Spiking(1.0, 0.0, 1.0, Reset.SUBTRACT, floor=-1.0, ceiling=1.0)
    populations = (
        Population("hidden", neuron, np.zeros(HIDDEN)),
        Population("output", neuron, on_grid(np.full(OUTPUT, -0.0625))),
    )
    projections = (
        Projection("hidden", "output", weight),
        Projection("output", "hidden", np.ascontiguousarray(weight.T)),
        Projection("output", "output", -np.eye(OUTPUT), gain=Gain.BETA),
    )
    return SpikingNetwork(1e-3, populations, projections, "output")


def stimulus(samples: int) -> Stimulus:
    rng = np.random.default_rng(1)
    return Stimulus(samples, {"hidden": on_grid(rng.normal(0.0, 0.37, (samples, HIDDEN)))}, {})


def seconds(backend: Backend, net: SpikingNetwork, given: Stimulus, steps: int) -> float:
    schedule = free_only(steps=steps, window=tail(steps))
    began = time.perf_counter()
    backend.run(net, given, schedule, record=NOTHING, sink=Nowhere())
    return time.perf_counter() - began


def per_step(name: str, backend: Backend, net: SpikingNetwork, samples: int) -> float:
    """Seconds a step of one sample takes."""
    given = stimulus(samples)
    short, long = LENGTHS[name][samples]
    spent = seconds(backend, net, given, long) - seconds(backend, net, given, short)
    return spent / (samples * (long - short))


def measure(names: Iterable[str], rounds: int) -> dict[tuple[str, int], float]:
    """By simulator and samples at a time, the median over rounds in which they take turns."""
    net, found = network(), dict[tuple[str, int], list[float]]()
    backends = {name: load(name) for name in names}
    for backend in backends.values():
        seconds(backend, net, stimulus(1), 2)
    for _ in range(rounds):
        for name, backend in backends.items():
            for samples in LENGTHS[name]:
                took = per_step(name, backend, net, samples)
                found.setdefault((name, samples), []).append(took)
    return {key: median(values) for key, values in found.items()}


def activity() -> str:
    """Spikes that a neuron fires in the steps of one sample, by population."""
    given, schedule = stimulus(256), free_only(steps=STEPS, window=STEPS)
    result = load("emulator").run(network(), given, schedule, record=NOTHING, sink=Nowhere())
    return ", ".join(f"{name} {sent.mean():.1f}" for name, sent in result.messages.items())


def whole_test() -> float:
    """Seconds for the 10 000 samples of a test set."""
    backend, net, given = load("emulator"), network(), stimulus(10_000)
    return min(seconds(backend, net, given, STEPS) for _ in range(3))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without", nargs="*", default=[], choices=[*LENGTHS][1:])
    options = parser.parse_args()
    names = [name for name in LENGTHS if name not in options.without]
    torch.set_num_threads(1)
    with threadpool_limits(1):
        found, whole = measure(names, options.rounds), whole_test()
    print(f"spikes of a neuron in {STEPS} steps: {activity()}")
    print(f"10 000 samples of {STEPS} steps on the emulator, one core: {whole:.2f} s")
    ratio = found["emulator", 1] / found["emulator", 256]
    print(f"emulator, a step of one sample alone against one of 256: {ratio:.2f} times the time")
    print(f"{'simulator':10} {'its batch':>10} {'our batch':>10} {'ours is faster by':>18}")
    for (name, samples), took in found.items():
        if name != "emulator":
            for mine in (1, 256) if name == "lava" else (samples,):
                factor = took / found["emulator", mine]
                print(f"{name:10} {samples:>10} {mine:>10} {factor:>17.1f}x")


if __name__ == "__main__":
    main()
