"""Learning on a chip: both phases and the Hebbian rule run inside a simulator.

`task` prepares and validates, `state` holds weights and resumes, `epoch` learns one epoch,
`evaluation` scores it, `direction` compares the update with the gradient, `trace` records synapses,
`loop` runs all epochs, `model` is what comes back, and `result` its JSON.
"""
