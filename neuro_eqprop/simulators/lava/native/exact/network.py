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
from math import ceil
from mmap import mmap
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
from neuro_eqprop.simulators.lava.native.network import ExportedNetworkModel, StreamedNetwork
from neuro_eqprop.simulators.lava.native.plan import (
    Row,
    changes,
    current_port,
    identifier,
    port_name,
)
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
class InputPort:
    """What arrives at `inp`."""

    scale: float = 1.0
    """The value of one unit."""
    changes: bool = False
    """Whether it is the change of each feature since the step before, not its value."""


class DriveLog:
    """The last messages and drives of the output, in memory shared with its process.

    Rates tie where the drives of two classes are beyond the bounds of their activation; the class
    of a simulation is that of the largest mean drive.
    """

    def __init__(self, size: int) -> None:
        memory = mmap(-1, 8 + LOG_BYTES)
        self.done: npt.NDArray[np.int64] = np.frombuffer(memory, np.int64, 1)
        most = LOG_BYTES // (16 * size)
        self.rows = np.frombuffer(memory, np.float64, 2 * most * size, 8).reshape(most, 2, size)

    def add_step(self, payload: Array, _: Any, values: Mapping[str, Array]) -> None:  # noqa: ANN401
        """Keep a step; called in the process of the output."""
        row = self.rows[self.done[0] % len(self.rows)]
        row[0], row[1] = payload, values["drive"]
        self.done[0] += 1

    def fail(self) -> None:
        """An error of the process; Lava's runtime hears of it."""

    def drives(self, messages: Array) -> Array | None:
        """The drives (steps, units) of the last steps, if these are the messages of them."""
        steps = len(messages)
        if not 0 < steps <= min(self.done[0], len(self.rows)):
            return None
        rows = self.rows[np.arange(self.done[0] - steps, self.done[0]) % len(self.rows)]
        return rows[:, 1] if np.array_equal(rows[:, 0], messages) else None


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
    port: InputPort = InputPort()
    tail: float = 0.75
    """Part of a sample, at its end, over which the drive of the output is averaged."""
    given: GivenRun | None = None

    def __post_init__(self) -> None:
        if self.given is None and any(p.gain is Gain.BETA for p in self.network.projections):
            raise ValueError("a process for inference has no nudge; use learning=True")

    @property
    def features(self) -> int:
        """The length of an input sample; zero without a port."""
        return max((weight.shape[1] for weight in self.feeds.values()), default=0)

    @property
    def graded(self) -> bool:
        """Whether the output sends graded messages."""
        return self.network[self.network.output].neuron.graded

    @property
    def tag(self) -> str:
        """The tag of the process models: floating or fixed point."""
        return "floating_pt" if self.network.fixed is None else "fixed_pt"

    @property
    def sample_steps(self) -> int | None:
        """Steps of a sample; None if it never ends."""
        return self.reset_interval if self.given is None else len(phase_steps(self.given.schedule))

    def part(
        self, population: Population, *, fed: bool, log: DriveLog | None = None
    ) -> PopulationPart:
        """What the process of a population is told; `fed` if a current arrives in every step."""
        if self.given is not None:
            episode, stimulus = phase_steps(self.given.schedule), self.given.stimulus
            recorder = self.given.watch(population.name)
            return PopulationPart(
                self.network, population, episode, fresh=True, stimulus=stimulus, watch=recorder
            )
        return PopulationPart(
            self.network,
            population,
            (PhaseStep(0, 0.0, in_window=True),) * (self.reset_interval or 1),
            fresh=self.reset_interval is not None,
            stimulus=Stimulus(0, {}, {}),
            has_current=fed,
            watch=None if log is None else lambda: log,
        )


LOG_BYTES = 2**26
"""Size of the memory that holds the last drives of the output."""
DRAWS = 64
"""Roundings of a sample that are tried for the current that it has in floating point."""


class RoundedInput(AbstractProcess):  # type: ignore[misc]
    """The input, rounded to the grid, in the same step."""

    def __init__(
        self, size: int, grid: float, port: InputPort, *, interval: int = 1, features: int = 0
    ) -> None:
        super().__init__(grid=grid, port=port, interval=interval)
        self.s_in = InPort(shape=(features or size,))
        self.a_out = OutPort(shape=(size,))


