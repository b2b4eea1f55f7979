"""A delay line."""

# No `from __future__ import annotations`: Lava executes this file under another module name.

import numpy as np
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.model.py.model import PyLoihiProcessModel
from lava.magma.core.model.py.ports import PyInPort, PyOutPort
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.process.ports.ports import InPort, OutPort
from lava.magma.core.process.process import AbstractProcess, ProcessParameters
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol

from neuro_eqprop.spiking.neurons import Numbers


class Delay(AbstractProcess):  # type: ignore[misc]
    """Delays messages by `steps` steps; drops them at the end of a sample of `interval` steps."""

    def __init__(self, size: int, steps: int, interval: int | None) -> None:
        super().__init__(size=size, steps=steps, interval=interval)
        self.s_in = InPort(shape=(size,))
        self.s_out = OutPort(shape=(size,))


class DelayModel(PyLoihiProcessModel):  # type: ignore[misc]
    """A ring buffer of messages."""

    kind: type

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        self.interval: int | None = proc_params["interval"]
        self.ring: Numbers = np.zeros((proc_params["steps"], proc_params["size"]), self.kind)

    def run_spk(self) -> None:
        """Send the oldest message, then store the newest in its place."""
        step = self.time_step - 1
        if self.interval is not None and step % self.interval == 0:
            self.ring[...] = 0
        place = step % len(self.ring)
        self.s_out.send(self.ring[place])
        self.ring[place] = self.s_in.recv()


@implements(proc=Delay, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt")
class FloatDelayModel(DelayModel):
    """Messages in float64."""

    s_in = LavaPyType(PyInPort.VEC_DENSE, float)
    s_out = LavaPyType(PyOutPort.VEC_DENSE, float)
    kind = float


@implements(proc=Delay, protocol=LoihiProtocol)
@requires(CPU)
@tag("fixed_pt")
class IntegerDelayModel(DelayModel):
    """Messages as integers."""

    s_in = LavaPyType(PyInPort.VEC_DENSE, np.int64)
    s_out = LavaPyType(PyOutPort.VEC_DENSE, np.int64)
    kind = np.int64
