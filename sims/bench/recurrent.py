"""One random recurrent network on the emulator, Brian2 and NEST; a part of `scale.py`.

    python sims/bench/recurrent.py draw NEURONS FAN_IN FOLDER
    python sims/bench/recurrent.py emulator|brian2|brian2-cpp|nest|nest-silent STEPS FOLDER

Leaky neurons v = v 7/8 + bias + W s, a spike where v >= 1, then v = 0; a spike arrives after one
step. Each simulator is a process of its own and prints JSON: processor seconds of the run alone,
peak memory, and a hash of the spike counts of all neurons. Brian2 in C++ is one program that also
reads the network: take off the seconds of a run of one step. `nest-silent` has no spike recorder
and so no counts. NEST needs no more than its own wheel and NumPy: run that line with the Python of
an environment that has it.
"""

from __future__ import annotations

import hashlib
import json
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from math import log
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

KEEP = 0.875


def draw(neurons: int, fan_in: int, folder: Path) -> None:
    """Weights by row, four in five excitatory; biases around the threshold current of 1/8."""
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(0, neurons, (neurons, fan_in)), axis=1).astype(np.int32)
    for _ in range(20):  # draw again where a source repeats
        again = np.flatnonzero((np.diff(columns, axis=1) == 0).any(axis=1))
        columns[again] = np.sort(rng.integers(0, neurons, (len(again), fan_in)), axis=1)
    inhibitory = rng.random(neurons) < 0.2
    weights = np.where(inhibitory[columns], -80.0, 20.0) / 4096
    bias = np.rint(rng.uniform(0.1, 0.16, neurons) * 4096) / 4096
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "network.npz", columns=columns, weights=weights, bias=bias)


def load(folder: Path) -> tuple[Any, Any, Any]:
    with np.load(folder / "network.npz") as file:
        return file["columns"], file["weights"], file["bias"]


def emulator(folder: Path, steps: int) -> tuple[float, Any]:
    from neuro_eqprop.dynamics.schedules import free_only
    from neuro_eqprop.simulators.recordings import NOTHING, MemorySink
    from neuro_eqprop.simulators.registry import load_backend
    from neuro_eqprop.spiking.ir import (
        Population,
        Projection,
        Reset,
        Spiking,
        SpikingNetwork,
        Stimulus,
    )
    from neuro_eqprop.spiking.synapses import SparseSynapses

    columns, weights, bias = load(folder)
    neurons, fan_in = columns.shape
    indptr = np.arange(neurons + 1) * fan_in
    synapses = SparseSynapses((neurons, neurons), indptr, columns.ravel(), weights.ravel())
    neuron = Spiking(1.0, 1.0 - KEEP, 1.0, Reset.ZERO, floor=-np.inf, ceiling=np.inf)
    cells = Population("cells", neuron, bias - 0.0)
    network = SpikingNetwork(1e-3, (cells,), (Projection("cells", "cells", synapses),), "cells")
    backend, once = load_backend("emulator"), Stimulus(1, {}, {})

    def run(count: int) -> Any:  # noqa: ANN401
        return backend.run(
            network, once, free_only(steps=count, window=1), record=NOTHING, sink=MemorySink()
        )

    run(1)
    began = time.process_time()
    result = run(steps)
    return time.process_time() - began, result.messages["cells"][0, 0]


