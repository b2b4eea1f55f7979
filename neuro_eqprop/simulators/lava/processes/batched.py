"""A whole network as one Lava process that steps many samples in parallel."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path

import numpy as np
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.process.process import AbstractProcess, ProcessParameters
from lava.magma.core.process.variable import Var
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol

from neuro_eqprop.files.subprocess import progress
from neuro_eqprop.simulators.lava.job import Job, Part, tick
from neuro_eqprop.simulators.lava.processes.population import Reporting
from neuro_eqprop.simulators.lava.recording import StepRecorder
from neuro_eqprop.spiking.fixed_point import integer_synapses
from neuro_eqprop.spiking.ir import Gain, Projection, SpikingNetwork
from neuro_eqprop.spiking.neurons import Numbers, neurons_of
from neuro_eqprop.spiking.synapses import DenseSynapses


class FusedNetwork(AbstractProcess):  # type: ignore[misc]
    """All populations and projections of a network."""

    def __init__(self, job: Job, folder: Path) -> None:
        super().__init__(part=Part(job, 0, folder))
        self.steps_run = Var(shape=(1,), init=0)
        self.overflows = Var(shape=(2 * len(job.network.populations),), init=0)


def product(network: SpikingNetwork, projection: Projection) -> Callable[[Numbers], Numbers]:
    """The function x -> W x of messages x; in integers if the network is in fixed point."""
    fixed = network.fixed is not None
    synapses = integer_synapses(network, projection) if fixed else projection.synapses
    if isinstance(synapses, DenseSynapses):
        kind = np.int64 if fixed else np.float64
        columns = np.ascontiguousarray(synapses.weight.T, dtype=kind)
        return lambda sent: np.asarray(sent @ columns)
    if fixed:
        return lambda sent: synapses.apply(sent.astype(np.float64)).astype(np.int64)
    return lambda sent: synapses.apply(np.asarray(sent, dtype=np.float64))


class FusedModel(Reporting):
    """Steps `batch` samples at once, as rows of arrays; a Lava step is one step of each sample."""

    steps_run = LavaPyType(np.ndarray, np.int64)
    overflows = LavaPyType(np.ndarray, np.int64)

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        self.job = job = self.part.job
        network = job.network
        self.sizes = {p.name: p.size for p in network.populations}
        self.neurons = {p.name: neurons_of(network, p) for p in network.populations}
        self.recorders = {
            name: StepRecorder(Part(job, index, self.part.folder), job.batch)
            for index, name in enumerate(self.neurons)
        }
        self.products = [(p, product(network, p)) for p in network.projections]
        self.past: deque[dict[str, Numbers]] = deque(
            maxlen=max((p.delay for p in network.projections), default=1)
        )
        self.progress = progress(self.part.folder)
        self.last_phase = -1

    def step(self, sample: int, step: int) -> None:
        """One step of the samples of batch number `sample`."""
        first = sample * self.job.batch
        rows = slice(first, min(first + self.job.batch, self.job.stimulus.samples))
        count, now = rows.stop - rows.start, tick(self.job.schedule, step)
        if step == 0:
            self.past.clear()
            for name, neurons in self.neurons.items():
                neurons.rest((count, self.sizes[name]))
        if step == 0 or now.phase != self.last_phase:
            self.outside = {name: self.from_outside(name, rows, now.beta) for name in self.neurons}
            self.last_phase = now.phase
        arrived = {
            name: tuple(self.arriving(name, gain, count) for gain in (Gain.ONE, Gain.BETA))
            for name in self.neurons
        }
        sent: dict[str, Numbers] = {}
        for index, (name, neurons) in enumerate(self.neurons.items()):
            one, by_beta = arrived[name]
            sent[name] = neurons.advance(one, by_beta, now.beta, self.outside[name])
            payload = neurons.payload(sent[name])
            self.recorders[name].record(
                step, now, message=payload, firing=neurons.firing(), values=neurons.values()
            )
            self.overflows[2 * index : 2 * index + 2] = neurons.overflows
        self.past.append(sent)
        self.steps_run[0] += count
        self.progress[1:] = self.time_step

    def from_outside(self, name: str, rows: slice, beta: float) -> Numbers:
        """bias + current + beta pull, for the samples in `rows`."""
        current = self.job.stimulus.current.get(name)
        pull = self.job.stimulus.pull.get(name)
        return self.neurons[name].outside(
            None if current is None else current[rows], None if pull is None else pull[rows], beta
        )

    def arriving(self, target: str, gain: Gain, count: int) -> Numbers:
        """Input of a population in this step through the projections of one gain."""
        kind = np.float64 if self.job.network.fixed is None else np.int64
        total: Numbers = np.zeros((count, self.sizes[target]), dtype=kind)
        for projection, multiply in self.products:
            here = projection.target == target and projection.gain is gain
            if here and projection.delay <= len(self.past):
                total += multiply(self.past[-projection.delay][projection.source])
        return total


@implements(proc=FusedNetwork, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt", "fixed_pt")
class FusedNetworkModel(FusedModel):
    """Model for both tags: float64, or integers if the network is in fixed point."""
