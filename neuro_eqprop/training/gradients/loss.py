"""The cost of a state, as the baselines differentiate it and as training reports it.

The EqProp rules do not need the value of the cost.
"""

from __future__ import annotations

from neuro_eqprop.dynamics.field import Field, State
from neuro_eqprop.networks.network import Cost
from neuro_eqprop.networks.ops.protocol import Values


def output_values(free: Field, state: State) -> Values:
    """The output that the cost depends on: its drive for cross-entropy, else its rates."""
    name = free.network.output.name
    return free.drive(name, state) if free.network.cost is Cost.CROSS_ENTROPY else state[name]


def cost_of(free: Field, output: Values, target: Values) -> Values:
    """The cost C of `output_values`, summed over the batch."""
    if free.network.cost is Cost.CROSS_ENTROPY:
        return -(target * free.ops.log_softmax(output)).sum()
    error = output - target
    return 0.5 * (error * error).sum()


def loss(free: Field, state: State, target: Values) -> Values:
    """The cost C at a state, summed over the batch."""
    return cost_of(free, output_values(free, state), target)
