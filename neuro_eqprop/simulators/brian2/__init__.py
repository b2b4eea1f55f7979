"""Brian2 in discrete steps (`brian2`) and in continuous time (`brian2-biology`)."""

from neuro_eqprop.simulators.base import FLOAT_ONLY, BackendInfo, Feature, Support

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

BINARY = "its membranes send binary spikes"
BIOLOGY = BackendInfo(
    "brian2-biology",
    "Brian2, continuous time",
    "membranes and synapses in continuous time, with units",
    "neuro_eqprop.simulators.brian2.continuous:Brian2Biology",
    Support(
        {
            **FLOAT_ONLY.reasons,
            Feature.GRADED: BINARY,
            Feature.CURVED: BINARY,
            Feature.EXACT: "membranes in continuous time agree with the rates, not with the "
            "reference spike for spike",
        }
    ),
    learner="neuro_eqprop.simulators.brian2.continuous_learning:Brian2BiologyLearner",
    requires=REQUIRES,
    step_cost=(3e-2, 1e-6),
)
