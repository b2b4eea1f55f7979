"""Measure how cost grows with the size of a network, and shrinks with the number of workers.

    python sims/bench/scale.py [PART ...]

runs each part (default: all) in a process of its own, keeps its values in `measured/scale.json`
and writes docs/results/scale.md anew. Times are processor seconds of one thread, those of several
workers wall-clock seconds of turns that alternate: run these on a quiet machine. The rows of NEST
need the Python of an environment with NEST, in the environment variable NEST_PYTHON.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import scale_page

import neuro_eqprop as ne
from neuro_eqprop.dynamics.schedules import free_only
from neuro_eqprop.networks.activations import LINEAR, RELU
from neuro_eqprop.networks.architectures import convolutional, layered
from neuro_eqprop.networks.network import Connection, Network
from neuro_eqprop.networks.operators import Conv2d, Sparse
from neuro_eqprop.simulators.base import Result
from neuro_eqprop.simulators.emulator import kernels, packed  # noqa: F401 - before memory is read
from neuro_eqprop.simulators.emulator.memory import emulator_memory
from neuro_eqprop.simulators.recordings import NOTHING, MemorySink
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.spiking.codes import Coding, find_code
from neuro_eqprop.spiking.input_coding import encode_input, find_input_coding, with_input
from neuro_eqprop.spiking.ir import SpikingNetwork, Stimulus, expanded
from neuro_eqprop.spiking.lower import lower
from neuro_eqprop.spiking.quantize import quantise
from neuro_eqprop.spiking.rounding import Rounding

CODING, GRADED = Coding(find_code("graded")), find_input_coding("graded")
PART = 100
HERE = Path(__file__).parent
TURNS = 3
MNIST = "--dataset mnist --model conv --hidden 16,32 --activation relu --output linear --beta 0.25 "
MNIST += "--feedback 0.1 --bound 2.5 --epochs 1 --batch 64 --learning-rate 0.003 "
MNIST += "--set free_steps=3 --set nudged_steps=1"


def status(field: str) -> float:
    """A size in /proc/self/status, in MB."""
    text = Path("/proc/self/status").read_text()
    return int(re.findall(rf"{field}:\s+(\d+) kB", text)[0]) / 1024


def start_peak() -> float:
    """Memory in use, in MB, from which on the peak is measured."""
    Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")


def peak() -> float:
    """Peak memory in MB since `start_peak`."""
    return status("VmHWM")


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


def lowered(network: Network, params: Mapping[str, Any]) -> SpikingNetwork:
    made = lower(network, params, dt=1e-3, coding=CODING, nudged=False)
    return with_input(network, params, made, coding=CODING, entry=GRADED)


def convolution() -> dict[str, Any]:
    network = images((3, 32, 32), (32, 64, 128), Conv2d(5, padding=2))
    params, start = draw(network), start_peak()
    began = time.process_time()
    made, _ = quantise(lowered(network, params), Rounding(8))
    packed.tabulate(made)
    seconds = time.process_time() - began
    synapses = sum(p.synapses.count for p in made.projections)
    neurons = sum(p.size for p in made.populations)
    values = {"seconds": seconds, "mb": peak() - start, "neurons": neurons, "synapses": synapses}
    return values | {"weights": sum(p.synapses.parameters for p in made.projections)}


def mnist(samples: int = 10_000) -> dict[str, Any]:
    """A trained network on test images, symbolic and written out as matrices."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "neuro_eqprop", "train", *MNIST.split()]
        subprocess.run([*command, "--out", f"{folder}/run"], check=True, stdout=subprocess.DEVNULL)
        run = ne.open_run(f"{folder}/run")
        network, params = run.model.network, run.model.params
        test = run.data.test.take(slice(samples))
    schedule, made = free_only(steps=32, window=8), lowered(network, params)
    x = test.x.reshape(samples, -1)
    backends = {"symbolic": load_backend("emulator"), "expanded": load_backend("emulator")}
    found: dict[str, Any] = {"samples": samples, "same": True, "right": 0}
    networks: dict[str, SpikingNetwork] = {}

    def result(name: str, stop: int, start: int = 0) -> Result:
        stimulus = encode_input(
            network, params, x[start:stop], target=None, coding=CODING, entry=GRADED
        )
        began = time.process_time()
        run = backends[name].run(
            networks[name], stimulus, schedule, record=NOTHING, sink=MemorySink()
        )
        found[name] = found.get(name, 0.0) + time.process_time() - began
        return run

    networks["symbolic"] = made
    result("symbolic", 1)  # compiles
    backends["symbolic"] = load_backend("emulator")
    for name in networks | {"expanded": made}:
        start = start_peak()
        networks[name] = made if name == "symbolic" else expanded(made)
        result(name, PART)
        found[f"{name} mb"] = peak() - start
    found |= dict.fromkeys(networks, 0.0)
    for start in range(0, samples, PART):
        one, other = (result(name, start + PART, start) for name in networks)
        for key, sent in one.messages.items():
            found["same"] &= bool((sent == other.messages[key]).all())
        answer = one.drive[made.output][:, 0].argmax(axis=1)
        found["right"] += int((answer == test.y[start : start + PART]).sum())
    return found


