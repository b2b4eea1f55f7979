"""Synapses that learn on Lava: its `LearningDense` and its learning engine, watched.

Lava's own code changes the weights. These classes add what it lacks: the limit of a weight in
floating point, applied where the engine saturates; counts; the recorded history of synapses; final
weights in a file, since Lava reads them one by one; and errors that reach the parent.
"""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

import numpy as np
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.learning.constants import GradedSpikeCfg
from lava.magma.core.learning.learning_rule import Loihi3FLearningRule
from lava.magma.core.model.py.connection import (
    LearningConnectionModelBitApproximate as WholeEngine,
)
from lava.magma.core.model.py.connection import LearningConnectionModelFloat as RealEngine
from lava.magma.core.process.process import ProcessParameters
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol
from lava.proc.dense.models import (
    AbstractPyDenseModelBitAcc,
    AbstractPyDenseModelFloat,
    PyLearningDenseModelBitApproximate,
    PyLearningDenseModelFloat,
)
from lava.proc.dense.process import LearningDense
from lava.utils.weightutils import SignMode

from neuro_eqprop.arrays import Ints
from neuro_eqprop.backends.lava.job import tick
from neuro_eqprop.backends.lava.learning.job import LearningPopulation, formulas
from neuro_eqprop.backends.lava.learning.recording import Left
from neuro_eqprop.backends.subprocess import report
from neuro_eqprop.spiking.ir import Graded
from neuro_eqprop.spiking.neurons import Numbers
from neuro_eqprop.spiking.plasticity import LEAST

NEVER = 1e18
"""A time constant at which exp(-1 / tau) is one: zero would be not a number to Lava."""


def rule_of(part: LearningPopulation, place: int) -> Loihi3FLearningRule:
    """Lava's rule for a projection."""
    course = part.course
    projection, rule = course.plastic.network.projections[place], course.plastic.rule
    graded = isinstance(course.plastic.network[projection.source].neuron, Graded)
    dw, dt = formulas(course, projection)
    engine = course.engine
    made = Loihi3FLearningRule(
        dw=dw,
        dt=dt,
        x1_tau=NEVER if graded else rule.tau,
        x1_impulse=1.0 - rule.keep if engine is None else rule.impulse,
        t_epoch=1,
        rng_seed=0 if engine is None else engine.seed,
    )
    if engine is None:
        # By itself it lets what a target sends decay a little before it is used.
        made.y1_tau = made.y2_tau = made.y3_tau = NEVER
    return made


def synapse_arguments(part: LearningPopulation, place: int) -> dict[str, Any]:
    """The arguments of `LearningDense` for the projection at a place."""
    course = part.course
    projection = course.plastic.network.projections[place]
    graded = isinstance(course.plastic.network[projection.source].neuron, Graded)
    weight = projection.weight
    if course.engine is not None:
        weight = np.rint(weight / course.learner(projection.name).scale).astype(np.int32)
    regular, payload = GradedSpikeCfg.USE_REGULAR_IMPULSE, GradedSpikeCfg.ADD_WITHOUT_SATURATION
    return {
        "weights": weight,
        "learning_rule": rule_of(part, place),
        "num_message_bits": 8 if graded else 0,
        "graded_spike_cfg": payload if graded else regular,
        "sign_mode": SignMode.MIXED,
        "weight_exp": course.exponent(projection),
    }


class PlasticSynapses(LearningDense):  # type: ignore[misc]
    """The synapses of the projection at a place; `s_in_bap` is to stay unconnected.

    In fixed point Lava cuts y traces to 0..127 where a back-propagated spike arrives, and a third
    factor below zero would be lost.
    """

    def __init__(self, part: LearningPopulation, *, place: int) -> None:
        super().__init__(**synapse_arguments(part, place), part=part, place=place)


if TYPE_CHECKING:
    Base = Any
else:
    Base = object


