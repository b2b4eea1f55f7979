"""`Simulation`: the result of a run of a spiking network on a simulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, Ints, NamedDict
from neuro_eqprop.common.html import html_table
from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.simulators.recordings import Counts
from neuro_eqprop.spiking.ir import SpikingNetwork
from neuro_eqprop.spiking.lowered import LoweredNetwork
from neuro_eqprop.spiking.operator_synapses import dense_macs


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    """The result of a run of a spiking model on a simulator, in a free phase.

    Parameters
    ----------
    spiking : SpikingModel
        The model that ran.
    backend : str
        The name of the simulator.
    schedule : Schedule
        The phases; the first is the free one.
    rates : mapping of str to array (samples, units)
        The rates of each layer, averaged over the window of the phase.
    drive : array (samples, classes)
        The mean drive (pre-activation) of the output, from which classes are read.
    counts : mapping of (population, phase) to Counts
        Spikes, synaptic operations and neuron updates, summed over samples.
    overflows : int
        In fixed point, how often a current wrapped or a voltage saturated.
    seconds : float
        Wall-clock time of the run.
    x : array (samples, features), optional
        The samples that ran.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> data = ne.load_data("digits")
    >>> model = ne.train("layered", data, hidden=(16,), epochs=1)
    >>> run = model.to_spiking().run(data.test.x[:4], on="reference", steps=32)
    >>> run.rates["hidden"].shape, run.total.synops > 0
    ((4, 16), True)
    >>> 0.0 <= run.accuracy(data.test.y[:4]) <= 1.0
    True
    """

    spiking: LoweredNetwork
    backend: str
    schedule: Schedule
    rates: Mapping[str, Array]
    drive: Array
    counts: Mapping[tuple[str, str], Counts]
    overflows: int = 0
    seconds: float = 0.0
    x: Array | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rates", NamedDict("layer", self.rates))
        object.__setattr__(self, "counts", NamedDict("population and phase", self.counts))

    def __repr__(self) -> str:
        return f"Simulation({self.description})"

    def _repr_html_(self) -> str:
        rows = {
            "run": self.description,
            "neurons": self.spiking.neurons,
            "spikes per sample": f"{self.total.spikes / self.samples:.1f}",
            "synaptic operations per sample": f"{self.total.synops / self.samples:.1f}",
            "time": f"{self.seconds:.2f} s",
        }
        return html_table("Simulation", rows)

    @property
    def description(self) -> str:
        """Samples, simulator, steps and codes of the run."""
        where = f"{self.samples} samples on {self.backend}, {self.steps} steps"
        return f"{where}, {self.spiking.description}"

    @property
    def samples(self) -> int:
        """The number of samples."""
        return len(self.drive)

    @property
    def steps(self) -> int:
        """Steps of the free phase."""
        return self.schedule[0].steps

    @property
    def network(self) -> SpikingNetwork:
        """The spiking network that ran."""
        return self.spiking.network

    @property
    def predictions(self) -> Ints:
        """The class of each sample: the output unit with the largest drive."""
        return np.asarray(self.drive.argmax(axis=1))

    def accuracy(self, y: npt.ArrayLike) -> float:
        """The fraction of samples whose prediction equals the label in y (samples,)."""
        labels = np.asarray(y)
        if labels.shape != self.predictions.shape:
            raise ValueError(
                f"y has shape {labels.shape}; this simulation has {len(self.predictions)} samples"
            )
        return float((self.predictions == labels).mean())

    @cached_property
    def total(self) -> Counts:
        """The counts of all populations together."""
        return sum(self.counts.values(), Counts())

    @cached_property
    def dense_macs(self) -> int:
        """Multiplications of one dense feed-forward pass, for comparison."""
        return dense_macs(self.spiking.rate, self.spiking.exact)
