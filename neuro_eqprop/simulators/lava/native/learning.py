"""An equilibrium network that learns, as one hierarchical Lava process.

A clock runs each sample and its target through the phases and a commit. Synapses are Lava's own
`LearningDense` with its learning engine. Populations send the traces and the third factor that the
engine needs, and run in Python process models of this package. The rule is that
of `neuro_eqprop.spiking.plasticity` (Scellier & Bengio 2017), in floating point or with the
integers of Lava's engine.
"""

# No `from __future__ import annotations`: Lava executes this file under another module name.

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
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
from lava.proc.dense.process import LearningDense

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.simulators.lava.job import tick
from neuro_eqprop.simulators.lava.learning.job import (
    LearningJob,
    LearningPopulation,
    StepControl,
    integer_control,
    message_size,
    message_slices,
    step_control,
)
from neuro_eqprop.simulators.lava.learning.processes.graded import LearningGraded
from neuro_eqprop.simulators.lava.learning.processes.spiking import LearningSpikes
from neuro_eqprop.simulators.lava.learning.processes.synapses import synapse_arguments
from neuro_eqprop.simulators.lava.native.exact import INPUT_EXP, weight_name
from neuro_eqprop.simulators.lava.native.network import (
    ExportedNetwork,
    ExportedNetworkModel,
    message_rows,
    sample_rows,
)
from neuro_eqprop.simulators.lava.native.plan import Row, integers, port_name
from neuro_eqprop.simulators.lava.worker import synapses
from neuro_eqprop.spiking.arithmetic import nearest
from neuro_eqprop.spiking.ir import Gain, Graded, Projection, SpikingNetwork
from neuro_eqprop.spiking.plasticity import LearningRule, third_factors


@dataclass(frozen=True)
class LearningPlan:
    """A network that learns, the learning rate of each sample, and the initial model."""

    learning: LearningJob
    """The learning job; the one sample of its stimulus gives the size of all samples."""
    rates: Array
    """Learning rate of each sample; later samples use the last one."""
    grid: float
    """Samples and targets are rounded to multiples of this."""
    params: Mapping[str, Array]
    """The initial parameters of the rate network."""
    make_model: Callable[[Mapping[str, Array]], Any]
    """Makes a `Model` of learned parameters."""
    always: str
    """The population whose outgoing weights are the biases."""

    @property
    def network(self) -> SpikingNetwork:
        """The spiking network."""
        return self.learning.plastic.network

    @property
    def rule(self) -> LearningRule:
        """Phases and constants of learning."""
        return self.learning.plastic.rule

    @property
    def entry(self) -> str:
        """The population of the input."""
        return next(iter(self.learning.training.stimulus.current))

    @property
    def input_exp(self) -> int:
        """Samples and targets are multiples of 2^-input_exp; Lava's sources send integers."""
        return 0 if self.learning.engine is None else INPUT_EXP

    def part(self, name: str) -> LearningPopulation:
        """The parameters of the process of a population."""
        names = [population.name for population in self.network.populations]
        index = names.index(name)
        return LearningPopulation(self.learning.job, index, Path(), self.learning, recorded=False)

    def learns(self, projection: Projection) -> bool:
        """Whether the weights of a projection change."""
        return projection.gain is Gain.ONE and projection.name in self.learning.plastic.learns


class PhaseClock(AbstractProcess):  # type: ignore[misc]
    """Receives samples and targets; sends control values, currents and pulls."""

    def __init__(self, plan: LearningPlan) -> None:
        super().__init__(plan=plan)
        network = plan.network
        self.inp = InPort(shape=(network[plan.entry].size,))
        self.target = InPort(shape=(network[network.output].size,))
        self.control_port = OutPort(shape=(message_size(plan.learning.job),))


class PhaseClockModel(PyLoihiProcessModel):  # type: ignore[misc]
    """Reads its input in the first step of each sample and ignores it later."""

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        self.plan: LearningPlan = proc_params["plan"]
        job = self.plan.learning.job
        self.ticks = [tick(job.schedule, step) for step in range(job.steps)]
        self.message = np.zeros(message_size(job))
        here = message_slices(job)
        self.current = here[self.plan.entry, "current"]
        self.pull = here[self.plan.network.output, "pull"]

    def run_spk(self) -> None:
        """Receive the input and send the message of the step."""
        sample, step = divmod(self.time_step - 1, len(self.ticks))
        current, target, grid = self.inp.recv(), self.target.recv(), self.plan.grid
        if step == 0:
            unit = 2.0**-self.plan.input_exp
            self.message[self.current] = np.rint(current * unit / grid) * grid
            self.message[self.pull] = np.rint(target * unit / grid) * grid
        rate = float(self.plan.rates[min(sample, len(self.plan.rates) - 1)])
        now = step_control(
            self.plan.rule, self.ticks[step], sample=sample, first=step == 0, rate=rate
        )
        self.message[: len(StepControl._fields)] = now
        self.control_port.send(self.encoded(now, rate))

    def encoded(self, control: StepControl, rate: float) -> npt.NDArray[Any]:
        """The message in the number format of the run."""
        return self.message


