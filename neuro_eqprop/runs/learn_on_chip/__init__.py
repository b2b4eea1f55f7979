"""Learning on a chip: both phases and the Hebbian rule run inside a simulator.

`api` is the public function. `task` prepares and validates, `state` holds weights and resumes,
`epoch` learns one epoch, `evaluation` scores it, `direction` compares the update with the gradient,
`trace` records synapses, `loop` runs all epochs, `model` is what comes back, and `result` its JSON.
"""

from neuro_eqprop.runs.learn_on_chip.api import learn_on_chip
from neuro_eqprop.runs.learn_on_chip.loop import OnChipWarning
from neuro_eqprop.runs.learn_on_chip.model import OnChipModel
from neuro_eqprop.runs.learn_on_chip.result import learning_result
from neuro_eqprop.runs.learn_on_chip.trace import TraceRequest

__all__ = [
    "OnChipModel",
    "OnChipWarning",
    "TraceRequest",
    "learn_on_chip",
    "learning_result",
]
