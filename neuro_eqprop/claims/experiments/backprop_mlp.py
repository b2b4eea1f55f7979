"""The same shape trained by plain backpropagation, feed-forward, for comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import cos, pi
from typing import Any

import numpy as np
import torch
from torch import nn

from neuro_eqprop.data import Split, batches
from neuro_eqprop.networks import Cost

RATES = {"relu": nn.ReLU, "tanh": nn.Tanh, "hard_sigmoid": nn.ReLU}
"""What stands for an activation: backpropagation through a hard sigmoid would be held back."""


def twin(sizes: Sequence[int], activation: str, seed: int) -> nn.Sequential:
    """A multilayer perceptron; its weights are drawn as torch does, from the seed alone."""
    parts: list[nn.Module] = []
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for k, (inputs, outputs) in enumerate(pairwise(sizes)):
            parts += [RATES[activation]()] if k else []
            parts.append(nn.Linear(inputs, outputs))
    return nn.Sequential(*parts)


def learn(
    net: nn.Module,
    data: Split,
    *,
    epochs: int,
    batch: int,
    rate: float,
    seed: int,
    cost: str = "cross_entropy",
) -> Iterator[int]:
    """Adam, and a rate that falls along half a cosine; yields the epochs done.

    The cost is the cross-entropy or half the squared error, the mean over a batch of either.
    """
    stepper = torch.optim.Adam(net.parameters(), lr=rate)
    x, y = torch.tensor(data.x, dtype=torch.float32), torch.tensor(data.y)
    wanted = torch.eye(int(net(x[:1]).shape[1]))[y]
    per_epoch = -(-len(data) // batch)
    for epoch in range(epochs):
        for k, rows in enumerate(batches(data, batch, np.random.default_rng([seed, epoch]))):
            for group in stepper.param_groups:
                done = (epoch * per_epoch + k) / (epochs * per_epoch)
                group["lr"] = rate * 0.5 * (1 + cos(pi * done))
            chosen = torch.from_numpy(rows)
            stepper.zero_grad()
            answers = net(x[chosen])
            if Cost(cost) is Cost.CROSS_ENTROPY:
                loss: Any = nn.functional.cross_entropy(answers, y[chosen])
            else:
                loss = 0.5 * ((answers - wanted[chosen]) ** 2).sum(dim=1).mean()
            loss.backward()
            stepper.step()
        yield epoch + 1


@torch.no_grad()
def score(net: nn.Module, data: Split) -> float:
    """The share of samples answered right."""
    answers = net(torch.tensor(data.x, dtype=torch.float32)).argmax(dim=1)
    return float((answers == torch.tensor(data.y)).sum()) / len(data)
