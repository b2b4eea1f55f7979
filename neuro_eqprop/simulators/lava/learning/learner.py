"""The learning rule of `neuro_eqprop.spiking.plasticity` on Lava's learning engine."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.files import subprocess
from neuro_eqprop.files.write import temporary_folder
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.lava.learning.job import (
    LearningJob,
    LearningPopulation,
    formulas,
    save,
)
from neuro_eqprop.simulators.lava.learning.recording import (
    ProjectionFiles,
    post_history,
    synapses_onto,
    trace_counts,
)
from neuro_eqprop.simulators.lava.recording import layouts, signal
from neuro_eqprop.simulators.lava.simulator import interpreter, run_child
from neuro_eqprop.simulators.lava.worker import DONE
from neuro_eqprop.simulators.learning import (
    Learned,
    Learner,
    LearningFeature,
    LearningLog,
    ProgressCallback,
)
from neuro_eqprop.spiking.ir import Gain, Graded
from neuro_eqprop.spiking.plasticity import (
    UNSIGNED_PAYLOAD,
    IntegerArithmetic,
    PlasticNetwork,
    TrainingSamples,
)

ENTRY = "neuro_eqprop.simulators.lava.learning.worker"


@dataclass(frozen=True, slots=True)
class LavaLearner(Learner):
    """Learns sample by sample in one Lava run, in float64 or in the integers of its engine.

    `deadline` is the longest time without a step, in seconds.
    """

    deadline: float = 60.0
    name: str = "lava"
    cannot: ClassVar[Mapping[LearningFeature, str]] = {
        LearningFeature.MARGIN: (
            "runs every phase of a sample: learn with margin 0, or on the emulator"
        ),
        LearningFeature.GAINS: (
            "supports no effective weights that differ from the stored weights: learn without "
            "nonidealities, or on the emulator"
        ),
    }

    def check(self, plastic: PlasticNetwork, training: TrainingSamples) -> None:
        """Raise an error if Lava is missing or its engine cannot train the network."""
        Learner.check(self, plastic, training)
        interpreter(os.environ)
        check(LearningJob(plastic, training))

    def run(self, log: LearningLog) -> Learned:
        """Learn from all samples."""
        record = log.record
        learning = LearningJob(log.plastic, log.training, record.synapses, record.activity)
        with temporary_folder() as folder:
            save(learning, folder)
            monitor = ProgressMonitor(learning, folder, log.progress)
            run_child(
                learning.job, folder, deadline=self.deadline, entry=ENTRY, on_poll=monitor.update
            )
            learned = read(log, learning, folder)
            monitor.finish()
            return learned


class ProgressMonitor:
    """Reports the number of samples that all populations have done."""

    def __init__(self, learning: LearningJob, folder: Path, progress: ProgressCallback) -> None:
        self.path, self.callback, self.done = folder / subprocess.PROGRESS, progress, 0
        self.samples, self.steps = learning.training.stimulus.samples, learning.plastic.rule.steps

    def update(self) -> None:
        """Report the samples done since the last call."""
        self.report_done(int(np.fromfile(self.path, dtype=np.int64)[1:].min()) // self.steps)

    def finish(self) -> None:
        """Report the remaining samples."""
        self.report_done(self.samples)

    def report_done(self, done: int) -> None:
        """Report that `done` samples are done in total."""
        if done > self.done:
            self.callback(done - self.done)
            self.done = done


def check(learning: LearningJob) -> None:
    """Raise an error if Lava's engine cannot train the network."""
    plastic, network = learning.plastic, learning.plastic.network
    if not learning.training.stimulus.samples:
        raise BackendError("lava: there are no training samples; pass at least one")
    graded = any(isinstance(p.neuron, Graded) for p in network.populations)
    if isinstance(plastic.rule.numbers, IntegerArithmetic) and graded:
        raise BackendError(f"lava: {UNSIGNED_PAYLOAD}")
    if isinstance(plastic.rule.numbers, IntegerArithmetic):
        raise BackendError(
            "lava rounds integer weights differently, with one random number per step; learn "
            "with engine = true, or on the emulator"
        )
    for projection in network.projections:
        if projection.gain is Gain.ONE and projection.name in plastic.learns:
            formulas(learning, projection)
    if learning.engine is not None:
        check_sums(learning)


