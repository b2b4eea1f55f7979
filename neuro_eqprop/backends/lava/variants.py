"""Other renderings on Lava: all in one process for many samples, and Lava's LIF neurons."""

from __future__ import annotations

from dataclasses import dataclass

from neuro_eqprop.backends.base import BackendError, Result, Support
from neuro_eqprop.backends.lava import FUSED, STOCK
from neuro_eqprop.backends.lava.job import Form, Job
from neuro_eqprop.backends.lava.simulator import DEADLINE, measure
from neuro_eqprop.backends.registry import check_run
from neuro_eqprop.schedules import Schedule
from neuro_eqprop.spiking.ir import SpikingNetwork, Stimulus
from neuro_eqprop.traces import Record, Sink


@dataclass(frozen=True, slots=True)
class LavaFused:
    """The same step in one Lava process, `batch` samples side by side: for many samples."""

    deadline: float = DEADLINE
    batch: int = 256
    name: str = FUSED.name
    support: Support = FUSED.support

    def __post_init__(self) -> None:
        if not self.deadline > 0 or self.batch < 1:
            given = f"{self.deadline} s and {self.batch} samples"
            raise ValueError(f"deadline and batch must be above zero, not {given}")

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
        batch = max(1, min(self.batch, stimulus.samples))
        job = Job(network, stimulus, schedule, record, Form.FUSED, batch)
        return measure(job, sink, deadline=self.deadline).result


@dataclass(frozen=True, slots=True)
class LavaStock:
    """The process graph with Lava's LIF: it resets to zero, and its rates are off by that."""

    deadline: float = DEADLINE
    name: str = STOCK.name
    support: Support = STOCK.support

    def run(
        self,
        network: SpikingNetwork,
        stimulus: Stimulus,
        schedule: Schedule,
        *,
        record: Record,
        sink: Sink,
    ) -> Result:
        """Run all samples through the schedule; thresholds and decays are kept, limits are not."""
        check_run(self, network, stimulus)
        if any(variable == "voltage" for _, variable in record.signals):
            raise BackendError("lava-stock: its voltages are not recorded; record spikes or drive")
        job = Job(network, stimulus, schedule, record, Form.STOCK)
        return measure(job, sink, deadline=self.deadline).result
