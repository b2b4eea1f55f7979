"""What synapses that nobody changed would have learned: told from what their two ends did.

r of a unit at a step is its rate, had the phase ended there; the tag is that of
`neuro_eqprop.synapse_recording`. The weight stays what it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neuro_eqprop.arrays import Array, UnknownNameError
from neuro_eqprop.schedules import Schedule, contrast
from neuro_eqprop.synapse_recording import Synapse, SynapseLog
from neuro_eqprop.traces import ActivityKind, Plan, Recording, Sink, TraceData, running_rate


def activity(course: Array, kind: ActivityKind, schedule: Schedule) -> Array:
    """r at each step (samples, steps, units), from the course of a rate or of spikes."""
    stops = np.cumsum([phase.steps for phase in schedule])[:-1]
    phases = zip(np.split(course, stops, axis=1), schedule, strict=True)
    return np.concatenate(
        [running_rate(part, kind, phase.window) for part, phase in phases], axis=1
    )


def tags(product: Array, schedule: Schedule) -> Array:
    """m at each step: the contrast gathered so far in the windows (samples, steps, synapses)."""
    part = contrast(schedule) if len({phase.beta for phase in schedule}) > 1 else {}
    share = np.concatenate(
        [
            np.r_[np.zeros(p.steps - p.window), np.full(p.window, part.get(p.name, 0.0) / p.window)]
            for p in schedule
        ]
    )
    return np.asarray(np.cumsum(share[:, None] * product, axis=1))


def synapse_logs(
    pre: Array, post: Array, *, synapses: Sequence[Synapse], weight: Array, schedule: Schedule
) -> list[SynapseLog]:
    """One for each sample, from r of all source units and of all target units."""
    target, source = np.array(synapses).T
    r_pre, r_post = pre[:, :, source], post[:, :, target]
    product = r_pre * r_post
    tag = tags(product, schedule)
    held = np.broadcast_to(weight[target, source], product.shape[1:])
    told = zip(r_pre, r_post, product, tag, strict=True)
    return [SynapseLog(tuple(synapses), *each, held) for each in told]


def synapse_logs_of_trace(
    trace: TraceData, connection: str, synapses: Sequence[Synapse]
) -> list[SynapseLog]:
    """The stories of any synapses of a recorded connection whose weights are in the trace."""
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
    """r of a population, or the input, which does not change (samples, steps, units)."""
    if population not in trace.kinds:
        return np.repeat(trace.inputs[:, None], trace.steps, axis=1)
    return activity(trace.time_course(population), trace.kinds[population], trace.schedule)


@dataclass(frozen=True, slots=True)
class SynapseRecorder:
    """A sink that adds the stories of watched synapses to what a simulator recorded."""

    sink: Sink
    plan: Plan
    weights: Mapping[str, Array] | None = None
    """Those of this moment, if they are no more those of the plan."""

    def sample(self, index: int, recording: Recording) -> None:
        """Hand the recording on, with its stories; those it brings are kept."""
        told = {
            name: self._story(name, index, recording)
            for name in self.plan.record.hebbian
            if name not in recording.hebbian
        }
        self.sink.sample(index, replace(recording, hebbian={**recording.hebbian, **told}))

    def _story(self, name: str, index: int, recording: Recording) -> SynapseLog:
        source, target = name.split("->")
        (told,) = synapse_logs(
            self._acted(source, index, recording),
            self._acted(target, index, recording),
            synapses=self.plan.record.hebbian[name],
            weight=(self.weights or self.plan.weights)[name],
            schedule=self.plan.schedule,
        )
        return told

    def _acted(self, population: str, index: int, recording: Recording) -> Array:
        kind = self.plan.kinds.get(population)
        if kind is None:
            return np.repeat(self.plan.inputs[None, index : index + 1], self.plan.steps, axis=1)
        if kind is ActivityKind.RATE:
            course = recording.signals[population, "rate"]
        else:
            sent = recording.spikes[population]
            course = sent if kind is ActivityKind.SPIKES else np.cumsum(sent, axis=0)
        return activity(course[None], kind, self.plan.schedule)
