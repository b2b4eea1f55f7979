"""A script of a user: a network of ours with a group and a monitor of their own, in one mode."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import brian2
import numpy as np

import neuro_eqprop as ne

mode, folder, steps = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
brian2.prefs.codegen.cpp.extra_compile_args_gcc = [
    *("-w", "-O1", "-ffast-math", "-fno-finite-math-only", "-std=c++11")
]
brian2.prefs.devices.cpp_standalone.extra_make_args_unix = ["-j1"]
if mode == "cpp_standalone":
    brian2.set_device(mode, directory=str(folder / "standalone"))
else:
    brian2.prefs.codegen.target = mode
    brian2.prefs.codegen.runtime.cython.cache_dir = str(folder / "cython")

model = ne.Model.load(folder / "model.safetensors")
network = model.to_spiking(code="graded").to_brian2(np.load(folder / "x.npy"))
hidden = network.groups["hidden"]

mine = brian2.NeuronGroup(1, "level : 1", clock=hidden.clock)
tap = brian2.Synapses(hidden, mine, on_pre="level_post += 1", clock=hidden.clock)
tap.connect()
levels = brian2.StateMonitor(mine, "level", record=True, clock=hidden.clock)
network.add(mine, tap, levels)
network.run(steps * network.step)

rasters: dict[str, Any] = {name: network.raster(name, steps) for name in network.groups}
np.savez(folder / "found.npz", mine=levels.level, **rasters)
