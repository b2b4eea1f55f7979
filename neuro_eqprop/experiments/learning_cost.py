"""Lessons of a run on the emulator, to count what learning on a chip takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from neuro_eqprop.backends.learning import NO_SYNAPSES, Learned
from neuro_eqprop.backends.registry import load_learner
from neuro_eqprop.data import one_hot
from neuro_eqprop.experiments import on_chip_config as lessons
from neuro_eqprop.experiments.run_folder import STUDY, Run
from neuro_eqprop.networks import Network
from neuro_eqprop.spiking.codes import Code, Coding
from neuro_eqprop.spiking.make_plastic import (
    PlasticityConfig,
    check_code,
    make_plastic,
    training_stimulus,
)
from neuro_eqprop.spiking.phases import is_centered
from neuro_eqprop.spiking.plasticity import (
    LearningRule,
    PlasticNetwork,
    TrainingSamples,
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


def phases(run: Run, code: Code, steps: int | None) -> LearningRule:
    """The rule of `learn` for this code, with nudged phases of `steps` or its default steps."""
    check_code(code)
    assert code.learning is not None
    study = run.study
    schedule = code.learning.lengths(steps).schedule(
        beta=study.rule.beta, centered=is_centered(study.rule.nudging)
    )
    return LearningRule(schedule, TAU)


def plasticity_of_run(
    run: Run, coding: Coding, *, steps: int | None, limit: float
) -> tuple[PlasticityConfig, int]:
    """How lessons go, and how many the training has: as the run learned on a chip, if it did."""
    samples, epochs = len(run.data.train), run.study.training.epochs
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
    run: Run, *, samples: int, steps: int | None, code: Code, watch: Callable[[int], None]
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
    course = TrainingSamples(stimulus, np.full(count, run.study.training.learning_rate))
    learned = load_learner("emulator").learn(plastic, course, synapses=NO_SYNAPSES, watch=watch)
    return LearningCounts(plastic, learned, count, how.coding.code, whole, note)
