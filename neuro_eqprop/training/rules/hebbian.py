"""The local rule: each weight asks for a change by what the units at its two ends did.

With c the contrast of the schedule (its weights sum to zero over the phases):

    dW = k_target / k_output sum over phases of c[phase] s_target s_source^T
    db = k / k_output sum over phases of c[phase] s

(half of it for a symmetric loop; dA/dW in the place of the product for attention), with k the
stiffness of a layer, summed over the batch. As beta goes to zero this is minus the gradient of the
summed cost, for symmetric connections. The states may be equilibria of rates or firing rates of a
simulator.
"""

from __future__ import annotations

from collections.abc import Mapping

from neuro_eqprop.networks import Connection, Layer, Network, Role
from neuro_eqprop.ops.protocol import Ops, Values
from neuro_eqprop.rate.field import State, shape_input
from neuro_eqprop.schedules import Schedule, contrast


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
    """The change each parameter asks for, by name, times `scale`; add it to descend.

    Only attention needs `params`: what its weights ask for depends on what they are.
    """
    part = {name: scale * c for name, c in contrast(schedule).items() if c}
    return contrasted(ops, network, x, states=states, part=part, params=params)


def contrasted(
    ops: Ops,
    network: Network,
    x: Values,
    *,
    states: Mapping[str, State],
    part: Mapping[str, complex],
    params: Mapping[str, Values] | None = None,
) -> dict[str, Values]:
    """As `hebbian`, for phases that count by any `part`."""
    shift = shifts(network, states, part)
    asked = {layer.name: gathered(ops, layer, shift[layer.name]) for layer in network.moving}
    for connection in network.connections:
        weight = params[connection.name] if params else None
        if network[connection.source].role is Role.INPUT:
            # The input is the same in all phases: one product with the shift is enough.
            moved, given = shift[connection.target], shape_input(network, x)
            asked[connection.name] = connection.operator.weight_gradient(ops, weight, moved, given)
        else:
            factor = network[connection.target].stiffness / network.output.stiffness
            products = {p: product(ops, connection, weight, states[p]) for p in part}
            asked[connection.name] = weighted(products, {p: c * factor for p, c in part.items()})
    return asked


def shifts(
    network: Network, states: Mapping[str, State], part: Mapping[str, complex]
) -> dict[str, Values]:
    """Of each layer that moves, k / k_output sum over phases of c[phase] s."""
    moved: dict[str, Values] = {}
    for layer in network.moving:
        factor = layer.stiffness / network.output.stiffness
        rates = {phase: states[phase][layer.name] for phase in part}
        moved[layer.name] = weighted(rates, {p: c * factor for p, c in part.items()})
    return moved


def gathered(ops: Ops, layer: Layer, moved: Values) -> Values:
    """What the bias asks for: the shifts, summed over the batch and over units that share it."""
    total = ops.sum_batch(moved)
    if layer.bias == layer.shape:
        return total
    shared = tuple(k for k, n in enumerate(layer.bias) if n == 1)
    return total.sum(shared).reshape(layer.bias)


def weighted(values: Mapping[str, Values], part: Mapping[str, complex]) -> Values:
    """The sum over phases of c[phase] times the value there."""
    if len(part) == 2:  # the usual case, with c = plus and minus one over the gap: one pass less
        (one, c), (other, minus) = part.items()
        if c == -minus:
            apart = values[one] - values[other]
            apart *= c
            return apart
    return sum(c * values[phase] for phase, c in part.items())


def product(ops: Ops, connection: Connection, weight: Values, state: State) -> Values:
    """What the two ends of a connection did together: minus the energy's gradient by its weight."""
    operator = connection.operator
    both = operator.weight_gradient(ops, weight, state[connection.target], state[connection.source])
    if not (connection.loops and connection.symmetric and operator.linear):
        return both
    # The mean with its transpose, so that rounding cannot make the weight unsymmetric.
    return 0.25 * (both + both.T) if operator.matrix else 0.5 * both
