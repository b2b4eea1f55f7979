"""Peak memory of a training step, counted after every operation of torch.

EqProp against backpropagation through the same settling steps and through a perceptron; parameters
and data, which all of them share, are not counted. `--write` puts the table into the docs.
"""

from __future__ import annotations

import sys

import torch
from page import put
from torch import nn

from neuro_eqprop.dynamics.schedules import two_phase
from neuro_eqprop.networks.activations import LINEAR, RELU
from neuro_eqprop.networks.architectures import layered
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.fast.displacement import update_by_displacement
from neuro_eqprop.training.rules.base import Batch
from sims.claims.experiments.memory import (
    count_storages,
    growth,
    peaks,
    random_batch,
    saved_by_models,
)

WIDE = {"model": "looped", "width": 1024, "depth": 1, "batch": 1024}
NARROW = {"model": "looped", "width": 256, "depth": 1, "batch": 128}
LONG = (10, 100, 1000)


def two_hidden(width: int) -> tuple[int, int]:
    """Peak bytes of a batch of two hidden layers: by displacements, and by backprop."""
    network = layered(784, (width, width), 10, hidden_rate=RELU, output_rate=LINEAR, feedback=0.02)
    params, x, y = random_batch(network, 128, 0)
    schedule = two_phase(beta=0.02, free=2, nudged=1)
    with torch.no_grad(), count_storages() as ours:
        update_by_displacement(TorchOps(), network, params, Batch(x, y, measured=False), schedule)
    parts = [nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
    model = nn.Sequential(*parts, nn.Linear(width, 10))
    with count_storages() as theirs:
        (0.5 * ((model(x) - y) ** 2).sum()).backward()
    return ours.peak, theirs.peak


def main() -> None:
    torch.set_num_threads(1)
    saved = saved_by_models()
    print("saved for a backward pass by a training batch:", saved, flush=True)
    grown = growth(NARROW, LONG)
    result = ", ".join(f"{steps}: {size / 2**20:.2f}" for steps, size in grown.items())
    rise = grown[LONG[-1]] / grown[LONG[0]]
    print(f"looped 256, batch 128, MiB by free steps: {result}; ratio {rise:.3f}", flush=True)
    rows = []
    for steps in (10, 30, 60):
        found = peaks({**WIDE, "steps": steps}, 0)
        sizes = " | ".join(f"{found[k] / 2**20:.0f}" for k in ("eqprop", "bptt", "feedforward"))
        bptt, plain = (found["eqprop"] / found[k] for k in ("bptt", "feedforward"))
        rows.append(f"| {steps} | {sizes} | {bptt:.3f} | {plain:.2f} |")
        print(rows[-1], flush=True)
    deep = {hidden: two_hidden(hidden) for hidden in (512, 2048)}
    told_deep = "; ".join(
        f"{hidden} units: {ours / 2**20:.2f} MiB by EqProp, {theirs / 2**20:.2f} by backprop, "
        f"ratio {ours / theirs:.2f}"
        for hidden, (ours, theirs) in deep.items()
    )
    print(told_deep, flush=True)
    lines = [
        "Peak memory of all live tensors, counted after every torch operation, in one centered "
        "episode and its update, without parameters and data, which all methods share. "
        "Feed-forward is ordinary backprop through the network without its loop.",
        "",
        f"- Saved for a backward pass in a batch of training: {sum(saved.values())} bytes, "
        f"summed over {', '.join(saved)}.",
        f"- Looped network of 256 units, batch 128, MiB by free steps (half as many in each nudged "
        f"phase): {result}. From {LONG[0]} to {LONG[-1]} steps it grows {rise:.3f} times.",
        f"- Two hidden layers, batch 128, one nudged phase as a displacement, against backprop by "
        f"`nn.Sequential`: {told_deep}.",
        "- Looped network of 1024 units, batch 1024, MiB:",
        "",
        "| free steps | EqProp | BPTT through the same steps | feed-forward | EqProp / BPTT | "
        "EqProp / feed-forward |",
        "|---|---|---|---|---|---|",
        *rows,
    ]
    if "--write" in sys.argv:
        put("memory", lines)


if __name__ == "__main__":
    main()
