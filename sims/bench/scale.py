"""Measure how the cost of the spiking side grows; each part is a process of its own.

    python sims/bench/scale.py convolution|mnist|million|workers [SAMPLES]

prints JSON: processor seconds, and memory above that of the imports. `recurrent.py` compares one
network with Brian2 and NEST. docs/explanation/scale.md has the results.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

import numpy as np

import neuro_eqprop as ne
from neuro_eqprop.activations import LINEAR, RELU
from neuro_eqprop.architectures import convolutional, layered
from neuro_eqprop.backends.emulator import kernels, packed  # noqa: F401 - before memory is read
from neuro_eqprop.backends.emulator.memory import emulator_memory
from neuro_eqprop.backends.registry import load_backend
from neuro_eqprop.networks import Connection, Network
from neuro_eqprop.operators import Conv2d, Sparse
from neuro_eqprop.schedules import free_only
from neuro_eqprop.spiking.codes import Coding, find_code
from neuro_eqprop.spiking.input_coding import encode_input, find_input_coding, with_input
from neuro_eqprop.spiking.ir import SpikingNetwork, Stimulus, expanded
from neuro_eqprop.spiking.lower import lower
from neuro_eqprop.spiking.quantize import quantise
from neuro_eqprop.spiking.rounding import Rounding
from neuro_eqprop.traces import NOTHING, MemorySink

CODING, GRADED = Coding(find_code("graded")), find_input_coding("graded")
PART = 100


def peak() -> float:
    """Peak memory so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def draw(network: Network) -> dict[str, Any]:
    """Random parameters at which the layers are active."""
    rng, found = np.random.default_rng(0), {}
    for name, shape in network.parameters().items():
        size = 0.7 / np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 0.05
        found[name] = rng.normal(0.0, size, shape)
    return found


def images(shape: tuple[int, ...], channels: tuple[int, ...], kernel: Conv2d) -> Network:
    options = {"hidden_rate": RELU, "output_rate": LINEAR, "feedback": 0.1}
    return convolutional(shape, channels, 10, kernel=kernel, **options)  # type: ignore[arg-type]


def lowered(network: Network, params: dict[str, Any]) -> SpikingNetwork:
    made = lower(network, params, dt=1e-3, coding=CODING, nudged=False)
    return with_input(network, params, made, coding=CODING, entry=GRADED)


def convolution() -> dict[str, Any]:
    network = images((3, 32, 32), (32, 64, 128), Conv2d(5, padding=2))
    params, start = draw(network), peak()
    began = time.process_time()
    made, _ = quantise(lowered(network, params), Rounding(8))
    packed.tabulate(made)
    seconds = time.process_time() - began
    synapses = sum(p.synapses.count for p in made.projections)
    neurons = sum(p.size for p in made.populations)
    values = {"seconds": seconds, "mb": peak() - start, "neurons": neurons, "synapses": synapses}
    return values | {"weights": sum(p.synapses.parameters for p in made.projections)}


def mnist(samples: int) -> dict[str, Any]:
    network = images((1, 28, 28), (16, 32), Conv2d(5))
    params, schedule = draw(network), free_only(steps=32, window=8)
    x = ne.load_data("mnist").test.x[:samples].reshape(samples, -1).astype(float)
    made = lowered(network, params)
    stimuli = [
        encode_input(network, params, x[k : k + PART], target=None, coding=CODING, entry=GRADED)
        for k in range(0, samples, PART)
    ]
    found: dict[str, Any] = {"samples": samples}
    sums = {}
    load_backend("emulator").run(
        made, stimuli[0].take(0, 1), schedule, record=NOTHING, sink=MemorySink()
    )
    for name in ("symbolic", "expanded"):
        start, began = peak(), time.process_time()
        each, backend = made if name == "symbolic" else expanded(made), load_backend("emulator")
        backend.tables(each)  # type: ignore[attr-defined]
        found[f"{name} build"] = time.process_time() - began
        began = time.process_time()
        results = [
            backend.run(each, part, schedule, record=NOTHING, sink=MemorySink()).messages
            for part in stimuli
        ]
        found[f"{name} run"] = time.process_time() - began
        found[f"{name} mb"] = peak() - start
        sums[name] = {key: np.concatenate([r[key] for r in results]) for key in results[0]}
        del results
    one, other = sums.values()
    found["same spikes"] = all(bool((one[key] == other[key]).all()) for key in one)
    found["ratio"] = found["expanded run"] / found["symbolic run"]
    return found


def million(neurons: int) -> dict[str, Any]:
    options = {"hidden_rate": RELU, "output_rate": LINEAR}
    plain = layered(64, (neurons,), 10, **options)  # type: ignore[arg-type]
    loop = Connection("hidden", "hidden", Sparse(100), symmetric=False)
    network = Network(plain.layers, (*plain.connections, loop))
    params = draw(network)
    params["hidden->hidden"] *= 0.5
    start, began = peak(), time.process_time()
    made = lower(network, params, dt=1e-3, coding=CODING, nudged=False)
    found: dict[str, Any] = {"lower": time.process_time() - began}
    del params
    began = time.process_time()
    made, _ = quantise(made, Rounding(8))
    found |= {"quantise": time.process_time() - began}
    found["synapses"] = sum(p.synapses.count for p in made.projections)
    found["estimate gb"] = emulator_memory(made) / 1e9
    began = time.process_time()
    rng = np.random.default_rng(1)
    current = {"hidden": rng.uniform(0, 0.5, (1, neurons))}
    result = load_backend("emulator").run(
        made,
        Stimulus(1, current, {}),
        free_only(steps=100, window=10),
        record=NOTHING,
        sink=MemorySink(),
    )
    found["tables and 100 steps"] = time.process_time() - began
    found["messages"] = int(result.messages["hidden"].sum())
    return found | {"gb": (peak() - start) / 1024}


def workers(samples: int) -> dict[str, Any]:
    """Wall-clock time of one and of two threads; says something only on a quiet machine."""
    data = ne.load_data("digits")
    model = ne.train("layered", data, hidden=(256,), epochs=1, seed=0)
    spiking = model.to_spiking(code="rate")
    x = np.tile(data.test.x, (samples // len(data.test.x) + 1, 1))[:samples]
    spiking.run(x[:10], steps=64)
    found: dict[str, Any] = {}
    drives = []
    for threads in (1, 2, 1, 2):
        began, used = time.perf_counter(), time.process_time()
        drives.append(spiking.run(x, steps=64, workers=threads).drive)
        wall, spent = time.perf_counter() - began, time.process_time() - used
        found.setdefault(f"{threads} threads", []).append([wall, spent, spent / wall])
    found["same"] = all(np.array_equal(drives[0], each) for each in drives)
    return found


def main() -> None:
    name, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
    if name == "convolution":
        print(json.dumps(convolution()))
    else:
        part = {"mnist": mnist, "million": million, "workers": workers}[name]
        default = {"mnist": 10_000, "million": 1_000_000, "workers": 20_000}[name]
        print(json.dumps(part(count or default)))


if __name__ == "__main__":
    main()
