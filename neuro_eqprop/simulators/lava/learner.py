"""The learning rule of `neuro_eqprop.spiking.plasticity` on Lava's learning engine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from neuro_eqprop.files.write import temporary_folder
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.lava.engine import check_engine, learner_of, learns
from neuro_eqprop.simulators.lava.learning_files import (
    LearningExperiment,
    population_file,
    projection_file,
    read_arrays,
    save,
)
from neuro_eqprop.simulators.lava.recording import layouts, signal
from neuro_eqprop.simulators.lava.simulator import (
    FORMS,
    check_steps,
    interpreter,
    run_child,
    steps_done,
)
from neuro_eqprop.simulators.learning import (
    Learned,
    Learner,
    LearningFeature,
    LearningLog,
    ProgressCallback,
)
from neuro_eqprop.spiking.plasticity import PlasticNetwork, TrainingSamples


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
        LearningFeature.RHYTHM: "nudges by the clock: learn a rhythm on the emulator or in biology",
        LearningFeature.DECAY: "has weights that do not decay: learn feedback on the emulator",
    }

    def check(self, plastic: PlasticNetwork, training: TrainingSamples) -> None:
        """Raise an error if Lava is missing or its engine cannot train the network."""
        Learner.check(self, plastic, training)
        interpreter(os.environ)
        if not training.stimulus.samples:
            raise BackendError("lava: there are no training samples; pass at least one")
        check_engine(plastic)

    def run(self, log: LearningLog) -> Learned:
        """Learn from all samples."""
        learning = LearningExperiment(log.plastic, log.training, log.record)
        with temporary_folder() as folder:
            save(learning, folder)
            monitor = ProgressMonitor(folder, log.plastic.rule.steps, log.progress)
            run_child(
                log.plastic.network,
                folder,
                f"{FORMS}.learning",
                {},
                deadline=self.deadline,
                on_poll=monitor.update,
            )
            learned = read(log, learning, folder)
            monitor.update()
            return learned


class ProgressMonitor:
    """Reports the number of samples that all populations have done."""

    def __init__(self, folder: Path, steps: int, progress: ProgressCallback) -> None:
        self.folder, self.steps, self.progress, self.done = folder, steps, progress, 0

    def update(self) -> None:
        """Report the samples done since the last call."""
        done = int(steps_done(self.folder).min()) // self.steps
        if done > self.done:
            self.progress(done - self.done)
            self.done = done


def read(log: LearningLog, learning: LearningExperiment, folder: Path) -> Learned:
    """The learned weights, and what the processes counted and recorded, in their files."""
    plastic, simulated = log.plastic, learning.simulated
    check_steps(simulated, folder)
    traces, tags, weights = log.counted
    for name, column in log.columns.items():
        tables = layouts(simulated, folder, name)
        log.sent[name][:] = tables["messages"].read().sum(axis=0)
        log.overflows += int(tables["overflows"].read()[-1].sum())
        arrays = read_arrays(population_file(folder, column))
        traces[:, column] = arrays["traces"]
        if onto := learning.synapses_onto(name):
            log.history[:, :, onto, 1] = arrays["post"]
        if name == plastic.network.output:
            log.drives[:] = tables["drive"].read()[:, 0]
    for (name, variable), course in log.activity.items():
        what = "spikes" if variable == "spikes" else signal(variable)
        course[:] = layouts(simulated, folder, name)[what].read()[:, :-1]
    effective, last_tags, saturated = {}, {}, {}
    for number, projection in enumerate(plastic.network.projections):
        if not learns(plastic, projection):
            continue
        name, column = projection.name, log.columns[projection.target]
        arrays = read_arrays(projection_file(folder, number))
        tags[:, column] += arrays["tag_updates"]
        weights[:, column] += arrays["weight_updates"]
        step = plastic.weight_step(plastic.part_of(name))
        if here := learning.synapses_of(name):
            log.history[:, :, here, 0] = arrays["history"][..., 0]
            log.history[:, :, here, 2] = arrays["history"][..., 1]
            log.history[:, :, here, 3] = arrays["history"][..., 2] * step
        effective[name] = step * arrays["weights"]
        low, high = plastic.limits(learner_of(plastic, name))
        saturated[name] = int(((arrays["weights"] <= low) | (arrays["weights"] >= high)).sum())
        if name in {part.name for part in plastic.plastic}:
            last_tags[name] = arrays["tags"]
            log.clipped += int(arrays["clipped"])
    return Learned(
        effective,
        last_tags,
        log.drives,
        log.tally(),
        saturated,
        log.clipped,
        log.overflows,
        log.history,
        log.recordings(),
    )
