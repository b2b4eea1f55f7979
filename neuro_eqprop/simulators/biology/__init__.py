"""Membranes and synapses in continuous time, compiled: the backend `biology`.

`equations` describes the neurons once. `rendering` compiles that description; Brian2 runs the same
text (`neuro_eqprop.simulators.brian2.continuous`), as a witness and to be extended.
"""

from neuro_eqprop.simulators.base import FLOAT_ONLY, BackendInfo, Feature, Support

BINARY = "its membranes send binary spikes"
SUPPORT = Support(
    {
        **FLOAT_ONLY.reasons,
        Feature.GRADED: BINARY,
        Feature.CURVED: BINARY,
        Feature.EXACT: "membranes in continuous time agree with the rates, not with the "
        "reference spike for spike",
    }
)
BIOLOGY = BackendInfo(
    "biology",
    "biology",
    "membranes and synapses in continuous time, compiled",
    "neuro_eqprop.simulators.biology.simulator:CompiledBiology",
    SUPPORT,
    learner="neuro_eqprop.simulators.biology.learning:BiologyLearner",
    step_cost=(3e-3, 1e-7),
)
