"""A trace file of chosen synapses while they learn on a chip.

A simulator returns both activity traces, tag and weight of a synapse at the end of every step, in
its own units. A trace file has the units of `neuro_eqprop.synapse_recording`: with Q the trace of a
unit that fires in every step (one in floating point), pre and post are divided by Q, and a tag by
gap M Q^2; in Lava's engine by the tag that M steps with such traces accumulate. The simulator
counts the commit as a step; the file assigns it to the last step of the sample.
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
from neuro_eqprop.backends.learning import Learner, Synapses, no_progress
from neuro_eqprop.data import one_hot
from neuro_eqprop.experiments.simulate import origin_of
from neuro_eqprop.io.trace.file import Writer
from neuro_eqprop.networks import Network
from neuro_eqprop.spiking.plasticity import COMMIT, LoihiEngine, PlasticNetwork, TrainingSamples
from neuro_eqprop.synapse_recording import HEBBIAN, Synapse, SynapseLog
from neuro_eqprop.traces import Counts, Plan, Record, Recording, parse_record

EpochRecorder: TypeAlias = Callable[[Mapping[str, Array], Mapping[str, Any]], None]
"""Gets the weights by projection and the metrics after each epoch."""
EPOCH = {"epoch": "epoch", "train_accuracy": "1", "test_accuracy": "1", "seconds": "s"}
"""Metrics of an epoch in the trace, with their units."""


@dataclass(frozen=True, slots=True)
class RecordedSamples:
    """The samples of a trace, and the synapses to record."""

    index: Ints
    """Rows in the training set."""
    label: Ints
    record: Sequence[str]
    """Synapses, as `source->target:hebbian` or `source->target[row,column]:hebbian`."""
    seed: int
    epochs: int
    """Epochs of the whole run."""


def plan_synapse_trace(
    recorded: RecordedSamples,
    network: Network,
    plastic: PlasticNetwork,
    samples: TrainingSamples,
    on: str,
) -> Plan:
    """The contents of the trace, known before the first step."""
    inputs = samples.stimulus.current[network.input.name]
    weights = {name: plastic.projection(name).weight for name in sorted(plastic.learns)}
    refuse_population_signals(recorded.record, weights)
    how = kinds(plastic.network)
    strengths = varying_strengths(weights, network.input.name, inputs)
    return Plan(
        origin_of(
            on, seed=recorded.seed, digest=plastic.network.digest, seconds=plastic.network.dt
        ),
        plastic.rule.schedule,
        how,
        {p.name: p.size for p in plastic.network.populations},
        tuple(weights),
        recorded.index,
        recorded.label,
        inputs,
        Record(hebbian=parse_record(recorded.record, how, strengths).hebbian),
        weights,
        learns=True,
        epochs=EPOCH,
        n_epochs=recorded.epochs,
        targets=one_hot(recorded.label, network.output.size),
    )


def refuse_population_signals(record: Sequence[str], weights: Mapping[str, Array]) -> None:
    """Refuse `population:variable`: only synapses are recorded while a network learns."""
    for item in record:
        if "->" not in item:
            raise ValueError(
                f"{item!r} cannot be recorded while the network learns, only synapses: "
                f"{', '.join(f'{name}:{HEBBIAN}' for name in weights)}; simulate the finished run "
                "to record spikes and signals of populations"
            )


@contextmanager
def record_synapses(
    path: Path,
    plan: Plan,
    plastic: PlasticNetwork,
    samples: TrainingSamples,
    learner: Learner,
    *,
    overwrite: bool,
) -> Iterator[EpochRecorder]:
    """Write the synapses of the first samples, which the run then repeats; then each epoch.

    The file is readable while the run continues, and holds the weights of the latest epoch.
    """
    chosen = plan.record.hebbian
    synapses = Synapses(tuple((name, *pair) for name, pairs in chosen.items() for pair in pairs))
    with Writer(path, plan, overwrite=overwrite) as writer:
        learned = learner.learn(plastic, samples, synapses=synapses, progress=no_progress)
        for k, (values, rate) in enumerate(zip(learned.history, samples.rates, strict=True)):
            writer.sample(k, Recording({}, {}, synapse_logs(plastic, values, chosen, float(rate))))
        writer.weights(learned.weights)
        writer.counts(merge_commit(plastic, learned.counts))

        def record_epoch(weights: Mapping[str, Array], metrics: Mapping[str, Any]) -> None:
            writer.epoch({name: float(metrics[name]) for name in EPOCH})
            writer.weights({name: weights[name] for name in plan.weights})

        yield record_epoch


def varying_strengths(
    weights: Mapping[str, Array], input_name: str, inputs: Array
) -> dict[str, Array]:
    """Weights by which synapses are picked; zero for inputs that are constant over samples."""
    spread = inputs.std(axis=0)
    return {
        name: weight * spread if name.startswith(f"{input_name}->") else weight
        for name, weight in weights.items()
    }


def synapse_logs(
    plastic: PlasticNetwork,
    values: Array,
    chosen: Mapping[str, tuple[Synapse, ...]],
    rate: float,
) -> dict[str, SynapseLog]:
    """The log of one sample by connection, from `values` (steps, synapses, variable)."""
    top, full = scales(plastic, rate)
    pre, post, tag, weight = (values[:-1, :, k].copy() for k in range(4))
    weight[-1] = values[-1, :, 3]
    columns = (pre / top, post / top, pre * post / top**2, tag / full, weight)
    logs, start = {}, 0
    for name, pairs in chosen.items():
        here = slice(start, start + len(pairs))
        logs[name] = SynapseLog(pairs, *(column[:, here] for column in columns))
        start += len(pairs)
    return logs


def scales(plastic: PlasticNetwork, rate: float) -> tuple[float, float]:
    """Q, the trace of a unit that fires in every step, and the tag that the file stores as one."""
    rule, numbers = plastic.rule, plastic.rule.numbers
    if numbers is None:
        return 1.0, rule.gap * rule.window
    full = rule.gap * rule.window * numbers.top**2
    if isinstance(numbers, LoihiEngine):
        full *= max(1.0, np.rint(numbers.factor * rate / numbers.first)) / 2**17
    return float(numbers.top), float(full)


def merge_commit(
    plastic: PlasticNetwork, counts: Mapping[tuple[str, str], Counts]
) -> dict[tuple[str, str], Counts]:
    """Events by population and phase, those of the commit added to the last phase."""
    last = plastic.rule.schedule[-1].name
    merged: dict[tuple[str, str], Counts] = {}
    for (name, phase), each in counts.items():
        key = name, last if phase == COMMIT else phase
        merged[key] = merged.get(key, Counts()) + each
    return merged
