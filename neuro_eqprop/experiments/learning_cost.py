"""Events of learning on a chip, counted on the emulator for a few samples of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from neuro_eqprop.backends.learning import NO_SYNAPSES, Learned
from neuro_eqprop.backends.registry import load_learner
from neuro_eqprop.data import one_hot
from neuro_eqprop.experiments.config import adapt
from neuro_eqprop.experiments.on_chip_config import (
    DEFAULTS,
    make_config,
    read,
    was_learned_on_chip,
)
from neuro_eqprop.experiments.run_folder import STUDY, Run
from neuro_eqprop.networks import Network
from neuro_eqprop.spiking.codes import Code
from neuro_eqprop.spiking.make_plastic import PlasticityConfig, make_plastic, training_stimulus
from neuro_eqprop.spiking.plasticity import PlasticNetwork, TrainingSamples


@dataclass(frozen=True, slots=True)
class LearningCounts:
    """A plastic network and the events of learning a few samples."""

    plastic: PlasticNetwork
    learned: Learned
    samples: int
    code: Code
    presentations: int
    """Samples shown in the whole training: training samples times epochs."""
    note: str
    """Work that the counts leave out; empty if none."""


def run_plasticity(
    run: Run, *, code: Code, steps: int | None, limit: float
) -> tuple[PlasticityConfig, int]:
    """How the network of a run learns on a chip, and the samples shown in its training.

    A run that learned on a chip keeps its settings; any other learns as `learn` does by default,
    with this code and a commit after every sample.
    """
    samples, study = len(run.data.train), run.study
    if was_learned_on_chip(run.path):
        study, config = read(run.path / STUDY)
        samples = config.samples or samples
    else:
        study = adapt(study, {"batch": DEFAULTS["batch"]})
        config = make_config({"code": code.name, "limit": limit}, steps)
    return config.plasticity(study), samples * study.training.epochs


def without_bounds(network: Network) -> tuple[Network, str]:
    """The network without spectral bounds, and a note: a host computer would apply them."""
    bounded = [c.name for c in network.connections if c.bound is not None]
    connections = tuple(replace(c, bound=None) for c in network.connections)
    note = f"keeping the spectral bound of {', '.join(bounded)} is a host's work and not counted"
    return replace(network, connections=connections), note if bounded else ""


def count_learning_events(
    run: Run, *, samples: int, steps: int | None, code: Code, progress: Callable[[int], None]
) -> LearningCounts:
    """Learn the first training samples on the emulator from the weights of the run, and count.

    `steps` are those of a nudged phase; None for the default of the code.
    """
    network, note = without_bounds(run.model.network)
    params = {name: value.astype(np.float64) for name, value in run.model.params.items()}
    largest = max(float(np.abs(value).max(initial=0.0)) for value in params.values())
    plasticity, presentations = run_plasticity(
        run, code=code, steps=steps, limit=max(4.0, 2 * largest)
    )
    plastic = make_plastic(network, params, plasticity)
    train = run.data.train.take(slice(0, samples))
    target = one_hot(train.y, run.data.classes)
    stimulus = training_stimulus(network, train.x, target, plasticity.coding)
    given = TrainingSamples(stimulus, np.full(len(train), run.study.training.learning_rate))
    learned = load_learner("emulator").learn(
        plastic, given, synapses=NO_SYNAPSES, progress=progress
    )
    code = plasticity.coding.code
    return LearningCounts(plastic, learned, len(train), code, presentations, note)
