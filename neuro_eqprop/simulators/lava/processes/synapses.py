"""Synapses with integer weights of any size on Lava.

Lava's fixed-point `Dense` clips weights to nine bits, drops the lowest bit of weights with mixed
signs, and sums in 32 bits. Weights of a network in fixed point are integers in the unit of their
target and can need more bits.
"""

from __future__ import annotations

import numpy as np
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.model.py.ports import PyInPort, PyOutPort
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.process.ports.ports import InPort, OutPort
from lava.magma.core.process.process import AbstractProcess, ProcessParameters
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol

from neuro_eqprop.common.arrays import Ints
from neuro_eqprop.simulators.lava.job import Part
from neuro_eqprop.simulators.lava.processes.population import Reporting
from neuro_eqprop.spiking.synapses import DenseSynapses, Synapses


class IntegerSynapses(AbstractProcess):  # type: ignore[misc]
    """Weights times the messages of the population of `part`, with a delay of one step."""

    def __init__(self, part: Part, *, synapses: Synapses) -> None:
        super().__init__(part=part, synapses=synapses)
        self.s_in = InPort(shape=(synapses.shape[1],))
        self.a_out = OutPort(shape=(synapses.shape[0],))


@implements(proc=IntegerSynapses, protocol=LoihiProtocol)
@requires(CPU)
@tag("fixed_pt")
class IntegerSynapsesModel(Reporting):
    """Exact sums: in 64 bits, or in float64 below 2^52."""

    s_in = LavaPyType(PyInPort.VEC_DENSE, np.int64)
    a_out = LavaPyType(PyOutPort.VEC_DENSE, np.int64)

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        self.synapses: Synapses = proc_params["synapses"]
        self.dense: Ints | None = None
        if isinstance(self.synapses, DenseSynapses):
            self.dense = self.synapses.weight.astype(np.int64)
        self.due = np.zeros(self.synapses.shape[0], dtype=np.int64)

    def step(self, sample: int, step: int) -> None:
        """Send the sums of the previous step before receiving, so that loops cannot deadlock."""
        self.a_out.send(self.due)
        sent = self.s_in.recv()
        active = np.flatnonzero(sent)
        if self.dense is not None:
            self.due = self.dense[:, active] @ sent[active].astype(np.int64)
        elif len(active):
            self.due = self.synapses.apply(sent[None].astype(np.float64))[0].astype(np.int64)
        else:
            self.due = np.zeros_like(self.due)
