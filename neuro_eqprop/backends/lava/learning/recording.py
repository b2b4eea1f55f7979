"""What learning on Lava leaves behind: files of the populations and of the synapses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.backends.lava.learning.job import LearningJob
from neuro_eqprop.backends.lava.recording import Layout

REAL, NUMBER = np.dtype(np.float64), np.dtype(np.int64)
SEEN = ("pre", "tag", "weight")
"""What synapses tell of themselves in each step."""


def trace_counts(course: LearningJob, folder: Path, index: int) -> Layout:
    """Traces of a population that changed, by phase."""
    return Layout(folder / f"{index}.traces.npy", NUMBER, (len(course.job.schedule),))


def post_history(course: LearningJob, folder: Path, index: int) -> Layout:
    """The trace of the target in every step, for the chosen synapses into a population."""
    name = course.plastic.network.populations[index].name
    shape = (course.lessons.stimulus.samples, course.plastic.rule.steps, len(into(course, name)))
    return Layout(folder / f"{index}.post.npy", REAL, shape)


def into(course: LearningJob, name: str) -> list[int]:
    """The places among the chosen of the synapses into a population."""
    target = {n: course.plastic.projection(n).target for n, _, _ in course.chosen}
    return [k for k, (n, _, _) in enumerate(course.chosen) if target[n] == name]


@dataclass(frozen=True, slots=True)
class Left:
    """The files of one projection that learned, by its place."""

    course: LearningJob
    folder: Path
    place: int

    def _layout(self, what: str, kind: np.dtype[np.float64], shape: tuple[int, ...]) -> Layout:
        return Layout(self.folder / f"synapses{self.place}.{what}.npy", kind, shape)

    @property
    def weights(self) -> Layout:
        """In the end; in integers as such."""
        shape = self.course.plastic.network.projections[self.place].weight.shape
        return self._layout("weights", REAL, shape)

    @property
    def tags(self) -> Layout:
        """At the last commit."""
        return self._layout("tags", REAL, self.weights.shape)

    @property
    def counts(self) -> Layout:
        """Tags and weights that changed, by phase, and in the first column of the third row how
        often a weight was cut off.
        """
        rows = (3, len(self.course.job.schedule))
        return Layout(self.folder / f"synapses{self.place}.counts.npy", NUMBER, rows)

    @property
    def story(self) -> Layout:
        """What chosen synapses tell of themselves."""
        course = self.course
        name = course.plastic.network.projections[self.place].name
        samples, steps = course.lessons.stimulus.samples, course.plastic.rule.steps
        return self._layout("story", REAL, (samples, steps, len(course.of(name)), len(SEEN)))

    def write(self, weights: Array, tags: Array, counts: Ints, story: Array) -> None:
        """Leave them behind."""
        np.save(self.weights.path, weights.astype(REAL), allow_pickle=False)
        np.save(self.tags.path, tags.astype(REAL), allow_pickle=False)
        np.save(self.counts.path, counts, allow_pickle=False)
        np.save(self.story.path, story, allow_pickle=False)
