"""Input source and recorder of a population of Lava's own neurons."""

from __future__ import annotations

import numpy as np
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.model.py.ports import PyInPort, PyOutPort
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.process.ports.ports import InPort, OutPort
from lava.magma.core.process.process import AbstractProcess, ProcessParameters
from lava.magma.core.process.variable import Var
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol

from neuro_eqprop.files.subprocess import progress
from neuro_eqprop.simulators.lava.job import Part, tick
from neuro_eqprop.simulators.lava.native.plan import (
    Layer,
    Plan,
    Scale,
    biases,
    integers,
    unit_count,
)
from neuro_eqprop.simulators.lava.processes.population import Reporting
from neuro_eqprop.simulators.lava.recording import StepRecorder
from neuro_eqprop.spiking.neurons import Numbers


def input_exponent(plan: Plan, scale: Scale) -> int:
    """k, where input is in multiples of 2^-k; zero in floating point."""
    return scale.message_exp + scale.state_exp if plan.graded else scale.drive_exp


class StockSource(AbstractProcess):  # type: ignore[misc]
    """Sends the input current to graded units in the first step of a sample, else in each step."""

    def __init__(self, part: Part, *, plan: Plan, scale: Scale) -> None:
        super().__init__(part=part, plan=plan, scale=scale)
        self.s_out = OutPort(shape=(unit_count(plan, plan.layers[part.index]),))


class StockSourceModel(Reporting):
    """Base model of the source. Graded units sum their input, so that one message suffices."""

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        plan: Plan = proc_params["plan"]
        self.graded, exponent = plan.graded, input_exponent(plan, proc_params["scale"])
        layer = plan.layers[self.part.index]
        rows = self.part.job.stimulus.current[layer.name]
        sent = np.tile(rows, unit_count(plan, layer) // layer.size)
        self.rows: Numbers = sent if plan.bits is None else integers(sent, exponent)

    def step(self, sample: int, step: int) -> None:
        """Send the current of the sample."""
        row = self.rows[sample]
        self.s_out.send(row if step == 0 or not self.graded else 0 * row)


@implements(proc=StockSource, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt")
class FloatStockSource(StockSourceModel):
    """In float64."""

    s_out = LavaPyType(PyOutPort.VEC_DENSE, float)


@implements(proc=StockSource, protocol=LoihiProtocol)
@requires(CPU)
@tag("fixed_pt")
class IntegerStockSource(StockSourceModel):
    """In fixed point."""

    s_out = LavaPyType(PyOutPort.VEC_DENSE, np.int32)


class StockRecorder(AbstractProcess):  # type: ignore[misc]
    """Receives the input `a_in` and the output `s_in` of a population."""

    def __init__(self, part: Part, *, plan: Plan, scale: Scale) -> None:
        super().__init__(part=part, plan=plan, scale=scale)
        shape = (unit_count(plan, plan.layers[part.index]),)
        self.a_in = InPort(shape=shape)
        self.s_in = InPort(shape=shape)
        self.steps_run = Var(shape=(1,), init=0)


class StockRecorderModel(Reporting):
    """Records messages, rates and the drive d of a population.

    With a the input of a step, d = sum of a + bias (graded) or d = a + bias (spiking).
    """

    steps_run = LavaPyType(np.ndarray, np.int64)

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        plan, scale = proc_params["plan"], proc_params["scale"]
        self.layer: Layer = plan.layers[self.part.index]
        self.graded, self.exponent = plan.graded, input_exponent(plan, scale)
        self.message_exp = scale.message_exp if plan.graded else 0
        self.signs = [sign for sign, _ in self.layer.corners] if plan.graded else []
        low = self.layer.low if plan.graded and self.signs else 0.0
        self.low = np.full(self.layer.size, low)
        # Messages carry rates minus their lower bound; the bound is a constant part of the drive.
        shifted = biases(plan, self.layer)[: self.layer.size] + self.low
        self.bias = shifted if plan.graded else self.layer.bias
        self.recorder, self.progress = StepRecorder(self.part), progress(self.part.folder)
        self.total, self.rate = np.zeros(self.layer.size), self.low.copy()

    def step(self, sample: int, step: int) -> None:
        """Record a step."""
        size = self.layer.size
        arrived = np.ldexp(np.asarray(self.a_in.recv()[:size], dtype=np.float64), -self.exponent)
        sent = np.ldexp(np.asarray(self.s_in.recv(), dtype=np.float64), -self.message_exp)
        parts = sent.reshape(-1, size)
        message = parts[0] if not self.signs else np.asarray(self.signs) @ parts
        if step == 0:
            self.total, self.rate = np.zeros(size), self.low.copy()
        self.total = self.total + arrived if self.graded else arrived
        self.rate = self.rate + message if self.graded else message
        now = tick(self.part.job.schedule, step)
        # Each neuron of a pair sends its own messages.
        self.recorder.sums[0][0, now.phase] += (parts != 0).sum(axis=0) - (message != 0)
        values = {"drive": self.total + self.bias, "state": self.rate}
        shown = message if self.graded else message > 0
        self.recorder.record(step, now, message=shown, firing=self.rate, values=values)
        self.steps_run[0] += 1
        self.progress[self.part.index + 1] = self.time_step


@implements(proc=StockRecorder, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt")
class FloatStockRecorder(StockRecorderModel):
    """In float64."""

    a_in = LavaPyType(PyInPort.VEC_DENSE, float)
    s_in = LavaPyType(PyInPort.VEC_DENSE, float)


@implements(proc=StockRecorder, protocol=LoihiProtocol)
@requires(CPU)
@tag("fixed_pt")
class IntegerStockRecorder(StockRecorderModel):
    """In fixed point."""

    a_in = LavaPyType(PyInPort.VEC_DENSE, np.int32)
    s_in = LavaPyType(PyInPort.VEC_DENSE, np.int32)
