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

BINARY = "Lava's LIF sends binary spikes"
STOCK = replace(
    BACKEND,
    name="lava-stock",
    label="Lava, LIF",
    summary="the same graph with Lava's LIF, which resets to zero",
    simulator="neuro_eqprop.backends.lava.variants:LavaStock",
    support=Support(
        {
            Feature.EXACT: "Lava's LIF resets to zero, discards the voltage above its threshold, "
            "and does not fire at it; evaluate prints the error of its rates",
            Feature.GRADED: BINARY,
            Feature.TANH: BINARY,
            Feature.GATED_GAIN: "no gains are switched for Lava's LIF",
            Feature.FOLLOW: "Lava's LIF tracks no rate",
            Feature.FIXED_POINT: "Lava's LIF runs in floating point here",
        }
    ),
    learner="",
    cannot_learn="Lava's LIF tells its synapses no traces that the rule could use",
)
