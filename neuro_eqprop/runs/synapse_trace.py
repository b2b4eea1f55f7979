"""Trace files of synapses and populations during on-chip learning.

A simulator returns both activity traces, tag and weight of a synapse at the end of every step, in
its own units. A trace file has the units of `simulators.synapse_recording`: with Q the trace of a
unit that fires in every step (one in floating point), pre and post are divided by Q, and a tag by
gap M Q^2; in Lava's engine by the tag that M steps with such traces accumulate. The simulator
counts the commit as a step; the file assigns it to the last step of the sample. Spikes and signals
of populations are those of the same run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.schedules import contrast
from neuro_eqprop.runs.simulation import add_counts
from neuro_eqprop.simulators.learning import Learner, LearningRecord
from neuro_eqprop.simulators.recordings import Counts, Record, RecordingPlan, parse_record
from neuro_eqprop.simulators.synapse_recording import Synapse, SynapseLog
from neuro_eqprop.spiking.activity import ActivityKind
from neuro_eqprop.spiking.plasticity import COMMIT, LoihiEngine, PlasticNetwork, TrainingSamples
from neuro_eqprop.traces.file import Writer

EPOCH = {"epoch": "epoch", "train_accuracy": "1", "test_accuracy": "1", "seconds": "s"}
"""Metrics of an epoch in the trace, and their units."""


@dataclass(frozen=True, slots=True)
class LearningRecorder:
    """Adds epochs and weight snapshots to a trace during learning."""

    writer: Writer | None = None
    """None records nothing."""

    @property
    def snapshots(self) -> tuple[int, ...]:
        """Numbers of learned samples after which all weights are recorded."""
        return () if self.writer is None else self.writer.plan.snapshots

    def epoch(self, weights: Mapping[str, Array], metrics: Mapping[str, Any]) -> None:
        """Record the metrics of an epoch and the weights after it."""
        if self.writer is not None:
            self.writer.epoch({name: float(metrics[name]) for name in EPOCH})
            self.writer.weights({name: weights[name] for name in self.writer.plan.weights})

    def snapshot(self, sample: int, weights: Mapping[str, Array]) -> None:
        """Record all weights after `sample` learned samples."""
        if self.writer is not None:
            held = {name: weights[name] for name in self.writer.plan.weights}
            self.writer.snapshot(sample, held)


def record_of(
    requests: Sequence[str],
    how: Mapping[str, ActivityKind],
    weights: Mapping[str, Array],
    *,
    always: Collection[str],
) -> Record:
    """Return the variables to record: those requested, and the activity of the layers `always`.

    Populations that carry the input or the bias are recorded only if they are requested.
    """
    requested = {request.rpartition(":")[0] for request in requests}
    found = parse_record(requests, how, weights)
    return Record(
        frozenset(name for name in found.spikes if name in always or name in requested),
        frozenset(key for key in found.signals if key[0] in always or key[0] in requested),
        found.hebbian,
    )


@contextmanager
def record_synapses(
    path: Path,
    plan: RecordingPlan,
    plastic: PlasticNetwork,
    samples: TrainingSamples,
    learner: Learner,
    *,
    overwrite: bool,
) -> Iterator[LearningRecorder]:
    """Record the first samples in a trace file, to which the context adds epochs.

    The run learns these samples again. The file can be read during the run, and holds the weights
    of the latest epoch.
    """
    chosen = plan.record.hebbian
    wanted = LearningRecord(
        tuple((name, *pair) for name, pairs in chosen.items() for pair in pairs),
        replace(plan.record, hebbian={}),
    )
    with Writer(path, plan, overwrite=overwrite) as writer:
        learned = learner.learn(plastic, samples, record=wanted)
        for k, (seen, rate) in enumerate(zip(learned.activity, samples.rates, strict=True)):
            logs = synapse_logs(plastic, learned.history[k], chosen, float(rate)) if chosen else {}
            writer.sample(k, replace(seen, hebbian=logs))
        writer.weights({name: learned.weights[name] for name in plan.weights})
        if learned.counts:
            writer.counts(merge_commit(plastic, learned.counts))
        yield LearningRecorder(writer)


def synapse_logs(
    plastic: PlasticNetwork,
    values: Array,
    chosen: Mapping[str, tuple[Synapse, ...]],
    rate: float,
) -> dict[str, SynapseLog]:
    """Return the logs of one sample by connection, from `values` (steps, synapses, variables)."""
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
    """Return Q, the trace of a unit that fires in every step, and the tag that is stored as 1."""
    rule, numbers = plastic.rule, plastic.rule.numbers
    if numbers is None:
        return 1.0, rule.gap * rule.window
    full = rule.gap * rule.window * numbers.top**2
    if isinstance(numbers, LoihiEngine):
        full *= max(1.0, np.rint(numbers.factor * rate / numbers.first)) / 2**17
    return float(numbers.top), float(full)


def recorded_rule(
    plastic: PlasticNetwork, rates: Array, names: Collection[str]
) -> dict[str, Array]:
    """Return what a trace states of the rule, for samples with these learning rates."""
    rule, found = plastic.rule, dict[str, Array]()
    contrasts = contrast(rule.schedule)
    found["tau"] = np.array([rule.tau])
    found["batch"] = np.array([float(rule.batch)])
    found["contrast"] = np.array([contrasts.get(phase.name, 0.0) for phase in rule.schedule])
    gates = np.array([step.gate for step in rule.episode[:-1]])
    found["factor"] = gates / (rule.gap * rule.window)
    found["rate"] = np.asarray(rates, dtype=np.float64)
    found["commit"] = rule.commits(len(rates)).astype(np.float64)
    if isinstance(rule.numbers, LoihiEngine):  # its tags and weights are rounded at a commit
        return found
    etas, keeps = plastic.etas(rates), plastic.keeps(rates)
    for k, part in enumerate(plastic.plastic):
        eta = etas[:, k] * scales(plastic, 0.0)[1] * plastic.weight_step(part)
        for name, factor in ((part.name, 1.0), (part.mirror, part.mirrored)):
            if name in names:
                found[f"eta/{name}"], found[f"keep/{name}"] = factor * eta, keeps[:, k]
    return found


def merge_commit(
    plastic: PlasticNetwork, counts: Mapping[tuple[str, str], Counts]
) -> dict[tuple[str, str], Counts]:
    """Add the events of the commit to those of the last phase."""
    last = plastic.rule.schedule[-1].name
    merged: dict[tuple[str, str], Counts] = {}
    for (name, phase), of_phase in counts.items():
        add_counts(merged, {(name, last if phase == COMMIT else phase): of_phase})
    return merged
