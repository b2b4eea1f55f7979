"""A spiking population on Lava, in float64 and in fixed point."""

from __future__ import annotations

import numpy as np
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.model.py.ports import PyInPort, PyOutPort
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol

from neuro_eqprop.simulators.lava.processes.population import PopulationModel, PopulationProcess


class SpikingPopulation(PopulationProcess):
    """Leaky integrators with binary spikes."""


@implements(proc=SpikingPopulation, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt")
class SpikingFloatModel(PopulationModel):
    """The step in float64."""

    a_one = LavaPyType(PyInPort.VEC_DENSE, float)
    a_beta = LavaPyType(PyInPort.VEC_DENSE, float)
    s_out = LavaPyType(PyOutPort.VEC_DENSE, bool)


@implements(proc=SpikingPopulation, protocol=LoihiProtocol)
@requires(CPU)
@tag("fixed_pt")
class SpikingIntegerModel(PopulationModel):
    """The step in integers."""

    a_one = LavaPyType(PyInPort.VEC_DENSE, np.int64)
    a_beta = LavaPyType(PyInPort.VEC_DENSE, np.int64)
    s_out = LavaPyType(PyOutPort.VEC_DENSE, bool)
