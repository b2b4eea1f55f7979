"""An equilibrium network as one hierarchical Lava process with the spikes of the reference.

Populations run the step of `neuro_eqprop.spiking.ir` in Python process models of this file, which
have no chip model; projections in floating point are Lava's own `Dense`. The input is constant
during a sample, and its current arrives in the same step. With `reset_interval`, every population
starts a sample from its resting state and drops messages sent before it.
"""

# No `from __future__ import annotations`: Lava executes this file under another module name.

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.model.py.model import PyLoihiProcessModel
from lava.magma.core.model.py.ports import PyInPort, PyOutPort
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.process.ports.ports import InPort, OutPort
from lava.magma.core.process.process import AbstractProcess, ProcessParameters
from lava.magma.core.process.variable import Var
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol
from lava.proc.dense.process import Dense

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.simulators.lava.native.delay import Delay
from neuro_eqprop.simulators.lava.native.network import (
    ExportedNetwork,
    ExportedNetworkModel,
    classes,
    message_rows,
    sample_rows,
)
from neuro_eqprop.simulators.lava.native.plan import Row, identifier, integers, port_name
from neuro_eqprop.spiking.fixed_point import weights
from neuro_eqprop.spiking.ir import Gain, Graded, Population, Projection, SpikingNetwork
from neuro_eqprop.spiking.neurons import Numbers, neurons_of


@dataclass(frozen=True)
class ExactPlan:
    """A spiking network, its input weights (units, features) by population, and its reset."""

    network: SpikingNetwork
    feeds: Mapping[str, Array]
    grid: float
    """Currents are rounded to multiples of this."""
    reset_interval: int | None = None

    def __post_init__(self) -> None:
        if any(p.gain is Gain.BETA for p in self.network.projections):
            raise ValueError("a process for inference has no nudge; use learning=True")

    @property
    def features(self) -> int:
        """The length of an input sample."""
        return int(next(iter(self.feeds.values())).shape[1])

    @property
    def tag(self) -> str:
        """The tag of the process models: floating or fixed point."""
        return "floating_pt" if self.network.fixed is None else "fixed_pt"

    @property
    def input_exp(self) -> int:
        """Samples are multiples of 2^-input_exp; in fixed point, Lava's sources send integers."""
        return 0 if self.network.fixed is None else INPUT_EXP


INPUT_EXP = 24
"""Fractional bits of the input in fixed point."""


class InputCurrent(AbstractProcess):  # type: ignore[misc]
    """Input weights times the sample, rounded to the grid, in the same step."""

    def __init__(self, weight: Array, plan: ExactPlan) -> None:
        super().__init__(grid=plan.grid, input_exp=plan.input_exp)
        self.s_in = InPort(shape=(weight.shape[1],))
        self.a_out = OutPort(shape=(weight.shape[0],))
        self.weights = Var(shape=weight.shape, init=weight)


