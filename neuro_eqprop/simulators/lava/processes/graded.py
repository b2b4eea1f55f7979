"""A graded population on Lava, in float64 and in fixed point."""

from __future__ import annotations

import numpy as np
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.model.py.ports import PyInPort, PyOutPort
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol

from neuro_eqprop.simulators.lava.processes.population import PopulationModel, PopulationProcess


class GradedPopulation(PopulationProcess):
    """Sigma-delta units, which send the changes of their state."""


@implements(proc=GradedPopulation, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt")
class GradedFloatModel(PopulationModel):
    """The step in float64."""

    a_one = LavaPyType(PyInPort.VEC_DENSE, float)
    a_beta = LavaPyType(PyInPort.VEC_DENSE, float)
    s_out = LavaPyType(PyOutPort.VEC_DENSE, float)


@implements(proc=GradedPopulation, protocol=LoihiProtocol)
@requires(CPU)
@tag("fixed_pt")
class GradedIntegerModel(PopulationModel):
    """The step in integers; messages are multiples of theta."""

    a_one = LavaPyType(PyInPort.VEC_DENSE, np.int64)
    a_beta = LavaPyType(PyInPort.VEC_DENSE, np.int64)
    s_out = LavaPyType(PyOutPort.VEC_DENSE, np.int64)
