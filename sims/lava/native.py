"""Networks of Lava's own processes against the rates: writes docs/results/lava-native.md.

    python sims/lava/native.py DIGITS_RUN MNIST_RUN CONV_RUN

with the run folders of

    neuro-eqprop train --dataset digits --hidden 128 --epochs 10 --out DIGITS_RUN
    neuro-eqprop train --dataset mnist --hidden 256 --epochs 1 --out MNIST_RUN
    neuro-eqprop train --dataset mnist --model conv --epochs 1 --out CONV_RUN
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np

from neuro_eqprop import load_data, open_run

PAGE = Path(__file__).parents[2] / "docs" / "results" / "lava-native.md"
CASES = (
    ("digits 64-128-10", 0, "graded", None, 360),
    ("digits 64-128-10", 0, "graded", 8, 360),
    ("digits 64-128-10", 0, "rate", None, 60),
    ("digits 64-128-10", 0, "rate", 8, 60),
    ("MNIST 784-256-10", 1, "graded", None, 200),
    ("MNIST 784-256-10", 1, "graded", 8, 200),
    ("MNIST, convolutions", 2, "graded", None, 50),
)
HIDDEN = 20
"""Samples of the hidden rates, which the backend lava-stock records."""


class MemoryWatch:
    """Peak memory of this process and its children in kB: the sum of their proportional shares."""

    def __enter__(self) -> MemoryWatch:
        self.peak, self.done = 0, Event()
        self.thread = Thread(target=self.follow, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()

    def follow(self) -> None:
        """Look four times a second."""
        while not self.done.wait(0.25):
            self.peak = max(self.peak, sum(map(share, family(os.getpid()))))


def family(pid: int) -> Iterator[int]:
    """A process and its children, as Linux lists them."""
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue
        for child in children:
            yield from family(int(child))


def share(pid: int) -> int:
    """The proportional set size of a process in kB; shared pages count once over all processes."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("Pss:")))


def measure(path: str, code: str, bits: int | None, samples: int) -> dict[str, Any]:
    """Run one network in this process, as a user's script does."""
    from lava.magma.core.run_conditions import RunSteps
    from lava.proc.io.sink import RingBuffer as Sink
    from lava.proc.io.source import RingBuffer as Source

    run = open_run(path)
    # A copy: the data set itself is not part of the network's memory.
    x, spiking = (
        load_data(run.study.dataset).test.x[:samples].copy(),
        run.model.to_spiking(code=code, bits=bits),
    )
    rates, steps = run.model.equilibrium(x), spiking.coding.code.steps
    net = spiking.to_lava(neurons="stock", reset_interval=steps)
    source = Source(data=net.encode(x, steps))
    sink = Sink(shape=net.out.shape, buffer=samples * steps)
    source.s_out.connect(net.inp)
    net.out.connect(sink.a_in)
    with MemoryWatch() as memory:
        net.create_runtime(net.run_config())
        began = time.perf_counter()
        net.run(condition=RunSteps(samples * steps))
        seconds = time.perf_counter() - began
        messages = sink.data.get()
        net.stop()
    output = run.model.network.output.name
    found = net.rates(messages, steps)
    kinds = {row.kind: row.stock for row in net.processes()}
    result = {
        "agreement": float((net.decode(messages, steps) == rates.classes).mean()),
        "output": rmse(found, rates.state[output].reshape(samples, -1)),
        "ms": 1000 * seconds / (samples * steps),
        "megabytes": memory.peak / 1024,
        "kinds": sorted(kinds),
        "stock": all(kinds.values()),
    }
    few = min(HIDDEN, samples)
    recorded = spiking.run(x[:few], on="lava-stock").rates
    errors = [
        rmse(recorded[layer.name].reshape(few, -1), rates.state[layer.name][:few].reshape(few, -1))
        for layer in run.model.network.moving
        if layer.name != output
    ]
    return result | {"hidden": max(errors)}


def rmse(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    """Root of the mean squared difference."""
    return float(np.sqrt(np.mean((a - b) ** 2)))


def page(rows: list[str]) -> str:
    """The page."""
    return f"""# Networks of Lava's own processes, measured

How well networks of Lava's own processes (`to_lava(neurons="stock")`) agree with the equilibrium of
the rates, on the first test samples, with lava-nc 0.10.0 on a CPU. Written by
`python sims/lava/native.py`; its first lines list the trainings, which are short.
Errors of rates are root mean squares. Those of hidden layers (the largest
of all layers) are of the backend `lava-stock` and {HIDDEN} samples. Memory is the peak of all
processes together during the run (proportional set size, Python and its libraries included).

| network | code | bits | samples | agreement | RMSE output | hidden | ms a step | MB | processes |
|---|---|---|---|---|---|---|---|---|---|
{chr(10).join(rows)}
"""


def main(runs: list[str]) -> None:
    """Measure all cases, each in its own process."""
    rows = []
    for name, place, code, bits, samples in CASES:
        given = json.dumps([runs[place], code, bits, samples])
        done = subprocess.run(
            [sys.executable, "-W", "ignore", __file__, "--one", given],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(done.stderr)
        one = json.loads(done.stdout.splitlines()[-1])
        if not one["stock"]:
            raise SystemExit(f"{name}: a process is not Lava's own")
        rows.append(
            f"| {name} | {code} | {bits or 'float'} | {samples} | {100 * one['agreement']:.2f} % "
            f"| {one['output']:.4f} | {one['hidden']:.4f} | {one['ms']:.1f} "
            f"| {one['megabytes']:.0f} | {', '.join(one['kinds'])} |"
        )
        print(rows[-1], flush=True)
    PAGE.write_text(page(rows))


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        print(json.dumps(measure(*json.loads(sys.argv[2]))))
    else:
        main(sys.argv[1:])