class InputCurrent(RoundedInput):
    """Input weights times the sample, rounded to the grid, in the same step."""

    def __init__(self, weight: Array, plan: ExactPlan) -> None:
        ends = plan.reset_interval or 0 if plan.port.changes else 1
        size, features = weight.shape
        super().__init__(size, plan.grid, plan.port, interval=ends, features=features)
        self.weights = Var(shape=weight.shape, init=weight)


class InputModel(PyLoihiProcessModel):  # type: ignore[misc]
    """Reads its input in every step, or in the first of `interval` steps and ignores it later.

    Changes are summed, from zero in the first of `interval` steps.
    """

    s_in = LavaPyType(PyInPort.VEC_DENSE, float)
    a_out = LavaPyType(PyOutPort.VEC_DENSE, float)

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        self.grid: float = proc_params["grid"]
        self.port: InputPort = proc_params["port"]
        self.interval: int = proc_params["interval"]
        self.sample: Array | None = None

    def run_spk(self) -> None:
        """Receive a sample, send its current, which is computed only when the sample changes."""
        sample, step = self.s_in.recv(), self.time_step - 1
        first = step == 0 or (self.interval > 0 and step % self.interval == 0)
        if self.port.changes and not first:
            sample = self.sample + sample
        elif not first:
            sample = self.sample
        if self.sample is None or not np.array_equal(sample, self.sample):
            current = self.current(sample * self.port.scale)
            self.sent = np.rint(current / self.grid) * self.grid
        self.sample = sample
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