@implements(proc=InputCurrent, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt", "fixed_pt")
class InputCurrentModel(PyLoihiProcessModel):  # type: ignore[misc]
    """Computes the current only when the sample changes."""

    s_in = LavaPyType(PyInPort.VEC_DENSE, float)
    a_out = LavaPyType(PyOutPort.VEC_DENSE, float)
    weights = LavaPyType(np.ndarray, float)

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        self.grid: float = proc_params["grid"]
        self.unit = 2.0 ** -proc_params["input_exp"]
        self.sample: Array | None = None

    def run_spk(self) -> None:
        """Receive a sample, send its current."""
        sample = self.s_in.recv()
        if self.sample is None or not np.array_equal(sample, self.sample):
            self.sample = sample
            current = (sample * self.unit) @ self.weights.T
            self.current = np.rint(current / self.grid) * self.grid
        self.a_out.send(self.current)


class PopulationProcess(AbstractProcess):  # type: ignore[misc]
    """Neurons with an input current `c_in`, synaptic input `a_in` and messages `s_out`."""

    def __init__(self, plan: ExactPlan, population: Population, has_current: bool) -> None:
        has_synapses = any(p.target == population.name for p in plan.network.projections)
        super().__init__(
            plan=plan, population=population, has_current=has_current, has_synapses=has_synapses
        )
        shape = (population.size,)
        self.c_in = InPort(shape=shape)
        self.a_in = InPort(shape=shape)
        self.s_out = OutPort(shape=shape)
        self.bias = Var(shape=shape, init=population.bias)
        self.state = Var(shape=shape, init=0.0)


class SpikingPopulation(PopulationProcess):
    """Leaky integrators with binary spikes; `state` is the voltage."""


class GradedPopulation(PopulationProcess):
    """Sigma-delta units; `state` is the rate."""


class PopulationModel(PyLoihiProcessModel):  # type: ignore[misc]
    """Steps a population; a changed Var `bias` takes effect at the next reset."""

    c_in = LavaPyType(PyInPort.VEC_DENSE, float)
    bias = LavaPyType(np.ndarray, float)
    state = LavaPyType(np.ndarray, float)

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        plan: ExactPlan = proc_params["plan"]
        self.network, self.interval = plan.network, plan.reset_interval
        self.population: Population = proc_params["population"]
        self.has_current: bool = proc_params["has_current"]
        self.has_synapses: bool = proc_params["has_synapses"]
        self.neurons = neurons_of(self.network, self.population)
        kind = np.float64 if self.network.fixed is None else np.int64
        self.zero: Numbers = np.zeros(self.population.size, dtype=kind)

    def run_spk(self) -> None:
        """Receive, advance, send."""
        current = self.c_in.recv() if self.has_current else None
        arriving = self.a_in.recv() if self.has_synapses else self.zero
        step = self.time_step - 1
        if self.interval is not None and step % self.interval == 0:
            arriving = self.zero  # sent in the previous sample
            if not np.array_equal(self.bias, self.population.bias):
                self.population = replace(self.population, bias=self.bias.copy())
                self.neurons = neurons_of(self.network, self.population)
            self.neurons.rest(self.zero.shape)
        outside = self.neurons.outside(current, None, 0.0)
        message = self.neurons.advance(arriving, self.zero, 0.0, outside)
        self.s_out.send(message)
        values = self.neurons.values()
        self.state[:] = values["state" if "state" in values else "voltage"]


@implements(proc=SpikingPopulation, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt")
class FloatSpikingModel(PopulationModel):
    """Binary spikes in float64."""

    a_in = LavaPyType(PyInPort.VEC_DENSE, float)
    s_out = LavaPyType(PyOutPort.VEC_DENSE, bool)


@implements(proc=SpikingPopulation, protocol=LoihiProtocol)
@requires(CPU)
@tag("fixed_pt")
class IntegerSpikingModel(PopulationModel):
    """Binary spikes in fixed point."""

    a_in = LavaPyType(PyInPort.VEC_DENSE, np.int64)
    s_out = LavaPyType(PyOutPort.VEC_DENSE, bool)


@implements(proc=GradedPopulation, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt")
class FloatGradedModel(PopulationModel):
    """Graded messages in float64."""

    a_in = LavaPyType(PyInPort.VEC_DENSE, float)
    s_out = LavaPyType(PyOutPort.VEC_DENSE, float)


@implements(proc=GradedPopulation, protocol=LoihiProtocol)
@requires(CPU)
@tag("fixed_pt")
class IntegerGradedModel(PopulationModel):
    """Graded messages as integer multiples of theta."""

    a_in = LavaPyType(PyInPort.VEC_DENSE, np.int64)
    s_out = LavaPyType(PyOutPort.VEC_DENSE, np.int64)


class IntegerSynapses(AbstractProcess):  # type: ignore[misc]
    """Integer weights of any size times messages; a sum arrives in the next step.

    Lava's own fixed-point synapses clip weights to nine bits; those of this network need more.
    """

    def __init__(self, weight: npt.NDArray[np.int64]) -> None:
        super().__init__()
        self.s_in = InPort(shape=(weight.shape[1],))
        self.a_out = OutPort(shape=(weight.shape[0],))
        self.weights = Var(shape=weight.shape, init=weight)


@implements(proc=IntegerSynapses, protocol=LoihiProtocol)
@requires(CPU)
@tag("fixed_pt")
class IntegerSynapsesModel(PyLoihiProcessModel):  # type: ignore[misc]
    """Exact sums in 64-bit integers."""

    s_in = LavaPyType(PyInPort.VEC_DENSE, np.int64)
    a_out = LavaPyType(PyOutPort.VEC_DENSE, np.int64)
    weights = LavaPyType(np.ndarray, np.int64)

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        self.sums: Numbers = np.zeros(1, dtype=np.int64)

    def run_spk(self) -> None:
        """Send the sums of the previous step before receiving, so that loops cannot deadlock."""
        if len(self.sums) != len(self.weights):
            self.sums = np.zeros(len(self.weights), dtype=np.int64)
        self.a_out.send(self.sums)
        self.sums = self.weights @ self.s_in.recv().astype(np.int64)


class ExactNetwork(ExportedNetwork):
    """A spiking network with ports `inp`, `out` and `s_<layer>`.

    `inp` takes one value for each feature in each step (see `encode`), `out` sends the spikes or
    messages of the output. Vars `weights_<source>_<target>`, `bias_<layer>` and `state_<layer>`
    are those of the sub-processes.
    """

    def __init__(self, plan: ExactPlan, name: str | None = None) -> None:
        super().__init__(plan=plan, name=name)
        self.plan, network = plan, plan.network
        self.inp = InPort(shape=(plan.features,))
        self.out = OutPort(shape=(network[network.output].size,))
        for population in network.populations:
            setattr(self, port_name(population.name), OutPort(shape=(population.size,)))
            for state in ("bias", "state"):
                setattr(self, f"{state}_{identifier(population.name)}", Var((population.size,)))
        for target, weight in plan.feeds.items():
            setattr(self, f"weights_input_{identifier(target)}", Var(weight.shape))
        for number, projection in enumerate(network.projections):
            setattr(self, weight_name(network, number), Var(projection.weight.shape))
        self._post_init()

    @property
    def tag(self) -> str:
        """The tag of a run configuration: `Loihi2SimCfg(select_tag=net.tag)`."""
        return self.plan.tag

    @property
    def graded(self) -> bool:
        """Whether the output sends graded messages."""
        return isinstance(self.plan.network[self.plan.network.output].neuron, Graded)

    def processes(self) -> tuple[Row, ...]:
        """The leaf processes: name, class, whether it is Lava's own, units, synapses."""
        network, found = self.plan.network, list[Row]()
        for target, weight in self.plan.feeds.items():
            count = int(np.count_nonzero(weight))
            found.append(Row(f"input->{target}", "InputCurrent", False, 0, count))
        for population in network.populations:
            kind = "Graded" if isinstance(population.neuron, Graded) else "Spiking"
            found.append(Row(population.name, f"{kind}Population", False, population.size, 0))
        stock = network.fixed is None
        for projection in network.projections:
            kind, count = ("Dense" if stock else "IntegerSynapses"), int(projection.fan_out.sum())
            found.append(Row(projection.name, kind, stock, 0, count))
            if projection.delay > 1:
                units = network[projection.source].size
                found.append(Row(f"{projection.name} delay", "Delay", False, units, 0))
        return tuple(found)

    def encode(self, x: npt.ArrayLike, steps: int) -> npt.NDArray[Any]:
        """Samples (samples, features) as the data (features, samples * steps) of a RingBuffer.

        In fixed point they are integer multiples of 2^-24.
        """
        plan = self.plan
        rows = sample_rows(x, steps, features=plan.features, reset_interval=plan.reset_interval)
        data = np.repeat(rows.T, steps, axis=1)
        return data if plan.network.fixed is None else integers(data, plan.input_exp)

    def rates(self, messages: npt.ArrayLike, steps: int) -> Array:
        """Rates (samples, units) from messages (units, samples * steps) of a port."""
        sent = message_rows(messages, steps)
        output = self.plan.network[self.plan.network.output].neuron
        if not isinstance(output, Graded):
            spikes = sent.reshape(len(sent), -1, steps)
            return np.asarray(spikes[..., steps // 4 :].mean(axis=2).T)
        if self.plan.network.fixed is not None:
            sent = sent * output.theta
        if self.plan.reset_interval is None:
            state = sent.cumsum(axis=1).reshape(len(sent), -1, steps)
        else:
            state = sent.reshape(len(sent), -1, steps).cumsum(axis=2)
        return np.asarray(state[..., -max(1, steps // 4) :].mean(axis=2).T)

    def decode(self, messages: npt.ArrayLike, steps: int) -> npt.NDArray[np.int64]:
        """Predicted classes (samples,) from the messages (classes, samples * steps) of `out`."""
        return classes(self.rates, messages, steps, self.out.shape[0])


def weight_name(network: SpikingNetwork, number: int) -> str:
    """The name of the Var with the weights of a projection; parallel projections are numbered."""
    projection = network.projections[number]
    same = [p.name for p in network.projections[:number]].count(projection.name)
    ends = f"weights_{identifier(projection.source)}_{identifier(projection.target)}"
    return ends if not same else f"{ends}_{same + 1}"


@implements(proc=ExactNetwork, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt", "fixed_pt")
class ExactNetworkModel(ExportedNetworkModel):
    """Sub-processes of a network and their connections."""

    def __init__(self, proc: ExactNetwork) -> None:
        super().__init__(proc)
        plan, network = proc.plan, proc.plan.network
        cells: dict[str, Any] = {}
        for population in network.populations:
            name, graded = population.name, isinstance(population.neuron, Graded)
            kind = GradedPopulation if graded else SpikingPopulation
            cell = self.keep(
                f"cells_{identifier(name)}", kind(plan, population, name in plan.feeds)
            )
            cells[name] = cell
            cell.s_out.connect(getattr(proc, port_name(name)))
            if name == network.output:
                cell.s_out.connect(proc.out)
            for state in ("bias", "state"):
                getattr(proc, f"{state}_{identifier(name)}").alias(getattr(cell, state))
        for target, weight in plan.feeds.items():
            feed = self.keep(f"feed_{identifier(target)}", InputCurrent(weight, plan))
            proc.inp.connect(feed.s_in)
            feed.a_out.connect(cells[target].c_in)
            getattr(proc, f"weights_input_{identifier(target)}").alias(feed.weights)
        for number, projection in enumerate(network.projections):
            source = cells[projection.source]
            if projection.delay > 1:
                size, interval = network[projection.source].size, plan.reset_interval
                late = Delay(size, projection.delay - 1, interval)
                source.s_out.connect(self.keep(f"delay_{number}", late).s_in)
                source = late
            conn = self.keep(f"synapses_{number}", synapses(network, projection))
            source.s_out.connect(conn.s_in)
            conn.a_out.connect(cells[projection.target].a_in)
            getattr(proc, weight_name(network, number)).alias(conn.weights)


def synapses(network: SpikingNetwork, projection: Projection) -> AbstractProcess:
    """The synapses of a projection: `Dense` in floating point."""
    if network.fixed is not None:
        return IntegerSynapses(weights(network, projection))
    graded = isinstance(network[projection.source].neuron, Graded)
    # With message bits above zero, Dense multiplies by the message instead of selecting columns.
    return Dense(weights=projection.weight, num_message_bits=24 if graded else 0)
