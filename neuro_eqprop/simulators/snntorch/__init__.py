"""The step of `neuro_eqprop.spiking.ir` in snnTorch."""

from neuro_eqprop.simulators.base import FLOAT_ONLY, BackendInfo

BACKEND = BackendInfo(
    "snntorch",
    "snnTorch",
    "torch modules in float64, samples as the batch",
    "neuro_eqprop.simulators.snntorch.simulator:SnnTorch",
    FLOAT_ONLY,
    cannot_learn="its synapses do not change during a run; torch trains its weights",
    requires={"snntorch": ">=1.0"},
    step_cost=(1e-3, 1e-8),
)
