"""CPU time of the phases of one batch and their update: NumPy, torch, and autograd.

All three alternate in this process on one thread. NumPy and torch run the same code through
two implementations of `Ops`; the third (`sims.claims.experiments.autograd_eqprop`)
differentiates the energy by autograd in every step. `--write` puts the table into the docs.
"""

from __future__ import annotations

import sys

import numpy as np
import torch
from page import put

from neuro_eqprop.dynamics.schedules import three_phase
from neuro_eqprop.networks.activations import LINEAR, RELU
from neuro_eqprop.networks.architectures import layered
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.networks.ops.torch import TorchOps
from sims.claims.experiments.autograd_eqprop import prepare_autograd_step
from sims.claims.experiments.kernel import (
    interleaved_times,
    prepare_step,
    relative_difference,
)

SIZES = (64, 128, 512)
ROUNDS, EACH = 11, 3


def measure(batch: int) -> str:
    """A row of the table."""
    network = layered(784, (512,), 10, hidden_rate=RELU, output_rate=LINEAR)
    rng, schedule = np.random.default_rng(0), three_phase(beta=0.25, free=6, nudged=3)
    params = initialize(network, rng)
    x = rng.random((batch, 784)) * (rng.random((batch, 784)) < 0.2)
    y = np.eye(10)[rng.integers(0, 10, batch)]
    runs = {
        "numpy": prepare_step(NumpyOps(np.float32), network, params, x, y, schedule),
        "torch": prepare_step(TorchOps(), network, params, x, y, schedule),
        "autograd": prepare_autograd_step(network, params, x, y, schedule),
    }
    with torch.no_grad():
        difference = relative_difference(runs["numpy"](), runs["torch"]())
        found = interleaved_times(runs, rounds=ROUNDS, times=EACH)
    times = " | ".join(f"{1e3 * found[name]:.2f}" for name in runs)
    return (
        f"| {batch} | {times} | {found['numpy'] / found['torch']:.2f} | "
        f"{found['autograd'] / found['numpy']:.1f} | {found['autograd'] / found['torch']:.1f} | "
        f"{difference:.0e} |"
    )


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    for batch in SIZES:
        rows.append(measure(batch))
        print(rows[-1], flush=True)
    lines = [
        "784-512-10, ReLU, linear output, float32: one centered episode (6 free steps, 3 in each "
        "nudged phase) and its update, without the optimizer, which is the same for all. Median of "
        f"{ROUNDS} process times, measured alternately in one process, on one thread. Milliseconds "
        "depend on the machine and its load; compare the ratios. The autograd form differentiates "
        "the energy with torch's graph in each of the same number of steps. Difference: the "
        "largest one between NumPy's update and torch's, relative to the largest entry.",
        "",
        "| batch | NumPy, ms | torch, ms | autograd, ms | NumPy / torch | autograd / NumPy | "
        "autograd / torch | difference |",
        "|---|---|---|---|---|---|---|---|",
        *rows,
    ]
    if "--write" in sys.argv:
        put("kernel", lines)


if __name__ == "__main__":
    main()
