"""The backends on Lava: the step of `neuro_eqprop.spiking.ir` as Lava processes."""

from dataclasses import replace

from neuro_eqprop.simulators.base import BackendInfo, Feature, Support

BACKEND = BackendInfo(
    "lava",
    "Lava",
    "one process per population and projection, one sample at a time",
    "neuro_eqprop.simulators.lava.simulator:Lava",
    Support({Feature.FOLLOW: "it has no process for spikes that track a rate"}),
    learner="neuro_eqprop.simulators.lava.learner:LavaLearner",
    requires={"lava-nc": "==0.10.0"},
    install="neuro-eqprop lava install",
    python_variable="NEURO_EQPROP_LAVA_PYTHON",
    deadline=60.0,
)

FUSED = replace(
    BACKEND,
    name="lava-fused",
    label="Lava, one process",
    summary="one process for the whole network, 256 samples in parallel",
    simulator="neuro_eqprop.simulators.lava.variants:LavaFused",
    learner="",
    cannot_learn="Lava's learning engine needs synapse processes, which only lava has",
    chunk=2000,
)

STOCK = replace(
    BACKEND,
    name="lava-stock",
    label="Lava, stock",
    summary="only processes that ship with Lava: SigmaDelta or ATRLIF, Dense and Sparse",
    simulator="neuro_eqprop.simulators.lava.variants:LavaStock",
    support=Support(
        {
            Feature.EXACT: "Lava's SigmaDelta has no damping and its ATRLIF neither floor nor "
            "ceiling; evaluate prints the error of its rates",
            Feature.CURVED: "SigmaDelta has relu, two of which make a clip, but no tanh",
            Feature.GATED_GAIN: "SigmaDelta and ATRLIF cannot change the gain between phases",
            Feature.FOLLOW: "ATRLIF cannot track a rate",
            Feature.RESET_TO_ZERO: "ATRLIF resets by subtraction",
            Feature.DELAY: "its Dense and Sparse have a fixed delay of one step",
        }
    ),
    learner="",
    cannot_learn="SigmaDelta and ATRLIF do not send the traces that the learning rule needs",
)
