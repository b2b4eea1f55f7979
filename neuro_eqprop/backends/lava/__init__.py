"""Lava: the step of `neuro_eqprop.spiking.ir` as Lava processes, run in a child process."""

from dataclasses import replace

from neuro_eqprop.backends.base import BackendInfo, Feature, Support

BACKEND = BackendInfo(
    "lava",
    "Lava",
    "a graph with one process per population and projection, one sample after the other",
    "neuro_eqprop.backends.lava.simulator:Lava",
    Support({Feature.FOLLOW: "it has no process for spikes that track a rate"}),
    learner="neuro_eqprop.backends.lava.learning.learner:LavaLearner",
    requires={"lava-nc": "==0.10.0"},
    python="3.10",
    python_variable="NEURO_EQPROP_LAVA_PYTHON",
    deadline=60.0,
)

FUSED = replace(
    BACKEND,
    name="lava-fused",
    label="Lava, one process",
    summary="one process for the whole network, 256 samples side by side",
    simulator="neuro_eqprop.backends.lava.variants:LavaFused",
    learner="",
    cannot_learn="Lava's learning engine works between the processes of the backend lava",
    chunk=2000,
)

STOCK = replace(
    BACKEND,
    name="lava-stock",
    label="Lava, stock",
    summary="Lava's own processes alone: SigmaDelta or ATRLIF, Dense and Sparse",
    simulator="neuro_eqprop.backends.lava.variants:LavaStock",
    support=Support(
        {
            Feature.EXACT: "Lava's SigmaDelta has no damping and its ATRLIF neither floor nor "
            "ceiling; evaluate prints the error of its rates",
            Feature.TANH: "SigmaDelta has relu, of which a pair makes a clip, and no tanh",
            Feature.GATED_GAIN: "SigmaDelta and ATRLIF switch no gains between phases",
            Feature.FOLLOW: "ATRLIF tracks no rate",
            Feature.RESET_TO_ZERO: "ATRLIF resets by subtraction",
            Feature.DELAY: "its Dense and Sparse take one step",
        }
    ),
    learner="",
    cannot_learn="SigmaDelta and ATRLIF send their synapses no traces that the rule could use",
)