def check_sums(learning: LearningJob) -> None:
    """Raise an error if synaptic input at the largest weights can exceed Lava's 32 bits."""
    network = learning.plastic.network
    for population in network.populations:
        fed = network.into(population.name, Gain.ONE)
        most = sum(256 * p.weight.shape[1] << learning.exponent(p) for p in fed)
        if most >= 2**31:
            raise BackendError(
                f"lava: the input of {population.name!r} may exceed 32 bits; use fewer units"
            )


def read(log: LearningLog, learning: LearningJob, folder: Path) -> Learned:
    """The learned weights and counts in the files of the processes, counted in the log.

    Raises BackendError if a population did not run every step.
    """
    network, job = learning.plastic.network, learning.job
    done = json.loads((folder / DONE).read_text())
    expected = job.stimulus.samples * job.steps
    for population, count in zip(network.populations, done["counters"], strict=True):
        if count != expected:
            raise BackendError(f"lava ran {count} of {expected} steps of {population.name!r}")
    files = {
        projection.name: ProjectionFiles(learning, folder, place)
        for place, projection in enumerate(network.projections)
        if projection.gain is Gain.ONE and projection.name in learning.plastic.learns
    }
    counts = {name: each.counts.read() for name, each in files.items()}
    weights = {name: np.array(each.weights.read()) for name, each in files.items()}
    names = [part.name for part in learning.plastic.plastic]
    output = [p.name for p in network.populations].index(network.output)
    drive = layouts(LearningPopulation(job, output, folder, learning))["drive"].read()[:, 0]
    count_events(log, learning, folder, counts)
    fill_history(log, learning, folder, files)
    fill_activity(log, learning, folder)
    return Learned(
        {name: weight * learning.weight_step(name) for name, weight in weights.items()},
        {name: np.array(files[name].tags.read()) for name in names},
        np.array(drive),
        log.tally(),
        {name: saturated(learning, name, weight) for name, weight in weights.items()},
        int(sum(counts[name][2, 0] for name in names)),
        int(np.sum(done["overflows"])),
        log.history,
        log.recordings(),
    )


def fill_activity(log: LearningLog, learning: LearningJob, folder: Path) -> None:
    """Read the recorded spikes and signals, without the commit step."""
    for (name, variable), course in log.activity.items():
        files = layouts(LearningPopulation(learning.job, log.columns[name], folder, learning))
        what = "spikes" if variable == "spikes" else signal(variable)
        course[:] = files[what].read()[:, :-1]


def saturated(learning: LearningJob, name: str, weight: Array) -> int:
    """The number of weights at a limit."""
    limit = learning.learner(name).limit
    low, high = (-limit, limit) if learning.engine is None else learning.engine.range
    return int(np.count_nonzero((weight <= low) | (weight >= high)))


def count_events(
    log: LearningLog, learning: LearningJob, folder: Path, counts: Mapping[str, Ints]
) -> None:
    """Read the event counts by phase and population."""
    traces, tags, weights = log.counted
    for name, count in counts.items():
        column = log.columns[learning.plastic.projection(name).target]
        tags[:, column] += count[0]
        weights[:, column] += count[1]
    for name, column in log.columns.items():
        files = layouts(LearningPopulation(learning.job, column, folder, learning))
        traces[:, column] = trace_counts(learning, folder, column).read()
        log.sent[name][:] = files["messages"].read().sum(axis=0)


def fill_history(
    log: LearningLog, learning: LearningJob, folder: Path, files: Mapping[str, ProjectionFiles]
) -> None:
    """Read the recorded variables of the chosen synapses."""
    history = log.history
    for name, each in files.items():
        here = learning.of(name)
        if here:
            seen = each.history.read()
            history[:, :, here, 0] = seen[..., 0]
            history[:, :, here, 2] = seen[..., 1]
            history[:, :, here, 3] = seen[..., 2] * learning.weight_step(name)
    for name, column in log.columns.items():
        here = synapses_onto(learning, name)
        if here:
            history[:, :, here, 1] = post_history(learning, folder, column).read()
