"""Record the steps of a run, sum its windows, and divide its samples into parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from neuro_eqprop.common.arrays import Array, Bits
from neuro_eqprop.dynamics.schedules import Schedule, phase_steps
from neuro_eqprop.simulators.base import Result, check_record, concatenate, nothing, zeros
from neuro_eqprop.simulators.recordings import Record, Recording, Sink
from neuro_eqprop.spiking.ir import SpikingNetwork, Stimulus


class Step(NamedTuple):
    """What a population did in a step: arrays (samples, units)."""

    message: Array | Bits
    firing: Array
    """The value whose mean over a window is the rate."""
    values: Mapping[str, Array]
    """The drive, and the voltage or state."""


class RunRecorder:
    """Counts, window means and recordings of the samples of a run."""

    def __init__(
        self, network: SpikingNetwork, schedule: Schedule, record: Record, samples: int
    ) -> None:
        check_record(network, record)
        self.schedule, self.samples, self.done = schedule, samples, 0
        self.result = zeros(network, samples, len(schedule))
        self.steps = phase_steps(schedule)
        steps = len(self.steps)
        self.spikes = {n: np.zeros((samples, steps, network[n].size)) for n in record.spikes}
        self.signals = {
            key: np.zeros((samples, steps, network[key[0]].size)) for key in record.signals
        }

    @property
    def beta(self) -> float:
        """Beta in the next step."""
        return self.steps[self.done].beta

    def add(self, last: Callable[[str], Step]) -> None:
        """Add a step, of which `last` returns what a population did."""
        phase, _, in_window = self.steps[self.done]
        for name, messages in self.result.messages.items():
            step = last(name)
            messages[:, phase] += step.message != 0
            if in_window:
                self.result.firing[name][:, phase] += step.firing
                self.result.drive[name][:, phase] += step.values["drive"]
            if name in self.spikes:
                self.spikes[name][:, self.done] = step.message
            for key, course in self.signals.items():
                if key[0] == name:
                    course[:, self.done] = step.values[key[1]]
        self.done += 1

    def finish(self) -> Result:
        """The result, whose sums become means."""
        windows = np.array([[phase.window] for phase in self.schedule])
        for sums in (*self.result.firing.values(), *self.result.drive.values()):
            np.divide(sums, windows, out=sums)
        return self.result

    def recordings(self) -> Iterator[Recording]:
        """The recordings, sample by sample."""
        for k in range(self.samples):
            yield Recording(
                {name: array[k] for name, array in self.spikes.items()},
                {key: array[k] for key, array in self.signals.items()},
            )


def run_in_parts(
    run: Callable[[Stimulus, RunRecorder], None],
    network: SpikingNetwork,
    stimulus: Stimulus,
    schedule: Schedule,
    *,
    most: int,
    record: Record,
    sink: Sink,
) -> Result:
    """The result of all samples, at most `most` of them in a call of `run`.

    Recordings go to the sink after each part.
    """
    parts = []
    for start in range(0, stimulus.samples, most):
        part = stimulus.take(start, start + most)
        recorder = RunRecorder(network, schedule, record, part.samples)
        run(part, recorder)
        parts.append(recorder.finish())
        for k, recording in enumerate(recorder.recordings()):
            sink.sample(start + k, recording)
    return concatenate(parts) if parts else nothing(network, schedule)
