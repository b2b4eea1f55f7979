"""Learning in Brian2: all samples in one run, gated by the phases of the clock."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.backends.base import BackendError
from neuro_eqprop.backends.brian2.equations import Handle
from neuro_eqprop.backends.brian2.learning_network import LearningNetwork
from neuro_eqprop.backends.brian2.setup import settings, simulator
from neuro_eqprop.backends.learning import (
    SYNAPSE_VARIABLES,
    Events,
    Learned,
    Synapses,
    Watch,
    tally_learning,
)
from neuro_eqprop.spiking.plasticity import Plastic, PlasticNetwork, TrainingSamples


@dataclass(frozen=True, slots=True)
class Brian2Learner:
    """One sample after the other, in floating point."""

    name: str = "brian2"

    def check(self, plastic: PlasticNetwork, lessons: TrainingSamples) -> None:
        """Refuse what the equations do not say, and samples that do not fit the network."""
        check(plastic)
        lessons.stimulus.check(plastic.network)

    def learn(
        self, plastic: PlasticNetwork, lessons: TrainingSamples, *, synapses: Synapses, watch: Watch
    ) -> Learned:
        """Learn from all samples."""
        self.check(plastic, lessons)
        brian2 = simulator()
        with settings(brian2):
            course = LearningNetwork(brian2, plastic, lessons)
            monitors = [course.story(*chosen) for chosen in synapses.chosen]
            course.run(watch)
        return learned(course, synapses, monitors)


def check(plastic: PlasticNetwork) -> None:
    """Refuse what the equations do not say."""
    if plastic.rule.numbers is not None:
        raise BackendError(
            "brian2 learns in floating point: its equations have no stochastic rounding "
            "of integer weights; learn without bits and engine, or on the reference or the emulator"
        )
    late = next((p for p in plastic.network.projections if p.delay != 1), None)
    if late is not None:
        raise BackendError(
            f"projection {late.name!r} has a delay of {late.delay} steps; samples have one"
        )


def learned(course: LearningNetwork, synapses: Synapses, monitors: list[list[Handle]]) -> Learned:
    """What there is in the end."""
    plastic, lessons = course.plastic, course.lessons
    weights: dict[str, Array] = {}
    saturated: dict[str, int] = {}
    for part in plastic.plastic:
        weight = shaped(course, part, "w")
        weights[part.name] = weight
        saturated[part.name] = int(np.count_nonzero(np.abs(weight) >= part.limit))
        if part.mirror is not None:
            weights[part.mirror] = part.mirrored * weight.T
            saturated[part.mirror] = saturated[part.name]
    drives = np.asarray(course.answers.sum_drive[:]).reshape(lessons.stimulus.samples, -1)
    cut = sum(int(np.asarray(paths.cut[:]).sum()) for paths in course.pairs.values())
    return Learned(
        weights,
        {part.name: shaped(course, part, "kept") for part in plastic.plastic},
        drives / plastic.rule.schedule[0].window,
        tally_learning(plastic, lessons, counted(course)),
        saturated,
        cut,
        story=synapse_histories(course, synapses, monitors),
    )


def shaped(course: LearningNetwork, part: Plastic, variable: str) -> Array:
    """A variable of the synapses of a projection (targets, sources)."""
    values = np.asarray(getattr(course.pairs[part.name], variable)[:])
    return values.reshape(course.plastic.projection(part.name).weight.shape).copy()


def counted(course: LearningNetwork) -> Events:
    """What neurons and synapses counted."""
    plastic, rule = course.plastic, course.rule
    phases = range(len(rule.schedule))
    names = [p.name for p in course.network.populations]
    sent: dict[str, Ints] = {}
    counts = np.zeros((3, len(phases) + 1, len(names)), dtype=np.int64)
    for column, name in enumerate(names):
        group = course.groups[name]
        rows = [getattr(group, f"sent_{k}")[:] for k in phases]
        sent[name] = np.array([*rows, np.zeros_like(rows[0])]).astype(np.int64)
        rows = [getattr(group, f"traced_{k}")[:] for k in (*phases, "pause")]
        counts[0, :, column] = np.sum(rows, axis=1)
    for part in plastic.plastic:
        paths, there = course.pairs[part.name], plastic.projection(part.name)
        ends = [there.target, *([there.source] if part.mirror else [])]
        for column in (names.index(end) for end in ends):
            counts[2, -1, column] += int(paths.changed[:].sum())
            for k, gate in enumerate(rule.gates):
                if gate:
                    counts[1, k, column] += int(getattr(paths, f"grown_{k}")[:].sum())
    return Events(sent, counts[0], counts[1], counts[2])


def synapse_histories(
    course: LearningNetwork, synapses: Synapses, monitors: list[list[Handle]]
) -> Array:
    """The history of the chosen synapses; a mirror has its ends turned and its own weight."""
    lessons, steps = course.lessons.stimulus.samples, course.rule.steps
    if not monitors:
        return np.zeros((0, 0, 0, len(SYNAPSE_VARIABLES)))
    found = np.zeros((lessons, steps, len(monitors), len(SYNAPSE_VARIABLES)))
    parts = {name: p for p in course.plastic.plastic for name in (p.name, p.mirror) if name}
    for k, (group, (name, _, _)) in enumerate(zip(monitors, synapses.chosen, strict=True)):
        values = [
            np.asarray(getattr(monitor, what)[0])[1:].reshape(lessons, steps)
            for monitor, what in zip(group, "rrmw", strict=True)
        ]
        if name == parts[name].mirror:
            values = [values[1], values[0], values[2], parts[name].mirrored * values[3]]
        found[:, :, k] = np.stack(values, axis=-1)
    return found
