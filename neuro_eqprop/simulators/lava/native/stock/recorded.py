"""A network of Lava's own neurons in a run of the backend: with sources and recorders."""

# No `from __future__ import annotations`: Lava executes this file under another module name.

from collections.abc import Mapping
from typing import Any

import numpy as np
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.model.py.model import PyLoihiProcessModel
from lava.magma.core.model.py.ports import PyInPort, PyOutPort
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.process.ports.ports import InPort, OutPort
from lava.magma.core.process.process import AbstractProcess, ProcessParameters
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.simulators.lava.native.plan import (
    StockLayer,
    StockPlan,
    StockScale,
    biases,
    integers,
    state_exponent,
    unit_count,
)
from neuro_eqprop.simulators.lava.native.stock.network import StockGraph
from neuro_eqprop.simulators.lava.recording import SampleFiles
from neuro_eqprop.simulators.step_recorder import Step
from neuro_eqprop.spiking.ir import Stimulus
from neuro_eqprop.spiking.neurons import Numbers


class StockSource(AbstractProcess):  # type: ignore[misc]
    """Sends the current of each sample: to graded units once, since they sum it, else always."""

    def __init__(
        self, layer: StockLayer, current: Array, plan: StockPlan, scale: StockScale
    ) -> None:
        count = unit_count(plan, layer)
        rows: Numbers = np.tile(current, count // layer.size)
        if plan.bits is not None:
            rows = integers(rows, state_exponent(plan, scale))
        super().__init__(rows=rows, graded=plan.graded, interval=plan.reset_interval)
        self.s_out = OutPort(shape=(count,))


class StockSourceModel(PyLoihiProcessModel):  # type: ignore[misc]
    """Sends a row of currents, or zeros."""

    def run_spk(self) -> None:
        """Send the current of the sample."""
        given = self.proc_params
        sample, step = divmod(self.time_step - 1, given["interval"])
        row = given["rows"][sample]
        self.s_out.send(row if step == 0 or not given["graded"] else 0 * row)


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
    """Receives the input `a_in` and the output `s_in` of a layer."""

    def __init__(
        self, layer: StockLayer, files: SampleFiles, plan: StockPlan, scale: StockScale
    ) -> None:
        super().__init__(layer=layer, files=files, plan=plan, scale=scale)
        shape = (unit_count(plan, layer),)
        self.a_in = InPort(shape=shape)
        self.s_in = InPort(shape=shape)


class StockRecorderModel(PyLoihiProcessModel):  # type: ignore[misc]
    """Records messages, rates and the drive d of a layer.

    With a the input of a step, d = sum of a + bias (graded) or d = a + bias (spiking).
    """

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        self.files: SampleFiles = proc_params["files"]
        self.layer: StockLayer = proc_params["layer"]
        plan, scale = proc_params["plan"], proc_params["scale"]
        self.interval = plan.reset_interval
        self.graded, self.exponent = plan.graded, state_exponent(plan, scale)
        self.message_exp = scale.message_exp if plan.graded else 0
        self.signs = [sign for sign, _ in self.layer.corners] if plan.graded else []
        self.low = np.full(self.layer.size, self.layer.low if self.signs else 0.0)
        # Messages carry rates minus their lower bound; the bound is a constant part of the drive.
        shifted = biases(plan, self.layer)[: self.layer.size] + self.low
        self.bias = shifted if plan.graded else self.layer.bias

    def run_spk(self) -> None:
        """Record a step; an error is reported before it is raised."""
        try:
            self.step()
        except BaseException:
            self.files.fail()
            raise

    def step(self) -> None:
        """Receive input and output, and record them."""
        size = self.layer.size
        arrived = np.ldexp(np.asarray(self.a_in.recv()[:size], dtype=np.float64), -self.exponent)
        sent = np.ldexp(np.asarray(self.s_in.recv(), dtype=np.float64), -self.message_exp)
        parts = sent.reshape(-1, size)
        message = parts[0] if not self.signs else np.asarray(self.signs) @ parts
        if (self.time_step - 1) % self.interval == 0:
            self.total, self.rate = np.zeros(size), self.low.copy()
        self.total = self.total + arrived if self.graded else arrived
        self.rate = self.rate + message if self.graded else message
        # Each neuron of a pair sends its own messages.
        self.files.add_messages(self.layer.name, (parts != 0).sum(axis=0) - (message != 0))
        values = {"drive": self.total + self.bias, "state": self.rate}
        shown = message if self.graded else message > 0
        self.files.add(lambda _: Step(shown, self.rate, values), lambda _: (0, 0))


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


class RecordedStock(AbstractProcess):  # type: ignore[misc]
    """The network of a plan, whose layers receive the currents of a stimulus."""

    def __init__(
        self,
        plan: StockPlan,
        scale: StockScale,
        stimulus: Stimulus,
        files: Mapping[str, SampleFiles],
    ) -> None:
        super().__init__(plan=plan, scale=scale)
        self.plan, self.scale, self.current, self.files = plan, scale, stimulus.current, files
        self.tag = "floating_pt" if plan.bits is None else "fixed_pt"


@implements(proc=RecordedStock, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt", "fixed_pt")
class RecordedStockModel(StockGraph):
    """Sub-processes of the network, with the source and the recorder of each layer."""

    def __init__(self, proc: RecordedStock) -> None:
        self.owner = proc.name
        plan, scale, recorders = proc.plan, proc.scale, dict[str, Any]()
        self.build(plan, scale)
        for number, layer in enumerate(plan.layers):
            made = StockRecorder(layer, proc.files[layer.name], plan, scale)
            recorder = self.keep(f"recorder_{number}", made)
            cell = self.cells[layer.name]
            cell.s_out.connect(recorder.s_in)
            if layer.name in proc.current:
                made = StockSource(layer, proc.current[layer.name], plan, scale)
                source = self.keep(f"source_{number}", made)
                source.s_out.connect(cell.a_in)
                source.s_out.connect(recorder.a_in)
            recorders[layer.name] = recorder
        for edge, conn in zip(plan.edges, self.synapses, strict=True):
            conn.a_out.connect(recorders[edge.target].a_in)
