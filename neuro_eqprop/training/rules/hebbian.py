"""The Hebbian rule of equilibrium propagation: a contrast of products of rates between phases.

With c the coefficients of the phases (`schedules.contrast`, which sum to zero) and k the stiffness
of a layer:

    dW = k_target / k_output  sum over phases of c[phase] s_target s_source^T
    db = k / k_output         sum over phases of c[phase] s

summed over the batch; half of it for a symmetric self-connection, and dA/dW instead of the product
for attention. For symmetric connections it tends to minus the gradient of the summed cost as beta
tends to zero (Scellier & Bengio 2017; centered nudging: Laborieux et al. 2021). The states may be
equilibria of a rate network or firing rates of a simulator.
"""

from __future__ import annotations

from collections.abc import Mapping

from neuro_eqprop.dynamics.field import State, shape_input
from neuro_eqprop.dynamics.schedules import Schedule, contrast
from neuro_eqprop.networks.network import Connection, Layer, Network, Role
from neuro_eqprop.networks.ops.protocol import Ops, Values, reshape


def hebbian(
    ops: Ops,
    network: Network,
    x: Values,
    *,
    states: Mapping[str, State],
    schedule: Schedule,
    params: Mapping[str, Values] | None = None,
    scale: float = 1.0,
) -> dict[str, Values]:
    """The update of each parameter, by name, times `scale`; add it to descend the cost.

    `states` holds the rates at the end of each phase. Only attention needs `params`.
    """
    coefficients = {name: scale * c for name, c in contrast(schedule).items() if c}
    return hebbian_sum(ops, network, x, states=states, coefficients=coefficients, params=params)


def hebbian_sum(
    ops: Ops,
    network: Network,
    x: Values,
    *,
    states: Mapping[str, State],
    coefficients: Mapping[str, complex],
    params: Mapping[str, Values] | None = None,
) -> dict[str, Values]:
    """As `hebbian`, with any coefficients of the phases."""
    shift = rate_shifts(network, states, coefficients)
    update = {layer.name: bias_update(ops, layer, shift[layer.name]) for layer in network.moving}
    for connection in network.connections:
        weight = params[connection.name] if params else None
        if network[connection.source].role is Role.INPUT:
            # The input is equal in all phases, so one product with the shift is enough.
            post, pre = shift[connection.target], shape_input(network, x)
            update[connection.name] = connection.operator.weight_gradient(ops, weight, post, pre)
        else:
            factor = network[connection.target].stiffness / network.output.stiffness
            products = {p: product(ops, connection, weight, states[p]) for p in coefficients}
            scaled = {p: c * factor for p, c in coefficients.items()}
            update[connection.name] = weighted_sum(products, scaled)
    return update


def rate_shifts(
    network: Network, states: Mapping[str, State], coefficients: Mapping[str, complex]
) -> dict[str, Values]:
    """k / k_output sum over phases of c[phase] s, for each layer but the input."""
    shift: dict[str, Values] = {}
    for layer in network.moving:
        factor = layer.stiffness / network.output.stiffness
        rates = {phase: states[phase][layer.name] for phase in coefficients}
        shift[layer.name] = weighted_sum(rates, {p: c * factor for p, c in coefficients.items()})
    return shift


def bias_update(ops: Ops, layer: Layer, shift: Values) -> Values:
    """The shifts, summed over the batch and over units that share a bias."""
    total = ops.sum_batch(shift)
    if layer.bias == layer.shape:
        return total
    shared = tuple(k for k, n in enumerate(layer.bias) if n == 1)
    return reshape(ops.sum(total, shared), layer.bias)


def weighted_sum(values: Mapping[str, Values], coefficients: Mapping[str, complex]) -> Values:
    """The sum over phases of c[phase] times the value of that phase."""
    if len(coefficients) == 2:  # usually c and -c, which saves one pass over the arrays
        (one, c), (other, minus) = coefficients.items()
        if c == -minus:
            difference = values[one] - values[other]
            difference *= c
            return difference
    return sum(c * values[phase] for phase, c in coefficients.items())


def product(ops: Ops, connection: Connection, weight: Values, state: State) -> Values:
    """s_target s_source^T: minus the gradient of the energy by the weight of a connection."""
    operator = connection.operator
    outer = operator.weight_gradient(
        ops, weight, state[connection.target], state[connection.source]
    )
    if not (connection.loops and connection.symmetric and operator.linear):
        return outer
    # The mean with the transpose keeps the weight symmetric despite rounding.
    return 0.25 * (outer + outer.T) if operator.matrix else 0.5 * outer
