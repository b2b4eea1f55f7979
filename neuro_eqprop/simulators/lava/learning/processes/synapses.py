"""Plastic synapses on Lava: its `LearningDense` and its learning engine, with recording.

Lava's own code changes the weights. These classes add a weight limit in floating point, applied
where the engine saturates; event counts; recorded synapse variables; a file with the final weights,
since Lava reads them one by one; and errors that reach the parent process.
"""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

import numpy as np
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.learning.constants import GradedSpikeCfg
from lava.magma.core.learning.learning_rule import Loihi3FLearningRule
from lava.magma.core.model.py.connection import (
    LearningConnectionModelBitApproximate as IntegerEngine,
)
from lava.magma.core.model.py.connection import LearningConnectionModelFloat as FloatEngine
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

from neuro_eqprop.common.arrays import Ints
from neuro_eqprop.files.subprocess import report
from neuro_eqprop.simulators.lava.job import tick
from neuro_eqprop.simulators.lava.learning.job import LearningPopulation, formulas
from neuro_eqprop.simulators.lava.learning.recording import ProjectionFiles
from neuro_eqprop.spiking.ir import Graded
from neuro_eqprop.spiking.neurons import Numbers
from neuro_eqprop.spiking.plasticity import LEAST

NEVER = 1e18
"""Time constant for no decay: exp(-1 / tau) rounds to 1. Lava computes NaN for tau = 0."""


def rule_of(part: LearningPopulation, place: int) -> Loihi3FLearningRule:
    """Lava's three-factor learning rule for the projection with index `place`."""
    learning = part.learning
    projection, rule = learning.plastic.network.projections[place], learning.plastic.rule
    graded = isinstance(learning.plastic.network[projection.source].neuron, Graded)
    dw, dt = formulas(learning, projection)
    engine = learning.engine
    made = Loihi3FLearningRule(
        dw=dw,
        dt=dt,
        x1_tau=NEVER if graded else rule.tau,
        x1_impulse=1.0 - rule.keep if engine is None else rule.impulse,
        t_epoch=1,
        rng_seed=0 if engine is None else engine.seed,
    )
    if engine is None:
        # By default, Lava decays the values sent by a target a little before it uses them.
        made.y1_tau = made.y2_tau = made.y3_tau = NEVER
    return made


def synapse_arguments(part: LearningPopulation, place: int) -> dict[str, Any]:
    """Arguments of `LearningDense` for the projection with index `place`."""
    learning = part.learning
    projection = learning.plastic.network.projections[place]
    graded = isinstance(learning.plastic.network[projection.source].neuron, Graded)
    weight = projection.weight
    if learning.engine is not None:
        weight = np.rint(weight / learning.learner(projection.name).scale).astype(np.int32)
    regular, payload = GradedSpikeCfg.USE_REGULAR_IMPULSE, GradedSpikeCfg.ADD_WITHOUT_SATURATION
    return {
        "weights": weight,
        "learning_rule": rule_of(part, place),
        "num_message_bits": 8 if graded else 0,
        "graded_spike_cfg": payload if graded else regular,
        "sign_mode": SignMode.MIXED,
        "weight_exp": learning.exponent(projection),
    }


class PlasticSynapses(LearningDense):  # type: ignore[misc]
    """Plastic synapses of the projection with index `place`; leave `s_in_bap` unconnected.

    In fixed point, Lava clips y traces to 0..127 when a back-propagated spike arrives, which sets
    a negative third factor to zero.
    """

    def __init__(self, part: LearningPopulation, *, place: int) -> None:
        super().__init__(**synapse_arguments(part, place), part=part, place=place)


if TYPE_CHECKING:
    Base = Any
else:
    Base = object


