"""A network that learns: one process per population and projection, one sample at a time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from neuro_eqprop.simulators.lava.learning_files import PopulationFiles, ProjectionFiles, load
from neuro_eqprop.simulators.lava.native.learning.network import (
    GivenSamples,
    LearningNetwork,
    LearningPlan,
)


def build(folder: Path) -> Iterator[tuple[LearningNetwork, int]]:
    """The network of the experiment in the folder, and the number of steps of all samples."""
    learning = load(folder)
    given = GivenSamples(
        learning.training,
        partial(partial, PopulationFiles, learning, folder),
        partial(partial, ProjectionFiles, learning, folder),
    )
    plan = LearningPlan(learning.plastic, tuple(learning.training.rates), given=given)
    yield LearningNetwork(plan), learning.training.stimulus.samples * learning.plastic.rule.steps