@implements(proc=PhaseClock, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt")
class FloatPhaseClockModel(PhaseClockModel):
    """In float64."""

    inp = LavaPyType(PyInPort.VEC_DENSE, float)
    target = LavaPyType(PyInPort.VEC_DENSE, float)
    control_port = LavaPyType(PyOutPort.VEC_DENSE, float)


@implements(proc=PhaseClock, protocol=LoihiProtocol)
@requires(CPU)
@tag("fixed_pt")
class IntegerPhaseClockModel(PhaseClockModel):
    """In integers; samples and targets arrive as multiples of 2^-input_exp."""

    inp = LavaPyType(PyInPort.VEC_DENSE, np.int32)
    target = LavaPyType(PyInPort.VEC_DENSE, np.int32)
    control_port = LavaPyType(PyOutPort.VEC_DENSE, np.int64)

    def encoded(self, control: StepControl, rate: float) -> npt.NDArray[Any]:
        """Currents and pulls in the unit of their population."""
        engine, fixed = self.plan.learning.engine, self.plan.network.fixed
        assert engine is not None
        assert fixed is not None
        factor = int(third_factors(engine, np.array([rate]))[0])
        found = np.zeros(self.message.shape, dtype=np.int64)
        found[: len(StepControl._fields)] = integer_control(control, factor)
        for (name, _), place in message_slices(self.plan.learning.job).items():
            found[place] = nearest(self.message[place], fixed.units[name])
        return found


class LearningNetwork(ExportedNetwork):
    """A network that learns, with ports `inp`, `target`, `out` and `s_<layer>`.

    A sample takes `steps` steps: its phases and a commit. `encode(x, y)` returns the data of two
    sources, `weights()` the learned weights. Vars `weights_<source>_<target>` are the weights of
    the sub-processes.
    """

    FED = ("inp", "target")
    ENCODED = "the data of encode(x, y)"

    def __init__(self, plan: LearningPlan, name: str | None = None) -> None:
        super().__init__(plan=plan, name=name)
        self.plan, network = plan, plan.network
        self.inp = InPort(shape=(network[plan.entry].size,))
        self.target = InPort(shape=(network[network.output].size,))
        self.out = OutPort(shape=(network[network.output].size,))
        for population in network.populations:
            setattr(self, port_name(population.name), OutPort(shape=(population.size,)))
        for number, projection in enumerate(network.projections):
            if plan.learns(projection):
                setattr(self, weight_name(network, number), Var(projection.weight.shape))
        self._post_init()

    @property
    def tag(self) -> str:
        """The tag of a run configuration: `Loihi2SimCfg(select_tag=net.tag)`."""
        return "floating_pt" if self.plan.learning.engine is None else "fixed_pt"

    @property
    def steps(self) -> int:
        """Steps of a sample, the commit included."""
        return self.plan.rule.steps

    def processes(self) -> tuple[Row, ...]:
        """The leaf processes: name, class, whether it is Lava's own, units, synapses."""
        found = [Row("clock of the phases", "PhaseClock", False, 0, 0)]
        for population in self.plan.network.populations:
            kind = "LearningGraded" if isinstance(population.neuron, Graded) else "LearningSpikes"
            found.append(Row(population.name, kind, False, population.size, 0))
        fixed_weights = "Dense" if self.plan.learning.engine is None else "IntegerSynapses"
        for projection in self.plan.network.projections:
            learns = self.plan.learns(projection)
            name = projection.name if learns else f"{projection.name} nudge"
            kind = "LearningDense" if learns else fixed_weights
            # A weight that is zero can still learn.
            count = projection.weight.size if learns else int(projection.fan_out.sum())
            found.append(Row(name, kind, kind != "IntegerSynapses", 0, count))
        return tuple(found)

    def encode(
        self, x: npt.ArrayLike, y: npt.ArrayLike
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Samples and targets as the data of two RingBuffers.

        Parameters
        ----------
        x : array (samples, features)
            The samples.
        y : array (samples,) or (samples, classes)
            Class numbers, or the values that the output is nudged towards.

        Returns
        -------
        array (features, samples * steps), array (classes, samples * steps)
            For `inp` and for `target`; in fixed point, integer multiples of 2^-24.
        """
        classes = self.target.shape[0]
        rows = sample_rows(x, self.steps, features=self.inp.shape[0], reset_interval=None)
        graded = isinstance(self.plan.network[self.plan.entry].neuron, Graded)
        if not graded and not (rows.min(initial=0.0) >= 0 and rows.max(initial=0.0) <= 1):
            raise ValueError(
                "x has values outside 0..1, the range of spike rates; use code 'graded'"
            )
        given = np.asarray(y)
        targets = np.eye(classes)[given] if given.ndim == 1 else given.astype(np.float64)
        if targets.shape != (len(rows), classes):
            raise ValueError(
                f"y has shape {given.shape}; {len(rows)} samples of {classes} classes need "
                f"({len(rows)},) or ({len(rows)}, {classes})"
            )
        exponent = self.plan.input_exp
        sent = [rows, targets] if not exponent else [integers(v, exponent) for v in (rows, targets)]
        return np.repeat(sent[0].T, self.steps, axis=1), np.repeat(sent[1].T, self.steps, axis=1)

    def rates(self, messages: npt.ArrayLike) -> Array:
        """Rates (samples, units) in the free phase, from messages (units, samples * steps)."""
        sent = message_rows(messages, self.steps)
        free = self.plan.rule.schedule[0]
        sent = sent.reshape(len(sent), -1, self.steps)[..., : free.steps]
        output = self.plan.network[self.plan.network.output].neuron
        shown = sent.cumsum(axis=2) if isinstance(output, Graded) else sent
        return np.asarray(shown[..., -free.window :].mean(axis=2).T)

    def decode(self, messages: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Classes (samples,) predicted in the free phase, from (classes, samples * steps)."""
        return np.asarray(self.rates(messages).argmax(axis=1))

    def weights(self) -> dict[str, Array]:
        """The weights (targets, sources) by projection; call it before `stop()`.

        Lava reads weights one by one: 200 000 take about ten seconds.
        """
        network, found = self.plan.network, dict[str, Array]()
        for number, projection in enumerate(network.projections):
            if self.plan.learns(projection):
                values = getattr(self, weight_name(network, number)).get()
                step = self.plan.learning.weight_step(projection.name)
                found[projection.name] = np.array(values, dtype=np.float64) * step
        return found

    def model(self, weights: Mapping[str, Array] | None = None) -> Any:  # noqa: ANN401
        """The rate model with the learned weights, or with those of an earlier `weights()`."""
        learned, plan = self.weights() if weights is None else weights, self.plan
        params = {
            name: learned[name]
            if name in learned
            else learned[f"{plan.always}->{name}"].reshape(value.shape)
            for name, value in plan.params.items()
        }
        return plan.make_model(params)

    def save(
        self,
        run: str | Path,
        *,
        dataset: str | Path | None = None,
        force: bool = False,
        weights: Mapping[str, Array] | None = None,
    ) -> None:
        """Write the learned model as a run folder or a `.safetensors` file, as `Model.save`."""
        self.model(weights).save(run, dataset=dataset, force=force)


@implements(proc=LearningNetwork, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt", "fixed_pt")
class LearningNetworkModel(ExportedNetworkModel):
    """Sub-processes of a network that learns, and their connections."""

    def __init__(self, proc: LearningNetwork) -> None:
        super().__init__(proc)
        plan, network = proc.plan, proc.plan.network
        clock = self.keep("clock", PhaseClock(plan))
        proc.inp.connect(clock.inp)
        proc.target.connect(clock.target)
        cells: dict[str, Any] = {}
        for number, population in enumerate(network.populations):
            name, graded = population.name, isinstance(population.neuron, Graded)
            kind = LearningGraded if graded else LearningSpikes
            cells[name] = self.keep(f"cells_{number}", kind(plan.part(name)))
            clock.control_port.connect(cells[name].control_port)
            cells[name].s_out.connect(getattr(proc, port_name(name)))
        cells[network.output].s_out.connect(proc.out)
        for number, projection in enumerate(network.projections):
            part, target = plan.part(projection.source), cells[projection.target]
            if plan.learns(projection):
                conn = self.keep(
                    f"synapses_{number}", LearningDense(**synapse_arguments(part, number))
                )
                target.y1.connect(conn.s_in_y1)
                target.y2.connect(conn.s_in_y2)
                target.y3.connect(conn.s_in_y3)
                getattr(proc, weight_name(network, number)).alias(conn.weights)
            else:
                conn = self.keep(f"synapses_{number}", synapses(part, projection))
            cells[projection.source].s_out.connect(conn.s_in)
            conn.a_out.connect(target.a_one if projection.gain is Gain.ONE else target.a_beta)
