"""Learning in Brian2: all samples in one run, with phases switched by timed arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.simulators.brian2.learning_network import Brian2LearningNetwork
from neuro_eqprop.simulators.brian2.setup import Handle, settings, simulator
from neuro_eqprop.simulators.learning import Learned, Learner, LearningFeature, LearningLog
from neuro_eqprop.spiking.plasticity import Plastic

EVERY_PHASE = "runs every phase of a sample: learn with margin 0, or on the emulator"
IN_FLOATS = (
    "learns in floating point: its equations have no stochastic rounding of integer weights; "
    "learn without bits and engine, or on the reference or the emulator"
)


@dataclass(frozen=True, slots=True)
class Brian2Learner(Learner):
    """Brian2 learner in discrete steps: sample by sample, in floating point."""

    name: str = "brian2"
    cannot: ClassVar[Mapping[LearningFeature, str]] = {
        LearningFeature.MARGIN: EVERY_PHASE,
        LearningFeature.INTEGERS: IN_FLOATS,
        LearningFeature.ENGINE: IN_FLOATS,
        LearningFeature.RHYTHM: "nudges by the clock: learn a rhythm on the emulator or in biology",
        LearningFeature.DECAY: "has weights that do not decay: learn feedback on the emulator",
    }

    def run(self, log: LearningLog) -> Learned:
        """Learn from all samples."""
        brian2 = simulator()
        with settings(brian2):
            network = Brian2LearningNetwork(brian2, log)
            network.run()
        count_events(network)
        record(network)
        parts = log.plastic.plastic
        return log.result(
            {part.name: synapse_matrix(network, part, "w") for part in parts},
            {part.name: synapse_matrix(network, part, "kept") for part in parts},
        )


def synapse_matrix(run: Brian2LearningNetwork, part: Plastic, variable: str) -> Array:
    """A variable of the synapses of a projection (targets, sources)."""
    values = np.asarray(getattr(run.pairs[part.name], variable)[:])
    return values.reshape(run.plastic.projection(part.name).weight.shape).copy()


def count_events(run: Brian2LearningNetwork) -> None:
    """Read the event counts of neurons and synapses, and the drive of the output."""

    def total(of: Handle, counter: str) -> int:
        return int(getattr(of, counter)[:].sum())

    log, rule = run.log, run.rule
    traces, tags, weights = log.counted
    phases = range(len(rule.schedule))
    for column, (name, group) in enumerate(run.groups.items()):
        for k in phases:
            log.sent[name][k] = getattr(group, f"sent_{k}")[:]
        for k, phase in enumerate((*phases, "pause")):
            traces[k, column] = total(group, f"traced_{phase}")
    for part in run.plastic.plastic:
        paths = run.pairs[part.name]
        log.clipped += total(paths, "cut")
        log.count(weights[-1], part, total(paths, "changed"))
        for k, gate in enumerate(rule.gates):
            if gate:
                log.count(tags[k], part, total(paths, f"grown_{k}"))
    drives = np.asarray(run.readouts.sum_drive[:]).reshape(log.drives.shape)
    log.drives[:] = drives / rule.schedule[0].window


def record(run: Brian2LearningNetwork) -> None:
    """Read the monitors; the pause before the first sample is dropped.

    For a mirror, the traces are swapped and the weight is scaled.
    """
    log, shape = run.log, (len(run.log.drives), run.rule.steps)
    for key, monitor in run.recorded.items():
        (variable,) = monitor.record_variables
        values = np.asarray(getattr(monitor, variable)).T[1:]
        log.activity[key][:] = values.reshape(*shape, -1)[:, :-1]
    for k, (monitors, (name, _, _)) in enumerate(
        zip(run.monitors, log.record.synapses, strict=True)
    ):
        pre, post, tag, weight = (
            np.asarray(getattr(monitor, variable)[0])[1:].reshape(shape)
            for monitor, variable in zip(monitors, "rrmw", strict=True)
        )
        part = run.plastic.part_of(name)
        if name == part.mirror:
            pre, post, weight = post, pre, part.mirrored * weight
        log.history[:, :, k] = np.stack([pre, post, tag, weight], axis=-1)