def brian2(folder: Path, steps: int, *, standalone: bool = False) -> tuple[float, Any]:
    import brian2 as b

    columns, weights, bias = load(folder)
    neurons, fan_in = columns.shape
    if standalone:
        b.set_device("cpp_standalone", build_on_run=False)
        b.prefs.devices.cpp_standalone.extra_make_args_unix = ["-j1"]
    else:
        b.prefs.codegen.target = "cython"
        b.prefs.codegen.runtime.cython.cache_dir = str(folder / "cython")
    b.defaultclock.dt = 1 * b.ms
    group = b.NeuronGroup(
        neurons, "v : 1\na : 1\nbias : 1 (constant)", threshold="v >= 1", reset="v = 0"
    )
    group.run_regularly(f"v = {KEEP} * v + (a + bias)\na = 0", when="groups")
    group.v, group.bias = 0.5, bias
    paths = b.Synapses(group, group, "w : 1 (constant)", on_pre="a_post += w")
    paths.connect(i=columns.ravel(), j=np.repeat(np.arange(neurons), fan_in))
    paths.w = weights.ravel()
    monitor = b.SpikeMonitor(group, record=False)
    network = b.Network(group, paths, monitor)
    if not standalone:
        network.run(1 * b.ms)
        before = np.array(monitor.count)
        began = time.process_time()
        network.run((steps - 1) * b.ms)
        del before
        return time.process_time() - began, np.array(monitor.count)
    network.run(steps * b.ms)
    project = folder / f"standalone{steps}"
    b.device.build(directory=str(project), compile=True, run=False, with_output=False)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    b.device.run(directory=str(project), with_output=False, run_args=[])
    spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    return spent, np.array(monitor.count)


def nest(folder: Path, steps: int, *, recorded: bool = True) -> tuple[float, Any]:
    import nest as n

    columns, weights, bias = load(folder)
    neurons, fan_in = columns.shape
    n.set_verbosity("M_ERROR")
    n.resolution = 1.0
    tau = -1.0 / log(KEEP)
    gain = tau * (1.0 - KEEP)  # mV per pA and step at a capacity of 1 pF
    cells = n.Create(
        "iaf_psc_delta",
        neurons,
        params={
            "C_m": 1.0,
            "tau_m": tau,
            "t_ref": 0.0,
            "E_L": 0.0,
            "V_reset": 0.0,
            "V_th": 1.0,
            "V_m": 0.5,
            "I_e": (bias / gain).tolist(),
        },
    )
    for start in range(0, neurons, 20_000):
        stop = min(start + 20_000, neurons)
        n.Connect(
            columns[start:stop].ravel().astype(np.int64) + 1,
            np.repeat(np.arange(start, stop), fan_in) + 1,
            conn_spec="one_to_one",
            syn_spec={
                "synapse_model": "static_synapse",
                "weight": weights[start:stop].ravel(),
                "delay": np.ones((stop - start) * fan_in),
            },
        )
    recorder = n.Create("spike_recorder")
    if recorded:
        n.Connect(cells, recorder)
    n.Prepare()
    n.Run(1.0)
    began = time.process_time()
    n.Run(float(steps - 1))
    spent = time.process_time() - began
    n.Run(1.0)  # spikes of the last step are recorded with the next
    n.Cleanup()
    events = recorder.get("events")
    inside = events["times"] <= steps + 0.5
    return spent, np.bincount(events["senders"][inside].astype(np.int64) - 1, minlength=neurons)


def main() -> None:
    if not sys.argv[1:]:  # a smaller one, as in `make bench`
        with TemporaryDirectory() as folder:
            draw(10_000, 100, Path(folder))
            for name in ("emulator", "brian2"):
                measure(name, 200, Path(folder))
        return
    name, *rest = sys.argv[1:]
    if name == "draw":
        draw(int(rest[0]), int(rest[1]), Path(rest[2]))
    else:
        measure(name, int(rest[0]), Path(rest[1]))


def measure(name: str, steps: int, folder: Path) -> None:
    """Run on a simulator and print what it took."""
    runs: dict[str, Callable[[Path, int], tuple[float, Any]]] = {
        "emulator": emulator,
        "brian2": brian2,
        "brian2-cpp": partial(brian2, standalone=True),
        "nest": nest,
        "nest-silent": partial(nest, recorded=False),
    }
    seconds, counts = runs[name](folder, steps)
    counts = np.asarray(counts, dtype=np.int64)
    np.save(folder / f"counts-{name}-{steps}.npy", counts)
    found = {
        "name": name,
        "steps": steps,
        "seconds": round(seconds, 3),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "spikes": int(counts.sum()),
        "counts": hashlib.sha256(counts.tobytes()).hexdigest()[:16],
    }
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
