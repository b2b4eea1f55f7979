"""The spiking network in Brian2 in continuous time, with physical units.

A step of a schedule takes 1 / rmax seconds, the shortest interval between two spikes. The network's
own dt is not used. The results are compared with rates by statistics, never spike by spike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import ModuleType

import numpy as np

from neuro_eqprop.dynamics.schedules import Schedule, free_only, tail
from neuro_eqprop.simulators.base import BackendError, Feature, Result, Support, zeros
from neuro_eqprop.simulators.brian2 import BIOLOGY
from neuro_eqprop.simulators.brian2.dale import (
    merge_pairs,
    pair_stimulus,
    paired,
    with_interneurons,
)
from neuro_eqprop.simulators.brian2.groups import connect
from neuro_eqprop.simulators.brian2.membrane import (
    DRAWN,
    POISSON,
    Biology,
    Refractory,
    constants,
    membrane,
    potentials,
    reset,
)
from neuro_eqprop.simulators.brian2.neuron_models import IZHIKEVICH
from neuro_eqprop.simulators.brian2.setup import Handle, run_network, settings, simulator
from neuro_eqprop.simulators.brian2.step_callbacks import StepRecorder, noise
from neuro_eqprop.simulators.recordings import NOTHING, MemorySink, Record, Sink
from neuro_eqprop.simulators.registry import check_run
from neuro_eqprop.spiking.ir import Gain, Population, Projection, Spiking, SpikingNetwork, Stimulus

__all__ = ["BASE", "NOISY", "Biology", "Brian2Biology", "Refractory", "settle"]

BASE = Biology(dt=1e-3, seed=0)
"""Membranes without leak, synapses of 5 ms, no noise."""
NOISY = replace(BASE, tau_m=20e-3, noise=0.2, delay=2e-3)
"""A leak of 20 ms, noise, and 2 ms from spike to arrival."""

VALUES = 4_000_000
"""Synapses plus recorded values that one Brian2 run may hold."""


@dataclass(frozen=True, slots=True)
class Brian2Biology:
    """Brian2 backend in continuous time; samples are copies of the network in one run."""

    biology: Biology = BASE
    name: str = BIOLOGY.name
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

    def realise(self, network: SpikingNetwork) -> SpikingNetwork:
        """The network with the inhibitory populations that Dale's law requires."""
        return with_interneurons(network) if self.biology.interneurons else network

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
        network = self.realise(network)
        if self.biology.poisson and not any(is_input(network, p) for p in network.populations):
            raise BackendError(
                "Poisson input needs a population that carries the input; use input coding 'rate'"
            )
        sizes = {p.name: p.size for p in network.populations}
        if self.biology.pairs:
            network, stimulus = paired(network), pair_stimulus(stimulus)
        result = zeros(network, stimulus.samples, len(schedule))
        each = values_per_sample(network, schedule, record, self.substeps)
        room = max(1, self.values // each)
        for start in range(0, stimulus.samples, room):
            part = stimulus.take(start, start + room)
            here = samples_of(result, start, start + room)
            callback = simulate(
                self.biology,
                network,
                part,
                schedule=schedule,
                record=record,
                result=here,
                first=start,
            )
            for k, recording in enumerate(callback.recordings(sizes)):
                sink.sample(start + k, recording)
        return merge_pairs(result) if self.biology.pairs else result


def settle(biology: Biology, network: SpikingNetwork, stimulus: Stimulus) -> Result:
    """Run freely for the duration of the biology; firing is read in its last three quarters."""
    steps = max(1, round(biology.duration / biology.step))
    schedule = free_only(steps=steps, window=tail(steps))
    backend = Brian2Biology(biology)
    return backend.run(network, stimulus, schedule, record=NOTHING, sink=MemorySink())


def is_input(network: SpikingNetwork, population: Population) -> bool:
    """Whether a population only carries the input: no synapse arrives at it, and it has no bias."""
    reached = any(p.target == population.name for p in network.projections)
    return not reached and not population.bias.any()


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


def simulate(
    biology: Biology,
    network: SpikingNetwork,
    stimulus: Stimulus,
    *,
    schedule: Schedule,
    record: Record,
    result: Result,
    first: int,
) -> StepRecorder:
    """Run samples in one Brian2 run and add to the result; `first` is the index of the first."""
    brian2 = simulator()
    with settings(brian2):
        clock = brian2.Clock(dt=biology.dt * brian2.second)
        groups, paths = groups_and_synapses(brian2, biology, network, stimulus, clock)
        sizes = {p.name: p.size for p in network.populations}
        drawn = noise(biology, sizes, range(first, first + stimulus.samples))
        limits = potentials_of(brian2, biology)
        callback = StepRecorder(biology, groups, schedule, result, record, drawn, limits=limits)
        each = brian2.NetworkOperation(callback.tick, clock=clock, when="start")
        whole = brian2.Network(*groups.values(), *paths, each)
        steps = sum(phase.steps for phase in schedule)
        run_network(brian2, whole, steps * biology.ticks * clock.dt)
        if biology.substeps > 1:
            callback.record_substep()
        callback.next_step(steps)
    return callback


def groups_and_synapses(
    brian2: ModuleType,
    biology: Biology,
    network: SpikingNetwork,
    stimulus: Stimulus,
    clock: Handle,
) -> tuple[dict[str, Handle], list[Handle]]:
    """The neuron groups by population, and the synapses of all projections with a weight."""
    groups = {
        p.name: neurons(brian2, biology, network, population=p, stimulus=stimulus, clock=clock)
        for p in network.populations
    }
    paths = [
        synapses(brian2, biology, p, groups=groups, samples=stimulus.samples, clock=clock)
        for p in network.projections
        if p.synapses.values.any()
    ]
    return groups, paths


def potentials_of(brian2: ModuleType, biology: Biology) -> tuple[float, float]:
    """Voltages that count as zero and as one in recordings."""
    return (0.0, 1.0) if biology.model is None else potentials(brian2, biology.model)


def neurons(
    brian2: ModuleType,
    biology: Biology,
    network: SpikingNetwork,
    *,
    population: Population,
    stimulus: Stimulus,
    clock: Handle,
    white: str = DRAWN,
    **name: str,
) -> Handle:
    """A population in its initial state, with a copy of its neurons and a stimulus per sample."""
    neuron = integrator(population)
    if biology.poisson and is_input(network, population):
        return poisson_neurons(brian2, biology, population, stimulus=stimulus, clock=clock, **name)
    model = biology.model
    group = brian2.NeuronGroup(
        stimulus.samples * population.size,
        membrane(biology, gated=bool(network.into(population.name, Gain.BETA)), white=white),
        threshold="v >= theta" if model is None else model.threshold,
        reset=reset(neuron, model),
        refractory=biology.period * brian2.second if biology.period else False,
        method="euler",
        namespace=constants(brian2, biology, neuron),
        clock=clock,
        **name,
    )
    if model is None:
        group.run_regularly("v = clip(v, lowest, highest)", when="after_resets", clock=clock)
    nothing = np.zeros((stimulus.samples, population.size))
    group.outside = (population.bias + stimulus.current.get(population.name, nothing)).ravel()
    group.pull = stimulus.pull.get(population.name, nothing).ravel()
    group.v = neuron.threshold / 2 if model is None else model.start
    if model is not None and model.name == IZHIKEVICH.name:
        group.u = "b * v"  # at rest
    return group


def poisson_neurons(
    brian2: ModuleType,
    biology: Biology,
    population: Population,
    *,
    stimulus: Stimulus,
    clock: Handle,
    **name: str,
) -> Handle:
    """A population that carries the input as Poisson processes."""
    group = brian2.NeuronGroup(
        stimulus.samples * population.size,
        POISSON,
        threshold="chance < clip(outside, 0, 1) * rmax * dt",
        reset="sent = sent + 1",
        method="euler",
        namespace={"rmax": biology.rmax * brian2.Hz},
        clock=clock,
        **name,
    )
    nothing = np.zeros((stimulus.samples, population.size))
    group.outside = stimulus.current.get(population.name, nothing).ravel()
    group.chance = 1.0
    return group


def integrator(population: Population) -> Spiking:
    """The neuron of a population; raises BackendError if it is graded or decays by itself."""
    neuron = population.neuron
    if not isinstance(neuron, Spiking):
        reason = BIOLOGY.support.reasons[Feature.GRADED]
        raise BackendError(f"population {population.name!r} is graded: {reason}; use brian2")
    if (neuron.current_decay, neuron.voltage_decay) != (1.0, 0.0):
        raise BackendError(
            f"population {population.name!r} decays by {neuron.current_decay} and "
            f"{neuron.voltage_decay} a step, but in continuous time tau_s and tau_m set the decay; "
            f"lower the network with code 'rate', or use the backend brian2"
        )
    return neuron


def synapses(
    brian2: ModuleType,
    biology: Biology,
    projection: Projection,
    *,
    groups: dict[str, Handle],
    samples: int,
    clock: Handle,
    **name: str,
) -> Handle:
    """The synapses of a projection, once for each sample and never between samples.

    Each step of a projection's delay beyond the first adds 1 / rmax seconds.
    """
    current = "g" if projection.gain is Gain.ONE else "g_beta"
    arriving = f"{current}_post += w / (rmax * tau_s)"
    if biology.model is not None and biology.model.conductances:
        arriving = (
            f"{current}_e_post += w * int(w > 0) / (rmax * tau_s)\n"
            f"{current}_i_post += -w * int(w < 0) / (rmax * tau_s)"
        )
    ticks = round(biology.delay / biology.dt) + (projection.delay - 1) * biology.ticks
    paths = brian2.Synapses(
        groups[projection.source],
        groups[projection.target],
        "w : 1 (constant)",
        on_pre=arriving,
        delay=ticks * clock.dt,
        namespace={"rmax": biology.rmax * brian2.Hz, "tau_s": biology.tau_s * brian2.second},
        clock=clock,
        **name,
    )
    connect(paths, projection.synapses, samples)
    return paths
