"""Cost of one training batch by EqProp against backprop of the same shape and optimiser.

Both run in this process, in turns, on one thread, through the same batches; the figure is the
median ratio of process times. Recipes are those of the rows of
docs/results/models-numbers.md, backprop is `nn.Sequential` below.
`--write` puts the table into the docs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from itertools import cycle, pairwise
from pathlib import Path

import numpy as np
import torch
from page import put
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1] / "rate"))
from models import study
from models_rows import ROWS

from neuro_eqprop.data import Dataset, load, one_hot
from neuro_eqprop.experiments.config import Study
from neuro_eqprop.experiments.train import initial_snapshot
from neuro_eqprop.ops.torch import TorchOps
from neuro_eqprop.training.batch import Batch
from neuro_eqprop.training.train import BOUND_EVERY, start_state, train_batch

ROUNDS, SECONDS = 25, 0.04
"""Turns, and about how long backprop is at it in each."""
TIMED = {
    "one": ((64, 1.0), (128, 1.2), (512, 1.3)),
    "two": ((128, None),),
    "three": ((128, None),),
    "conv": ((64, 3.0),),
    "conv-fashion": ((64, 3.0),),
}
"""Batches of each row, with the ratio to reach if there is one."""
BATCHES = 100
"""Of the data, gone through again and again."""
HEAD = [
    "Process time of a batch by EqProp (settling, rule and Adam) over that by backprop with",
    "`nn.Sequential` and the same Adam, measured alternately on one thread: the median of the",
    f"ratios of {ROUNDS} rounds, and their interquartile range.",
    "",
    "| network | batch | EqProp ms | backprop ms | ratio | interquartile range | goal |",
    "|---|---|---|---|---|---|---|",
]
Batches = list[tuple[torch.Tensor, torch.Tensor]]
Step = Callable[[], None]


def eqprop(wanted: Study, data: Dataset, batches: Batches) -> Step:
    """A step of EqProp."""
    network, config, following = wanted.network(data), wanted.recipe(), cycle(batches)
    state = start_state(network, config, initial_snapshot(wanted, network), TorchOps())

    count = 0

    def step() -> None:
        nonlocal count
        batch = Batch(*next(following), measured=False)
        bounded = count % BOUND_EVERY == 0
        train_batch(state, batch, config, config.learning_rate, bounded=bounded)
        count += 1

    return step


def backprop(wanted: Study, batches: Batches) -> Step:
    """A step of backprop on the feed-forward network of the same shape."""
    model, following = sequential(wanted), cycle(batches)
    stepper = torch.optim.Adam(model.parameters(), lr=wanted.training.learning_rate)

    def step() -> None:
        x, y = next(following)
        stepper.zero_grad()
        loss = 0.5 * ((model(x) - y) ** 2).sum() / len(x)
        loss.backward()  # type: ignore[no-untyped-call]
        stepper.step()

    return step


def sequential(wanted: Study) -> nn.Sequential:
    """The feed-forward network."""
    torch.manual_seed(0)
    parts: list[nn.Module] = []
    if wanted.model.name == "conv":
        before, side = 1, 28
        parts.append(nn.Unflatten(1, (1, 28, 28)))
        for count in wanted.get("hidden"):
            parts += [nn.Conv2d(before, count, wanted.get("kernel")), nn.ReLU(), nn.AvgPool2d(2)]
            before, side = count, (side - wanted.get("kernel") + 1) // 2
        return nn.Sequential(*parts, nn.Flatten(), nn.Linear(before * side * side, 10))
    sizes = (784, *wanted.get("hidden"))
    for before, after in pairwise(sizes):
        parts += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*parts, nn.Linear(sizes[-1], 10))


def seconds(step: Step, times: int) -> float:
    """Process time of a step, the mean of some."""
    began = time.process_time()
    for _ in range(times):
        step()
    return (time.process_time() - began) / times


def measure(name: str, size: int, reach: float | None) -> str:
    """A row of the table."""
    wanted = study(ROWS[name].options, 0)
    data = load(wanted.dataset)
    some = data.train.take(slice(BATCHES * size))
    x = torch.tensor(some.x, dtype=torch.float32)
    y = torch.tensor(one_hot(some.y, 10), dtype=torch.float32)
    batches = list(zip(x.split(size), y.split(size), strict=True))
    ours, theirs = eqprop(wanted, data, batches), backprop(wanted, batches)
    seconds(ours, 3)  # compiles
    each = max(1, round(SECONDS / seconds(theirs, 10)))
    pairs = np.array([(seconds(ours, each), seconds(theirs, each)) for _ in range(ROUNDS)])
    low, middle, high = np.percentile(pairs[:, 0] / pairs[:, 1], (25, 50, 75))
    ms = 1e3 * np.median(pairs, axis=0)
    return (
        f"| {ROWS[name].title} | {size} | {ms[0]:.2f} | {ms[1]:.2f} | {middle:.2f} "
        f"| {low:.2f} to {high:.2f} | {reach or '-'} |"
    )


def main() -> None:
    torch.set_num_threads(1)
    lines = list(HEAD)
    print("\n".join(HEAD), flush=True)
    for name, sizes in TIMED.items():
        for size, reach in sizes:
            lines.append(measure(name, size, reach))
            print(lines[-1], flush=True)
    if "--write" in sys.argv[1:]:
        put("training", lines)


if __name__ == "__main__":
    main()