class Watched(Base):  # type: ignore[misc]
    """What is added to Lava's own model of synapses."""

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        self.part: LearningPopulation = proc_params["part"]
        job, course = self.part.job, self.part.course
        self.left = Left(course, self.part.folder, proc_params["place"])
        projection = course.plastic.network.projections[proc_params["place"]]
        self.limit = course.learner(projection.name).limit
        self.payload = isinstance(course.plastic.network[projection.source].neuron, Graded)
        self.total = job.steps * job.stimulus.samples
        self.counts = np.zeros((3, len(job.schedule)), dtype=np.int64)
        self.last_tags = np.zeros(projection.weight.shape)
        told = [course.chosen[k][1:] for k in course.of(projection.name)]
        self.targets, self.sources = (np.array([t[i] for t in told], dtype=np.intp) for i in (0, 1))
        self.story = np.zeros(self.left.story.shape)

    def run_spk(self) -> None:
        """One step of Lava's synapses."""
        try:
            self.stock_spk()
        except BaseException:
            report(self.part.folder, traceback.format_exc())
            raise

    def run_lrn(self) -> None:
        """One step of Lava's engine."""
        try:
            tags, weights = self.tag_1, self.weights
            super().run_lrn()
            self.note(tags, weights)
        except BaseException:
            report(self.part.folder, traceback.format_exc())
            raise

    def note(self, tags: Numbers, weights: Numbers) -> None:
        """Count what changed, and tell the history."""
        sample, step = divmod(self.time_step - 1, self.part.job.steps)
        phase = tick(self.part.job.schedule, step).phase
        if self.y2.any():
            self.counts[0, phase] += self.grown(tags)
        if self.y3.any():
            self.last_tags = tags
            self.counts[1, phase] += np.count_nonzero(self.weights != weights)
        row = self.story[sample, step]
        row[:, 0] = self.x1[self.sources] * (2.0 if self.payload else 1.0)
        row[:, 1] = self.tag_1[self.targets, self.sources]
        row[:, 2] = self.weights[self.targets, self.sources]
        if self.time_step == self.total:
            self.left.write(self.weights, self.last_tags, self.counts, self.story)

    def cut(self, wanted: Numbers, allowed: Numbers) -> Numbers:
        """Weights within their limits; those cut off are counted."""
        self.counts[2, 0] += np.count_nonzero(allowed != wanted)
        return allowed


@implements(proc=PlasticSynapses, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt")
class PlasticSynapsesModel(Watched, RealEngine, AbstractPyDenseModelFloat):  # type: ignore[misc]
    """In floats."""

    stock_spk = PyLearningDenseModelFloat.run_spk

    def _saturate_synaptic_variable(self, name: str, values: Numbers) -> Numbers:
        wanted: Numbers = super()._saturate_synaptic_variable(name, values)
        if name != "weights":
            return wanted
        return self.cut(wanted, np.clip(wanted, -self.limit, self.limit))

    def grown(self, tags: Numbers) -> int:
        """How many tags were given something; Lava lets traces fade further than to zero."""
        pre = self.x1 != 0.0 if self.payload else self.x1 >= LEAST
        return int(np.count_nonzero(pre) * np.count_nonzero(self.y1))


@implements(proc=PlasticSynapses, protocol=LoihiProtocol)
@requires(CPU)
@tag("fixed_pt")
class PlasticIntegersModel(Watched, WholeEngine, AbstractPyDenseModelBitAcc):  # type: ignore[misc]
    """In integers. Samples that go on from others go on with Lava's random numbers."""

    stock_spk = PyLearningDenseModelBitApproximate.run_spk

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        self.num_weight_bits = 8
        before = self.part.course.lessons.first * self.part.job.steps
        # Lava makes weights even at the start of a run; here it began with the first sample.
        self.weights_set = before > 0
        for _ in range(before):
            self._update_trace_randoms()
            self._update_trace_randoms()
            self._update_synaptic_variable_random()

    def _saturate_synaptic_variable(self, name: str, values: Numbers) -> Numbers:
        allowed = super()._saturate_synaptic_variable(name, values)
        return self.cut(values, allowed) if name == "weights" else allowed

    def grown(self, tags: Numbers) -> int:
        """How many tags changed."""
        changed: Ints = self.tag_1 != tags
        return int(np.count_nonzero(changed))
