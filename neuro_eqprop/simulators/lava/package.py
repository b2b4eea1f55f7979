"""Export of a model as a Python package that needs only lava-nc.

    mynet/
      __init__.py      network(): the Lava process
      weights.npz      the arrays, and the description as JSON text
      processes/       only Lava processes
      numerics/        the neuron step in NumPy, only with neurons="exact"
      example/run.py   runs some samples and prints the predictions
      README.md        how to use it, and the agreement measured at export

The modules in processes/ and numerics/ are copies of modules of neuro_eqprop, with those that they
import, under new import paths.
Lava imports every module in the folder of a process, so the example has its own folder.
"""

from __future__ import annotations

import ast
import json
import keyword
import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_matrix, issparse

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.files.arrays import write_npz
from neuro_eqprop.files.subprocess import capture
from neuro_eqprop.files.write import write_text
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.lava.install import COMMAND, PUBLISHED
from neuro_eqprop.simulators.lava.native.plan import StockPlan
from neuro_eqprop.spiking.lowered import LoweredNetwork
from neuro_eqprop.spiking.serialize import describe, synapse_arrays

Arrays: TypeAlias = dict[str, Any]
ROOT = Path(__file__).parents[3]
"""The folder that holds neuro_eqprop."""
NATIVE = "neuro_eqprop.simulators.lava.native"
PROCESSES = {"stock": "stock.network", "exact": "exact.network"}
"""The process module of each kind of neurons."""
NEEDED = {"stock": (), "exact": ("neuro_eqprop.spiking.serialize",)}
"""Modules that a loader imports beside it."""
DEADLINE = 600.0
"""Time limit of the example, in seconds."""


def write_package(
    folder: Path,
    *,
    neurons: str,
    description: Mapping[str, Any],
    arrays: Mapping[str, Any],
    x: Array,
    steps: int,
) -> None:
    """Write the package into a new folder, whose name becomes the name of the package.

    Parameters
    ----------
    folder : Path
        The folder, which must not exist.
    neurons : str
        "exact" or "stock".
    description, arrays : mapping
        As `stock_description` or `exact_description` returns them.
    x : array (samples, features)
        Samples for the example.
    steps : int
        Steps of a sample.
    """
    name = folder.name
    modules = closure([f"{NATIVE}.{PROCESSES[neurons]}", *NEEDED[neurons]])
    for module in modules:
        place = folder.joinpath(*copied(module).split(".")).with_suffix(".py")
        for parent in (*place.relative_to(folder).parents,)[:-1]:
            write_text(folder / parent / "__init__.py", f'"""Modules of {name}."""\n')
        write_text(place, rewritten(file_of(module).read_text(encoding="utf-8"), name))
    write_text(folder / "__init__.py", LOADERS[neurons].format(name=name))
    write_text(folder / "example" / "run.py", EXAMPLE.format(name=name, steps=steps))
    write_npz(folder / "example" / "samples.npz", {"x": x})
    text = json.dumps({**description, "neurons": neurons, "steps": steps})
    write_npz(folder / "weights.npz", {"description": np.array(text), **arrays})


def file_of(module: str) -> Path:
    """The file of a module of neuro_eqprop; it does not exist if there is no such module."""
    return ROOT.joinpath(*module.split(".")).with_suffix(".py")


