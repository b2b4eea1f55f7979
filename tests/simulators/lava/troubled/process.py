"""A Lava process that fails in its third step, and one that waits for it."""

# No `from __future__ import annotations`: Lava executes this file under another module name.

import time
from typing import Any

import numpy as np
from lava.magma.core.decorator import implements, requires
from lava.magma.core.model.py.model import PyLoihiProcessModel
from lava.magma.core.model.py.ports import PyInPort, PyOutPort
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.process.ports.ports import InPort, OutPort
from lava.magma.core.process.process import AbstractProcess
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol


class Troubled(AbstractProcess):  # type: ignore[misc]
    """Raises an error, sleeps, or sends nothing."""

    def __init__(self, trouble: str, name: str) -> None:
        super().__init__(trouble=trouble, name=name)
        self.s_out = OutPort(shape=(1,))


class Waiting(AbstractProcess):  # type: ignore[misc]
    """Receives a message in every step."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name)
        self.a_in = InPort(shape=(1,))


@implements(proc=Troubled, protocol=LoihiProtocol)
@requires(CPU)
class TroubledModel(PyLoihiProcessModel):  # type: ignore[misc]
    """Works for two steps."""

    s_out: Any = LavaPyType(PyOutPort.VEC_DENSE, float)

    def run_spk(self) -> None:
        """Send, or not."""
        trouble = self.proc_params["trouble"] if self.time_step == 3 else None
        if trouble == "raises":
            raise ArithmeticError("third step")
        if trouble == "sleeps":
            time.sleep(120)
        if trouble != "is silent":
            self.s_out.send(np.ones(1))


@implements(proc=Waiting, protocol=LoihiProtocol)
@requires(CPU)
class WaitingModel(PyLoihiProcessModel):  # type: ignore[misc]
    """Receives."""

    a_in: Any = LavaPyType(PyInPort.VEC_DENSE, float)

    def run_spk(self) -> None:
        """Receive."""
        self.a_in.recv()
