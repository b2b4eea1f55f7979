"""Learning on a chip: both phases and the Hebbian rule run inside a simulator.

`task` prepares and validates, `state` holds weights and resumes, `epoch` learns one epoch,
`evaluation` scores it, `direction` compares the update with the gradient, `trace` records synapses,
`loop` runs all epochs, and `result` is the JSON of the command.
"""

from neuro_eqprop.experiments.learn_on_chip.loop import Callbacks, run_learning
from neuro_eqprop.experiments.learn_on_chip.task import Task, prepare
from neuro_eqprop.experiments.learn_on_chip.trace import TraceRequest

__all__ = ["Callbacks", "Task", "TraceRequest", "prepare", "run_learning"]
