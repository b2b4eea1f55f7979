"""The local rule: each weight asks for a change by what the units at its two ends did.

With c the contrast of the schedule (its weights sum to zero over the phases):

    dW = k_target / k_output sum over phases of c[phase] s_target s_source^T
    db = k / k_output sum over phases of c[phase] s

(half of it for a symmetric loop), with k the stiffness of a layer, summed over the batch. As beta
goes to zero this is minus the gradient of the summed cost, for symmetric connections. The states
may be equilibria of rates or firing rates of a simulator.
"""

from __future__ import annotations

from collections.abc import Mapping

from neuro_eqprop.networks import Connection, Network, Role
from neuro_eqprop.rate.field import State
from neuro_eqprop.rate.ops import Ops, Values
from neuro_eqprop.schedules import Schedule, contrast


def hebbian(
    ops: Ops, network: Network, x: Values, *, states: Mapping[str, State], schedule: Schedule
) -> dict[str, Values]:
    """The change each parameter asks for, by name; add it (times a rate) to descend."""
    part = {name: c for name, c in contrast(schedule).items() if c}
    shift = {
        layer.name: weighted({phase: states[phase][layer.name] for phase in part}, part)
        for layer in network.moving
    }
    for layer in network.moving:
        factor = layer.stiffness / network.output.stiffness
        shift[layer.name] = shift[layer.name] * factor if factor != 1.0 else shift[layer.name]
    asked = {name: ops.total(moved) for name, moved in shift.items()}
    for connection in network.connections:
        if network[connection.source].role is Role.INPUT:
            # The input is the same in all phases: one product with the shift is enough.
            asked[connection.name] = ops.correlate(connection.operator, shift[connection.target], x)
        else:
            factor = network[connection.target].stiffness / network.output.stiffness
            products = {phase: product(ops, connection, states[phase]) for phase in part}
            asked[connection.name] = weighted(products, {p: c * factor for p, c in part.items()})
    return asked


def weighted(values: Mapping[str, Values], part: Mapping[str, float]) -> Values:
    """The sum over phases of c[phase] times the value there."""
    if len(part) == 2:  # the usual case, with c = plus and minus one over the gap: one pass less
        (plus, c), (minus, _) = sorted(part.items(), key=lambda item: -item[1])
        return (values[plus] - values[minus]) * c
    return sum(c * values[phase] for phase, c in part.items())


def product(ops: Ops, connection: Connection, state: State) -> Values:
    """What the two ends of a connection did together: minus the energy's gradient by its weight."""
    both = ops.correlate(connection.operator, state[connection.target], state[connection.source])
    if connection.loops and connection.symmetric:
        # The mean with its transpose, so that rounding cannot make the weight unsymmetric.
        return 0.25 * (both + both.T)
    return both
