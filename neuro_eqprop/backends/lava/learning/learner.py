"""The rule of `neuro_eqprop.spiking.plasticity` on Lava: one run with its own learning engine."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.backends import subprocess
from neuro_eqprop.backends.base import BackendError
from neuro_eqprop.backends.lava.learning.job import LearningJob, LearningPopulation, formulas, save
from neuro_eqprop.backends.lava.learning.recording import Left, into, post_history, trace_counts
from neuro_eqprop.backends.lava.recording import layouts
from neuro_eqprop.backends.lava.simulator import interpreter, run_child, temporary_root
from neuro_eqprop.backends.lava.worker import DONE
from neuro_eqprop.backends.learning import (
    SYNAPSE_VARIABLES,
    Events,
    Learned,
    Synapses,
    Watch,
    tally_learning,
)
from neuro_eqprop.spiking.ir import Gain, Graded
from neuro_eqprop.spiking.plasticity import (
    UNSIGNED_PAYLOAD,
    IntegerArithmetic,
    PlasticNetwork,
    TrainingSamples,
)

ENTRY = "neuro_eqprop.backends.lava.learning.worker"


@dataclass(frozen=True, slots=True)
class LavaLearner:
    """One sample after the other in one run of Lava, in float64 or as its engine rounds.

    `deadline` is in seconds without a step.
    """

    deadline: float = 60.0
    name: str = "lava"

    def check(self, plastic: PlasticNetwork, lessons: TrainingSamples) -> None:
        """Refuse what Lava's engine cannot learn, and everything where there is no Lava."""
        interpreter(os.environ, sys.version_info[:2])
        check(LearningJob(plastic, lessons))

    def learn(
        self, plastic: PlasticNetwork, lessons: TrainingSamples, *, synapses: Synapses, watch: Watch
    ) -> Learned:
        """Learn from all samples."""
        course = LearningJob(plastic, lessons, synapses.chosen)
        check(course)
        with TemporaryDirectory(
            prefix="lava-", dir=temporary_root(), ignore_cleanup_errors=True
        ) as name:
            folder = Path(name)
            save(course, folder)
            progress = Progress(course, folder, watch)
            run_child(
                course.job, folder, deadline=self.deadline, entry=ENTRY, on_poll=progress.update
            )
            learned = read(course, folder)
            progress.finish()
            return learned


