"""Learning-rate schedules: four built-in ones, or a torch scheduler.

The rates of all batches are computed before training starts, so a resumed run needs no scheduler
state.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from inspect import signature
from math import cos, pi
from typing import TYPE_CHECKING, Any

import numpy as np

from neuro_eqprop.common.arrays import Array, UnknownNameError
from neuro_eqprop.training.settings import OptionString, parse_option_string

if TYPE_CHECKING:
    from torch.optim.lr_scheduler import LRScheduler


class LRSchedule(Enum):
    """The built-in schedules."""

    COSINE = "cosine"
    LINEAR = "linear"
    STEPS = "steps"
    """Divided by ten after each third of the training."""
    CONSTANT = "constant"

    def factor(self, done: float) -> float:
        """The factor on the learning rate when a fraction `done` of the training is over."""
        if self is LRSchedule.COSINE:
            return 0.5 * (1 + cos(pi * done))
        if self is LRSchedule.LINEAR:
            return 1.0 - done
        return float(0.1 ** int(3 * done)) if self is LRSchedule.STEPS else 1.0


BUILT_IN = {schedule.value: schedule for schedule in LRSchedule}
EACH_BATCH = ("OneCycleLR", "CyclicLR")
"""Torch schedulers that are stepped after each batch; the others after each epoch."""
UNSUPPORTED = {
    "ReduceLROnPlateau": "needs a metric of each epoch",
    "LambdaLR": "needs a function",
    "MultiplicativeLR": "needs a function",
    "SequentialLR": "needs other schedulers",
    "ChainedScheduler": "needs other schedulers",
    "SWALR": "belongs to averaged weights",
}


@cache
def torch_schedulers() -> Mapping[str, type[LRScheduler]]:
    """The supported torch schedulers by name."""
    from torch.optim import lr_scheduler

    return {
        name: kind
        for name, kind in sorted(vars(lr_scheduler).items())
        if isinstance(kind, type)
        and issubclass(kind, lr_scheduler.LRScheduler)
        and not name.startswith(("_", "LRScheduler"))
        and name not in UNSUPPORTED
    }


def find_scheduler(parsed: OptionString) -> type[LRScheduler]:
    """The class of a torch scheduler; ValueError if it is not supported."""
    known = torch_schedulers()
    if parsed.name in UNSUPPORTED:
        raise ValueError(
            f"scheduler {parsed.name!r} {UNSUPPORTED[parsed.name]}, which is not available; use "
            f"one of {', '.join((*BUILT_IN, *known))}"
        )
    if parsed.name not in known:
        raise UnknownNameError("lr_schedule", parsed.name, (*BUILT_IN, *known))
    return known[parsed.name]


def learning_rates(text: str, rate: float, epochs: int, batches: int) -> Array:
    """The learning rate of each batch of a training that starts at `rate`.

    `batches` are those of an epoch. `text` names a schedule, with options if it is a torch
    scheduler, as in `StepLR(step_size=5)`.
    """
    total = epochs * batches
    if text in BUILT_IN:
        return np.array([rate * BUILT_IN[text].factor(k / total) for k in range(total)])
    return torch_schedule(parse_option_string(text), rate, epochs, batches)


def torch_schedule(parsed: OptionString, rate: float, epochs: int, batches: int) -> Array:
    """The learning rate of each batch, from a torch scheduler stepped with a dummy optimizer."""
    import torch

    total = epochs * batches
    kind: Any = find_scheduler(parsed)
    defaults = {
        **{"T_max": epochs, "T_0": epochs, "max_lr": rate, "base_lr": rate / 10},
        **({} if "epochs" in parsed.options else {"total_steps": total}),
    }
    accepted = signature(kind).parameters
    options = {name: value for name, value in defaults.items() if name in accepted} | parsed.options
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=rate, momentum=0.5)
    try:
        scheduler = kind(optimizer, **options)
        rates = []
        for _ in range(total if parsed.name in EACH_BATCH else epochs):
            rates.append(float(optimizer.param_groups[0]["lr"]))
            optimizer.step()
            scheduler.step()
    except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
        why = str(error).splitlines()[0]
        raise ValueError(f"scheduler {parsed.name!r} rejects its options: {why}") from error
    return np.repeat(rates, 1 if parsed.name in EACH_BATCH else batches)
