"""Learning where connections act one way only: the vector-field rule, and the adjoint nudge.

The vector-field rule asks each weight for the change that would move its target's drive the way
the nudge moved its target, at the rates s0 of the free equilibrium. With c the contrast of the
schedule and D s = sum over phases of c[phase] s:

    dW = k_target / k_output D s_target s0_source^T      (and s0_target D s_source^T backwards)

That is minus the gradient only if the shift travels by the transposed Jacobian, as it does by
itself where all connections are symmetric. Where one is not, the adjoint nudge makes it so: with
h = s - s0, a nudged phase adds (W^T - W) h, so that W carries only s0 forwards and W^T carries h
backwards. A connection that is not linear carries A(s0) forwards, and its transposed slope at s0
carries h backwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from neuro_eqprop.networks import Connection, DirectedEdge, Network, Role
from neuro_eqprop.operators import Attention
from neuro_eqprop.operators.linearise import NonlinearOperator, Tangent
from neuro_eqprop.ops.protocol import Ops, Values
from neuro_eqprop.rate.field import Field, State, shape_input
from neuro_eqprop.schedules import Schedule, contrast
from neuro_eqprop.training.rules.hebbian import gathered, shifts


def one_way(network: Network) -> list[Connection]:
    """The connections between layers that move which act forwards only."""
    return [
        c
        for c in network.connections
        if not c.symmetric and network[c.source].role is not Role.INPUT
    ]


def adjoint(free: Field, s0: State) -> Field:
    """The field of nudged phases in which shifts travel by the transposed Jacobian."""
    network, ops = free.network, free.ops
    fed = dict(free.input_drive)
    ways = {name: list(arriving) for name, arriving in free.incoming.items()}
    for c in one_way(network):
        weight, gain = free.params[c.name], network.feedback(c)
        ways[c.target].remove(DirectedEdge(c.source, c, None, network[c.target].shape))
        fed[c.target] = c.operator.forward(ops, weight, s0[c.source], fed[c.target])
        shape = network[c.source].shape
        turned = c if c.operator.linear else replace(c, operator=tangent(c, s0))
        ways[c.source].append(DirectedEdge(c.target, turned, gain, shape))
        back = turned.operator.backward
        fed[c.source] = back(ops, weight, s0[c.target], fed[c.source], gain=-gain, shape=shape)
    return replace(free, input_drive=fed, incoming={name: tuple(w) for name, w in ways.items()})


def tangent(connection: Connection, s0: State) -> Tangent:
    """A connection that is not linear, as it is near the free equilibrium."""
    operator = connection.operator
    if not isinstance(operator, NonlinearOperator):
        raise ValueError(
            f"connection {connection.name!r} has no transpose, so rule 'asymmetric' cannot correct "
            f"it; use rule 'vector-field', 'bptt' or 'implicit'"
        )
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
    """The change each parameter asks for, by name, times `scale`; add it to descend."""
    part = {name: scale * c for name, c in contrast(schedule).items() if c}
    rest = states[schedule[0].name]
    return along(ops, network, x, rest=rest, states=states, part=part, params=params)


def along(
    ops: Ops,
    network: Network,
    x: Values,
    *,
    rest: State,
    states: Mapping[str, State],
    part: Mapping[str, complex],
    params: Mapping[str, Values],
) -> dict[str, Values]:
    """As `vector_field`, for phases that count by any `part`, from where the free one ended."""
    shift = shifts(network, states, part)
    rest = {**rest, network.input.name: shape_input(network, x)}
    asked = {layer.name: gathered(ops, layer, shift[layer.name]) for layer in network.moving}
    for c in network.connections:
        operator, weight = c.operator, params[c.name]
        if isinstance(operator, Attention):
            raise ValueError(
                f"connection {c.name!r} is attention, an energy of its own: use rule 'hebbian'"
            )
        change = operator.weight_gradient(ops, weight, shift[c.target], rest[c.source])
        if network.feeds_back(c):
            # The shift of the source is scaled by its own stiffness, this way by the target's.
            factor = network.feedback(c)
            change = change + factor * operator.weight_gradient(
                ops, weight, rest[c.target], shift[c.source]
            )
        if c.loops and c.symmetric and operator.matrix:
            change = 0.5 * (change + change.T)
        asked[c.name] = change
    return asked
