"""Other renderings on Lava: all in one process for many samples, and Lava's own LIF neurons."""

from __future__ import annotations

from dataclasses import dataclass

from neuro_eqprop.backends.base import BackendError, Feature, Result, Support
from neuro_eqprop.backends.lava.job import Form, Job
from neuro_eqprop.backends.lava.simulator import SUPPORT, measure
from neuro_eqprop.schedules import Schedule
from neuro_eqprop.spiking.ir import Gain, Graded, SpikingNetwork, Stimulus
from neuro_eqprop.traces import Record, Sink

STOCK_SUPPORT = Support(
    {
        Feature.EXACT: "Lava's own LIF resets to zero, throws away what lies above its threshold, "
        "and does not fire at it; evaluate prints the error of its rates",
        Feature.GRADED: "Lava's own LIF sends binary spikes; use the backend lava",
        Feature.TANH: "Lava's own LIF sends binary spikes; use the backend lava",
        Feature.GATED_GAIN: "no gains are switched for Lava's own LIF; use the backend lava",
        Feature.FOLLOW: "Lava's own LIF follows no rate; use the reference or the emulator",
        Feature.FIXED_POINT: "Lava's own LIF is run in floating point; use the backend lava",
    }
)


@dataclass(frozen=True, slots=True)
class LavaFused:
    """The same step in one Lava process, `batch` samples side by side: for many samples."""

    deadline: float = 60.0
    batch: int = 256
    name: str = "lava-fused"
    support: Support = SUPPORT

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
        batch = max(1, min(self.batch, stimulus.samples))
        job = Job(network, stimulus, schedule, record, Form.FUSED, batch)
        return measure(job, sink, deadline=self.deadline).result


@dataclass(frozen=True, slots=True)
class LavaStock:
    """The process graph with Lava's own LIF: it resets to zero, and its rates are off by that."""

    deadline: float = 60.0
    name: str = "lava-stock"
    support: Support = STOCK_SUPPORT

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
        refuse(network, record)
        job = Job(network, stimulus, schedule, record, Form.STOCK)
        return measure(job, sink, deadline=self.deadline).result


def refuse(network: SpikingNetwork, record: Record) -> None:
    """What Lava's own LIF cannot do at all."""
    for population in network.populations:
        if isinstance(population.neuron, Graded):
            reason = STOCK_SUPPORT.reasons[Feature.GRADED]
            raise BackendError(f"lava-stock: population {population.name!r}: {reason}")
    if network.fixed is not None:
        raise BackendError(f"lava-stock: {STOCK_SUPPORT.reasons[Feature.FIXED_POINT]}")
    if any(projection.gain is Gain.BETA for projection in network.projections):
        raise BackendError(f"lava-stock: {STOCK_SUPPORT.reasons[Feature.GATED_GAIN]}")
    if any(variable == "voltage" for _, variable in record.signals):
        raise BackendError("lava-stock: its voltages are not recorded; record spikes or drive")
