"""Record chosen synapses while they learn on a chip, as a trace file.

A simulator reports both traces, tag and weight at the end of every step, in its own units. A trace
file has the units of `neuro_eqprop.synapse_recording`: with Q the trace of a unit that always fires
(one in floating point), pre and post are divided by Q, and a tag by gap M Q^2; the tag of Lava's
engine by what a window of such traces leaves in it. The commit is a step of its own here and
belongs to the last step of a sample there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.backends.base import kinds
from neuro_eqprop.backends.learning import Learner, Synapses, nobody
from neuro_eqprop.experiments.simulate import origin_of
from neuro_eqprop.io.trace.file import Writer
from neuro_eqprop.networks import Network
from neuro_eqprop.spiking.plasticity import COMMIT, LoihiEngine, PlasticNetwork, TrainingSamples
from neuro_eqprop.synapse_recording import Synapse, SynapseLog
from neuro_eqprop.traces import Counts, Plan, Record, Recording, parse_record

Look: TypeAlias = Callable[[Mapping[str, Array], Mapping[str, Any]], None]
"""Given the weights and the line of metrics after an epoch."""
EPOCH = {"epoch": "epoch", "train_accuracy": "1", "test_accuracy": "1", "seconds": "s"}
"""The numbers of an epoch, and their units."""


@dataclass(frozen=True, slots=True)
class Watched:
    """Lessons to be watched: their places in the data set, their labels, the words that choose."""

    index: Ints
    label: Ints
    words: Sequence[str]
    seed: int
    epochs: int
    """That the run is going to take."""


def plan_watching(
    watched: Watched, network: Network, plastic: PlasticNetwork, lessons: TrainingSamples, on: str
) -> Plan:
    """What the trace is going to hold."""
    inputs = lessons.stimulus.current[network.input.name]
    weights = {name: plastic.projection(name).weight for name in sorted(plastic.learns)}
    how = kinds(plastic.network)
    chosen = parse_record(watched.words, how, pickable(weights, network.input.name, inputs)).hebbian
    return Plan(
        origin_of(on, seed=watched.seed, digest=plastic.network.digest),
        plastic.rule.schedule,
        how,
        {p.name: p.size for p in plastic.network.populations},
        tuple(weights),
        watched.index,
        watched.label,
        inputs,
        Record(hebbian=chosen),
        weights,
        learns=True,
        epochs=EPOCH,
        lasts=watched.epochs,
    )


@contextmanager
def watching(
    path: Path,
    plan: Plan,
    plastic: PlasticNetwork,
    lessons: TrainingSamples,
    learner: Learner,
    *,
    overwrite: bool,
) -> Iterator[Look]:
    """Write the story of the first lessons, which the run then repeats exactly; then its epochs.

    The file can be read from then on, and holds the weights of the latest epoch.
    """
    chosen = plan.record.hebbian
    flat = Synapses(tuple((name, *pair) for name, pairs in chosen.items() for pair in pairs))
    with Writer(path, plan, overwrite=overwrite) as writer:
        learned = learner.learn(plastic, lessons, synapses=flat, watch=nobody)
        for k, (told, rate) in enumerate(zip(learned.story, lessons.rates, strict=True)):
            writer.sample(k, Recording({}, {}, tell(plastic, told, chosen, float(rate))))
        writer.weights(learned.weights)
        writer.counts(merged(plastic, learned.counts))

        def look(weights: Mapping[str, Array], line: Mapping[str, Any]) -> None:
            writer.epoch({name: float(line[name]) for name in EPOCH})
            writer.weights({name: weights[name] for name in plan.weights})

        yield look


def pickable(weights: Mapping[str, Array], name: str, inputs: Array) -> dict[str, Array]:
    """Weights by which synapses are picked; those from inputs that never change are not."""
    spread = inputs.std(axis=0)
    return {n: w * spread if n.startswith(f"{name}->") else w for n, w in weights.items()}


def tell(
    plastic: PlasticNetwork,
    lesson: Array,
    chosen: Mapping[str, tuple[Synapse, ...]],
    rate: float,
) -> dict[str, SynapseLog]:
    """The story of one lesson (steps, synapses, what), by connection."""
    top, full = sizes(plastic, rate)
    pre, post, tag, weight = (lesson[:-1, :, k].copy() for k in range(4))
    weight[-1] = lesson[-1, :, 3]
    columns = (pre / top, post / top, pre * post / top**2, tag / full, weight)
    found, start = {}, 0
    for name, pairs in chosen.items():
        here = slice(start, start + len(pairs))
        found[name] = SynapseLog(pairs, *(column[:, here] for column in columns))
        start += len(pairs)
    return found


def sizes(plastic: PlasticNetwork, rate: float) -> tuple[float, float]:
    """The trace of a unit that always fires, and what a tag of one is told as."""
    rule, numbers = plastic.rule, plastic.rule.numbers
    if numbers is None:
        return 1.0, rule.gap * rule.window
    full = rule.gap * rule.window * numbers.top**2
    if isinstance(numbers, LoihiEngine):
        full *= max(1.0, np.rint(numbers.factor * rate / numbers.first)) / 2**17
    return float(numbers.top), float(full)


def merged(
    plastic: PlasticNetwork, counts: Mapping[tuple[str, str], Counts]
) -> dict[tuple[str, str], Counts]:
    """Events by phase, those of the commit booked on the last one."""
    last = plastic.rule.schedule[-1].name
    found: dict[tuple[str, str], Counts] = {}
    for (name, phase), each in counts.items():
        key = name, last if phase == COMMIT else phase
        found[key] = found.get(key, Counts()) + each
    return found