class Progress:
    """Tells how many samples every population has done."""

    def __init__(self, course: LearningJob, folder: Path, watch: Watch) -> None:
        self.path, self.watch, self.done = folder / subprocess.PROGRESS, watch, 0
        self.lessons, self.steps = course.lessons.stimulus.samples, course.plastic.rule.steps

    def update(self) -> None:
        """Tell of the samples done since the last look."""
        self.report_done(int(np.fromfile(self.path, dtype=np.int64)[1:].min()) // self.steps)

    def finish(self) -> None:
        """Tell of the rest."""
        self.report_done(self.lessons)

    def report_done(self, done: int) -> None:
        """Tell that so many are done in all."""
        if done > self.done:
            self.watch(done - self.done)
            self.done = done


def check(course: LearningJob) -> None:
    """Refuse what Lava's engine cannot learn."""
    plastic, network = course.plastic, course.plastic.network
    course.lessons.stimulus.check(network)
    if not course.lessons.stimulus.samples:
        raise BackendError("lava: there is nothing to learn from; give it a sample")
    graded = any(isinstance(p.neuron, Graded) for p in network.populations)
    if isinstance(plastic.rule.numbers, IntegerArithmetic) and graded:
        raise BackendError(f"lava: {UNSIGNED_PAYLOAD}")
    if isinstance(plastic.rule.numbers, IntegerArithmetic):
        raise BackendError(
            "lava rounds integer weights in its own way, with one random number in a step; learn "
            "with engine = true, or on the emulator"
        )
    flawed = next(iter(plastic.gains), None)
    if flawed is not None:
        raise BackendError(
            f"lava: synapses of {flawed!r} pass on other weights than they have, which its engine "
            "does not know; learn without flaws, or on the emulator"
        )
    late = next((p.name for p in network.projections if p.delay != 1), None)
    if late is not None:
        raise BackendError(f"lava: {late!r} has a delay, and its synapses that learn have none")
    for projection in network.projections:
        if projection.gain is Gain.ONE and projection.name in plastic.learns:
            formulas(course, projection)
    if course.engine is not None:
        check_sums(course)


def check_sums(course: LearningJob) -> None:
    """Refuse sums that 32 bits do not hold at the largest weights, as Lava's synapses have them."""
    network = course.plastic.network
    for population in network.populations:
        fed = network.into(population.name, Gain.ONE)
        most = sum(256 * p.weight.shape[1] << course.exponent(p) for p in fed)
        if most >= 2**31:
            raise BackendError(
                f"lava: what arrives at {population.name!r} may exceed 32 bits; use fewer units"
            )


def read(course: LearningJob, folder: Path) -> Learned:
    """What the processes left behind, every step of all of them having been run."""
    network, job = course.plastic.network, course.job
    done = json.loads((folder / DONE).read_text())
    expected = job.stimulus.samples * job.steps
    for population, count in zip(network.populations, done["counters"], strict=True):
        if count != expected:
            raise BackendError(f"lava ran {count} of {expected} steps of {population.name!r}")
    left = {
        projection.name: Left(course, folder, place)
        for place, projection in enumerate(network.projections)
        if projection.gain is Gain.ONE and projection.name in course.plastic.learns
    }
    counts = {name: each.counts.read() for name, each in left.items()}
    whole = {name: np.array(each.weights.read()) for name, each in left.items()}
    names = [part.name for part in course.plastic.plastic]
    output = [p.name for p in network.populations].index(network.output)
    drive = layouts(LearningPopulation(job, output, folder, course))["drive"].read()[:, 0]
    return Learned(
        {name: weight * size(course, name) for name, weight in whole.items()},
        {name: np.array(left[name].tags.read()) for name in names},
        np.array(drive),
        tally_learning(course.plastic, course.lessons, events(course, folder, counts)),
        {name: saturated(course, name, weight) for name, weight in whole.items()},
        int(sum(counts[name][2, 0] for name in names)),
        int(np.sum(done["overflows"])),
        story(course, folder, left),
    )


def size(course: LearningJob, name: str) -> float:
    """What a weight of one stands for."""
    return 1.0 if course.engine is None else course.learner(name).scale


def saturated(course: LearningJob, name: str, weight: Array) -> int:
    """How many weights stand at a limit."""
    limit = course.learner(name).limit
    low, high = (-limit, limit) if course.engine is None else course.engine.range
    return int(np.count_nonzero((weight <= low) | (weight >= high)))


def events(course: LearningJob, folder: Path, counts: Mapping[str, Ints]) -> Events:
    """What was counted, by phase and population."""
    network, job = course.plastic.network, course.job
    names = [population.name for population in network.populations]
    tags, weights = np.zeros((2, len(job.schedule), len(names)), dtype=np.int64)
    for name, count in counts.items():
        column = names.index(course.plastic.projection(name).target)
        tags[:, column] += count[0]
        weights[:, column] += count[1]
    traces = [trace_counts(course, folder, index).read() for index in range(len(names))]
    sent = {
        name: layouts(LearningPopulation(job, index, folder, course))["messages"].read().sum(axis=0)
        for index, name in enumerate(names)
    }
    return Events(sent, np.stack(traces, axis=1), tags, weights)


def story(course: LearningJob, folder: Path, left: Mapping[str, Left]) -> Array:
    """Of the chosen synapses what they and the populations they end at have told."""
    if not course.chosen:
        return np.zeros((0, 0, 0, len(SYNAPSE_VARIABLES)))
    samples, steps = course.lessons.stimulus.samples, course.plastic.rule.steps
    found = np.zeros((samples, steps, len(course.chosen), len(SYNAPSE_VARIABLES)))
    for name, each in left.items():
        here = course.of(name)
        if here:
            seen = each.story.read()
            found[:, :, here, 0] = seen[..., 0]
            found[:, :, here, 2] = seen[..., 1]
            found[:, :, here, 3] = seen[..., 2] * size(course, name)
    for index, population in enumerate(course.plastic.network.populations):
        here = into(course, population.name)
        if here:
            found[:, :, here, 1] = post_history(course, folder, index).read()
    return found
