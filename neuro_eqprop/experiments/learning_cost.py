"""Lessons of a run on the emulator, to count what learning on a chip takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from neuro_eqprop.backends.learning import NO_SYNAPSES, Learned, load_learner
from neuro_eqprop.data import one_hot
from neuro_eqprop.experiments import on_chip_config as lessons
from neuro_eqprop.experiments.run_folder import STUDY, Run
from neuro_eqprop.networks import Network
from neuro_eqprop.spiking.lower import Code, Coding
from neuro_eqprop.spiking.make_plastic import PlasticityConfig, make_plastic, training_stimulus
from neuro_eqprop.spiking.plasticity import (
    LearningRule,
    PlasticityError,
    PlasticNetwork,
    TrainingSamples,
    episode,
)

DT = 1e-3
"""Seconds a step stands for; counts do not depend on it."""
TAU = 8.0
"""Steps in which the trace of a spiking unit falls to 1/e."""


@dataclass(frozen=True, slots=True)
class LearningCounts:
    """A network that learned, and what its lessons took."""

    plastic: PlasticNetwork
    learned: Learned
    lessons: int
    code: Code
    presentations: int
    """Lessons of the whole training: samples times epochs."""
    note: str
    """What is left out of the counts."""


def phases(run: Run, code: Code, steps: int) -> LearningRule:
    """Phases of so many steps, tags gathering in their last half, or quarter if graded."""
    study = run.study
    if study.nudging not in ("positive", "centered"):
        raise PlasticityError(
            f"nudging {study.nudging!r} has no phases on a chip; train with positive or centered"
        )
    if steps < 4:
        raise PlasticityError(f"phases of {steps} steps have no room to settle and to learn")
    window = steps // 4 if code is Code.GRADED else steps // 2
    centered = study.nudging == "centered"
    schedule = episode(
        beta=study.beta,
        centered=centered,
        free=steps if centered else steps - window,
        settle=steps - window,
        window=window,
    )
    return LearningRule(schedule, TAU)


def plasticity_of_run(
    run: Run, coding: Coding, *, steps: int, limit: float
) -> tuple[PlasticityConfig, int]:
    """How lessons go, and how many the training has: as the run learned on a chip, if it did."""
    samples, epochs = len(run.data.train), run.study.epochs
    if not lessons.was_learned_on_chip(run.path):
        return PlasticityConfig(
            coding, phases(run, coding.code, steps), limit, DT
        ), samples * epochs
    study, learning = lessons.read(run.path / STUDY)
    return learning.plasticity(study), (learning.samples or samples) * epochs


def unbound(network: Network) -> tuple[Network, str]:
    """The network without spectral bounds, which a host would keep, and the note that says so."""
    bounded = [c.name for c in network.connections if c.bound is not None]
    connections = tuple(replace(c, bound=None) for c in network.connections)
    note = f"keeping the spectral bound of {', '.join(bounded)} is a host's work and not counted"
    return replace(network, connections=connections), note if bounded else ""


def count_learning_events(
    run: Run, *, samples: int, steps: int, code: Code, watch: Callable[[int], None]
) -> LearningCounts:
    """Learn from training samples on the emulator, beginning with the run's weights, and count."""
    network, note = unbound(run.model.network)
    params = {name: value.astype(np.float64) for name, value in run.model.params.items()}
    largest = max(float(np.abs(value).max(initial=0.0)) for value in params.values())
    train = run.data.train
    how, whole = plasticity_of_run(run, Coding(code), steps=steps, limit=max(4.0, 2 * largest))
    plastic = make_plastic(network, params, how)
    count = min(samples, len(train))
    split = train.take(slice(0, count))
    target = one_hot(split.y, run.data.classes)
    stimulus = training_stimulus(network, split.x, target, how.coding)
    course = TrainingSamples(stimulus, np.full(count, run.study.learning_rate))
    learned = load_learner("emulator").learn(plastic, course, synapses=NO_SYNAPSES, watch=watch)
    return LearningCounts(plastic, learned, count, how.coding.code, whole, note)
