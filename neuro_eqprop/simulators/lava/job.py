"""A run on Lava, passed between two Python processes as files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neuro_eqprop.dynamics.schedules import Phase, Schedule
from neuro_eqprop.files.arrays import write_npz
from neuro_eqprop.files.write import write_text
from neuro_eqprop.simulators.recordings import Record
from neuro_eqprop.spiking.ir import Population, SpikingNetwork, Stimulus
from neuro_eqprop.spiking.serialize import describe, read_synapses, rebuild, synapse_arrays

DESCRIPTION, ARRAYS = "job.json", "job.npz"


class Form(Enum):
    """How a network is built from Lava processes."""

    GRAPH = "graph"
    """One process per population and projection, one sample at a time."""
    FUSED = "fused"
    """One process for the whole network, with many samples in parallel."""
    STOCK = "stock"
    """Lava's own neurons: `SigmaDelta` for graded messages, `ATRLIF` for binary spikes."""


@dataclass(frozen=True, slots=True)
class Job:
    """A run: all samples through the schedule; `batch` of them at a time in the fused form."""

    network: SpikingNetwork
    stimulus: Stimulus
    schedule: Schedule
    record: Record
    form: Form = Form.GRAPH
    batch: int = 1

    @property
    def steps(self) -> int:
        """Steps of one sample."""
        return sum(phase.steps for phase in self.schedule)


@dataclass(frozen=True, slots=True)
class Part:
    """Parameters of a process: the job, the index of its population and the folder of its files."""

    job: Job
    index: int
    folder: Path

    @property
    def population(self) -> Population:
        """The population with this index."""
        return self.job.network.populations[self.index]


class Tick(NamedTuple):
    """Index and beta of the phase of a step, and whether the step is in the averaging window."""

    phase: int
    beta: float
    counts: bool


def tick(schedule: Schedule, step: int) -> Tick:
    """The `Tick` of step number `step` of a sample."""
    start = 0
    for k, phase in enumerate(schedule):
        if step < start + phase.steps:
            return Tick(k, phase.beta, step >= start + phase.steps - phase.window)
        start += phase.steps
    raise IndexError(f"step {step} is beyond the {start} steps of the schedule")


def describe_job(job: Job) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """A job as JSON values and arrays; populations and projections are numbered in their order."""
    network, stimulus, record = job.network, job.stimulus, job.record
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
        "form": job.form.value,
        "batch": job.batch,
        "schedule": [asdict(phase) for phase in job.schedule],
        "spikes": sorted(record.spikes),
        "signals": sorted(record.signals),
    }
    return description, arrays


def save(job: Job, folder: Path) -> None:
    """Write the job into the folder."""
    description, arrays = describe_job(job)
    write_npz(folder / ARRAYS, arrays)
    write_text(folder / DESCRIPTION, json.dumps(description))


def load(folder: Path) -> Job:
    """Read the job back."""
    described = json.loads((folder / DESCRIPTION).read_text())
    with np.load(folder / ARRAYS, allow_pickle=False) as file:
        return rebuild_job(described, {name: file[name] for name in file.files})


def rebuild_job(described: Mapping[str, Any], given: Mapping[str, npt.NDArray[Any]]) -> Job:
    """The job of `describe_job`; the types validate their fields."""
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
    record = Record(frozenset(described["spikes"]), signals)
    form, batch = Form(described["form"]), described["batch"]
    return Job(network, stimulus, schedule, record, form, batch)
