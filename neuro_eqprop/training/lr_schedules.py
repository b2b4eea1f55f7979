"""How the learning rate goes over a training: four courses of our own, or any scheduler of torch.

A course is worked out once, before the first batch, for every batch of the training: where a run is
resumed, nothing has to be remembered.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from inspect import signature
from math import cos, pi

import numpy as np
import torch
from torch.optim import lr_scheduler

from neuro_eqprop.arrays import Array, UnknownNameError
from neuro_eqprop.training.option_string import OptionString, called


class LRSchedule(Enum):
    """Courses of our own."""

    COSINE = "cosine"
    LINEAR = "linear"
    STEPS = "steps"
    """A tenth after each third."""
    CONSTANT = "constant"

    def part(self, done: float) -> float:
        """What is left of the learning rate when a part of the training is done."""
        if self is LRSchedule.COSINE:
            return 0.5 * (1 + cos(pi * done))
        if self is LRSchedule.LINEAR:
            return 1.0 - done
        return float(0.1 ** int(3 * done)) if self is LRSchedule.STEPS else 1.0


OWN = {fall.value: fall for fall in LRSchedule}
EACH_BATCH = ("OneCycleLR", "CyclicLR")
"""Schedulers that torch means to be stepped after each batch; the others after each epoch."""
NOT_FOR_THIS = {
    "ReduceLROnPlateau": "waits for a figure of each epoch",
    "LambdaLR": "needs a function",
    "MultiplicativeLR": "needs a function",
    "SequentialLR": "needs other schedulers",
    "ChainedScheduler": "needs other schedulers",
    "SWALR": "belongs to averaged weights",
}
SCHEDULERS = tuple(
    sorted(
        name
        for name, kind in vars(lr_scheduler).items()
        if isinstance(kind, type)
        and issubclass(kind, lr_scheduler.LRScheduler)
        and not name.startswith(("_", "LRScheduler"))
        and name not in NOT_FOR_THIS
    )
)


@dataclass(frozen=True, slots=True)
class TrainingLength:
    """How long a training is."""

    epochs: int
    batches: int
    """Of an epoch."""


def find_scheduler(asked: OptionString) -> type[lr_scheduler.LRScheduler]:
    """The class of a scheduler of torch."""
    if asked.name in NOT_FOR_THIS:
        raise ValueError(
            f"scheduler {asked.name!r} {NOT_FOR_THIS[asked.name]}, which a training has not; use "
            f"one of {', '.join((*OWN, *SCHEDULERS))}"
        )
    if asked.name not in SCHEDULERS:
        raise UnknownNameError("fall", asked.name, (*OWN, *SCHEDULERS))
    found: type[lr_scheduler.LRScheduler] = getattr(lr_scheduler, asked.name)
    return found


def learning_rates(text: str, rate: float, length: TrainingLength) -> Array:
    """The learning rate of each batch of a training that starts at `rate`."""
    total = length.epochs * length.batches
    if text in OWN:
        return np.array([rate * OWN[text].part(k / total) for k in range(total)])
    asked = called(text)
    find_scheduler(asked)
    return rehearsed(asked, rate, length)


def rehearsed(asked: OptionString, rate: float, length: TrainingLength) -> Array:
    """The course of a scheduler of torch, by stepping it with nothing to learn."""
    total = length.epochs * length.batches
    kind = getattr(lr_scheduler, asked.name)
    usual = {
        **{"T_max": length.epochs, "T_0": length.epochs, "max_lr": rate, "base_lr": rate / 10},
        **({} if "epochs" in asked.options else {"total_steps": total}),
    }
    takes = signature(kind).parameters
    options = {name: value for name, value in usual.items() if name in takes} | asked.options
    stepper = torch.optim.SGD([torch.zeros(1)], lr=rate, momentum=0.5)
    try:
        scheduler = kind(stepper, **options)
        rates = []
        for _ in range(total if asked.name in EACH_BATCH else length.epochs):
            rates.append(float(stepper.param_groups[0]["lr"]))
            stepper.step()
            scheduler.step()
    except (TypeError, ValueError, AttributeError) as error:
        why = str(error).splitlines()[0]
        raise ValueError(f"scheduler {asked.name!r} refuses its options: {why}") from error
    return np.repeat(rates, 1 if asked.name in EACH_BATCH else length.batches)
