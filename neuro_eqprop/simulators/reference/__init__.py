"""The reference: the step of `neuro_eqprop.spiking.ir` in NumPy, which the others must match."""

from neuro_eqprop.simulators.base import EVERYTHING, BackendInfo

BACKEND = BackendInfo(
    "reference",
    "reference",
    "NumPy, all samples in parallel",
    "neuro_eqprop.simulators.reference.simulator:Reference",
    EVERYTHING,
    learner="neuro_eqprop.simulators.reference.learning:ReferenceLearner",
    requires={"numpy": ""},
    step_cost=(1e-3, 1e-8),
)
