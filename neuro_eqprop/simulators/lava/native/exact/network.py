"""An equilibrium network as one hierarchical Lava process with the spikes of the reference.

Populations run the step of `neuro_eqprop.spiking.ir` in Python process models, which have no chip
model; projections in floating point are Lava's own `Dense` and `Sparse`. In a user's script,
samples arrive through a port, as a current in the same step. With `reset_interval`, every
population starts a sample from its resting state and drops messages sent before it. In a run of the
backend, the populations know the stimulus and the schedule, and a recorder watches each of them.
"""

# No `from __future__ import annotations`: Lava executes this file under another module name.

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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

from neuro_eqprop.common.arrays import Array, Shape
from neuro_eqprop.dynamics.schedules import PhaseStep, Schedule, phase_steps
from neuro_eqprop.simulators.lava.native.exact.populations import (
    GradedPopulation,
    PopulationPart,
    SpikingPopulation,
)
from neuro_eqprop.simulators.lava.native.exact.synapses import Delay, synapses_of
from neuro_eqprop.simulators.lava.native.network import (
    ExportedNetwork,
    ExportedNetworkModel,
    classes,
    message_rows,
    sample_rows,
)
from neuro_eqprop.simulators.lava.native.plan import Row, identifier, integers, port_name
from neuro_eqprop.spiking.ir import Gain, Graded, Population, SpikingNetwork, Stimulus
from neuro_eqprop.spiking.synapses import DenseSynapses


@dataclass(frozen=True)
class GivenRun:
    """A run whose stimulus and schedule are known, and whose populations are watched."""

    stimulus: Stimulus
    schedule: Schedule
    watch: Callable[[str], Callable[[], Any]]
    """By the name of a population, a function that returns its recorder in its process."""


@dataclass(frozen=True)
class ExactPlan:
    """A spiking network, and its input: from a port, or from a given run."""

    network: SpikingNetwork
    feeds: Mapping[str, Array] = field(default_factory=dict)
    """Weights (units, features) of the input port, by population."""
    grid: float = 1.0
    """Currents of the port are rounded to multiples of this."""
    reset_interval: int | None = None
    """Steps of a sample of the port, after which all states are reset."""
    given: GivenRun | None = None

    def __post_init__(self) -> None:
        if self.given is None and any(p.gain is Gain.BETA for p in self.network.projections):
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

    @property
    def sample_steps(self) -> int | None:
        """Steps of a sample; None if it never ends."""
        return self.reset_interval if self.given is None else len(phase_steps(self.given.schedule))

    def part(self, population: Population) -> PopulationPart:
        """What the process of a population is told."""
        if self.given is not None:
            episode, stimulus = phase_steps(self.given.schedule), self.given.stimulus
            watch = self.given.watch(population.name)
            return PopulationPart(
                self.network, population, episode, fresh=True, stimulus=stimulus, watch=watch
            )
        return PopulationPart(
            self.network,
            population,
            (PhaseStep(0, 0.0, in_window=True),) * (self.reset_interval or 1),
            fresh=self.reset_interval is not None,
            stimulus=Stimulus(0, {}, {}),
            has_current=population.name in self.feeds,
        )


INPUT_EXP = 24
"""Fractional bits of the input in fixed point."""


class RoundedInput(AbstractProcess):  # type: ignore[misc]
    """The input, rounded to the grid, in the same step."""

    def __init__(
        self, size: int, grid: float, input_exp: int, *, interval: int = 1, features: int = 0
    ) -> None:
        super().__init__(grid=grid, input_exp=input_exp, interval=interval)
        self.s_in = InPort(shape=(features or size,))
        self.a_out = OutPort(shape=(size,))


class InputCurrent(RoundedInput):
    """Input weights times the sample, rounded to the grid, in the same step."""

    def __init__(self, weight: Array, plan: ExactPlan) -> None:
        super().__init__(len(weight), plan.grid, plan.input_exp, features=weight.shape[1])
        self.weights = Var(shape=weight.shape, init=weight)


class InputModel(PyLoihiProcessModel):  # type: ignore[misc]
    """Reads its input in every step, or in the first of `interval` steps and ignores it later."""

    s_in = LavaPyType(PyInPort.VEC_DENSE, float)
    a_out = LavaPyType(PyOutPort.VEC_DENSE, float)

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        self.grid: float = proc_params["grid"]
        self.unit = 2.0 ** -proc_params["input_exp"]
        self.interval: int = proc_params["interval"]
        self.sample: Array | None = None

    def run_spk(self) -> None:
        """Receive a sample, send its current, which is computed only when the sample changes."""
        sample, first = self.s_in.recv(), (self.time_step - 1) % self.interval == 0
        if first and (self.sample is None or not np.array_equal(sample, self.sample)):
            self.sample = sample
            self.sent = np.rint(self.current(sample * self.unit) / self.grid) * self.grid
        self.a_out.send(self.sent)

    def current(self, sample: Array) -> Array:
        """The current of a sample: itself."""
        return sample


