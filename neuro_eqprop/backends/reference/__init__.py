"""The reference: the step of `neuro_eqprop.spiking.ir` in NumPy, the definition of right."""

from neuro_eqprop.backends.base import EVERYTHING, BackendInfo

BACKEND = BackendInfo(
    "reference",
    "reference",
    "NumPy, all samples side by side",
    "neuro_eqprop.backends.reference.simulator:Reference",
    EVERYTHING,
    learner="neuro_eqprop.backends.reference.learning:ReferenceLearner",
    requires={"numpy": ""},
)