def closure(modules: Iterable[str]) -> list[str]:
    """The modules, and all of this package that they import when they are imported."""
    found, waiting = list[str](), list(modules)
    while waiting:
        module = waiting.pop()
        if module in found:
            continue
        found.append(module)
        for node in ast.parse(file_of(module).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("neuro_eqprop."):
                names = (f"{node.module}.{alias.name}" for alias in node.names)
                inner = [name for name in names if file_of(name).is_file()]
                waiting += inner or [str(node.module)]
    return found


def copied(module: str) -> str:
    """The place of a copied module in the package."""
    if module.startswith(f"{NATIVE}."):
        return f"processes{module.removeprefix(NATIVE)}"
    return f"numerics.{module.removeprefix('neuro_eqprop.')}"


def rewritten(text: str, name: str) -> str:
    """Source text whose imports name the modules copied into the package `name`."""
    return re.sub(
        r"(^\s*from |`)(neuro_eqprop\.[\w.]+)",
        lambda match: f"{match[1]}{name}.{copied(match[2])}",
        text,
        flags=re.MULTILINE,
    )


def stock_description(plan: StockPlan) -> tuple[dict[str, Any], Arrays]:
    """A plan of stock processes as JSON and arrays."""
    arrays: Arrays = {f"bias{k}": layer.bias for k, layer in enumerate(plan.layers)}
    for k, edge in enumerate(plan.edges):
        arrays |= matrix_arrays(f"weight{k}", edge.weight)
    bounds = [[limit(layer.low), limit(layer.high)] for layer in plan.layers]
    description = {
        "features": plan.features,
        "layers": [[layer.name, *pair] for layer, pair in zip(plan.layers, bounds, strict=True)],
        "edges": [[edge.source, edge.target] for edge in plan.edges],
        "output": plan.output,
        "graded": plan.graded,
        "bits": plan.bits,
        "threshold": plan.threshold,
        "input": plan.input,
        "largest_drive": plan.largest_drive,
    }
    return description, arrays


def limit(value: float) -> float | None:
    """A bound for JSON, with null for infinity."""
    return float(value) if np.isfinite(value) else None


def matrix_arrays(name: str, weight: Array | csr_matrix) -> Arrays:
    """A sparse or dense matrix as named arrays for a NumPy file."""
    if not issparse(weight):
        return {name: weight}
    found = csr_matrix(weight)
    shape = np.array(found.shape)
    return {
        f"{name}_data": found.data,
        f"{name}_indices": found.indices,
        f"{name}_indptr": found.indptr,
        f"{name}_shape": shape,
    }


def exact_description(spiking: LoweredNetwork, scale: float) -> tuple[dict[str, Any], Arrays]:
    """A spiking network, its input weights and the unit of its input as JSON and arrays."""
    network, feeds = spiking.network, spiking.input_weights
    arrays: Arrays = {f"bias{k}": p.bias for k, p in enumerate(network.populations)}
    for k, p in enumerate(network.projections):
        arrays |= synapse_arrays(p.synapses, f"weight{k}")
    arrays |= {f"feed{k}": weight for k, weight in enumerate(feeds.values())}
    description = {
        "network": describe(network),
        "feeds": list(feeds),
        "grid": spiking.coding.grid,
        "inp_scale": scale,
        "tail": spiking.coding.tail,
    }
    return description, arrays


def check_name(folder: Path) -> None:
    """Raise BackendError if the name of the folder is not a valid package name."""
    name = folder.name
    if not name.isidentifier() or keyword.iskeyword(name):
        raise BackendError(
            f"{name!r} is not a valid name for a Python package; use only letters, "
            "digits and _ in the name of the folder"
        )


def run_example(folder: Path, interpreter: str) -> tuple[Ints, str]:
    """Predictions and process table of the example, in an isolated interpreter with a deadline."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    try:
        done = capture(
            [interpreter, "-I", "-B", str(folder.absolute() / "example" / "run.py"), "--json"],
            deadline=DEADLINE,
            environment=environment,
        )
    except TimeoutError as error:
        raise BackendError(f"the example of {folder.name} took over {DEADLINE:.0f} s") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise BackendError(f"the example of {folder.name} failed: {last}")
    printed = json.loads(done.stdout.splitlines()[-1])
    return np.asarray(printed["predictions"], dtype=np.int64), str(printed["table"])


def readme(name: str, neurons: str, agreement: float, samples: int, table: str) -> str:
    """The README of a package."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return README.format(
        name=name,
        neurons=neurons,
        agreement=f"{100 * agreement:.2f}",
        samples=samples,
        table=table,
        version=version,
        command=COMMAND,
        lava=PUBLISHED,
    )