class ExactNetwork(StreamedNetwork):
    """A spiking network with ports `inp`, `out`, `s_<layer>` and `i_<layer>`.

    `inp` takes one value for each feature in each step (see `encode`), `out` sends the spikes or
    messages of the output; `i_<layer>`, which may be left open, takes a current for each unit, in
    units of `inp_scale`. Vars `weights_<source>_<target>`, `bias_<layer>` and `state_<layer>` are
    those of the sub-processes.
    """

    def __init__(self, plan: ExactPlan, name: str | None = None) -> None:
        super().__init__(plan=plan, name=name)
        self.plan, network = plan, plan.network
        output = network[network.output].neuron
        self.inp_scale, self.out_scale = plan.port.scale, 1.0
        if isinstance(output, Graded) and network.fixed is not None:
            self.out_scale = output.theta
        self.log: DriveLog | None = None
        if plan.given is None:
            self.inp = InPort(shape=(plan.features,))
            self.out = OutPort(shape=(network[network.output].size,))
            self.log = DriveLog(self.out.shape[0])
            for population in network.populations:
                size = (population.size,)
                setattr(self, port_name(population.name), OutPort(shape=size))
                setattr(self, current_port(population.name), InPort(shape=size))
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

    def processes(self) -> tuple[Row, ...]:
        """The leaf processes: name, class, whether it is Lava's own, units, synapses."""
        network, found = self.plan.network, list[Row]()
        for target, weight in self.plan.feeds.items():
            count = int(np.count_nonzero(weight))
            found.append(Row(f"input->{target}", "InputCurrent", False, 0, count))
        for population in network.populations:
            kind = "Graded" if population.neuron.graded else "Spiking"
            found.append(Row(population.name, f"{kind}Population", False, population.size, 0))
            if self.injected(population.name):
                found.append(Row(f"current of {population.name}", "RoundedInput", False, 0, 0))
        stock = network.fixed is None
        for projection in network.projections:
            kind = "Dense" if isinstance(projection.synapses, DenseSynapses) else "Sparse"
            if not stock:
                kind = "IntegerSynapses" if kind == "Dense" else "SparseIntegerSynapses"
            found.append(Row(projection.name, kind, stock, 0, int(projection.fan_out.sum())))
        for source, delay in delay_lines(network):
            found.append(Row(f"{source} delay {delay}", "Delay", False, network[source].size, 0))
        return tuple(found)

    def injected(self, layer: str) -> bool:
        """Whether the port for a current of the layer is connected."""
        port = getattr(self, current_port(layer), None)
        return port is not None and bool(port.in_connections)

    def rounded(self, rows: Array) -> npt.NDArray[Any]:
        """Values of the input in units of `inp`; in fixed point with the currents of the values."""
        found = super().rounded(rows)
        if not self.fixed:
            return found
        aims, generator = self.currents(rows), np.random.default_rng(0)
        for _ in range(DRAWS):
            wrong = (self.currents(found * self.inp_scale) != aims).any(axis=1)
            if not wrong.any():
                return found
            # A current between two steps of the grid: round the sample in another way.
            scaled = rows[wrong] / self.inp_scale
            found[wrong] = np.floor(scaled + generator.random(scaled.shape))
        raise ValueError(
            f"sample {np.flatnonzero(wrong)[0]} has another input current when it is rounded to "
            f"multiples of {self.inp_scale:g}; give samples at export, to_lava(inputs=x), or round "
            f"x before you compare"
        )

    def sent(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Values in each step, or their changes."""
        return changes(rows, self.reset_interval) if self.plan.port.changes else rows

    def currents(self, rows: Array) -> Array:
        """The input currents of samples, in steps of the grid, side by side by population."""
        grid, feeds = self.plan.grid, self.plan.feeds.values()
        return np.concatenate([np.rint(rows @ weight.T / grid) for weight in feeds], axis=1)

    def scores(self, messages: Array, steps: int) -> Array:
        """The mean drive of each class, if these are the last messages of a run, else rates."""
        drives = None if self.log is None else self.log.drives(messages.T * self.out_scale)
        if drives is None:
            return self.rates(messages, steps)
        window = max(1, ceil(steps * self.plan.tail))
        courses = drives.reshape(-1, steps, drives.shape[1])[:, -window:]
        total: Array = np.zeros(courses[:, 0].shape)
        for step in range(window):  # in the order of the simulators, for the same rounding
            total += courses[:, step]
        return np.asarray(total / window)


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
            name, kind = population.name, SpikingPopulation
            if population.neuron.graded:
                kind = GradedPopulation
            part = plan.part(
                population,
                fed=name in plan.feeds or proc.injected(name),
                log=proc.log if name == network.output else None,
            )
            cells[name] = self.keep(f"cells_{number}", kind(part), name)
        lines = {(name, 1): cell for name, cell in cells.items()}
        for number, (source, delay) in enumerate(delay_lines(network)):
            line = Delay(network[source].size, delay - 1, plan.sample_steps)
            lines[source, delay] = self.keep(f"delay_{number}", line, f"{source} delay {delay}")
            cells[source].s_out.connect(line.s_in)
        synapses = []
        for number, projection in enumerate(network.projections):
            made = synapses_of(network, projection)
            conn = self.keep(f"synapses_{number}", made, projection.name)
            lines[projection.source, projection.delay].s_out.connect(conn.s_in)
            target = cells[projection.target]
            conn.a_out.connect(target.a_one if projection.gain is Gain.ONE else target.a_beta)
            synapses.append(conn)
        if plan.given is None:
            self.expose(proc, cells, synapses)

    def expose(self, proc: ExactNetwork, cells: Mapping[str, Any], synapses: Sequence[Any]) -> None:
        """Connect the ports of the network, and its Vars with those of the sub-processes."""
        plan, network = proc.plan, proc.plan.network
        for name, cell in cells.items():
            cell.s_out.connect(getattr(proc, port_name(name)))
            for state in ("bias", "state"):
                getattr(proc, f"{state}_{identifier(name)}").alias(getattr(cell, state))
            if proc.injected(name):
                port = getattr(proc, current_port(name))
                made = RoundedInput(port.size, plan.grid, InputPort(plan.port.scale))
                current = self.keep(current_port(name), made, f"current of {name}")
                port.connect(current.s_in)
                current.a_out.connect(cell.c_in)
        cells[network.output].s_out.connect(proc.out)
        for target, weight in plan.feeds.items():
            made = InputCurrent(weight, plan)
            feed = self.keep(f"feed_{identifier(target)}", made, f"input->{target}")
            proc.inp.connect(feed.s_in)
            feed.a_out.connect(cells[target].c_in)
            getattr(proc, f"weights_input_{identifier(target)}").alias(feed.weights)
        for number, conn in enumerate(synapses):
            getattr(proc, weight_name(network, number)).alias(conn.weights)
