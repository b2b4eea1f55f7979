"""A delay line on Lava."""

from __future__ import annotations

import numpy as np
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.model.py.ports import PyInPort, PyOutPort
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.process.ports.ports import InPort, OutPort
from lava.magma.core.process.process import AbstractProcess, ProcessParameters
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol

from neuro_eqprop.backends.lava.job import Part
from neuro_eqprop.backends.lava.processes.population import Reporting
from neuro_eqprop.spiking.neurons import Numbers


class DelayLine(AbstractProcess):  # type: ignore[misc]
    """Forwards the messages of a population `steps` steps later."""

    def __init__(self, part: Part, *, steps: int) -> None:
        super().__init__(part=part, steps=steps)
        shape = (part.population.size,)
        self.s_in = InPort(shape=shape)
        self.s_out = OutPort(shape=shape)


class DelayModel(Reporting):
    """A ring buffer of messages, cleared at the start of each sample."""

    kind: type

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        shape = (proc_params["steps"], self.part.population.size)
        self.ring: Numbers = np.zeros(shape, self.kind)

    def step(self, sample: int, step: int) -> None:
        """Send the oldest message, then store the newest in its place."""
        if step == 0:
            self.ring[...] = 0
        place = step % len(self.ring)
        self.s_out.send(self.ring[place])
        self.ring[place] = self.s_in.recv()


@implements(proc=DelayLine, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt")
class FloatDelayModel(DelayModel):
    """Messages in floating point."""

    s_in = LavaPyType(PyInPort.VEC_DENSE, float)
    s_out = LavaPyType(PyOutPort.VEC_DENSE, float)
    kind = float


@implements(proc=DelayLine, protocol=LoihiProtocol)
@requires(CPU)
@tag("fixed_pt")
class IntegerDelayModel(DelayModel):
    """Messages in integers."""

    s_in = LavaPyType(PyInPort.VEC_DENSE, np.int64)
    s_out = LavaPyType(PyOutPort.VEC_DENSE, np.int64)
    kind = np.int64
