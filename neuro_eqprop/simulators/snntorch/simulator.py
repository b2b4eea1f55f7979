"""The step of `neuro_eqprop.spiking.ir` in snnTorch, in float64, with the samples as the batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.dynamics.schedules import Phase, Schedule
from neuro_eqprop.files.deadlines import check as check_deadline
from neuro_eqprop.simulators.base import BackendError, Result, Support, concatenate, nothing
from neuro_eqprop.simulators.recordings import Record, Recording, Sink
from neuro_eqprop.simulators.registry import check_run
from neuro_eqprop.simulators.snntorch import BACKEND
from neuro_eqprop.spiking.ir import SpikingNetwork, Stimulus

if TYPE_CHECKING:
    from neuro_eqprop.simulators.snntorch.modules import Net

BATCH = 1024


@dataclass(frozen=True, slots=True)
class SnnTorch:
    """snnTorch backend: samples as batches of a torch module, without gradients.

    Spiking populations are snnTorch's `Leaky`; graded ones, which snnTorch lacks, are a torch
    module of this package.
    """

    name: str = BACKEND.name
    support: Support = BACKEND.support
    batch: int = BATCH
    """Number of samples per batch."""

    def run(
        self,
        network: SpikingNetwork,
        stimulus: Stimulus,
        schedule: Schedule,
        *,
        record: Record,
        sink: Sink,
    ) -> Result:
        """Run all samples through the schedule."""
        check_run(self, network, stimulus)
        try:
            import snntorch  # noqa: F401
            import torch
        except ImportError as error:
            raise BackendError(
                f"snnTorch cannot be imported ({error}); install it with: pip install snntorch"
            ) from error
        from neuro_eqprop.simulators.snntorch.modules import Net

        parts: list[Result] = []
        for start in range(0, stimulus.samples, self.batch):
            part = stimulus.take(start, start + self.batch)
            log = Log.of(record)
            with torch.no_grad():
                net = Net(network, part)
                parts.append(stack([run_phase(net, phase, log) for phase in schedule]))
            for k, recording in enumerate(log.recordings(part.samples)):
                sink.sample(start + k, recording)
        return concatenate(parts) if parts else nothing(network, schedule)


@dataclass(frozen=True, slots=True)
class Log:
    """The recordings of a batch: an array (samples, units) for each step."""

    spikes: dict[str, list[Array]]
    signals: dict[tuple[str, str], list[Array]]

    @classmethod
    def of(cls, record: Record) -> Log:
        """An empty log for a record."""
        return cls({name: [] for name in record.spikes}, {key: [] for key in record.signals})

    def record_step(self, net: Net) -> None:
        """Record the last step of the net."""
        for name, steps in self.spikes.items():
            steps.append(net.populations[name].message.numpy())
        for (name, variable), steps in self.signals.items():
            steps.append(getattr(net.populations[name], variable).numpy())

    def recordings(self, samples: int) -> Iterator[Recording]:
        """The recordings, sample by sample."""
        for k in range(samples):
            yield Recording(
                {
                    name: np.stack([step[k] for step in steps])
                    for name, steps in self.spikes.items()
                },
                {key: np.stack([step[k] for step in steps]) for key, steps in self.signals.items()},
            )


def run_phase(net: Net, phase: Phase, log: Log) -> Result:
    """Run a phase; return its counts and means as arrays (samples, units)."""
    messages: dict[str, Ints] = {}
    firing: dict[str, Array] = {}
    drive: dict[str, Array] = {}
    for name, layer in net.populations.items():
        shape = tuple(layer.drive.shape)
        messages[name] = np.zeros(shape, dtype=np.int64)
        firing[name], drive[name] = np.zeros(shape), np.zeros(shape)
    for tick in range(phase.steps):
        check_deadline()
        net(phase.beta)
        log.record_step(net)
        for name, layer in net.populations.items():
            messages[name] += layer.message.numpy() != 0
            if tick >= phase.steps - phase.window:
                firing[name] += layer.held.numpy()
                drive[name] += layer.drive.numpy()
    for name in net.populations:
        firing[name] /= phase.window
        drive[name] /= phase.window
    return Result(messages, firing, drive)


def stack(phases: list[Result]) -> Result:
    """Phases stacked to arrays (samples, phases, units)."""
    names = phases[0].messages
    return Result(
        {name: np.stack([p.messages[name] for p in phases], axis=1) for name in names},
        {name: np.stack([p.firing[name] for p in phases], axis=1) for name in names},
        {name: np.stack([p.drive[name] for p in phases], axis=1) for name in names},
    )
