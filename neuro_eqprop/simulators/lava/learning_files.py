"""A learning run on Lava as files: what is learned, and what its processes count and record."""

from __future__ import annotations

import json
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.dynamics.schedules import Phase
from neuro_eqprop.files.arrays import write_npz
from neuro_eqprop.files.subprocess import report
from neuro_eqprop.files.write import write_text
from neuro_eqprop.simulators import experiment
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.experiment import Experiment
from neuro_eqprop.simulators.lava.recording import SampleFiles
from neuro_eqprop.simulators.learning import LearningRecord
from neuro_eqprop.spiking.plasticity import (
    COMMIT,
    LearningRule,
    LoihiEngine,
    Plastic,
    PlasticNetwork,
    TrainingSamples,
)

DESCRIPTION = "learning.json"


@dataclass(frozen=True, slots=True)
class LearningExperiment:
    """A plastic network, its training samples, and what is recorded."""

    plastic: PlasticNetwork
    training: TrainingSamples
    record: LearningRecord

    @property
    def simulated(self) -> Experiment:
        """The experiment of its populations; the commit is a phase of one step."""
        schedule = (*self.plastic.rule.schedule, Phase(COMMIT, 0.0, 1, 1))
        stimulus = self.training.stimulus
        return Experiment(self.plastic.network, stimulus, schedule, self.record.activity)

    def synapses_of(self, projection: str) -> list[int]:
        """Indices of the recorded synapses of a projection."""
        return [k for k, (name, _, _) in enumerate(self.record.synapses) if name == projection]

    def synapses_onto(self, population: str) -> list[int]:
        """Indices of the recorded synapses onto a population."""
        targets = {name: self.plastic.projection(name).target for name in self.plastic.learns}
        return [k for k, (n, _, _) in enumerate(self.record.synapses) if targets[n] == population]


def save(learning: LearningExperiment, folder: Path) -> None:
    """Write the learning experiment into the folder."""
    rule, training = learning.plastic.rule, learning.training
    experiment.save(learning.simulated, folder)
    numbers = rule.numbers
    described = {
        "tau": rule.tau,
        "batch": rule.batch,
        "fresh": rule.fresh,
        "engine": asdict(numbers) if isinstance(numbers, LoihiEngine) else None,
        "plastic": [asdict(part) for part in learning.plastic.plastic],
        "rates": training.rates.tolist(),
        "first": training.first,
        "synapses": learning.record.synapses,
    }
    write_text(folder / DESCRIPTION, json.dumps(described))


def load(folder: Path) -> LearningExperiment:
    """Read it back; the constructors validate it."""
    simulated = experiment.load(folder)
    described: dict[str, Any] = json.loads((folder / DESCRIPTION).read_text())
    engine = described["engine"]
    rule = LearningRule(
        simulated.schedule[:-1],
        described["tau"],
        batch=described["batch"],
        fresh=described["fresh"],
        numbers=None if engine is None else LoihiEngine(**engine),
    )
    parts = tuple(Plastic(**part) for part in described["plastic"])
    rates = np.array(described["rates"])
    training = TrainingSamples(simulated.stimulus, rates, described["first"])
    synapses = tuple((name, target, source) for name, target, source in described["synapses"])
    record = LearningRecord(synapses, simulated.record)
    return LearningExperiment(PlasticNetwork(simulated.network, parts, rule), training, record)


def read_arrays(path: Path) -> dict[str, Any]:
    """The arrays that a process wrote at its last step; raises BackendError if it did not."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError) as error:
        raise BackendError(f"cannot read {path.name} of lava: {error}") from error


def population_file(folder: Path, number: int) -> Path:
    """Of the population with this number: `traces` (phases), `post` (samples, steps, synapses)."""
    return folder / f"population{number}.npz"


def projection_file(folder: Path, number: int) -> Path:
    """Of a projection: `weights`, `tags` at the last commit, `tag_updates` and `weight_updates`
    (phases), `clipped`, and `history` (samples, steps, synapses, pre and tag and weight).
    """
    return folder / f"projection{number}.npz"


class PopulationFiles(SampleFiles):
    """Records a population that learns, with its traces."""

    def __init__(self, learning: LearningExperiment, folder: Path, number: int) -> None:
        simulated = learning.simulated
        name = simulated.network.populations[number].name
        super().__init__(simulated, folder, (name,))
        self.path, self.traced = population_file(folder, number), 0
        here = learning.synapses_onto(name)
        self.units = [learning.record.synapses[k][1] for k in here]
        self.post = np.zeros((simulated.stimulus.samples, simulated.steps, len(here)))

    def add_trace(self, trace: Array, counts: Ints) -> None:
        """Record the traces after a step; `counts` are their changes so far, by phase."""
        samples, steps, _ = self.post.shape
        self.post[divmod(self.traced, steps)] = trace[self.units]
        self.traced += 1
        if self.traced == samples * steps:
            write_npz(self.path, {"traces": counts, "post": self.post})


class ProjectionFiles:
    """Counts and records of a plastic projection, and its weights, written after the last step."""

    def __init__(self, learning: LearningExperiment, folder: Path, number: int) -> None:
        self.folder, self.path = folder, projection_file(folder, number)
        projection = learning.plastic.network.projections[number]
        chosen = [learning.record.synapses[k] for k in learning.synapses_of(projection.name)]
        self.targets = np.array([target for _, target, _ in chosen], dtype=np.intp)
        self.sources = np.array([source for _, _, source in chosen], dtype=np.intp)
        rule, samples = learning.plastic.rule, learning.training.stimulus.samples
        self.episode, self.done = rule.episode, 0
        self.history = np.zeros((samples, rule.steps, len(chosen), 3))
        self.tag_updates, self.weight_updates = np.zeros(
            (2, len(rule.schedule) + 1), dtype=np.int64
        )
        self.clipped = 0
        self.last_tags = np.zeros(projection.weight.shape)

    @property
    def phase(self) -> int:
        """The phase of this step."""
        return self.episode[self.done % len(self.episode)].phase

    def count_tags(self, updates: int) -> None:
        """Count updates of tags in this step."""
        self.tag_updates[self.phase] += updates

    def count_weights(self, tags: Array, updates: int) -> None:
        """Count updates of weights in this step, a commit of these tags."""
        self.last_tags = tags
        self.weight_updates[self.phase] += updates

    def add_step(self, pre: Array, tags: Array, weights: Array) -> None:
        """Record the chosen synapses after a step; after the last step, write the file."""
        samples, steps = self.history.shape[:2]
        row = self.history[divmod(self.done, steps)]
        row[:, 0] = pre[self.sources]
        row[:, 1] = tags[self.targets, self.sources]
        row[:, 2] = weights[self.targets, self.sources]
        self.done += 1
        if self.done == samples * steps:
            arrays = {
                "weights": weights.astype(np.float64),
                "tags": self.last_tags.astype(np.float64),
                "tag_updates": self.tag_updates,
                "weight_updates": self.weight_updates,
                "clipped": np.array(self.clipped),
                "history": self.history,
            }
            write_npz(self.path, arrays)

    def fail(self) -> None:
        """Report the error that is handled now to the parent."""
        report(self.folder, traceback.format_exc())
