"""A whole network as one Lava process that steps many samples side by side."""

# No `from __future__ import annotations`: Lava executes this file under another module name.

from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.model.py.model import PyLoihiProcessModel
from lava.magma.core.process.process import AbstractProcess, ProcessParameters
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol

from neuro_eqprop.simulators.experiment import Experiment
from neuro_eqprop.simulators.lava.recording import SampleFiles
from neuro_eqprop.simulators.stepped_network import SteppedNetwork


class FusedNetwork(AbstractProcess):  # type: ignore[misc]
    """All populations and projections of a network; a Lava step is one step of each sample."""

    tag = "floating_pt"

    def __init__(self, experiment: Experiment, files: SampleFiles) -> None:
        super().__init__(experiment=experiment, files=files)


@implements(proc=FusedNetwork, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt")
class FusedNetworkModel(PyLoihiProcessModel):  # type: ignore[misc]
    """Steps the network in float64, or in integers if it is in fixed point."""

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        self.experiment: Experiment = proc_params["experiment"]
        self.files: SampleFiles = proc_params["files"]
        none = self.experiment.stimulus.take(0, 0)
        self.stepped = SteppedNetwork(self.experiment.network, none)

    def run_spk(self) -> None:
        """One step; an error is reported before it is raised."""
        try:
            self.step((self.time_step - 1) % self.experiment.steps)
        except BaseException:
            self.files.fail()
            raise

    def step(self, step: int) -> None:
        """One step of the samples that the files wait for."""
        if step == 0:
            stop = self.files.started
            start = stop - self.files.steps.samples
            self.stepped.start(self.experiment.stimulus.take(start, stop))
        self.stepped.step(self.files.steps.beta)
        self.files.add(self.stepped.last, lambda name: self.stepped.neurons[name].overflows)
