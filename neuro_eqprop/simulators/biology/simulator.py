"""The spiking network in continuous time: the loop over samples, and the compiled backend.

A step of a schedule takes 1 / rmax seconds, the shortest interval between two spikes. The network's
own dt is not used. The results are compared with rates by statistics, never spike by spike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.schedules import Schedule, free_only, tail
from neuro_eqprop.files.deadlines import check as check_deadline
from neuro_eqprop.simulators.base import BackendError, Result, Support, zeros
from neuro_eqprop.simulators.biology import BIOLOGY
from neuro_eqprop.simulators.biology.dale import merge_pairs
from neuro_eqprop.simulators.biology.network import ContinuousNetwork, continuous, realize
from neuro_eqprop.simulators.biology.options import make_biology
from neuro_eqprop.simulators.biology.recorder import IntervalRecorder
from neuro_eqprop.simulators.biology.rendering import CompiledCells, Wires
from neuro_eqprop.simulators.biology.settings import BASE, Biology, phase_lengths
from neuro_eqprop.simulators.recordings import NOTHING, MemorySink, Record, Sink
from neuro_eqprop.simulators.registry import check_run
from neuro_eqprop.spiking.ir import Gain, Projection, SpikingNetwork, Stimulus
from neuro_eqprop.spiking.phases import PhaseLengths

VALUES = 4_000_000
"""Synapses plus recorded values that one run may hold."""


@dataclass(frozen=True, slots=True)
class ContinuousBackend(ABC):
    """A backend in continuous time; samples are copies of the network in one run."""

    biology: Biology = BASE
    name: str = ""
    support: Support = BIOLOGY.support
    values: int = VALUES
    """Limits the number of samples per run."""

    @property
    def step_seconds(self) -> float:
        """Seconds of an interval of recordings."""
        return self.biology.record_ticks * self.biology.dt

    @property
    def substeps(self) -> int:
        """Intervals of recordings in a step of a schedule."""
        return self.biology.substeps

    def phase_lengths(self, steps: int | None = None) -> PhaseLengths:
        """The default lengths of learning phases, or those of nudged phases of `steps` steps."""
        return phase_lengths(self.biology, steps)

    def realise(self, network: SpikingNetwork) -> SpikingNetwork:
        """The network with the inhibitory populations that Dale's law requires."""
        return realize(self.biology, network)

    @abstractmethod
    def simulate(self, network: ContinuousNetwork, recorder: IntervalRecorder) -> None:
        """Run the samples of a network, and call the recorder before every interval."""

    def run(
        self,
        network: SpikingNetwork,
        stimulus: Stimulus,
        schedule: Schedule,
        *,
        record: Record,
        sink: Sink,
    ) -> Result:
        """Run all samples through the schedule, a step of which takes 1 / rmax seconds."""
        check_run(self, network, stimulus)
        made = continuous(self.biology, network, stimulus)
        realized = self.realise(network)
        sizes = {p.name: p.size for p in realized.populations}
        result = zeros(made.network, stimulus.samples, len(schedule))
        each = values_per_sample(made.network, schedule, record, self.substeps)
        room = max(1, self.values // each)
        for start in range(0, stimulus.samples, room):
            part = replace(made, stimulus=made.stimulus.take(start, start + room))
            recorder = IntervalRecorder(
                part,
                schedule,
                samples_of(result, start, start + room),
                record,
                first=start,
                substeps=self.substeps,
            )
            self.simulate(part, recorder)
            for k, recording in enumerate(recorder.recordings(sizes)):
                sink.sample(start + k, recording)
        return merge_pairs(result) if self.biology.pairs else result


@dataclass(frozen=True, slots=True)
class CompiledBiology(ContinuousBackend):
    """The compiled backend."""

    name: str = BIOLOGY.name

    def simulate(self, network: ContinuousNetwork, recorder: IntervalRecorder) -> None:
        """Advance all samples, interval by interval."""
        run_cells(network, recorder)


@dataclass(frozen=True, slots=True)
class Populations:
    """The populations of compiled neurons, by name."""

    cells: CompiledCells
    units: dict[str, slice]

    def read(self, name: str, variable: str) -> Array:
        """A variable of a population (samples, neurons)."""
        return self.cells[variable][:, self.units[name]]

    def clear(self, name: str) -> None:
        """Set the counters of spikes and of received drive of a population to zero."""
        for variable in ("sent", "received"):
            self.cells[variable][:, self.units[name]] = 0.0

    def set_beta(self, beta: float) -> None:
        """Set the strength of the nudge."""
        self.cells.beta = beta


def run_cells(network: ContinuousNetwork, recorder: IntervalRecorder) -> None:
    """Advance all samples of a network, and call the recorder before every interval."""
    populations = make_populations(network)
    recorder.neurons = populations
    cells, ticks = populations.cells, recorder.interval_ticks
    _, samples, size = cells.inputs.shape
    drawn = np.zeros((network.biology.ticks, samples, size))
    for interval in range(recorder.total):
        check_deadline()
        recorder.interval()
        within = interval % recorder.substeps
        if within == 0:
            for name, values in recorder.drawn.items():
                drawn[:, :, populations.units[name]] = values.reshape(len(values), samples, -1)
        cells.advance(ticks, drawn[within * ticks : (within + 1) * ticks])
        recorder.advanced({name: cells.fired[:, :, u] for name, u in populations.units.items()})
    recorder.interval()


def make_populations(made: ContinuousNetwork) -> Populations:
    """The compiled neurons of a network, from rest; all of its populations share an equation."""
    biology, populations = made.biology, made.network.populations
    ends = np.cumsum([0, *(p.size for p in populations)]).tolist()
    units = {p.name: slice(*pair) for p, pair in zip(populations, pairwise(ends), strict=True)}
    neurons = {p.neuron for p in populations}
    if len(neurons) > 1:
        raise BackendError(
            "populations with different thresholds, limits or resets need brian2-biology"
        )
    poisson = np.concatenate([np.full(p.size, made.is_poisson(p)) for p in populations])
    wires = [
        wire
        for p in made.network.projections
        if p.synapses.values.any()
        for wire in wires_of(made, p, units[p.source], units[p.target])
    ]
    cells = CompiledCells(
        made.equations(populations[0]),
        np.concatenate([made.inputs(p) for p in populations], axis=2),
        poisson,
        wires,
        biology.dt,
        round(biology.period / biology.dt),
    )
    return Populations(cells, units)


def wires_of(
    made: ContinuousNetwork, projection: Projection, source: slice, target: slice
) -> list[Wires]:
    """The synapses of a projection, by the variable that they change."""
    biology, ticks = made.biology, made.ticks(projection)
    into = "g" if projection.gain is Gain.ONE else "g_beta"
    weight = projection.weight / (biology.rmax * biology.tau_s)
    if biology.model is None or not biology.model.conductances:
        return [Wires(source, target, weight, ticks, into)]
    return [
        Wires(source, target, np.maximum(weight, 0.0), ticks, f"{into}_e"),
        Wires(source, target, np.maximum(-weight, 0.0), ticks, f"{into}_i"),
    ]


def biology(**options: str | float | bool) -> CompiledBiology:
    """The backend `biology` with options, see `make_biology`.

    Examples
    --------
    >>> biology(tau_m="20 ms", noise=0.2).biology.tau_s
    0.02

    """
    return CompiledBiology(make_biology(**options))


def settle(biology: Biology, network: SpikingNetwork, stimulus: Stimulus) -> Result:
    """Run freely for the duration of the biology; firing is read in its last three quarters."""
    steps = max(1, round(biology.duration / biology.step))
    schedule = free_only(steps=steps, window=tail(steps))
    backend = CompiledBiology(biology)
    return backend.run(network, stimulus, schedule, record=NOTHING, sink=MemorySink())


def values_per_sample(
    network: SpikingNetwork, schedule: Schedule, record: Record, substeps: int = 1
) -> int:
    """Synapses plus recorded values of one sample."""
    recorded = [*record.spikes, *(name for name, _ in record.signals)]
    steps = substeps * sum(phase.steps for phase in schedule)
    synapses = sum(int(projection.fan_out.sum()) for projection in network.projections)
    return 1 + synapses + steps * sum(network[name].size for name in recorded)


def samples_of(result: Result, start: int, stop: int) -> Result:
    """Views of a result for samples start to stop; adding to them adds to the result."""
    return Result(
        {name: array[start:stop] for name, array in result.messages.items()},
        {name: array[start:stop] for name, array in result.firing.items()},
        {name: array[start:stop] for name, array in result.drive.items()},
    )