@implements(proc=RoundedInput, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt", "fixed_pt")
class RoundedInputModel(InputModel):
    """Sends the sample."""


@implements(proc=InputCurrent, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt", "fixed_pt")
class InputCurrentModel(InputModel):
    """Multiplies by the weights."""

    weights = LavaPyType(np.ndarray, float)

    def current(self, sample: Array) -> Array:
        """The weights times the sample."""
        return np.asarray(sample @ self.weights.T)


class ExactNetwork(ExportedNetwork):
    """A spiking network with ports `inp`, `out` and `s_<layer>`.

    `inp` takes one value for each feature in each step (see `encode`), `out` sends the spikes or
    messages of the output. Vars `weights_<source>_<target>`, `bias_<layer>` and `state_<layer>`
    are those of the sub-processes.
    """

    def __init__(self, plan: ExactPlan, name: str | None = None) -> None:
        super().__init__(plan=plan, name=name)
        self.plan, network = plan, plan.network
        if plan.given is None:
            self.inp = InPort(shape=(plan.features,))
            self.out = OutPort(shape=(network[network.output].size,))
            for population in network.populations:
                setattr(self, port_name(population.name), OutPort(shape=(population.size,)))
            for variable, shape in self.variables().items():
                setattr(self, variable, Var(shape))
        else:
            self.FED = ()
        self._post_init()

    def variables(self) -> dict[str, Shape]:
        """The names and shapes of the Vars."""
        network, found = self.plan.network, dict[str, Shape]()
        for population in network.populations:
            for state in ("bias", "state"):
                found[f"{state}_{identifier(population.name)}"] = (population.size,)
        for target, weight in self.plan.feeds.items():
            found[f"weights_input_{identifier(target)}"] = weight.shape
        for number, projection in enumerate(network.projections):
            found[weight_name(network, number)] = projection.synapses.shape
        return found

    @property
    def tag(self) -> str:
        """The tag of a run configuration: `Loihi2SimCfg(select_tag=net.tag)`."""
        return self.plan.tag

    @property
    def graded(self) -> bool:
        """Whether the output sends graded messages."""
        return self.plan.network[self.plan.network.output].neuron.graded

    def processes(self) -> tuple[Row, ...]:
        """The leaf processes: name, class, whether it is Lava's own, units, synapses."""
        network, found = self.plan.network, list[Row]()
        for target, weight in self.plan.feeds.items():
            count = int(np.count_nonzero(weight))
            found.append(Row(f"input->{target}", "InputCurrent", False, 0, count))
        for population in network.populations:
            kind = "Graded" if population.neuron.graded else "Spiking"
            found.append(Row(population.name, f"{kind}Population", False, population.size, 0))
        stock = network.fixed is None
        for projection in network.projections:
            kind = "Dense" if isinstance(projection.synapses, DenseSynapses) else "Sparse"
            if not stock:
                kind = "IntegerSynapses" if kind == "Dense" else "SparseIntegerSynapses"
            found.append(Row(projection.name, kind, stock, 0, int(projection.fan_out.sum())))
        for source, delay in delay_lines(network):
            found.append(Row(f"{source} delay {delay}", "Delay", False, network[source].size, 0))
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


def delay_lines(network: SpikingNetwork) -> list[tuple[str, int]]:
    """Source and delay of each delay line; synapses alone delay messages by one step."""
    needed = ((p.source, p.delay) for p in network.projections if p.delay > 1)
    return list(dict.fromkeys(needed))


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
        for number, population in enumerate(network.populations):
            kind = GradedPopulation if population.neuron.graded else SpikingPopulation
            cells[population.name] = self.keep(f"cells_{number}", kind(plan.part(population)))
        lines = {(name, 1): cell for name, cell in cells.items()}
        for number, (source, delay) in enumerate(delay_lines(network)):
            line = Delay(network[source].size, delay - 1, plan.sample_steps)
            lines[source, delay] = self.keep(f"delay_{number}", line)
            cells[source].s_out.connect(line.s_in)
        synapses = []
        for number, projection in enumerate(network.projections):
            conn = self.keep(f"synapses_{number}", synapses_of(network, projection))
            lines[projection.source, projection.delay].s_out.connect(conn.s_in)
            target = cells[projection.target]
            conn.a_out.connect(target.a_one if projection.gain is Gain.ONE else target.a_beta)
            synapses.append(conn)
        if plan.given is None:
            self.expose(proc, cells, synapses)

    def expose(self, proc: ExactNetwork, cells: Mapping[str, Any], synapses: Sequence[Any]) -> None:
        """Connect the ports of the network, and its Vars with those of the sub-processes."""
        network = proc.plan.network
        for name, cell in cells.items():
            cell.s_out.connect(getattr(proc, port_name(name)))
            for state in ("bias", "state"):
                getattr(proc, f"{state}_{identifier(name)}").alias(getattr(cell, state))
        cells[network.output].s_out.connect(proc.out)
        for target, weight in proc.plan.feeds.items():
            feed = self.keep(f"feed_{identifier(target)}", InputCurrent(weight, proc.plan))
            proc.inp.connect(feed.s_in)
            feed.a_out.connect(cells[target].c_in)
            getattr(proc, f"weights_input_{identifier(target)}").alias(feed.weights)
        for number, conn in enumerate(synapses):
            getattr(proc, weight_name(network, number)).alias(conn.weights)
