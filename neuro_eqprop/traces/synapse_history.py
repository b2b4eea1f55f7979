"""Virtual updates: the weight updates the rule would make, from recorded activity.

Weights stay fixed. r of a unit at a step is its rate as if the phase had ended there; product and
tag are those of `neuro_eqprop.simulators.synapse_recording`. The final tag is the virtual update.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neuro_eqprop.common.arrays import Array, UnknownNameError
from neuro_eqprop.dynamics.schedules import Schedule, contrast
from neuro_eqprop.simulators.recordings import (
    Recording,
    RecordingPlan,
    Sink,
    TraceData,
    running_rate,
)
from neuro_eqprop.simulators.synapse_recording import Synapse, SynapseLog
from neuro_eqprop.spiking.activity import ActivityKind


def activity(
    course: Array, kind: ActivityKind, schedule: Schedule, steps_per_spike: float = 1.0
) -> Array:
    """r at each step (samples, steps, units), from the time course of rates or spikes.

    A unit of rate one fires once in `steps_per_spike` recorded steps.
    """
    least, scale = round(steps_per_spike), steps_per_spike if kind.binary else 1.0
    stops = np.cumsum([phase.steps for phase in schedule])[:-1]
    phases = zip(np.split(course, stops, axis=1), schedule, strict=True)
    return np.concatenate(
        [scale * running_rate(part, kind, phase.window, least) for part, phase in phases], axis=1
    )


def factor_of_steps(schedule: Schedule) -> Array:
    """f of every step in the unit of trace files: c / window inside the windows, else 0.

    c is the contrast of the phase; without nudged phases f is 0.
    """
    c = contrast(schedule) if len({phase.beta for phase in schedule}) > 1 else {}
    return np.concatenate(
        [
            np.r_[np.zeros(p.steps - p.window), np.full(p.window, c.get(p.name, 0.0) / p.window)]
            for p in schedule
        ]
    )


def tags(product: Array, schedule: Schedule) -> Array:
    """m(t) = sum over v <= t of f(v) product(v), at each step (samples, steps, synapses)."""
    return np.asarray(np.cumsum(factor_of_steps(schedule)[:, None] * product, axis=1))


def synapse_logs(
    pre: Array, post: Array, *, synapses: Sequence[Synapse], weight: Array, schedule: Schedule
) -> list[SynapseLog]:
    """One log per sample, from r of all source units and of all target units."""
    target, source = np.array(synapses).T
    r_pre, r_post = pre[:, :, source], post[:, :, target]
    product = r_pre * r_post
    tag = tags(product, schedule)
    held = np.broadcast_to(weight[target, source], product.shape[1:])
    samples = zip(r_pre, r_post, product, tag, strict=True)
    return [SynapseLog(tuple(synapses), *each, held) for each in samples]


def synapse_logs_of_trace(
    trace: TraceData, connection: str, synapses: Sequence[Synapse]
) -> list[SynapseLog]:
    """Logs per sample of any synapses of a connection whose weights are in the trace."""
    source, target = connection.split("->")
    if connection not in trace.weights:
        raise UnknownNameError("connection with weights", connection, trace.weights)
    return synapse_logs(
        activity_of(trace, source),
        activity_of(trace, target),
        synapses=synapses,
        weight=trace.weights[connection].before,
        schedule=trace.schedule,
    )


def activity_of(trace: TraceData, population: str) -> Array:
    """r of a population, or the constant input (samples, steps, units)."""
    if population not in trace.kinds:
        return np.repeat(trace.inputs[:, None], trace.steps, axis=1)
    course, kind = trace.time_course(population), trace.kinds[population]
    return activity(course, kind, trace.schedule, trace.origin.steps_per_spike)


@dataclass(frozen=True, slots=True)
class SynapseRecorder:
    """A sink that adds synapse histories to the recordings of a simulator."""

    sink: Sink
    plan: RecordingPlan
    weights: Mapping[str, Array] | None = None
    """Current weights, if they differ from those of the plan."""

    def sample(self, index: int, recording: Recording) -> None:
        """Add the missing synapse histories, and pass the recording to the sink."""
        added = {
            name: self._log(name, index, recording)
            for name in self.plan.record.hebbian
            if name not in recording.hebbian
        }
        self.sink.sample(index, replace(recording, hebbian={**recording.hebbian, **added}))

    def _log(self, name: str, index: int, recording: Recording) -> SynapseLog:
        source, target = name.split("->")
        (log,) = synapse_logs(
            self._activity(source, index, recording),
            self._activity(target, index, recording),
            synapses=self.plan.record.hebbian[name],
            weight=(self.weights or self.plan.weights)[name],
            schedule=self.plan.schedule,
        )
        return log

    def _activity(self, population: str, index: int, recording: Recording) -> Array:
        kind = self.plan.kinds.get(population)
        if kind is None:
            return np.repeat(self.plan.inputs[None, index : index + 1], self.plan.steps, axis=1)
        if not kind.spikes:
            course = recording.signals[population, "rate"]
        else:
            sent = recording.spikes[population]
            course = kind.course(sent)
        per_spike = self.plan.origin.steps_per_spike
        return activity(course[None], kind, self.plan.schedule, per_spike)
