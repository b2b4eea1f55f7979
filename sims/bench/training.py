"""Cost of one training batch by EqProp against backprop of the same shape and optimiser.

Both run in this process, in turns, on one thread; the figure is the ratio of process times.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch

from neuro_eqprop.activations import LINEAR, RELU
from neuro_eqprop.architectures import layered
from neuro_eqprop.learn.recipe import Lesson, Nudging, Recipe
from neuro_eqprop.learn.train import Snapshot, learn_batch, pupil
from neuro_eqprop.networks import initialise
from neuro_eqprop.ops.torch_ops import TorchOps

SIZES = (64, 128, 512)
ROUNDS, EACH = 15, 10


def eqprop(x: torch.Tensor, y: torch.Tensor) -> Callable[[], None]:
    """A step of EqProp: 6 free and 3 nudged sweeps, centered."""
    network = layered(784, (512,), 10, hidden_rate=RELU, output_rate=LINEAR)
    recipe = Recipe(1, len(x), "adam", 1e-3, Nudging.CENTERED, 0.25, 6, 3, 0)
    start = Snapshot(0, initialise(network, np.random.default_rng(0)))
    at, lesson = pupil(network, recipe, start, TorchOps()), Lesson(x, y, measured=False)

    def step() -> None:
        learn_batch(at, lesson, recipe)

    return step


def backprop(x: torch.Tensor, y: torch.Tensor) -> Callable[[], None]:
    """A step of backprop on the feed-forward network of the same shape."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(784, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)
    )
    stepper = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> None:
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
    rng = np.random.default_rng(0)
    print("batch  eqprop/backprop (median of process times, 784-512-10, Adam)")
    for size in SIZES:
        x = torch.tensor(rng.random((size, 784)) * (rng.random((size, 784)) < 0.2)).float()
        y = torch.eye(10)[rng.integers(0, 10, size)]
        ours, theirs = eqprop(x, y), backprop(x, y)
        for step in (ours, theirs):
            seconds(step)
        ratios = [seconds(ours) / seconds(theirs) for _ in range(ROUNDS)]
        print(f"{size:5d}  {np.median(ratios):.2f}  ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