STOCK_LOADER = '''"""{name}: an equilibrium network of stock Lava processes."""

import json
from math import inf
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from {name}.processes.plan import StockEdge, StockLayer, StockPlan
from {name}.processes.stock.network import StockNetwork

WEIGHTS = Path(__file__).with_name("weights.npz")


def network(reset_interval: int | None = None, name: str | None = None) -> StockNetwork:
    """The Lava process, with ports `inp`, `out` and `s_<layer>`."""
    with np.load(WEIGHTS, allow_pickle=False) as file:
        arrays = {{key: file[key] for key in file.files}}
    facts = json.loads(str(arrays["description"]))
    layers = tuple(
        StockLayer(label, arrays[f"bias{{k}}"], bound(low, -inf), bound(high, inf))
        for k, (label, low, high) in enumerate(facts["layers"])
    )
    edges = tuple(
        StockEdge(source, target, matrix(arrays, f"weight{{k}}"))
        for k, (source, target) in enumerate(facts["edges"])
    )
    plan = StockPlan(
        facts["features"],
        layers,
        edges,
        facts["output"],
        facts["graded"],
        facts["bits"],
        reset_interval,
        facts["threshold"],
        facts["input"],
        facts["largest_drive"],
    )
    return StockNetwork(plan, name)


def bound(value: float | None, infinite: float) -> float:
    """A bound of an activation; JSON has null for an infinite one."""
    return infinite if value is None else value


def matrix(arrays: dict[str, np.ndarray], name: str) -> np.ndarray | csr_matrix:
    """A dense or sparse matrix."""
    if name in arrays:
        return arrays[name]
    parts = tuple(arrays[f"{{name}}_{{part}}"] for part in ("data", "indices", "indptr"))
    return csr_matrix(parts, shape=tuple(arrays[f"{{name}}_shape"]))
'''
EXACT_LOADER = '''"""{name}: an equilibrium network of Lava processes, exact to the message."""

import json
from pathlib import Path

import numpy as np

from {name}.numerics.spiking.serialize import read_synapses, rebuild
from {name}.processes.exact.network import ExactNetwork, ExactPlan, InputPort

WEIGHTS = Path(__file__).with_name("weights.npz")


def network(reset_interval: int | None = None, name: str | None = None) -> ExactNetwork:
    """The Lava process, with ports `inp`, `out` and `s_<layer>`."""
    with np.load(WEIGHTS, allow_pickle=False) as file:
        arrays = {{key: file[key] for key in file.files}}
    facts = json.loads(str(arrays["description"]))
    described = facts["network"]
    biases = [arrays[f"bias{{k}}"] for k in range(len(described["populations"]))]
    synapses = [
        read_synapses(each, arrays, f"weight{{k}}")
        for k, each in enumerate(described["projections"])
    ]
    feeds = {{target: arrays[f"feed{{k}}"] for k, target in enumerate(facts["feeds"])}}
    spiking = rebuild(described, biases, synapses)
    port = InputPort(facts["inp_scale"])
    plan = ExactPlan(spiking, feeds, facts["grid"], reset_interval, port, facts["tail"])
    return ExactNetwork(plan, name)
'''
LOADERS = {"stock": STOCK_LOADER, "exact": EXACT_LOADER}
EXAMPLE = '''"""Run samples through the network: RingBuffer -> network -> RingBuffer."""

import json
import sys
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parents[1]))

from lava.magma.core.run_conditions import RunSteps
from lava.magma.core.run_configs import Loihi2SimCfg
from lava.proc.io.sink import RingBuffer as Sink
from lava.proc.io.source import RingBuffer as Source

from {name} import network

STEPS = {steps}


def main() -> None:
    x = np.load(FOLDER / "samples.npz", allow_pickle=False)["x"]
    net = network(reset_interval=STEPS)
    source = Source(data=net.encode(x, STEPS))
    sink = Sink(shape=net.out.shape, buffer=len(x) * STEPS)
    source.s_out.connect(net.inp)
    net.out.connect(sink.a_in)
    net.run(condition=RunSteps(len(x) * STEPS), run_cfg=Loihi2SimCfg(select_tag=net.tag))
    predictions = net.decode(sink.data.get(), STEPS)
    net.stop()
    if "--json" in sys.argv:
        print(json.dumps({{"predictions": predictions.tolist(), "table": str(net)}}))
    else:
        print(net)
        print("predicted classes:", *predictions)


if __name__ == "__main__":
    main()
'''
README = """# {name}

An equilibrium network for Lava, exported by neuro_eqprop with neurons="{neurons}". It needs
lava-nc {lava} and nothing else; it was tried on Python {version}. Python 3.10 takes Lava from the
package index (`pip install lava-nc=={lava}`). On Python 3.11 to 3.13 pip refuses it, and
`{command}` of neuro_eqprop installs it.

    python {name}/example/run.py

```python
from {name} import network

net = network(reset_interval=32)   # ports net.inp, net.out, net.s_<layer>
source.s_out.connect(net.inp)      # a RingBuffer with net.encode(x, 32)
net.out.connect(sink.a_in)         # net.decode(messages, 32) gives the classes
net.run(condition=RunSteps(n), run_cfg=Loihi2SimCfg(select_tag=net.tag))
```

Agreement measured at export: {agreement} % of {samples} samples have the class of the rate network.

```
{table}
```
"""