def million(neurons: int = 1_000_000) -> dict[str, Any]:
    options = {"hidden_rate": RELU, "output_rate": LINEAR}
    plain = layered(64, (neurons,), 10, **options)  # type: ignore[arg-type]
    loop = Connection("hidden", "hidden", Sparse(100), symmetric=False)
    network = Network(plain.layers, (*plain.connections, loop))
    params = draw(network)
    params["hidden->hidden"] *= 0.5
    start, began = start_peak(), time.process_time()
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


def workers(on: str, samples: int, hidden: tuple[int, ...], steps: int) -> dict[str, Any]:
    """Wall-clock seconds of one and of two workers, turn by turn."""
    data = ne.load_data("digits")
    spiking = ne.train("layered", data, hidden=hidden, epochs=1, seed=0).to_spiking(code="rate")
    x = np.tile(data.test.x, (samples // len(data.test.x) + 1, 1))[:samples]
    spiking.run(x[:2], on=on, steps=2)
    found: dict[str, Any] = {"samples": samples, "hidden": hidden, "steps": steps, "turns": []}
    drives = set()
    for _ in range(TURNS):
        seconds = []
        for count in (1, 2):
            began = time.perf_counter()
            drive = spiking.run(x, on=on, steps=steps, workers=count).drive
            seconds.append(time.perf_counter() - began)
            drives.add(sha256(drive.tobytes()).hexdigest())
        found["turns"].append(seconds)
    return found | {"same": len(drives) == 1}


def recurrent() -> dict[str, Any]:
    """The network of `recurrent.py` on each simulator."""
    script, found = [str(HERE / "recurrent.py")], {}
    pythons = dict.fromkeys(("emulator", "brian2", "brian2-cpp"), sys.executable)
    if nest := os.environ.get("NEST_PYTHON"):
        pythons |= {"nest": nest, "nest-silent": nest}
    with TemporaryDirectory() as folder:
        subprocess.run([sys.executable, *script, "draw", "100000", "100", folder], check=True)
        for name, python in pythons.items():
            found[name] = last_json([python, *script, name, "1000", folder])
        once = last_json([sys.executable, *script, "brian2-cpp", "1", folder])
    found["brian2-cpp"]["seconds"] -= once["seconds"]
    return found


def training() -> dict[str, Any]:
    """Data-parallel training, by `distributed.py`."""
    done = subprocess.run(
        [sys.executable, str(HERE / "distributed.py"), "4"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {"turns": re.findall(r"one process ([\d.]+) s, two ([\d.]+) s", done.stdout)}


def startup() -> dict[str, Any]:
    """Processor seconds of `evaluate --samples 5`: with an empty cache, and a second time."""
    found: dict[str, Any] = {}
    program = [sys.executable, "-m", "neuro_eqprop"]
    with TemporaryDirectory() as folder:
        for model in ("layered", "conv"):
            options = ["train", "--model", model, "--hidden", "8", "--epochs", "1"]
            subprocess.run([*program, *options, "--out", f"{folder}/{model}"], check=True)
            for code in ("rate", "graded") if model == "layered" else ("graded",):
                command = ["evaluate", f"{folder}/{model}", "--on", "emulator", "--code", code]
                cache = {**os.environ, "NUMBA_CACHE_DIR": f"{folder}/{model}-{code}"}
                found[f"{model} {code}"] = [
                    child_seconds([*program, *command, "--samples", "5"], cache) for _ in range(2)
                ]
    return found


def child_seconds(command: list[str], environment: dict[str, str]) -> float:
    """Processor seconds of a command."""
    before = os.times()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    user = after.children_user - before.children_user
    return user + after.children_system - before.children_system


def last_json(command: list[str]) -> dict[str, Any]:
    """The JSON object in the last line that a command prints."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "convolution": convolution,
    "mnist": mnist,
    "recurrent": recurrent,
    "million": million,
    "training": training,
    "startup": startup,
    "emulator workers": partial(workers, "emulator", 720, (1024, 1024), 64),
    "brian2 workers": partial(workers, "brian2", 3600, (256,), 64),
    "lava workers": partial(workers, "lava", 900, (32,), 32),
}


def main(names: list[str]) -> None:
    for name in names or PARTS:
        print(f"{name} ...", flush=True)
        values = last_json([sys.executable, __file__, "--child", name])
        print(f"  {values}", flush=True)
        scale_page.keep(name, values)
    scale_page.write()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(PARTS[sys.argv[2]]()))
    else:
        main(sys.argv[1:])
