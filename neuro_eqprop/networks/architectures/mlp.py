"""Multilayer perceptrons: `layered`, whose connections act both ways, and `predictive`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.common.settings import setting
from neuro_eqprop.networks.activations import Activation
from neuro_eqprop.networks.architectures.base import ANY_DEPTH, Architecture, RateSettings, size
from neuro_eqprop.networks.network import Connection, Layer, Network, Role
from neuro_eqprop.networks.operators import OwnFeedback

TIED, RANDOM, LEARNED = FEEDBACK_WEIGHTS = ("tied", "random", "learned")
"""Weights of the feedback: transposed forward weights, or weights of its own."""


@dataclass(frozen=True)
class PredictiveSettings(RateSettings):
    """Settings of a perceptron without feedback."""

    name: str = "predictive"
    bound: float = setting(
        0.0, "bound on the spectral norm of connections between layers; 0 for none", least=0
    )


@dataclass(frozen=True)
class LayeredSettings(PredictiveSettings):
    """Settings of a perceptron whose connections act both ways."""

    name: str = "layered"
    feedback: float = setting(
        1.0, "scale of the feedback from layer to layer; below 1 it settles sooner", above=0
    )
    stem: int = setting(0, "hidden layers without feedback, for rule hybrid", least=0)
    feedback_weights: str = setting(
        TIED,
        "weights of the feedback: the transposed forward weights, random ones, or learned ones",
        choices=FEEDBACK_WEIGHTS,
    )
    feedback_decay: float = setting(
        3.0,
        "with learned feedback, it and the forward weights between layers lose the factor exp(-X) "
        "in the course of a training, less if the learning rate falls",
        least=0,
    )


def layered(
    inputs: int,
    hidden: tuple[int, ...],
    outputs: int,
    *,
    hidden_rate: Activation,
    output_rate: Activation,
    bound: float | None = None,
    feedback: float = 1.0,
    stem: int = 0,
) -> Network:
    """x -> h1 <-> h2 <-> ... <-> output: a multilayer perceptron whose connections act both ways.

    `bound` limits the spectral norm of every connection that acts both ways. `feedback` scales the
    feedback: the stiffness of each layer is that of the layer before it times `feedback`. The first
    `stem` hidden layers get no feedback; the hybrid rule trains them by backpropagation.
    """
    names = ["hidden"] if len(hidden) == 1 else [f"hidden{k + 1}" for k in range(len(hidden))]
    if not hidden:
        raise ValueError("a layered network needs at least one hidden layer")
    if not 0 <= stem < len(hidden):
        raise ValueError(f"a stem of {stem} leaves no hidden layer of {len(hidden)} to settle")
    layers = [Layer("input", (inputs,), output_rate, Role.INPUT)]
    layers += [
        Layer(name, (size,), hidden_rate, stiffness=feedback**k)
        for k, (name, size) in enumerate(zip(names, hidden, strict=True))
    ]
    softest = feedback ** len(hidden)
    layers += [Layer("output", (outputs,), output_rate, Role.OUTPUT, stiffness=softest)]
    connections = tuple(
        Connection(a.name, b.name, symmetric=k == 0 or k > stem, bound=bound if k > stem else None)
        for k, (a, b) in enumerate(pairwise(layers))
    )
    return Network(tuple(layers), connections)


def with_own_feedback(network: Network, own: OwnFeedback) -> Network:
    """The network whose feedback has weights of its own in the place of transposed ones."""
    one_way, back = list[Connection](), list[Connection]()
    for c in network.connections:
        feeds = network.feeds_back(c)
        one_way.append(replace(c, symmetric=False) if feeds else c)
        if feeds:
            gain = network.feedback(c)
            bound = None if c.bound is None else gain * c.bound
            back.append(Connection(c.target, c.source, replace(own, gain=gain), False, bound))
    return replace(network, connections=(*one_way, *back))


def feed_forward(network: Network) -> Network:
    """The network without feedback and loops: a single sweep is its equilibrium.

    Bounds are kept, although it settles without them.
    """
    order = [layer.name for layer in network.layers]
    forwards = tuple(
        replace(c, symmetric=False)
        for c in network.connections
        if order.index(c.source) < order.index(c.target)
    )
    return replace(network, connections=forwards)


def build_layered(settings: LayeredSettings, shape: Shape, classes: int) -> Network:
    """The network of the settings."""
    made = layered(
        size(shape),
        settings.hidden,
        classes,
        **settings.rates,
        bound=settings.bound or None,
        feedback=settings.feedback,
        stem=settings.stem,
    )
    if settings.feedback_weights == TIED:
        return made
    learns = settings.feedback_weights == LEARNED
    decay = settings.feedback_decay if learns else 0.0
    return with_own_feedback(made, OwnFeedback(learns=learns, decay=decay))


def build_predictive(settings: PredictiveSettings, shape: Shape, classes: int) -> Network:
    """The network of the settings, without feedback."""
    return feed_forward(
        layered(
            size(shape), settings.hidden, classes, **settings.rates, bound=settings.bound or None
        )
    )


LAYERED = Architecture(
    "layered",
    "multilayer perceptron whose connections act both ways",
    LayeredSettings,
    build_layered,
    depths=ANY_DEPTH,
)
PREDICTIVE = Architecture(
    "predictive",
    "multilayer perceptron in which only errors are fed back",
    PredictiveSettings,
    build_predictive,
    rule="single-phase",
    depths=ANY_DEPTH,
    training={"nudging": "positive"},
)