class RecordedSynapses(Base):  # type: ignore[misc]
    """Mixin that adds event counts, recordings and error reports to a Lava synapse model."""

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        self.part: LearningPopulation = proc_params["part"]
        job, learning = self.part.job, self.part.learning
        self.files = ProjectionFiles(learning, self.part.folder, proc_params["place"])
        projection = learning.plastic.network.projections[proc_params["place"]]
        self.limit = learning.learner(projection.name).limit
        self.payload = isinstance(learning.plastic.network[projection.source].neuron, Graded)
        self.total = job.steps * job.stimulus.samples
        self.counts = np.zeros((3, len(job.schedule)), dtype=np.int64)
        self.last_tags = np.zeros(projection.weight.shape)
        chosen = [learning.chosen[k][1:] for k in learning.of(projection.name)]
        self.targets, self.sources = (
            np.array([t[i] for t in chosen], dtype=np.intp) for i in (0, 1)
        )
        self.history = np.zeros(self.files.history.shape)

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
            self.record_step(tags, weights)
        except BaseException:
            report(self.part.folder, traceback.format_exc())
            raise

    def record_step(self, tags: Numbers, weights: Numbers) -> None:
        """Count the updates of this step and record the chosen synapses."""
        sample, step = divmod(self.time_step - 1, self.part.job.steps)
        phase = tick(self.part.job.schedule, step).phase
        if self.y2.any():
            self.counts[0, phase] += self.tag_updates(tags)
        if self.y3.any():
            self.last_tags = tags
            self.counts[1, phase] += np.count_nonzero(self.weights != weights)
        row = self.history[sample, step]
        row[:, 0] = self.x1[self.sources] * (2.0 if self.payload else 1.0)
        row[:, 1] = self.tag_1[self.targets, self.sources]
        row[:, 2] = self.weights[self.targets, self.sources]
        if self.time_step == self.total:
            self.files.write(self.weights, self.last_tags, self.counts, self.history)

    def count_clipped(self, wanted: Numbers, allowed: Numbers) -> Numbers:
        """Returns `allowed`; counts the weights that clipping changed."""
        self.counts[2, 0] += np.count_nonzero(allowed != wanted)
        return allowed


@implements(proc=PlasticSynapses, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt")
class PlasticSynapsesModel(RecordedSynapses, FloatEngine, AbstractPyDenseModelFloat):  # type: ignore[misc]
    """Plastic synapses in float64."""

    stock_spk = PyLearningDenseModelFloat.run_spk

    def _saturate_synaptic_variable(self, name: str, values: Numbers) -> Numbers:
        wanted: Numbers = super()._saturate_synaptic_variable(name, values)
        if name != "weights":
            return wanted
        return self.count_clipped(wanted, np.clip(wanted, -self.limit, self.limit))

    def tag_updates(self, tags: Numbers) -> int:
        """The number of tag updates; traces below LEAST count as zero."""
        pre = self.x1 != 0.0 if self.payload else self.x1 >= LEAST
        return int(np.count_nonzero(pre) * np.count_nonzero(self.y1))


@implements(proc=PlasticSynapses, protocol=LoihiProtocol)
@requires(CPU)
@tag("fixed_pt")
class PlasticIntegersModel(RecordedSynapses, IntegerEngine, AbstractPyDenseModelBitAcc):  # type: ignore[misc]
    """Plastic synapses in integers; a resumed run continues Lava's random number stream."""

    stock_spk = PyLearningDenseModelBitApproximate.run_spk

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        self.num_weight_bits = 8
        before = self.part.learning.training.first * self.part.job.steps
        # Lava rounds weights to even integers at the start of a run; a resumed run has done so.
        self.weights_set = before > 0
        for _ in range(before):
            self._update_trace_randoms()
            self._update_trace_randoms()
            self._update_synaptic_variable_random()

    def _saturate_synaptic_variable(self, name: str, values: Numbers) -> Numbers:
        allowed = super()._saturate_synaptic_variable(name, values)
        return self.count_clipped(values, allowed) if name == "weights" else allowed

    def tag_updates(self, tags: Numbers) -> int:
        """The number of tags that changed."""
        changed: Ints = self.tag_1 != tags
        return int(np.count_nonzero(changed))
