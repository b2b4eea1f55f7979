"""The emulator against its targets, as ratios of CPU time in one run, spikes compared.

    python sims/bench/ratios.py [--before FOLDER] [--only rate graded wide recurrent]

The baselines are written as their users write them: NumPy and snnTorch (`snntorch.Leaky`, not this
package's own backend of that name) in float32, in batches that suit their caches. They count spikes
only; the emulator also returns rates and mean drives. With `--before`, the root of another checkout
of this package, graded networks run there, too, in child processes that take turns. Networks are
drawn, with the sizes and the activity of trained ones.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from emulator import Nowhere, network, on_grid, stimulus
from threadpoolctl import threadpool_limits

from neuro_eqprop.dynamics.schedules import free_only, tail
from neuro_eqprop.networks.activations import HARD_SIGMOID
from neuro_eqprop.simulators.recordings import NOTHING
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.spiking.ir import (
    Graded,
    Population,
    Projection,
    Reset,
    Spiking,
    SpikingNetwork,
    Stimulus,
)
from neuro_eqprop.spiking.quantize import quantise
from neuro_eqprop.spiking.rounding import Rounding
from neuro_eqprop.spiking.synapses import SparseSynapses

SAMPLES, BATCH, ROUNDS = 10_000, 250, 5
PLAIN = Spiking(1.0, 0.0, 1.0, Reset.SUBTRACT, floor=-1.0, ceiling=1.0)


def numpy_loop(x: Any, weight: Any, bias: Any, steps: int) -> list[Any]:  # noqa: ANN401
    """Spike counts of both layers, in 20 lines of NumPy."""
    shapes = [(len(x), weight.shape[1]), (len(x), weight.shape[0])]
    v = [np.full(shape, 0.5, np.float32) for shape in shapes]
    s, counts = ([np.zeros(shape, np.float32) for shape in shapes] for _ in range(2))
    for _ in range(steps):
        drives = [s[1] @ weight + x, s[0] @ weight.T + bias]
        for k, drive in enumerate(drives):
            v[k] += drive
            s[k] = (v[k] >= 1).astype(np.float32)
            v[k] -= s[k]
            np.clip(v[k], -1, 1, out=v[k])
            counts[k] += s[k]
    return counts


def snntorch_loop(x: Any, weight: Any, bias: Any, steps: int) -> list[Any]:  # noqa: ANN401
    """Spike counts of both layers, with two layers of snnTorch's neurons."""
    import snntorch

    below = float(np.nextafter(np.float32(1), np.float32(0)))  # it fires above its threshold
    one, two = (snntorch.Leaky(beta=1.0, threshold=below, reset_mechanism="none") for _ in range(2))
    with torch.no_grad():
        x, weight = torch.from_numpy(x), torch.from_numpy(weight)
        v = [torch.full((len(x), n), 0.5) for n in (weight.shape[1], weight.shape[0])]
        s = [torch.zeros_like(each) for each in v]
        counts = [torch.zeros_like(each) for each in v]
        for _ in range(steps):
            drives = [s[1] @ weight + x, s[0] @ weight.T + float(bias)]
            for k, neuron in enumerate((one, two)):
                s[k], v[k] = neuron(drives[k], v[k])
                v[k] = (v[k] - s[k]).clamp(-1, 1)
                counts[k] += s[k]
    return [each.numpy() for each in counts]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    found = work()
    return time.process_time() - began, found


def run(net: SpikingNetwork, given: Stimulus, steps: int) -> Any:  # noqa: ANN401
    schedule = free_only(steps=steps, window=tail(steps))
    return load_backend("emulator").run(net, given, schedule, record=NOTHING, sink=Nowhere())


def rate() -> Iterator[str]:
    """MNIST's size, code rate, against NumPy and snnTorch."""
    net, given = network(), stimulus(SAMPLES)
    x = given.current["hidden"].astype(np.float32)
    weight, bias = net.projections[0].weight.astype(np.float32), np.float32(-0.0625)
    loops = {"NumPy float32": numpy_loop, "snnTorch as written by users": snntorch_loop}
    for steps in (32, 64):
        run(net, given.take(0, 600), steps)
        ratios: dict[str, list[float]] = {name: [] for name in loops}
        for _ in range(ROUNDS):
            own, result = timed(lambda: run(net, given, steps))  # noqa: B023
            for name, loop in loops.items():
                parts = range(0, SAMPLES, BATCH)
                other, counts = timed(
                    lambda: [loop(x[k : k + BATCH], weight, bias, steps) for k in parts]  # noqa: B023
                )
                for k, layer in enumerate(("hidden", "output")):
                    both = np.concatenate([each[k] for each in counts])
                    assert (result.messages[layer][:, 0] == both).all(), name
                ratios[name].append(own / other)
        for name, found in ratios.items():
            yield f"rate, {SAMPLES} samples, {steps} steps / {name}: {median(found):.3f}"


