"""Learning in continuous time in Brian2: the witness of the compiled learner."""

from __future__ import annotations

from dataclasses import dataclass

from neuro_eqprop.simulators.biology.learning import ContinuousLearner
from neuro_eqprop.simulators.biology.network import ContinuousNetwork
from neuro_eqprop.simulators.biology.recorder import IntervalRecorder
from neuro_eqprop.simulators.brian2 import BIOLOGY
from neuro_eqprop.simulators.brian2.continuous import run_groups


@dataclass(frozen=True, slots=True)
class Brian2BiologyLearner(ContinuousLearner):
    """Brian2 learner in continuous time."""

    name: str = BIOLOGY.name

    def simulate(self, network: ContinuousNetwork, recorder: IntervalRecorder) -> None:
        """Run the samples in one Brian2 run."""
        run_groups(network, recorder)
