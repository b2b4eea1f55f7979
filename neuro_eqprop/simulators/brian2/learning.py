"""Learning in Brian2: all samples in one run, with phases switched by timed arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.brian2.learning_network import LearningNetwork
from neuro_eqprop.simulators.brian2.setup import Handle, settings, simulator
from neuro_eqprop.simulators.learning import (
    Events,
    Learned,
    ProgressCallback,
    Synapses,
    empty_history,
    recordings,
    refuse_margin,
    tally_learning,
)
from neuro_eqprop.simulators.recordings import Record, Recording
from neuro_eqprop.spiking.plasticity import Plastic, PlasticNetwork, TrainingSamples


@dataclass(frozen=True, slots=True)
class Brian2Learner:
    """Brian2 learner in discrete steps: sample by sample, in floating point."""

    name: str = "brian2"

    def check(self, plastic: PlasticNetwork, training: TrainingSamples) -> None:
        """Raise an error for an unsupported network, or samples that do not fit it."""
        check(plastic)
        training.stimulus.check(plastic.network)

    def learn(
        self,
        plastic: PlasticNetwork,
        training: TrainingSamples,
        *,
        synapses: Synapses,
        progress: ProgressCallback,
    ) -> Learned:
        """Learn from all samples."""
        self.check(plastic, training)
        brian2 = simulator()
        with settings(brian2):
            network = LearningNetwork(brian2, plastic, training)
            monitors = [network.monitor_synapse(*chosen) for chosen in synapses.chosen]
            record = synapses.activity
            recorded = {
                key: network.monitor_activity(*key)
                for key in (*((name, "spikes") for name in record.spikes), *record.signals)
            }
            network.run(progress)
        return replace(
            collect_result(network, synapses, monitors),
            activity=activity(network, record, recorded),
        )


def check(plastic: PlasticNetwork) -> None:
    """Raise an error for a network that the equations do not describe."""
    refuse_margin("brian2", plastic)
    if plastic.rule.numbers is not None:
        raise BackendError(
            "brian2 learns in floating point: its equations have no stochastic rounding "
            "of integer weights; learn without bits and engine, or on the reference or the emulator"
        )
    late = next((p for p in plastic.network.projections if p.delay != 1), None)
    if late is not None:
        raise BackendError(
            f"projection {late.name!r} has a delay of {late.delay} steps; learning needs delay 1"
        )


def collect_result(
    run: LearningNetwork, synapses: Synapses, monitors: list[list[Handle]]
) -> Learned:
    """The result of the run."""
    plastic, training = run.plastic, run.training
    weights: dict[str, Array] = {}
    saturated: dict[str, int] = {}
    for part in plastic.plastic:
        weight = synapse_matrix(run, part, "w")
        weights[part.name] = weight
        saturated[part.name] = int(np.count_nonzero(np.abs(weight) >= part.limit))
        if part.mirror is not None:
            weights[part.mirror] = part.mirrored * weight.T
            saturated[part.mirror] = saturated[part.name]
    drives = np.asarray(run.readouts.sum_drive[:]).reshape(training.stimulus.samples, -1)
    cut = sum(int(np.asarray(paths.cut[:]).sum()) for paths in run.pairs.values())
    return Learned(
        weights,
        {part.name: synapse_matrix(run, part, "kept") for part in plastic.plastic},
        drives / plastic.rule.schedule[0].window,
        tally_learning(plastic, training, count_events(run)),
        saturated,
        cut,
        history=synapse_histories(run, synapses, monitors),
    )


def activity(
    run: LearningNetwork, record: Record, recorded: Mapping[tuple[str, str], Handle]
) -> tuple[Recording, ...]:
    """The recorded spikes and signals; the pause before the first sample is dropped."""
    samples, steps = run.training.stimulus.samples, run.rule.steps
    courses: dict[tuple[str, str], Array] = {}
    for key, monitor in recorded.items():
        (variable,) = monitor.record_variables
        values = np.asarray(getattr(monitor, variable)).T[1:].astype(np.float64)
        courses[key] = values.reshape(samples, steps, -1)[:, :-1]
    spikes = {name: courses[name, "spikes"] for name in record.spikes}
    return recordings(record, spikes, courses)


def synapse_matrix(run: LearningNetwork, part: Plastic, variable: str) -> Array:
    """A variable of the synapses of a projection (targets, sources)."""
    values = np.asarray(getattr(run.pairs[part.name], variable)[:])
    return values.reshape(run.plastic.projection(part.name).weight.shape).copy()


def count_events(run: LearningNetwork) -> Events:
    """The event counts of neurons and synapses."""
    plastic, rule = run.plastic, run.rule
    phases = range(len(rule.schedule))
    names = [p.name for p in run.network.populations]
    sent: dict[str, Ints] = {}
    counts = np.zeros((3, len(phases) + 1, len(names)), dtype=np.int64)
    for column, name in enumerate(names):
        group = run.groups[name]
        rows = [getattr(group, f"sent_{k}")[:] for k in phases]
        sent[name] = np.array([*rows, np.zeros_like(rows[0])]).astype(np.int64)
        rows = [getattr(group, f"traced_{k}")[:] for k in (*phases, "pause")]
        counts[0, :, column] = np.sum(rows, axis=1)
    for part in plastic.plastic:
        paths, projection = run.pairs[part.name], plastic.projection(part.name)
        ends = [projection.target, *([projection.source] if part.mirror else [])]
        for column in (names.index(end) for end in ends):
            counts[2, -1, column] += int(paths.changed[:].sum())
            for k, gate in enumerate(rule.gates):
                if gate:
                    counts[1, k, column] += int(getattr(paths, f"grown_{k}")[:].sum())
    return Events(sent, counts[0], counts[1], counts[2])


def synapse_histories(
    run: LearningNetwork, synapses: Synapses, monitors: list[list[Handle]]
) -> Array:
    """Histories of the recorded synapses; for a mirror, traces are swapped and w is scaled."""
    samples, steps = run.training.stimulus.samples, run.rule.steps
    found = empty_history(synapses, samples, steps)
    parts = {name: p for p in run.plastic.plastic for name in (p.name, p.mirror) if name}
    for k, (group, (name, _, _)) in enumerate(zip(monitors, synapses.chosen, strict=True)):
        values = [
            np.asarray(getattr(monitor, what)[0])[1:].reshape(samples, steps)
            for monitor, what in zip(group, "rrmw", strict=True)
        ]
        if name == parts[name].mirror:
            values = [values[1], values[0], values[2], parts[name].mirrored * values[3]]
        found[:, :, k] = np.stack(values, axis=-1)
    return found
