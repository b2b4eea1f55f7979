"""What spiking and graded populations of a network that learns have in common on Lava."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from lava.magma.core.model.py.ports import PyInPort, PyOutPort
from lava.magma.core.model.py.type import LavaPyType
from lava.magma.core.process.ports.ports import InPort, OutPort
from lava.magma.core.process.process import ProcessParameters

from neuro_eqprop.arrays import Array
from neuro_eqprop.backends.lava_course import Beat, Pupil, places, told
from neuro_eqprop.backends.lava_job import tick
from neuro_eqprop.backends.lava_learning_tables import into, post_story, trace_counts
from neuro_eqprop.backends.lava_processes.population import (
    Numbers,
    PopulationModel,
    PopulationProcess,
    RealModel,
)
from neuro_eqprop.backends.lava_tables import Table
from neuro_eqprop.spiking.ir import Gain

LENGTH = len(Beat._fields)


class LearningProcess(PopulationProcess):
    """Neurons that hear the source, and tell their trace and the third factors to synapses."""

    def __init__(self, part: Pupil) -> None:
        super().__init__(part)
        shape = (part.population.size,)
        self.news = InPort(shape=(told(part.job),))
        self.y1 = OutPort(shape=shape)
        self.y2 = OutPort(shape=shape)
        self.y3 = OutPort(shape=shape)


class LearningModel(PopulationModel):
    """Neurons by the beat of the source."""

    part: Pupil

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        job, course, name = self.part.job, self.part.course, self.part.population.name
        self.total = job.steps * job.stimulus.samples
        self.keep = course.plastic.rule.keep
        self.trace = np.zeros(self.part.population.size)
        self.counts = np.zeros(len(job.schedule), dtype=np.int64)
        here = places(job)
        self.at = {what: here.get((name, what)) for what in ("current", "pull")}
        chosen = into(course, name)
        self.units = np.array([course.chosen[k][1] for k in chosen], dtype=np.intp)
        layout = post_story(course, self.part.folder, self.part.index)
        self.story = Table(layout) if chosen else None

    def step(self, sample: int, step: int) -> None:
        """One step, as the source tells it."""
        message = self.news.recv()
        one = self.a_one.recv() if self.fed[Gain.ONE] else self.nothing
        by_beta = self.a_beta.recv() if self.fed[Gain.BETA] else self.nothing
        beat, now = Beat(*message[:LENGTH]), tick(self.part.job.schedule, step)
        if beat.start:
            one = by_beta = self.nothing
            self.rest()
        self.hear(beat, self.part_of(message, "current"), self.part_of(message, "pull"))
        sent = self.nothing if beat.silent else self.advance(one, by_beta, self.beta(beat))
        self.s_out.send(self.farewell() if beat.silent else sent)
        self.remember(sent, bool(beat.silent), now.phase)
        self.tell(beat)
        shown = self.told(sent)
        self.ledger.note(step, now, message=shown, firing=self.firing(), values=self.values())
        self.book(step)

    def part_of(self, message: Numbers, what: str) -> Numbers:
        """The current or the pull in what the source tells."""
        place = self.at[what]
        return self.nothing if place is None else message[place]

    def remember(self, sent: Numbers, silent: bool, phase: int) -> None:
        """Let the traces follow, and count those that change."""
        new = self.follow(sent, silent)
        self.counts[phase] += np.count_nonzero(new != self.trace)
        self.trace = new

    def book(self, step: int) -> None:
        """Note what was done, and after the last step of all leave it behind."""
        if self.story is not None:
            self.story.row[step] = self.trace[self.units]
            if step == self.part.job.steps - 1:
                self.story.turn()
        self.steps_run[0] += 1
        if self.time_step == self.total:
            path = trace_counts(self.part.course, self.part.folder, self.part.index).path
            np.save(path, self.counts, allow_pickle=False)
        self.life[self.part.index + 1] = self.time_step

    @abstractmethod
    def hear(self, beat: Beat, current: Numbers, pull: Numbers) -> None:
        """Take in what comes from outside."""

    @abstractmethod
    def beta(self, beat: Beat) -> float:
        """The beta of the step."""

    @abstractmethod
    def farewell(self) -> Numbers:
        """What is sent in a commit."""

    @abstractmethod
    def follow(self, sent: Numbers, silent: bool) -> Array:
        """The new traces."""

    @abstractmethod
    def tell(self, beat: Beat) -> None:
        """Send y1, y2 and y3 to the synapses."""


class RealLearningModel(LearningModel, RealModel):
    """In real numbers."""

    news = LavaPyType(PyInPort.VEC_DENSE, float)
    y1 = LavaPyType(PyOutPort.VEC_DENSE, float)
    y2 = LavaPyType(PyOutPort.VEC_DENSE, float)
    y3 = LavaPyType(PyOutPort.VEC_DENSE, float)

    def hear(self, beat: Beat, current: Numbers, pull: Numbers) -> None:
        """bias + current + beta pull."""
        self.outside = np.asarray(self.bias + current + beat.beta * pull)

    def beta(self, beat: Beat) -> float:
        """As it was told."""
        return float(beat.beta)

    def tell(self, beat: Beat) -> None:
        """In a commit the trace, which is not needed then, makes room for eta."""
        ones = np.ones_like(self.trace)
        self.y1.send(beat.eta * ones if beat.silent else self.trace)
        self.y2.send(beat.third * ones)
        self.y3.send(beat.pulse * ones)
