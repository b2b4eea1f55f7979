"""Run samples through a spiking network on a simulator, and what the run gives."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, Ints, NamedDict
from neuro_eqprop.common.equality import Comparable
from neuro_eqprop.common.html import html_table
from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.files.deadlines import check as check_deadline
from neuro_eqprop.runs.request_size import check_simulation, simulation_deadline
from neuro_eqprop.runs.simulation_settings import ON_EMULATOR, SimulationSettings
from neuro_eqprop.runs.workers import run_shards, shard_size
from neuro_eqprop.simulators.base import tally
from neuro_eqprop.simulators.recordings import Counts
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.spiking.ir import SpikingNetwork
from neuro_eqprop.spiking.lowered import LoweredNetwork
from neuro_eqprop.spiking.operator_synapses import dense_macs


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Comparable):
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


def run_spikes(
    spiking: LoweredNetwork, x: Array, settings: SimulationSettings = ON_EMULATOR
) -> Simulation:
    """Run samples (samples, features) in a free phase on a simulator, see `SpikingModel.run`."""
    settings.check()
    began, backend, network = time.perf_counter(), load_backend(settings.on), spiking.network
    schedule, shared = spiking.schedule(settings.steps), settings.shared
    if not len(x):
        raise ValueError("x holds no samples; a run needs at least one")
    check_simulation(backend.name, network, len(x), total_steps(schedule))
    firing: dict[str, list[Array]] = {population.name: [] for population in network.populations}
    drive, overflows = list[Array](), 0
    counts: dict[tuple[str, str], Counts] = {}
    chunk = shard_size(backend, network, len(x), shared)
    stimuli = (spiking.encode(x[k : k + chunk]) for k in range(0, len(x), chunk))
    work = len(x) * total_steps(schedule)
    with simulation_deadline(backend.name, network, work, settings.deadline):
        for stimulus, result in run_shards(backend, network, schedule, stimuli, shared=shared):
            add_counts(counts, tally(network, stimulus, schedule, result))
            # Copies, because a view would keep the whole result in memory.
            for name, parts in firing.items():
                parts.append(result.firing[name][:, 0].copy())
            drive.append(result.drive[network.output][:, 0].copy())
            overflows += sum(o.wraps + o.saturations for o in result.overflows.values())
            settings.report(stimulus.samples)
            check_deadline()
    rates = spiking.layer_rates({name: np.concatenate(parts) for name, parts in firing.items()})
    return Simulation(
        spiking,
        backend.name,
        schedule,
        rates,
        spiking.output_drive(np.concatenate(drive)),
        counts,
        overflows,
        time.perf_counter() - began,
        x,
    )


def add_counts(
    counts: dict[tuple[str, str], Counts], more: Mapping[tuple[str, str], Counts]
) -> None:
    """Add the counts of further samples to `counts`."""
    for key, each in more.items():
        counts[key] = counts.get(key, Counts()) + each


def total_steps(schedule: Schedule) -> int:
    """Return the number of steps of all phases."""
    return sum(phase.steps for phase in schedule)
