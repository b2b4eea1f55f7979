"""Conversion of a rate network to a spiking network with plastic synapses, and back.

The input is a population, so that its weights can learn. Biases are the weights of a unit that is
always on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR
from neuro_eqprop.networks.feedback import decays
from neuro_eqprop.networks.network import (
    Connection,
    Cost,
    Layer,
    Network,
    Role,
    check_parameters,
)
from neuro_eqprop.networks.operators import Dense, OwnFeedback
from neuro_eqprop.spiking.arithmetic import power_above
from neuro_eqprop.spiking.codes import Code, Coding, learning_codes
from neuro_eqprop.spiking.ir import (
    FixedPoint,
    Gain,
    Graded,
    Population,
    Projection,
    SpikingNetwork,
    Stimulus,
)
from neuro_eqprop.spiking.lower import snap
from neuro_eqprop.spiking.nonidealities import DEAD, PERFECT, Nonidealities, gains
from neuro_eqprop.spiking.plasticity import (
    LearningRule,
    LoihiEngine,
    Plastic,
    PlasticityError,
    PlasticNetwork,
)
from neuro_eqprop.spiking.quantize import fit, input_sums, unit
from neuro_eqprop.spiking.rounding import Rounded
from neuro_eqprop.spiking.synapses import DenseSynapses

ALWAYS = "always"
"""Name of the population with the unit that is always on."""


@dataclass(frozen=True, slots=True)
class PlasticityConfig:
    """Settings of `make_plastic`."""

    coding: Coding
    rule: LearningRule
    limit: float
    """Largest absolute weight; in integers a power of two."""
    dt: float
    flaws: Nonidealities = field(default=PERFECT)
    decay: float = 0.0
    """Decay of a weight in a commit at a learning rate of one, for an operator's decay of one."""


def input_neuron(coding: Coding, layer: Layer) -> Population:
    """The population of the input: it sends its values once, or fires at these rates."""
    nothing = np.zeros(layer.size)
    if coding.code.accumulates:
        return Population(layer.name, Graded(LINEAR, coding.theta, 1.0), nothing)
    return Population(layer.name, coding.neuron(replace(layer, activation=HARD_SIGMOID)), nothing)


def always_on_unit(coding: Coding) -> Population:
    """The population of the unit that is always on."""
    if coding.code.accumulates:
        return Population(ALWAYS, Graded(HARD_SIGMOID, coding.theta, 1.0), np.ones(1))
    layer = Layer(ALWAYS, (1,), HARD_SIGMOID)
    return Population(ALWAYS, coding.neuron(layer), np.ones(1))


def check_code(code: Code) -> None:
    """Raise an error if the code cannot learn."""
    if code.learning is None:
        raise PlasticityError(
            f"code {code.name!r} cannot learn: synapses have no trace of its rates; "
            f"use code {' or '.join(learning_codes())}"
        )


def make_plastic(
    network: Network, params: Mapping[str, Array], how: PlasticityConfig
) -> PlasticNetwork:
    """The plastic spiking network of a rate network."""
    coding, rule = how.coding, how.rule
    check_parameters(network, params)
    check_code(coding.code)
    if any(layer.name == ALWAYS for layer in network.layers):
        raise PlasticityError(f"a layer is called {ALWAYS!r}, as is the unit that is always on")
    if network.cost is Cost.CROSS_ENTROPY:
        raise PlasticityError(
            f"layer {network.output.name!r} is nudged by the cross-entropy, whose softmax no "
            f"neuron computes; learn with cost squared"
        )
    own = (Dense, OwnFeedback)
    shared = next((c for c in network.connections if not isinstance(c.operator, own)), None)
    if shared is not None:
        raise PlasticityError(
            f"connection {shared.name!r} is not a dense matrix, and synapses that share a weight "
            "cannot learn independently; use model layered"
        )
    bounded = next((c for c in network.connections if c.bound is not None), None)
    if bounded is not None:
        raise PlasticityError(
            f"connection {bounded.name!r} has a spectral bound, which a local rule cannot "
            "enforce; learn without a bound, or with model layered"
        )
    back = next((c for c in network.connections if isinstance(c.operator, OwnFeedback)), None)
    if back is not None and rule.numbers is not None:
        raise PlasticityError(
            f"{back.name!r} has weights of its own, which are real numbers: learn in floating "
            "point, or with feedback_weights tied"
        )
    hidden = [layer for layer in network.moving if layer.role is Role.HIDDEN]
    biases = {layer.name: np.zeros(layer.size) for layer in network.moving}
    rng = np.random.default_rng([how.flaws.seed, 1])
    for layer in hidden:
        biases[layer.name][rng.random(layer.size) < how.flaws.dead] = DEAD
    populations = [input_neuron(coding, network.input), always_on_unit(coding)]
    populations += [Population(x.name, coding.neuron(x), biases[x.name]) for x in network.moving]
    projections, plastic = synapses(network, params, how)
    out = network.output
    nudge = Projection(out.name, out.name, -np.eye(out.size), gain=Gain.BETA)
    made = SpikingNetwork(how.dt, tuple(populations), (*projections, nudge), out.name)
    if rule.numbers is not None:
        made = to_fixed_point(made, plastic)
    return PlasticNetwork(made, tuple(plastic), rule, gains(made, how.flaws))


