"""A backend: one that passes the work to the reference simulator."""

from __future__ import annotations

from dataclasses import dataclass

from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.simulators.base import EVERYTHING, BackendInfo, Result, Support
from neuro_eqprop.simulators.recordings import Record, Sink
from neuro_eqprop.simulators.reference.simulator import Reference
from neuro_eqprop.spiking.ir import SpikingNetwork, Stimulus


@dataclass(frozen=True)
class Tiny:
    name: str = "tiny"
    support: Support = EVERYTHING

    def run(
        self,
        network: SpikingNetwork,
        stimulus: Stimulus,
        schedule: Schedule,
        *,
        record: Record,
        sink: Sink,
    ) -> Result:
        return Reference().run(network, stimulus, schedule, record=record, sink=sink)


BACKEND = BackendInfo("tiny", "Tiny", "the reference again", "tiny_plugin.backend:Tiny", EVERYTHING)
