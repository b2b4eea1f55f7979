"""Events of learning on a chip, counted on the emulator for a few samples of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from neuro_eqprop.chips.workload import SPIKES
from neuro_eqprop.common.arrays import Array
from neuro_eqprop.data import one_hot
from neuro_eqprop.networks.architectures.normalized import folded
from neuro_eqprop.networks.network import Network
from neuro_eqprop.runs.on_chip_config import (
    DEFAULTS,
    default_steps,
    make_config,
    read,
    was_learned_on_chip,
)
from neuro_eqprop.runs.run_folder import STUDY, RunFolder
from neuro_eqprop.simulators.learning import Learned, LearningRecord
from neuro_eqprop.simulators.recordings import Record
from neuro_eqprop.simulators.registry import load_learner
from neuro_eqprop.spiking.codes import Code
from neuro_eqprop.spiking.make_plastic import PlasticityConfig, make_plastic, training_stimulus
from neuro_eqprop.spiking.plasticity import LEAST, LearningRule, PlasticNetwork, TrainingSamples
from neuro_eqprop.training.study import adapt

RECORDED_SAMPLES, RECORDED_VALUES = 4, 20_000_000
"""Most samples whose spikes are recorded step by step, and most recorded values."""


@dataclass(frozen=True, slots=True)
class LearningCounts:
    """A plastic network and the events of learning a few samples."""

    plastic: PlasticNetwork
    learned: Learned
    samples: int
    code: Code
    presentations: int
    """Samples presented in the whole training: training samples times epochs."""
    note: str
    """Work that the counts leave out; empty if none."""
    by_step: Mapping[tuple[str, str], Array] = field(default_factory=dict)
    """By population and event, the counts of a few samples (steps, neurons)."""


def run_plasticity(
    run: RunFolder, *, code: Code, steps: int | None, limit: float
) -> tuple[PlasticityConfig, int]:
    """Return how the network of a run learns on a chip, and the samples presented in training.

    A run of `learn` keeps its settings; any other run uses the defaults of `learn` with this code
    and a weight update after every sample.
    """
    samples, study = len(run.data.train), run.study
    if was_learned_on_chip(run.path):
        study, config = read(run.path / STUDY)
        samples = config.samples or samples
    else:
        study = adapt(study, {"batch": DEFAULTS["batch"]})
        given = {"code": code.name, "limit": limit}
        config = make_config(given, default_steps(study, given) if steps is None else steps)
    return config.plasticity(study), samples * study.training.epochs


def without_bounds(network: Network) -> tuple[Network, str]:
    """Return the network without spectral bounds, which a host would apply, and a note on it."""
    bounded = [c.name for c in network.connections if c.bound is not None]
    connections = tuple(replace(c, bound=None) for c in network.connections)
    note = f"keeping the spectral bound of {', '.join(bounded)} is a host's work and not counted"
    return replace(network, connections=connections), note if bounded else ""


def count_learning_events(
    run: RunFolder, *, samples: int, steps: int | None, code: Code, progress: Callable[[int], None]
) -> LearningCounts:
    """Count the events of learning the first training samples on the emulator.

    Learning starts from the weights of the run. `steps` is the length of a nudged phase; None for
    the default of the code.
    """
    exact = {name: value.astype(np.float64) for name, value in run.model.params.items()}
    plain, params = folded(run.model.network, exact) or (run.model.network, exact)
    network, note = without_bounds(plain)
    largest = max(float(np.abs(value).max(initial=0.0)) for value in params.values())
    plasticity, presentations = run_plasticity(
        run, code=code, steps=steps, limit=max(4.0, 2 * largest)
    )
    plastic = make_plastic(network, params, plasticity)
    train = run.data.train.take(slice(0, samples))
    target = one_hot(train.y, run.data.classes)
    levels = plasticity.rule.input_levels
    stimulus = training_stimulus(network, train.x, target, plasticity.coding, levels)
    given = TrainingSamples(stimulus, np.full(len(train), run.study.training.learning_rate))
    learned = load_learner("emulator").learn(plastic, given, progress=progress)
    code = plasticity.coding.code
    by_step = events_by_step(plastic, given)
    return LearningCounts(plastic, learned, len(train), code, presentations, note, by_step)


def events_by_step(
    plastic: PlasticNetwork, training: TrainingSamples
) -> dict[tuple[str, str], Array]:
    """Return spikes, tag updates and weight updates of the first samples (steps, neurons).

    Tags change in the windows of the compared phases if both traces are nonzero; weights change in
    the commit, the last step of a sample. Phases that a sample skips have no steps.
    """
    populations, rule = plastic.network.populations, plastic.rule
    samples = samples_to_record(sum(each.size for each in populations) * rule.steps)
    samples = min(samples, training.stimulus.samples)
    few = replace(
        training, stimulus=training.stimulus.take(0, samples), rates=training.rates[:samples]
    )
    record = Record(spikes=frozenset(each.name for each in populations))
    learned = load_learner("emulator").learn(plastic, few, record=LearningRecord(activity=record))
    phase = np.array([step.phase for step in rule.episode])
    commit = phase == len(rule.schedule)
    in_nudged = (phase > 0) & ~commit
    nudged = np.ones(samples) if learned.nudged is None else learned.nudged
    ran = [~in_nudged | bool(each) for each in nudged]
    events: dict[tuple[str, str], Array] = {}
    traced = {}
    for each in populations:
        # The neurons are silent in the commit.
        messages = [
            np.pad(sample.spikes[each.name], ((0, 1), (0, 0)))[steps]
            for sample, steps in zip(learned.activity, ran, strict=True)
        ]
        events[each.name, SPIKES] = (np.concatenate(messages) != 0).astype(np.float64)
        traced[each.name] = nonzero_traces(messages, rule, graded=each.neuron.graded)
    inside = np.array([step.gate != 0 for step in rule.episode])
    window = np.concatenate([inside[steps] for steps in ran])[:, None]
    commits = np.concatenate([commit[steps] for steps in ran])[:, None]
    for name in sorted(plastic.learns):
        projection = plastic.projection(name)
        sources = traced[projection.source].sum(axis=1, keepdims=True)
        key = (projection.target, "tag_updates")
        tags = window * traced[projection.target] * sources
        events[key] = events.get(key, 0.0) + tags
        events[projection.target, "weight_updates"] = commits.astype(np.float64)
    return events


def nonzero_traces(samples: Sequence[Array], rule: LearningRule, *, graded: bool) -> Array:
    """Return whether the trace of each unit is nonzero (steps of all samples, units).

    `samples` are the messages of each sample (steps, units). The trace of a graded unit is the sum
    of its messages since the start of the sample; that of a spiking unit decays after its last
    spike until it is below its least value.
    """
    if graded:
        summed = np.concatenate([sent.cumsum(axis=0) for sent in samples])
        return np.asarray(np.abs(summed) > LEAST)
    sent = np.concatenate(samples)
    least = LEAST if rule.numbers is None else 1.0 / rule.numbers.top
    lasts = max(1, int(-np.log(least / (1.0 - rule.keep)) * rule.tau))
    steps = np.arange(len(sent))[:, None]
    last = np.maximum.accumulate(np.where(sent != 0, steps, -lasts - 1), axis=0)
    return np.asarray(steps - last <= lasts)


def samples_to_record(values: int) -> int:
    """Return the number of samples to record if each has that many values."""
    return min(RECORDED_SAMPLES, max(1, RECORDED_VALUES // values))
