"""Populations of a spiking network as Lava processes, in float64 and in fixed point."""

# No `from __future__ import annotations`: Lava executes this file under another module name, where
# dataclasses could not resolve annotations given as text.

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.model.py.model import PyLoihiProcessModel
from lava.magma.core.model.py.ports import PyInPort, PyOutPort
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.process.ports.ports import InPort, OutPort
from lava.magma.core.process.process import AbstractProcess, ProcessParameters
from lava.magma.core.process.variable import Var
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol

from neuro_eqprop.dynamics.schedules import PhaseStep
from neuro_eqprop.spiking.ir import Gain, Population, SpikingNetwork, Stimulus
from neuro_eqprop.spiking.neurons import Numbers, neurons_of


@dataclass(frozen=True)
class PopulationPart:
    """What the process of a population is told."""

    network: SpikingNetwork
    population: Population
    episode: Sequence[PhaseStep]
    """The steps of a sample."""
    fresh: bool
    """Whether every sample starts from the resting state."""
    stimulus: Stimulus
    """Input of each sample, if none arrives through a port."""
    has_current: bool = False
    """Whether a current arrives through `c_in` in every step."""
    has_pull: bool = False
    """Whether a pull arrives through `p_in` in every step."""
    watch: Callable[[], Any] | None = None
    """Returns the recorder of the process."""


class PopulationProcess(AbstractProcess):  # type: ignore[misc]
    """Neurons with input current and pull, synaptic input of gain one and beta, and messages."""

    def __init__(self, part: PopulationPart) -> None:
        super().__init__(part=part)
        shape = (part.population.size,)
        self.c_in = InPort(shape=shape)
        self.p_in = InPort(shape=shape)
        self.a_one = InPort(shape=shape)
        self.a_beta = InPort(shape=shape)
        self.s_out = OutPort(shape=shape)
        self.bias = Var(shape=shape, init=part.population.bias)
        self.state = Var(shape=shape, init=0.0)


class SpikingPopulation(PopulationProcess):
    """Leaky integrators with binary spikes; `state` is the voltage."""


class GradedPopulation(PopulationProcess):
    """Sigma-delta units; `state` is the rate."""


class PopulationModel(PyLoihiProcessModel):  # type: ignore[misc]
    """Steps a population; a changed Var `bias` takes effect at the next start from rest."""

    c_in = LavaPyType(PyInPort.VEC_DENSE, float)
    p_in = LavaPyType(PyInPort.VEC_DENSE, float)
    bias = LavaPyType(np.ndarray, float)
    state = LavaPyType(np.ndarray, float)

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        self.part: PopulationPart = proc_params["part"]
        self.population = self.part.population
        self.neurons = neurons_of(self.part.network, self.population)
        self.no_input: Numbers = np.zeros_like(self.neurons.bias)
        into = {gain: self.part.network.into(self.population.name, gain) for gain in Gain}
        self.connected = {gain: bool(projections) for gain, projections in into.items()}
        self.rows = [
            rows.get(self.population.name)
            for rows in (self.part.stimulus.current, self.part.stimulus.pull)
        ]
        self.watch = None if self.part.watch is None else self.part.watch()

    def run_spk(self) -> None:
        """One step of Lava; an error is reported before it is raised, for Lava would wait."""
        try:
            self.step(*divmod(self.time_step - 1, len(self.part.episode)))
        except BaseException:
            if self.watch is not None:
                self.watch.fail()
            raise

    def step(self, sample: int, step: int) -> None:
        """Receive, advance, send."""
        one, by_beta, outside = self.receive(sample, step)
        sent = self.neurons.advance(one, by_beta, self.part.episode[step].beta, outside)
        self.s_out.send(sent)
        self.show(sent)

    def receive(self, sample: int, step: int) -> tuple[Numbers, Numbers, Numbers]:
        """Synaptic input of gain one and of beta, and all other input."""
        part, one, by_beta = self.part, self.no_input, self.no_input
        if self.connected[Gain.ONE]:
            one = self.a_one.recv()
        if self.connected[Gain.BETA]:
            by_beta = self.a_beta.recv()
        current, pull = (None if rows is None else rows[sample] for rows in self.rows)
        if part.has_current:
            current = self.c_in.recv()
        if part.has_pull:
            pull = self.p_in.recv()
        if step == 0 and (part.fresh or sample == 0):
            one = by_beta = self.no_input  # sent in the previous sample
            self.rest()
        beta = part.episode[step].beta
        ported = part.has_current or part.has_pull
        if ported or step == 0 or beta != part.episode[step - 1].beta:
            self.outside = self.neurons.outside(current, pull, beta)
        return one, by_beta, self.outside

    def rest(self) -> None:
        """Start from the resting state."""
        if not np.array_equal(self.bias, self.population.bias):
            self.population = replace(self.population, bias=self.bias.copy())
            self.neurons = neurons_of(self.part.network, self.population)
        self.neurons.rest(self.no_input.shape)

    def show(self, sent: Numbers) -> None:
        """Show the state in the Var, and the step to the recorder."""
        values = self.neurons.values()
        self.state[:] = values[self.neurons.variable]
        if self.watch is not None:
            self.watch.add_step(self.neurons.payload(sent), self.neurons, values)


@implements(proc=SpikingPopulation, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt")
class FloatSpikingModel(PopulationModel):
    """Binary spikes in float64."""

    a_one = LavaPyType(PyInPort.VEC_DENSE, float)
    a_beta = LavaPyType(PyInPort.VEC_DENSE, float)
    s_out = LavaPyType(PyOutPort.VEC_DENSE, bool)


@implements(proc=SpikingPopulation, protocol=LoihiProtocol)
@requires(CPU)
@tag("fixed_pt")
class IntegerSpikingModel(PopulationModel):
    """Binary spikes in fixed point."""

    a_one = LavaPyType(PyInPort.VEC_DENSE, np.int64)
    a_beta = LavaPyType(PyInPort.VEC_DENSE, np.int64)
    s_out = LavaPyType(PyOutPort.VEC_DENSE, bool)


@implements(proc=GradedPopulation, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt")
class FloatGradedModel(PopulationModel):
    """Graded messages in float64."""

    a_one = LavaPyType(PyInPort.VEC_DENSE, float)
    a_beta = LavaPyType(PyInPort.VEC_DENSE, float)
    s_out = LavaPyType(PyOutPort.VEC_DENSE, float)


@implements(proc=GradedPopulation, protocol=LoihiProtocol)
@requires(CPU)
@tag("fixed_pt")
class IntegerGradedModel(PopulationModel):
    """Graded messages as integer multiples of theta."""

    a_one = LavaPyType(PyInPort.VEC_DENSE, np.int64)
    a_beta = LavaPyType(PyInPort.VEC_DENSE, np.int64)
    s_out = LavaPyType(PyOutPort.VEC_DENSE, np.int64)
