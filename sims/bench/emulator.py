"""Write docs/results/speed.md: the speed of the emulator against the others, in one run.

The network has the size and the activity of a 784-256-10 network on MNIST, its input as a current.
A simulator's time for a step of a sample is that of a long run less that of a short one, divided by
the steps between; so starting up and building are left out on every side. One thread each. Times
are of the processor, those of child processes included, which another load on the machine does not
change; and by the clock.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.schedules import free_only, tail
from neuro_eqprop.files.write import write_text
from neuro_eqprop.simulators.base import Backend
from neuro_eqprop.simulators.recordings import NOTHING, Recording
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.spiking.ir import (
    Gain,
    Population,
    Projection,
    Reset,
    Spiking,
    SpikingNetwork,
    Stimulus,
)

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


class Spent(NamedTuple):
    """Seconds of the processor, and by the clock."""

    processor: float
    clock: float


def now() -> Spent:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return Spent(sum(u.ru_utime + u.ru_stime for u in used), time.perf_counter())


def seconds(backend: Backend, net: SpikingNetwork, given: Stimulus, steps: int) -> Spent:
    schedule = free_only(steps=steps, window=tail(steps))
    began = now()
    backend.run(net, given, schedule, record=NOTHING, sink=Nowhere())
    return Spent(*(after - before for after, before in zip(now(), began, strict=True)))


def per_step(name: str, backend: Backend, net: SpikingNetwork, samples: int) -> Spent:
    """Seconds a step of one sample takes."""
    given = stimulus(samples)
    short, long = LENGTHS[name][samples]
    parts = seconds(backend, net, given, long), seconds(backend, net, given, short)
    return Spent(*((a - b) / (samples * (long - short)) for a, b in zip(*parts, strict=True)))


Found = dict[tuple[str, int], Spent]


def measure(names: Iterable[str], rounds: int) -> Found:
    """By simulator and samples at a time, the medians over rounds in which they take turns."""
    net, found = network(), dict[tuple[str, int], list[Spent]]()
    backends = {name: load_backend(name) for name in names}
    for backend in backends.values():
        seconds(backend, net, stimulus(1), 2)
    for _ in range(rounds):
        for name, backend in backends.items():
            for samples in LENGTHS[name]:
                took = per_step(name, backend, net, samples)
                found.setdefault((name, samples), []).append(took)
    return {key: Spent(*map(median, zip(*spent, strict=True))) for key, spent in found.items()}


def activity() -> str:
    """Spikes that a neuron fires in the steps of one sample, by population."""
    given, schedule = stimulus(256), free_only(steps=STEPS, window=STEPS)
    result = load_backend("emulator").run(
        network(), given, schedule, record=NOTHING, sink=Nowhere()
    )
    return ", ".join(f"{name} {sent.mean():.1f}" for name, sent in result.messages.items())


def whole_test() -> Spent:
    """Seconds for the 10 000 samples of a test set, at best of three."""
    backend, net, given = load_backend("emulator"), network(), stimulus(10_000)
    return min(seconds(backend, net, given, STEPS) for _ in range(3))


LABELS = {"snntorch": "this package's own snnTorch backend, in float64"}
"""Names in the table, where that of the simulator could mean something else."""
GOALS = {("lava", 1, 1): 1000, ("lava", 1, 256): 1000, ("snntorch", 256, 256): 5}
GOALS[("brian2", 256, 256)] = 40
"""How many times faster, by simulator, its samples at a time and the emulator's."""


def rows(found: Found) -> list[str]:
    """A row for each pair of simulator and samples at a time."""
    lines = []
    for (name, samples), took in found.items():
        for mine in (1, 256) if name == "lava" else (samples,):
            if name == "emulator":
                continue
            ratios = [a / b for a, b in zip(took, found["emulator", mine], strict=True)]
            goal = GOALS.get((name, samples, mine))
            reached = "" if goal is None else ("yes" if ratios[0] >= goal else "NO")
            lines.append(
                f"| {LABELS.get(name, name)} | {samples} | {mine} | {f'>= {goal}' if goal else ''} "
                f"| {ratios[0]:.3g} | {ratios[1]:.3g} | {reached} |"
            )
    return lines


def page(found: Found, whole: Spent, rounds: int) -> str:
    alone = found["emulator", 1].processor / found["emulator", 256].processor
    reached = "reached" if whole.processor <= 1 else "NOT reached"
    return f"""# Speed of the emulator

How many times faster the emulator is than the other simulators.
Made by `.venv/bin/python sims/bench/emulator.py --rounds {rounds}`; do not edit. Ratios within one
run, medians over its rounds, one thread each, the same network and work for every simulator: the
size and activity of 784-256-10 on MNIST with input as a current (spikes of a neuron in
{STEPS} steps: {activity()}), in floating point, code `rate`. Compilation and start-up are not
included. CPU time is that of all processes of a simulator; wall-clock time also depends on other
work on the machine.

| simulator | its batch | emulator batch | goal | ratio of CPU time | of wall-clock time | reached |
|---|---|---|---|---|---|---|
{chr(10).join(rows(found))}

10 000 samples of {STEPS} steps on the emulator, compiled code cached: {whole.processor:.2f} s of
one core ({whole.clock:.2f} s wall-clock; goal: 1 s or less; {reached}). A step of one sample
alone takes {alone:.2f} times that of one among 256. Lava has no batch: it runs one sample after
another. Against float32 loops in NumPy and with snnTorch's own neurons, as their users write them:
`.venv/bin/python sims/bench/ratios.py`.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without", nargs="*", default=[], choices=[*LENGTHS][1:])
    parser.add_argument("--out", type=Path, default=Path("docs/results/speed.md"))
    options = parser.parse_args()
    names = [name for name in LENGTHS if name not in options.without]
    torch.set_num_threads(1)
    with threadpool_limits(1):
        found, whole = measure(names, options.rounds), whole_test()
    result = page(found, whole, options.rounds)
    print(result)
    if not options.without:
        write_text(options.out, result)


if __name__ == "__main__":
    main()
