"""Feed-forward networks trained by backpropagation, for comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from neuro_eqprop.data import Dataset, Split
from neuro_eqprop.networks.network import Cost
from neuro_eqprop.training.loop import plan_epoch, plan_rates
from neuro_eqprop.training.study import Study

ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "hard_sigmoid": nn.ReLU}
"""By activation of the EqProp network; ReLU replaces the hard sigmoid, which saturates."""


def perceptron(sizes: Sequence[int], activation: str, seed: int) -> nn.Sequential:
    """A multilayer perceptron with the default initialization of torch, for this seed."""
    parts: list[nn.Module] = []
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for k, (inputs, outputs) in enumerate(pairwise(sizes)):
            parts += [ACTIVATIONS[activation]()] if k else []
            parts.append(nn.Linear(inputs, outputs))
    return nn.Sequential(*parts)


def matching_perceptron(study: Study, data: Dataset) -> nn.Sequential:
    """A perceptron of the shape of the study's network; a loop becomes a second hidden layer."""
    hidden = study.get("hidden") * (2 if study.model.name == "looped" else 1)
    sizes = (data.features, *hidden, data.classes)
    return perceptron(sizes, study.get("activation"), study.seed)


def train_by_backprop(
    net: nn.Module, data: Split, study: Study, cost: Cost = Cost.CROSS_ENTROPY
) -> Iterator[int]:
    """Train with Adam on the batches and learning rates of `training.loop`; yield each epoch.

    The cost is the mean cross-entropy, or the mean of half the squared error.
    """
    optimizer = torch.optim.Adam(net.parameters(), lr=study.training.learning_rate)
    x, y = torch.tensor(data.x, dtype=torch.float32), torch.tensor(data.y)
    targets = torch.eye(int(net(x[:1]).shape[1]))[y]
    rates = plan_rates(data, study).reshape(study.training.epochs, -1)
    for epoch, its_rates in enumerate(rates):
        for plan, rate in zip(plan_epoch(data, study, epoch), its_rates, strict=True):
            for group in optimizer.param_groups:
                group["lr"] = rate
            rows = torch.from_numpy(plan.rows)
            optimizer.zero_grad()
            output = net(x[rows])
            if cost is Cost.CROSS_ENTROPY:
                loss: Any = nn.functional.cross_entropy(output, y[rows])
            else:
                loss = 0.5 * ((output - targets[rows]) ** 2).sum(dim=1).mean()
            loss.backward()
            optimizer.step()
        yield epoch + 1


@torch.no_grad()
def accuracy_of(net: nn.Module, data: Split) -> float:
    """Accuracy on a split."""
    predicted = net(torch.tensor(data.x, dtype=torch.float32)).argmax(dim=1)
    return float((predicted == torch.tensor(data.y)).sum()) / len(data)
