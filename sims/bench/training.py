"""Cost of one training batch by EqProp against backprop of the same shape and optimiser.

Both run in this process, in turns, on one thread, through the same batches of MNIST; the figure is
the ratio of process times. The recipe is that of the row `one` of docs/models-numbers.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import cycle

import numpy as np
import torch

from neuro_eqprop.activations import LINEAR, RELU
from neuro_eqprop.architectures import layered
from neuro_eqprop.data import load, one_hot
from neuro_eqprop.learn.recipe import Lesson, Nudging, Recipe
from neuro_eqprop.learn.train import Snapshot, learn_batch, pupil
from neuro_eqprop.networks import initialise
from neuro_eqprop.ops.torch_ops import TorchOps

SIZES = (64, 128, 512)
ROUNDS, EACH, BATCHES = 25, 10, 100
Batches = list[tuple[torch.Tensor, torch.Tensor]]


def eqprop(batches: Batches) -> Callable[[], None]:
    """A step of EqProp: 4 free and 2 nudged sweeps, centered."""
    following, size = cycle(batches), len(batches[0][0])
    network = layered(784, (512,), 10, hidden_rate=RELU, output_rate=LINEAR)
    recipe = Recipe(1, size, "adam", 1e-3, Nudging.CENTERED, 0.25, 4, 2, 0)
    start = Snapshot(0, initialise(network, np.random.default_rng(0)))
    at = pupil(network, recipe, start, TorchOps())

    def step() -> None:
        learn_batch(at, Lesson(*next(following), measured=False), recipe)

    return step


def backprop(batches: Batches) -> Callable[[], None]:
    """A step of backprop on the feed-forward network of the same shape."""
    following = cycle(batches)
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)
    )
    stepper = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> None:
        x, y = next(following)
        stepper.zero_grad()
        loss = 0.5 * ((model(x) - y) ** 2).sum() / len(x)
        loss.backward()  # type: ignore[no-untyped-call]
        stepper.step()

    return step


def seconds(step: Callable[[], None]) -> float:
    began = time.process_time()
    for _ in range(EACH):
        step()
    return time.process_time() - began


def main() -> None:
    torch.set_num_threads(1)
    data = load("mnist").train
    x = torch.tensor(data.x, dtype=torch.float32)
    y = torch.tensor(one_hot(data.y, 10), dtype=torch.float32)
    print("batch  eqprop/backprop (median of process times, 784-512-10, Adam)")
    for size in SIZES:
        batches = list(zip(x.split(size)[:BATCHES], y.split(size)[:BATCHES], strict=True))
        ours, theirs = eqprop(batches), backprop(batches)
        for step in (ours, theirs):
            seconds(step)
        ratios = [seconds(ours) / seconds(theirs) for _ in range(ROUNDS)]
        print(f"{size:5d}  {np.median(ratios):.2f}  ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
