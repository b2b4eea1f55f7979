"""Rules for connections that act in one direction: the vector-field rule and the adjoint nudge.

The vector-field rule (Scellier et al. 2018) changes each weight so that the drive of its target
moves as the nudge moved the target, at the rates s0 of the free equilibrium. With c the
coefficients of the phases and D s = sum over phases of c[phase] s:

    dW = k_target / k_output  D s_target s0_source^T      (and s0_target D s_source^T backwards)

This is minus the gradient only if the shift D s propagates by the transposed Jacobian, as it does
where all connections are symmetric. For other connections the adjoint nudge of rule 'asymmetric'
makes it so: with h = s - s0, a nudged phase adds (W^T - W) h, so that W carries only s0 forwards
and W^T carries h backwards. A nonlinear operator A carries A(s0) forwards, and its transposed
Jacobian at s0 carries h backwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from neuro_eqprop.dynamics.field import Field, State, shape_input
from neuro_eqprop.dynamics.schedules import Schedule, contrast
from neuro_eqprop.networks.network import Connection, DirectedEdge, Network, Role
from neuro_eqprop.networks.operators.linearize import NonlinearOperator, Tangent
from neuro_eqprop.networks.ops.protocol import Ops, Values
from neuro_eqprop.training.rules.hebbian import bias_update, rate_shifts


def one_way_connections(network: Network) -> list[Connection]:
    """The connections that act forwards only, apart from those of the input."""
    return [
        c
        for c in network.connections
        if not c.symmetric and network[c.source].role is not Role.INPUT
    ]


def adjoint_field(free: Field, s0: State) -> Field:
    """The map of nudged phases in which shifts from s0 propagate by the transposed Jacobian."""
    network, ops = free.network, free.ops
    drive = dict(free.input_drive)
    incoming = {name: list(edges) for name, edges in free.incoming.items()}
    for c in one_way_connections(network):
        weight, gain = free.params[c.name], network.feedback(c)
        incoming[c.target].remove(DirectedEdge(c.source, c, None, network[c.target].shape))
        drive[c.target] = c.operator.forward(ops, weight, s0[c.source], drive[c.target])
        shape = network[c.source].shape
        linear = c if c.operator.linear else replace(c, operator=linearized(c, s0))
        incoming[c.source].append(DirectedEdge(c.target, linear, gain, shape))
        backward = linear.operator.backward
        # Minus W^T s0, so that the edge above carries W^T (s - s0).
        drive[c.source] = backward(
            ops, weight, s0[c.target], drive[c.source], gain=-gain, shape=shape
        )
    edges = {name: tuple(each) for name, each in incoming.items()}
    return replace(free, input_drive=drive, incoming=edges)


def linearized(connection: Connection, s0: State) -> Tangent:
    """The operator of a nonlinear connection, linearized at the free equilibrium."""
    operator = connection.operator
    assert isinstance(operator, NonlinearOperator)
    return Tangent(operator, s0[connection.source])


def vector_field(
    ops: Ops,
    network: Network,
    x: Values,
    *,
    states: Mapping[str, State],
    schedule: Schedule,
    params: Mapping[str, Values],
    scale: float = 1.0,
) -> dict[str, Values]:
    """The update of each parameter, by name, times `scale`; add it to descend the cost.

    `states` holds the rates at the end of each phase.
    """
    coefficients = {name: scale * c for name, c in contrast(schedule).items() if c}
    s0 = states[schedule[0].name]
    return vector_field_sum(
        ops, network, x, s0=s0, states=states, coefficients=coefficients, params=params
    )


def vector_field_sum(
    ops: Ops,
    network: Network,
    x: Values,
    *,
    s0: State,
    states: Mapping[str, State],
    coefficients: Mapping[str, complex],
    params: Mapping[str, Values],
) -> dict[str, Values]:
    """As `vector_field`, with any coefficients of the phases and the free equilibrium s0."""
    shift = rate_shifts(network, states, coefficients)
    rates = {**s0, network.input.name: shape_input(network, x)}
    update = {layer.name: bias_update(ops, layer, shift[layer.name]) for layer in network.moving}
    for c in network.connections:
        operator, weight = c.operator, params[c.name]
        change = operator.weight_gradient(ops, weight, shift[c.target], rates[c.source])
        if network.feeds_back(c):
            # `rate_shifts` scales by the source's stiffness; this direction needs the target's.
            factor = network.feedback(c)
            back = operator.weight_gradient(ops, weight, rates[c.target], shift[c.source])
            change = change + factor * back
        if c.loops and c.symmetric and operator.matrix:
            change = 0.5 * (change + change.T)
        update[c.name] = change
    return update
