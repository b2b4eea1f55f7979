"""Brian2 in discrete steps (`brian2`) and in continuous time (`brian2-biology`)."""

from neuro_eqprop.simulators.base import FLOAT_ONLY, BackendInfo
from neuro_eqprop.simulators.biology import SUPPORT

REQUIRES = {"brian2": ">=2.8"}

BACKEND = BackendInfo(
    "brian2",
    "Brian2",
    "discrete updates of neuron groups, samples as copies",
    "neuro_eqprop.simulators.brian2.simulator:Brian2",
    FLOAT_ONLY,
    learner="neuro_eqprop.simulators.brian2.learning:Brian2Learner",
    requires=REQUIRES,
    step_cost=(3e-3, 1e-7),
)

BIOLOGY = BackendInfo(
    "brian2-biology",
    "Brian2, continuous time",
    "the equations of biology in Brian2, with units",
    "neuro_eqprop.simulators.brian2.continuous:Brian2Biology",
    SUPPORT,
    learner="neuro_eqprop.simulators.brian2.continuous_learning:Brian2BiologyLearner",
    requires=REQUIRES,
    step_cost=(3e-2, 1e-6),
)
