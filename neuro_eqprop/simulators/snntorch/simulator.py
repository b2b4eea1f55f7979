"""The step of `neuro_eqprop.spiking.ir` in snnTorch, in float64, with the samples as the batch."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.files.deadlines import check as check_deadline
from neuro_eqprop.files.read import one_line
from neuro_eqprop.simulators.base import BackendError, Result, Support
from neuro_eqprop.simulators.recordings import Record, Sink
from neuro_eqprop.simulators.registry import check_run
from neuro_eqprop.simulators.snntorch import BACKEND
from neuro_eqprop.simulators.snntorch.modules import Net
from neuro_eqprop.simulators.step_recorder import RunRecorder, run_in_parts
from neuro_eqprop.spiking.ir import SpikingNetwork, Stimulus

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
    device: str = "cpu"
    """Device of torch that holds weights, stimulus and states; results come from there."""

    def __post_init__(self) -> None:
        try:
            torch.empty(0, device=self.device)
        except (RuntimeError, AssertionError) as error:
            raise BackendError(f"torch has no device {self.device!r}: {one_line(error)}") from None

    def on_device(self, device: str) -> SnnTorch:
        """The same backend on that device of torch."""
        return replace(self, device=device)

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

        def run_part(part: Stimulus, recorder: RunRecorder) -> None:
            with torch.no_grad(), torch.device(self.device):
                net = Net(network, part)
                for _ in recorder.steps:
                    check_deadline()
                    net(recorder.beta)
                    recorder.add(net.last)

        return run_in_parts(
            run_part, network, stimulus, schedule, most=self.batch, record=record, sink=sink
        )
