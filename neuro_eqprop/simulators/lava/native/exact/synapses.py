"""Synapses and delay lines of a spiking network as Lava processes."""

# No `from __future__ import annotations`: Lava executes this file under another module name.

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
from lava.proc.dense.process import Dense
from lava.proc.sparse.process import Sparse
from scipy.sparse import csr_matrix

from neuro_eqprop.spiking.fixed_point import integer_synapses
from neuro_eqprop.spiking.ir import Projection, SpikingNetwork
from neuro_eqprop.spiking.neurons import Numbers
from neuro_eqprop.spiking.synapses import DenseSynapses

PAYLOAD_BITS = 24
"""Message bits of graded spikes: above zero, Lava's synapses multiply by the message."""


class IntegerSynapses(AbstractProcess):  # type: ignore[misc]
    """Integer weights of any size times messages; a sum arrives in the next step.

    Lava's own fixed-point synapses clip weights to nine bits; those of this network need more.
    """

    def __init__(self, weight: Any) -> None:  # noqa: ANN401
        super().__init__()
        self.s_in = InPort(shape=(weight.shape[1],))
        self.a_out = OutPort(shape=(weight.shape[0],))
        self.weights = Var(shape=weight.shape, init=weight)


class SparseIntegerSynapses(IntegerSynapses):
    """The same with weights as a SciPy CSR matrix."""


class ExactSums(PyLoihiProcessModel):  # type: ignore[misc]
    """Sums in 64-bit integers."""

    s_in = LavaPyType(PyInPort.VEC_DENSE, np.int64)
    a_out = LavaPyType(PyOutPort.VEC_DENSE, np.int64)
    due: Numbers | None = None
    weights: Any

    def run_spk(self) -> None:
        """Send the sums of the previous step before receiving, so that loops cannot deadlock."""
        if self.due is None:
            self.due = np.zeros(self.weights.shape[0], dtype=np.int64)
        self.a_out.send(self.due)
        self.due = self.product(self.s_in.recv().astype(np.int64))

    def product(self, sent: Numbers) -> Numbers:
        """The weights times the messages."""
        return np.asarray(self.weights @ sent)


@implements(proc=IntegerSynapses, protocol=LoihiProtocol)
@requires(CPU)
@tag("fixed_pt")
class IntegerSynapsesModel(ExactSums):
    """Of a NumPy array; NumPy multiplies integers slowly, so columns without a message are left."""

    weights = LavaPyType(np.ndarray, np.int64)

    def product(self, sent: Numbers) -> Numbers:
        """The columns of the units that sent something, times their messages."""
        active = np.flatnonzero(sent)
        return np.asarray(self.weights[:, active] @ sent[active])


@implements(proc=SparseIntegerSynapses, protocol=LoihiProtocol)
@requires(CPU)
@tag("fixed_pt")
class SparseIntegerModel(ExactSums):
    """Of a CSR matrix."""

    weights = LavaPyType(csr_matrix, np.int64)


def synapses_of(network: SpikingNetwork, projection: Projection) -> AbstractProcess:
    """The synapses of a projection: Lava's own in floating point.

    A convolution is a sparse matrix, too: that is faster than `Conv`, which has no transpose.
    """
    fixed = network.fixed is not None
    given = integer_synapses(network, projection) if fixed else projection.synapses
    if isinstance(given, DenseSynapses):
        weight, sparse = given.weight, False
    else:
        made = given.to_csr()
        weight, sparse = csr_matrix((made.data, made.indices, made.indptr), shape=made.shape), True
    if fixed:
        kind = SparseIntegerSynapses if sparse else IntegerSynapses
        return kind(weight.astype(np.int64))
    bits = PAYLOAD_BITS if network[projection.source].neuron.graded else 0
    return (Sparse if sparse else Dense)(weights=weight, num_message_bits=bits)


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
