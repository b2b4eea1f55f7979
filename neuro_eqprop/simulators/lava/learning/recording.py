"""Result files of learning on Lava, by population and by projection."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.files.arrays import write_npy
from neuro_eqprop.simulators.lava.learning.job import LearningJob
from neuro_eqprop.simulators.lava.recording import Layout

FLOAT, INTEGER = np.dtype(np.float64), np.dtype(np.int64)
RECORDED = ("pre", "tag", "weight")
"""Variables that a plastic projection records in each step."""


def trace_counts(learning: LearningJob, folder: Path, index: int) -> Layout:
    """Trace updates of a population, by phase."""
    return Layout(folder / f"{index}.traces.npy", INTEGER, (len(learning.job.schedule),))


def post_history(learning: LearningJob, folder: Path, index: int) -> Layout:
    """Postsynaptic trace in every step, for the recorded synapses onto a population."""
    name = learning.plastic.network.populations[index].name
    shape = (
        learning.training.stimulus.samples,
        learning.plastic.rule.steps,
        len(synapses_onto(learning, name)),
    )
    return Layout(folder / f"{index}.post.npy", FLOAT, shape)


def synapses_onto(learning: LearningJob, name: str) -> list[int]:
    """Indices into `chosen` of the synapses onto a population."""
    target = {n: learning.plastic.projection(n).target for n, _, _ in learning.chosen}
    return [k for k, (n, _, _) in enumerate(learning.chosen) if target[n] == name]


@dataclass(frozen=True, slots=True)
class ProjectionFiles:
    """The result files of one plastic projection, given by its index."""

    learning: LearningJob
    folder: Path
    place: int

    def _layout(self, what: str, kind: np.dtype[np.float64], shape: tuple[int, ...]) -> Layout:
        return Layout(self.folder / f"synapses{self.place}.{what}.npy", kind, shape)

    @property
    def weights(self) -> Layout:
        """Final weights; in integer arithmetic, the integers."""
        shape = self.learning.plastic.network.projections[self.place].weight.shape
        return self._layout("weights", FLOAT, shape)

    @property
    def tags(self) -> Layout:
        """Tags at the last commit."""
        return self._layout("tags", FLOAT, self.weights.shape)

    @property
    def counts(self) -> Layout:
        """Rows: tag updates and weight updates by phase, and (first column) clipped weights."""
        rows = (3, len(self.learning.job.schedule))
        return Layout(self.folder / f"synapses{self.place}.counts.npy", INTEGER, rows)

    @property
    def history(self) -> Layout:
        """Variables `RECORDED` of the chosen synapses in every step."""
        learning = self.learning
        name = learning.plastic.network.projections[self.place].name
        samples, steps = learning.training.stimulus.samples, learning.plastic.rule.steps
        return self._layout(
            "history", FLOAT, (samples, steps, len(learning.of(name)), len(RECORDED))
        )

    def write(self, weights: Array, tags: Array, counts: Ints, history: Array) -> None:
        """Write all files of the projection."""
        write_npy(self.weights.path, weights.astype(FLOAT))
        write_npy(self.tags.path, tags.astype(FLOAT))
        write_npy(self.counts.path, counts)
        write_npy(self.history.path, history)
