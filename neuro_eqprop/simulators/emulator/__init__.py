"""The emulator: the step of `neuro_eqprop.spiking.ir` in compiled code."""

from neuro_eqprop.simulators.base import EVERYTHING, BackendError, BackendInfo

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


def numba_error(error: ImportError) -> BackendError:
    """The error of an emulator without Numba."""
    return BackendError(f"numba cannot be imported ({error}); install it with: pip install numba")
