"""The step of `neuro_eqprop.spiking.ir` in NumPy, the reference for all other backends."""

from __future__ import annotations

from dataclasses import dataclass, replace

from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.files.deadlines import check as check_deadline
from neuro_eqprop.simulators.base import Overflow, Result, Support
from neuro_eqprop.simulators.recordings import Record, Sink
from neuro_eqprop.simulators.reference import BACKEND
from neuro_eqprop.simulators.registry import check_run
from neuro_eqprop.simulators.step_recorder import RunRecorder
from neuro_eqprop.simulators.stepped_network import SteppedNetwork
from neuro_eqprop.spiking.ir import SpikingNetwork, Stimulus


@dataclass(frozen=True, slots=True)
class Reference:
    """Reference backend: all samples in parallel, in float64, or in int64 for fixed point."""

    name: str = BACKEND.name
    support: Support = BACKEND.support

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
        stepped = SteppedNetwork(network, stimulus)
        recorder = RunRecorder(network, schedule, record, stimulus.samples)
        for _ in recorder.steps:
            check_deadline()
            stepped.step(recorder.beta)
            recorder.add(stepped.last)
        for k, recording in enumerate(recorder.recordings()):
            sink.sample(k, recording)
        result = recorder.finish()
        if network.fixed is None:
            return result
        counts = {n: neurons.overflows.tolist() for n, neurons in stepped.neurons.items()}
        return replace(result, overflows={name: Overflow(*count) for name, count in counts.items()})