def graded_seconds() -> None:
    """Print the seconds of graded networks, when asked by a line; run in any checkout."""
    net, given = network(), stimulus(SAMPLES)
    neuron = Graded(HARD_SIGMOID, 2.0**-6, 1.0)
    net = replace(net, populations=tuple(replace(p, neuron=neuron) for p in net.populations))
    run(net, given.take(0, 600), 16)
    for line in sys.stdin:
        took, result = timed(lambda: run(net, given, int(line)))  # noqa: B023
        sent = [int(each.sum()) for each in result.messages.values()]
        print(json.dumps([took, sent]), flush=True)


def graded(before: Path) -> Iterator[str]:
    """MNIST's size, graded code, against the emulator of another checkout."""
    children = []
    for root in (Path(__file__).parents[2], before):
        given = os.environ | {"PYTHONPATH": os.pathsep.join([str(root), str(root / "sims/bench")])}
        command = [sys.executable, str(Path(__file__).resolve()), "--graded-seconds"]
        pipe = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        children.append(subprocess.Popen(command, env=given, **pipe))  # type: ignore[call-overload]
    for steps in (16, 32):
        ratios = []
        for _ in range(ROUNDS):
            found = []
            for child in children:
                child.stdin.write(f"{steps}\n")
                child.stdin.flush()
                found.append(json.loads(child.stdout.readline()))
            assert found[0][1] == found[1][1]
            ratios.append(found[0][0] / found[1][0])
        yield f"graded, {SAMPLES} samples, {steps} steps / before: {median(ratios):.3f}"
    for child in children:
        child.communicate()


def wide() -> Iterator[str]:
    """784-4096-4096-10, its input as a current, in blocks of 64 samples."""
    rng, size, samples = np.random.default_rng(0), 4096, 64
    weight = on_grid(rng.normal(0, 0.012, (size, size)))
    out = on_grid(rng.normal(0, 0.02, (10, size)))
    populations = (
        Population("one", PLAIN, np.zeros(size)),
        Population("two", PLAIN, on_grid(np.full(size, -0.05))),
        Population("output", PLAIN, np.zeros(10)),
    )
    projections = (
        Projection("one", "two", weight),
        Projection("two", "one", np.ascontiguousarray(weight.T)),
        Projection("two", "output", out),
        Projection("output", "two", np.ascontiguousarray(out.T)),
    )
    net = SpikingNetwork(1e-3, populations, projections, "output")
    given = Stimulus(samples, {"one": on_grid(rng.normal(-0.05, 0.25, (samples, size)))}, {})
    for name, made in (("float", net), ("fixed point", quantise(net, Rounding(8))[0])):
        run(made, given, 2)
        took, result = min((timed(lambda: run(made, given, 32)) for _ in range(3)), key=min_time)  # noqa: B023
        active = ", ".join(f"{each.mean() / 32:.1%}" for each in result.messages.values())
        each = 1e3 * took / samples
        yield f"784-4096-4096-10, {name}, ms a sample of 32 steps: {each:.2f} ({active} active)"


def min_time(pair: tuple[float, Any]) -> float:
    return pair[0]


def recurrent() -> Iterator[str]:
    """Random recurrent networks of fan-in 100."""
    for neurons, steps in ((10**4, 1000), (10**5, 100)):
        rng, fan_in = np.random.default_rng(0), 100
        columns = np.sort(rng.integers(0, neurons, (neurons, fan_in)), axis=1).astype(np.int32)
        kept = np.diff(columns, axis=1, prepend=-1) > 0
        weights = np.where((rng.random(neurons) < 0.2)[columns], -80.0, 20.0) / 4096
        heads = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
        shape = (neurons, neurons)
        synapses = SparseSynapses(shape, heads, columns[kept], weights[kept])
        neuron = Spiking(1.0, 0.125, 1.0, Reset.ZERO, floor=-np.inf, ceiling=np.inf)
        bias = np.rint(rng.uniform(0.11, 0.18, neurons) * 4096) / 4096
        cells = Population("cells", neuron, bias)
        net = SpikingNetwork(1e-3, (cells,), (Projection("cells", "cells", synapses),), "cells")
        once = Stimulus(1, {}, {})
        run(net, once, 1)
        found = []
        for _ in range(ROUNDS):
            start, _ = timed(lambda: run(net, once, 1))  # noqa: B023
            took, result = timed(lambda: run(net, once, steps))  # noqa: B023
            events = float(result.messages["cells"][0, 0] @ synapses.fan_out())
            found.append(events / (took - start) / 1e6)
        active = result.messages["cells"].mean() / steps
        yield f"recurrent, {neurons} neurons, {active:.1%} active: {median(found):.0f} M events/s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--only", nargs="*", default=["rate", "graded", "wide", "recurrent"])
    parser.add_argument("--graded-seconds", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.graded_seconds:
        graded_seconds()
        return
    torch.set_num_threads(1)
    parts: dict[str, Callable[[], Iterator[str]]] = {
        "rate": rate,
        "graded": lambda: graded(options.before) if options.before else iter(()),
        "wide": wide,
        "recurrent": recurrent,
    }
    with threadpool_limits(1):  # those of NumPy, too, which would count as time of the baseline
        for name in options.only:
            for line in parts[name]():
                print(line, flush=True)


if __name__ == "__main__":
    main()
