"""The emulator: the step of `neuro_eqprop.spiking.ir` in compiled code."""

from neuro_eqprop.simulators.base import EVERYTHING, BackendInfo

BACKEND = BackendInfo(
    "emulator",
    "emulator",
    "code compiled by Numba; the fastest backend",
    "neuro_eqprop.simulators.emulator.simulator:Emulator",
    EVERYTHING,
    learner="neuro_eqprop.simulators.emulator.learning:EmulatorLearner",
    chunk=2000,
    requires={"numba": ">=0.60"},
    step_cost=(1e-5, 1e-8),
)
