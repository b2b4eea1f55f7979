"""Plastic synapses on Lava: its `LearningDense` and its learning engine, with recording.

Lava's own code changes the weights. In a run of the backend, these classes add a weight limit in
floating point, applied where the engine saturates; event counts; recorded synapse variables; a file
with the final weights, since Lava reads them one by one; and errors that reach the parent process.
"""

# No `from __future__ import annotations`: Lava executes this file under another module name.

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
from neuro_eqprop.simulators.lava.engine import engine_of, exponent_of, formulas, learner_of
from neuro_eqprop.spiking.neurons import Numbers
from neuro_eqprop.spiking.plasticity import LEAST, PlasticNetwork

NEVER = 1e18
"""Time constant for no decay: exp(-1 / tau) rounds to 1. Lava computes NaN for tau = 0."""


def rule_of(plastic: PlasticNetwork, place: int) -> Loihi3FLearningRule:
    """Lava's three-factor learning rule for the projection with index `place`."""
    projection, rule, engine = plastic.network.projections[place], plastic.rule, engine_of(plastic)
    dw, dt = formulas(plastic, projection)
    made = Loihi3FLearningRule(
        dw=dw,
        dt=dt,
        x1_tau=NEVER if plastic.network[projection.source].neuron.graded else rule.tau,
        x1_impulse=1.0 - rule.keep if engine is None else rule.impulse,
        t_epoch=1,
        rng_seed=0 if engine is None else engine.seed,
    )
    if engine is None:
        # By default, Lava decays the values sent by a target a little before it uses them.
        made.y1_tau = made.y2_tau = made.y3_tau = NEVER
    return made


def synapse_arguments(plastic: PlasticNetwork, place: int) -> dict[str, Any]:
    """Arguments of `LearningDense` for the projection with index `place`."""
    projection = plastic.network.projections[place]
    graded = plastic.network[projection.source].neuron.graded
    weight = projection.weight
    if engine_of(plastic) is not None:
        weight = np.rint(weight / plastic.part_of(projection.name).scale).astype(np.int32)
    regular, payload = GradedSpikeCfg.USE_REGULAR_IMPULSE, GradedSpikeCfg.ADD_WITHOUT_SATURATION
    return {
        "weights": weight,
        "learning_rule": rule_of(plastic, place),
        "num_message_bits": 8 if graded else 0,
        "graded_spike_cfg": payload if graded else regular,
        "sign_mode": SignMode.MIXED,
        "weight_exp": exponent_of(plastic, projection),
    }


class PlasticSynapses(LearningDense):  # type: ignore[misc]
    """Recorded plastic synapses of a projection, by its number; leave `s_in_bap` unconnected.

    In fixed point, Lava clips y traces to 0..127 when a back-propagated spike arrives, which sets
    a negative third factor to zero.
    """

    def __init__(self, plastic: PlasticNetwork, place: int, *, first: int, watch: Any) -> None:  # noqa: ANN401
        """`first` samples were learned before; `watch` returns the recorder of the process."""
        how = {"plastic": plastic, "place": place, "first": first, "watch": watch}
        super().__init__(**synapse_arguments(plastic, place), **how)


if TYPE_CHECKING:
    Base = Any
else:
    Base = object


class RecordedSynapses(Base):  # type: ignore[misc]
    """Mixin that adds event counts, recordings and error reports to a Lava synapse model."""

    def __init__(self, proc_params: ProcessParameters) -> None:
        super().__init__(proc_params)
        plastic: PlasticNetwork = proc_params["plastic"]
        projection = plastic.network.projections[proc_params["place"]]
        self.limit = learner_of(plastic, projection.name).limit
        self.payload = plastic.network[projection.source].neuron.graded
        self.before: int = proc_params["first"] * plastic.rule.steps
        self.watch = proc_params["watch"]()

    def run_spk(self) -> None:
        """One step of Lava's synapses; an error is reported before it is raised."""
        try:
            self.stock_spk()
        except BaseException:
            self.watch.fail()
            raise

    def run_lrn(self) -> None:
        """One step of Lava's engine."""
        try:
            tags, weights = self.tag_1, self.weights
            super().run_lrn()
            if self.y2.any():
                self.watch.count_tags(self.tag_updates(tags))
            if self.y3.any():
                self.watch.count_weights(tags, np.count_nonzero(self.weights != weights))
            x1 = self.x1 * (2.0 if self.payload else 1.0)
            self.watch.add_step(x1, self.tag_1, self.weights)
        except BaseException:
            self.watch.fail()
            raise

    def count_clipped(self, wanted: Numbers, allowed: Numbers) -> Numbers:
        """Returns `allowed`; counts the weights that clipping changed."""
        self.watch.clipped += np.count_nonzero(allowed != wanted)
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
        # Lava rounds weights to even integers at the start of a run; a resumed run has done so.
        self.weights_set = self.before > 0
        for _ in range(self.before):
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