def synapses(
    network: Network, params: Mapping[str, Array], how: PlasticityConfig
) -> tuple[list[Projection], list[Plastic]]:
    """The projections and their plasticity; a mirror has its own if it learns independently."""
    projections: list[Projection] = []
    plastic: list[Plastic] = []
    scale = how.limit
    if how.rule.numbers is not None:
        scale = power_above(how.limit) / -how.rule.numbers.range[0]
    integer = how.rule.numbers is not None
    alone = how.flaws.asymmetric or isinstance(how.rule.numbers, LoihiEngine)

    def rounded(weight: Array) -> Array:
        if not integer:
            return np.clip(snap(weight, how.coding.grid), -how.limit, how.limit)
        low, high = how.rule.numbers.range if how.rule.numbers else (0, 0)
        return np.asarray(np.clip(np.rint(weight / scale), low, high) * scale)

    losses = decays(network)
    for connection in network.connections:
        gain = gain_of(connection)
        weight = gain * rounded(params[connection.name])
        projections.append(Projection(connection.source, connection.target, weight))
        if is_fixed(connection):
            continue
        share = gain * gain * network[connection.target].stiffness / network.output.stiffness
        share *= 0.5 if connection.loops and connection.symmetric else 1.0
        part = Plastic(connection.name, gain * how.limit, share=share, scale=scale)
        part = replace(part, decay=how.decay * losses.get(connection.name, 0.0))
        if network.feeds_back(connection):
            back, factor = f"{connection.target}->{connection.source}", network.feedback(connection)
            if integer and factor != 1.0:
                raise PlasticityError(
                    f"{back!r} is {factor:g} times the forward weights, which integers cannot "
                    "represent; "
                    "learn with feedback 1, or in floating point"
                )
            other = Projection(connection.target, connection.source, factor * weight.T)
            projections.append(other)
            if alone:
                plastic += [part, replace(part, name=back, limit=factor * how.limit)]
                plastic[-1] = replace(plastic[-1], share=share * factor)
                continue
            part = replace(part, mirror=back, mirrored=factor)
        plastic.append(part)
    for layer in network.moving:
        share = layer.stiffness / network.output.stiffness
        weight = rounded(params[layer.name].reshape(-1, 1))
        projections.append(Projection(ALWAYS, layer.name, weight))
        plastic.append(Plastic(projections[-1].name, how.limit, share=share, scale=scale))
    return projections, plastic


def gain_of(connection: Connection) -> float:
    """The factor between the weights of a connection and those of its synapses."""
    return connection.operator.gain if isinstance(connection.operator, OwnFeedback) else 1.0


def is_fixed(connection: Connection) -> bool:
    """Whether the weights of a connection stay as they are."""
    return isinstance(connection.operator, OwnFeedback) and not connection.operator.learns


def to_fixed_point(network: SpikingNetwork, plastic: list[Plastic]) -> SpikingNetwork:
    """The network in fixed point, with units for all weights that learning can reach."""
    scales = {n: p.scale for p in plastic for n in (p.name, p.mirror) if n}
    one = np.ones((1, 1), dtype=np.int64)
    populations = tuple(
        replace(p, neuron=replace(p.neuron, activation=HARD_SIGMOID))
        if p.neuron.graded and p.neuron.activation is LINEAR
        else p
        for p in network.populations
    )
    network = replace(network, populations=populations)
    parts = []
    for projection in network.projections:
        base = scales[projection.name] if projection.gain is Gain.ONE else 1.0
        parts.append(Rounded(np.rint(projection.weight / base).astype(np.int64), one, base))
    units = {p.name: unit(network, p, parts) for p in network.populations}
    fitted = tuple(fit(p, units[p.name]) for p in network.populations)
    made = replace(network, populations=fitted, fixed=FixedPoint(units))
    input_sums(made)  # raises an error if a spike overflows
    return made


def training_stimulus(
    network: Network, x: Array, target: Array, coding: Coding, levels: int = 0
) -> Stimulus:
    """The stimulus of a network that learns: the samples and their targets.

    If `levels` is not zero, rates of input spikes are rounded to multiples of 1 / levels. A unit
    that fires at k / levels repeats its spikes after `levels` steps. If `levels` is a power of two
    that divides the length of a nudged phase (`LearningRule.input_levels`), both windows get the
    same input spikes, so that synapses compare only the effect of the nudge.
    """
    if not coding.code.accumulates and not (x.min(initial=0.0) >= 0 and x.max(initial=0.0) <= 1):
        raise PlasticityError(
            "inputs have values outside 0..1, the range of spike rates; use code graded"
        )
    if levels and not coding.code.accumulates:
        x = np.rint(x * levels) / levels
    current = {network.input.name: snap(x, coding.grid)}
    return Stimulus(len(x), current, {network.output.name: snap(target, coding.grid)})


def parameters(
    network: Network, plastic: PlasticNetwork, weights: Mapping[str, Array]
) -> dict[str, Array]:
    """The parameters of the rate network, from the effective weights of the synapses."""

    def effective(name: str) -> Array:
        weight = weights[name] if name in weights else plastic.projection(name).weight
        return np.asarray(weight * plastic.gains.get(name, 1.0))

    params = {c.name: effective(c.name) / gain_of(c) for c in network.connections}
    for layer in network.moving:
        own = plastic.network[layer.name].bias
        params[layer.name] = (effective(f"{ALWAYS}->{layer.name}")[:, 0] + own).reshape(layer.shape)
    return params


def for_inference(plastic: PlasticNetwork) -> SpikingNetwork:
    """The network with its effective weights, for inference without learning."""
    projections = tuple(
        replace(p, synapses=DenseSynapses(p.weight * plastic.gains.get(p.name, 1.0)))
        for p in plastic.network.projections
        if p.gain is Gain.ONE
    )
    return replace(plastic.network, projections=projections)
