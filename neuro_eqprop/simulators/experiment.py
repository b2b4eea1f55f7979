"""An experiment: a spiking network, its stimulus, schedule and record, and its files.

Processes pass it to one another as files, or as JSON values and arrays.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from neuro_eqprop.dynamics.schedules import Phase, Schedule
from neuro_eqprop.files.arrays import write_npz
from neuro_eqprop.files.write import write_text
from neuro_eqprop.simulators.recordings import Record
from neuro_eqprop.spiking.ir import SpikingNetwork, Stimulus
from neuro_eqprop.spiking.serialize import describe, read_synapses, rebuild, synapse_arrays

Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]
DESCRIPTION, ARRAYS = "experiment.json", "experiment.npz"


@dataclass(frozen=True, slots=True)
class Experiment:
    """All samples of a stimulus run through a schedule on a network."""

    network: SpikingNetwork
    stimulus: Stimulus
    schedule: Schedule
    record: Record

    @property
    def steps(self) -> int:
        """Steps of one sample."""
        return sum(phase.steps for phase in self.schedule)


def describe_experiment(experiment: Experiment) -> tuple[dict[str, Any], Arrays]:
    """An experiment as JSON values and arrays, which number populations and projections."""
    network, stimulus = experiment.network, experiment.stimulus
    names = [population.name for population in network.populations]
    arrays: dict[str, npt.NDArray[Any]] = {
        f"bias{i}": p.bias for i, p in enumerate(network.populations)
    }
    for i, p in enumerate(network.projections):
        arrays |= synapse_arrays(p.synapses, f"weight{i}")
    arrays |= {f"current{names.index(name)}": a for name, a in stimulus.current.items()}
    arrays |= {f"pull{names.index(name)}": a for name, a in stimulus.pull.items()}
    description = describe(network) | {
        "samples": stimulus.samples,
        "schedule": [asdict(phase) for phase in experiment.schedule],
        "spikes": sorted(experiment.record.spikes),
        "signals": sorted(experiment.record.signals),
    }
    return description, arrays


def save(experiment: Experiment, folder: Path) -> None:
    """Write the experiment into the folder."""
    description, arrays = describe_experiment(experiment)
    write_npz(folder / ARRAYS, arrays)
    write_text(folder / DESCRIPTION, json.dumps(description))


def load(folder: Path) -> Experiment:
    """Read the experiment back."""
    described = json.loads((folder / DESCRIPTION).read_text())
    with np.load(folder / ARRAYS, allow_pickle=False) as file:
        return rebuild_experiment(described, {name: file[name] for name in file.files})


def rebuild_experiment(described: Mapping[str, Any], given: Arrays) -> Experiment:
    """The experiment of `describe_experiment`; the types validate their fields."""
    arrays = {name: np.asarray(array, dtype=np.float64) for name, array in given.items()}
    network = rebuild(
        described,
        [arrays[f"bias{i}"] for i in range(len(described["populations"]))],
        [read_synapses(p, arrays, f"weight{i}") for i, p in enumerate(described["projections"])],
    )
    numbered = list(enumerate(p.name for p in network.populations))
    stimulus = Stimulus(
        described["samples"],
        {name: arrays[f"current{i}"] for i, name in numbered if f"current{i}" in arrays},
        {name: arrays[f"pull{i}"] for i, name in numbered if f"pull{i}" in arrays},
    )
    stimulus.check(network)
    schedule = tuple(
        Phase(p["name"], p["beta"], p["steps"], p["window"]) for p in described["schedule"]
    )
    signals = frozenset((name, variable) for name, variable in described["signals"])
    return Experiment(network, stimulus, schedule, Record(frozenset(described["spikes"]), signals))
