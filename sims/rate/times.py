"""Process time of a training batch by EqProp against backprop by `nn.Sequential`, in turns."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from models_rows import ROWS
from torch import nn

from neuro_eqprop.data import Dataset, load, one_hot
from neuro_eqprop.learn.recipe import Lesson
from neuro_eqprop.learn.train import learn_batch, pupil
from neuro_eqprop.ops.torch_ops import TorchOps
from neuro_eqprop.study.settings import Study
from neuro_eqprop.study.training import fresh

ROUNDS, EACH = 9, 3
TIMED = ("one", "two", "three", "conv")


def sequential(study: Study) -> nn.Sequential:
    """The feed-forward network of the same shape."""
    torch.manual_seed(0)
    parts: list[nn.Module] = []
    if study.model == "conv":
        before, side = 1, 28
        for count in study.hidden:
            parts += [nn.Conv2d(before, count, study.kernel), nn.ReLU(), nn.AvgPool2d(2)]
            before, side = count, (side - study.kernel + 1) // 2
        return nn.Sequential(*parts, nn.Flatten(), nn.Linear(before * side * side, 10))
    sizes = (784, *study.hidden)
    for before, after in pairwise(sizes):
        parts += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*parts, nn.Linear(sizes[-1], 10))


def backprop(study: Study, x: torch.Tensor, y: torch.Tensor) -> Callable[[], None]:
    """A step of backprop."""
    model = sequential(study)
    given = x.reshape(-1, 1, 28, 28) if study.model == "conv" else x
    stepper = torch.optim.Adam(model.parameters(), lr=study.learning_rate)

    def step() -> None:
        stepper.zero_grad()
        loss = 0.5 * ((model(given) - y) ** 2).sum() / len(x)
        loss.backward()  # type: ignore[no-untyped-call]
        stepper.step()

    return step


def eqprop(study: Study, data: Dataset, x: torch.Tensor, y: torch.Tensor) -> Callable[[], None]:
    """A step of EqProp."""
    network, recipe = study.network(data), study.recipe()
    at, lesson = pupil(network, recipe, fresh(study, network), TorchOps()), Lesson(x, y, False)

    def step() -> None:
        learn_batch(at, lesson, recipe)

    return step


def seconds(step: Callable[[], None]) -> float:
    began = time.process_time()
    for _ in range(EACH):
        step()
    return (time.process_time() - began) / EACH


def ratios(study_of: Callable[[str, int], Study]) -> dict[str, Any]:
    """For each timed row the milliseconds of both and the median of their ratios."""
    data, found = load("mnist"), {}
    for name in TIMED:
        study = study_of(ROWS[name].options, 0)
        x = torch.tensor(data.train.x[: study.batch], dtype=torch.float32)
        y = torch.tensor(one_hot(data.train.y[: study.batch], 10), dtype=torch.float32)
        ours, theirs = eqprop(study, data, x, y), backprop(study, x, y)
        for step in (ours, theirs):
            seconds(step)
        pairs = np.array([(seconds(ours), seconds(theirs)) for _ in range(ROUNDS)])
        each = pairs[:, 0] / pairs[:, 1]
        found[name] = {
            "batch": study.batch,
            "eqprop_ms": 1e3 * float(np.median(pairs[:, 0])),
            "backprop_ms": 1e3 * float(np.median(pairs[:, 1])),
            "ratio": float(np.median(each)),
            "least": float(each.min()),
            "most": float(each.max()),
        }
        print(name, found[name], flush=True)
    return found
