"""Data-parallel training: each process computes the update of its part of every batch.

With n_p samples in the part of process p, the update of the batch is the mean over its samples,

    dW = sum over p of n_p dW_p / sum over p of n_p

so one all-reduce of the updates is all that the processes exchange. Parameters, optimizer state
and spectral bounds stay equal on all of them, as each applies the same update. `torchrun` starts
the processes; a training without it is not affected.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import torch
import torch.distributed as dist

from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.protocol import Values
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.rules.base import Batch, BatchUpdate, TrainingError, Update
from neuro_eqprop.training.settings import RuleSettings

Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """The processes of a training; one alone needs no communication."""

    rank: int = 0
    size: int = 1

    @property
    def main(self) -> bool:
        """Whether this process writes files and reports progress."""
        return self.rank == 0

    def part(self, samples: int) -> slice:
        """The slice of a batch that this process computes.

        A batch with fewer samples than processes is computed by all of them, without exchange.
        """
        if not self.shares(samples):
            return slice(0, samples)
        ends = np.linspace(0, samples, self.size + 1).astype(int)
        return slice(int(ends[self.rank]), int(ends[self.rank + 1]))

    def shares(self, samples: int) -> bool:
        """Whether the processes share out a batch of this size."""
        return 1 < self.size <= samples


ALONE = ProcessGroup()


def started_by_torchrun() -> ProcessGroup:
    """Rank and number of processes that `torchrun` has set; `ALONE` without it."""
    return ProcessGroup(int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))


@contextmanager
def process_group(device: str) -> Iterator[ProcessGroup]:
    """The group of the processes that `torchrun` started; gloo on the CPU, nccl on GPUs."""
    group = started_by_torchrun()
    if group.size == 1:
        yield group
        return
    gpu = device.startswith("cuda")
    if gpu:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if gpu else "gloo")
    try:
        yield group
    finally:
        dist.destroy_process_group()


def from_main(value: Kind, group: ProcessGroup) -> Kind:
    """The value of the main process, broadcast to every process."""
    if group.size == 1:
        return value
    held = [value]
    dist.broadcast_object_list(held, src=0)
    return held[0]


def shared_rule(rule: Update, group: ProcessGroup) -> Update:
    """An update rule that computes this process's part of a batch, summed over the processes."""

    def update(
        ops: TorchOps,
        network: Network,
        params: Mapping[str, Values],
        batch: Batch,
        settings: RuleSettings,
    ) -> BatchUpdate:
        samples = len(batch.x)
        rows = group.part(samples)
        batch = replace(batch, x=batch.x[rows], target=batch.target[rows])
        try:
            own = rule(ops, network, params, batch, settings)
        except TrainingError:
            # The other processes wait in all-reduce: NaN lets all of them stop at the same batch.
            nan = {name: torch.full_like(value, torch.nan) for name, value in params.items()}
            own = BatchUpdate(nan, 0, float("nan"))
        return all_reduce(own, len(batch.x), samples, group)

    return update


def all_reduce(own: BatchUpdate, count: int, samples: int, group: ProcessGroup) -> BatchUpdate:
    """The update of the whole batch from that of `count` of its samples, by one all-reduce.

    All-reduce sums, and the residual is a maximum: each process writes its own to its own entry
    of a vector.
    """
    names, phases = sorted(own.gradients), sorted(own.steps or ())
    first = own.gradients[names[0]]
    residuals = first.new_zeros(group.size)
    residuals[group.rank] = own.residual
    scalars = [own.correct, count * own.loss, *(count * (own.steps or {})[p] for p in phases)]
    flat = torch.cat(
        [
            *((own.gradients[name] * (count / samples)).reshape(-1) for name in names),
            *(torch.as_tensor(each).to(first).reshape(1) for each in scalars),
            residuals,
        ]
    )
    dist.all_reduce(flat)
    gradients, begin = {}, 0
    for name in names:
        like = own.gradients[name]
        gradients[name] = flat[begin : begin + like.numel()].reshape(like.shape)
        begin += like.numel()
    summed = flat[begin:].clone()  # a view would keep all gradients in memory
    correct, loss, *steps = summed[: len(scalars)]
    return replace(
        own,
        gradients=gradients,
        correct=correct,
        loss=loss / samples,
        residual=summed[len(scalars) :].max(),
        steps={p: float(total) / samples for p, total in zip(phases, steps, strict=True)} or None,
    )
