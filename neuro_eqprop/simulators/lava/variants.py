"""Simulators on Lava with one process for the whole network, and with Lava's own neurons."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.simulators.base import BackendError, Result, Support
from neuro_eqprop.simulators.experiment import Experiment
from neuro_eqprop.simulators.lava import FUSED, STOCK
from neuro_eqprop.simulators.lava.export import stock_limit
from neuro_eqprop.simulators.lava.simulator import DEADLINE, FORMS, measure
from neuro_eqprop.simulators.recordings import Record, Sink
from neuro_eqprop.simulators.registry import check_run
from neuro_eqprop.spiking.fixed_point import weights
from neuro_eqprop.spiking.ir import Graded, Population, SpikingNetwork, Stimulus

LARGEST = 128
"""Largest magnitude of an 8-bit integer weight."""


@dataclass(frozen=True, slots=True)
class LavaFused:
    """The whole network in one Lava process, which steps `batch` samples in parallel."""

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
        experiment = Experiment(network, stimulus, schedule, record)
        options = {"batch": batch}
        run = measure(
            experiment, sink, deadline=self.deadline, form=f"{FORMS}.fused", options=options
        )
        return run.result


@dataclass(frozen=True, slots=True)
class LavaStock:
    """Only Lava's own processes; in fixed point, 8-bit weights with one scale per projection."""

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
        """Run all samples through the schedule."""
        check_run(self, network, stimulus)
        reason = stock_limit(replace(network, fixed=None)) or weight_limit(network)
        if reason is not None:
            raise BackendError(f"lava-stock cannot run this network: {reason}; use lava")
        if any(variable == "voltage" for _, variable in record.signals):
            raise BackendError("lava-stock does not record voltages; record spikes or drive")
        experiment = Experiment(network, stimulus, schedule, record)
        result = measure(experiment, sink, deadline=self.deadline, form=f"{FORMS}.stock").result
        neurons = {p.name: neurons_per_unit(p) for p in network.populations}
        return replace(result, copies=neurons, receivers=neurons)


def neurons_per_unit(population: Population) -> int:
    """Number of stock neurons per unit: two relu units make a clip."""
    neuron = population.neuron
    if not isinstance(neuron, Graded):
        return 1
    return max(
        1, int(np.isfinite(neuron.activation.low)) + int(np.isfinite(neuron.activation.high))
    )


def weight_limit(network: SpikingNetwork) -> str | None:
    """Why the integer weights do not fit 8 bits, or None."""
    if network.fixed is None:
        return None
    for projection in network.projections:
        whole = np.abs(weights(network, projection))
        divisor = np.maximum(np.gcd.reduce(whole, axis=1, keepdims=True), 1)
        if (whole // divisor).max(initial=0) > LARGEST:
            return f"weights of {projection.name!r} have more than 8 bits"
    return None
