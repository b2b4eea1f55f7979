"""A transformer whose block is the gradient of one energy."""

from __future__ import annotations

from dataclasses import dataclass

from neuro_eqprop.activations import LINEAR, TANH
from neuro_eqprop.arrays import Shape
from neuro_eqprop.networks import Connection, Cost, Layer, Network, Role
from neuro_eqprop.operators import Attention, AtToken, Dense, Patches, PerToken


@dataclass(frozen=True, slots=True)
class Block:
    """The block that all tokens share: units of a token and of its memory, attention, bounds."""

    width: int
    memory: int
    attention: Attention | None
    bound: float
    """On the norm of the memory's weight."""
    attention_bound: float
    """On the norms of W_q and W_k."""


def transformer(
    given: Shape, block: Block, outputs: int, *, patch: int, query: int | None = None
) -> Network:
    """Tokens h_i that attend to each other, each with a memory, read by a softmax.

    An image (channels, height, width) is cut into patches, a sequence (tokens, width) is taken as
    it is. Each place has its own bias, which tells tokens where they are. All tokens are read, or
    only the `query`.
    """
    if len(given) == 3:
        tokens = (given[1] // patch) * (given[2] // patch)
        embedding: Patches | PerToken = Patches(patch)
    else:
        tokens, embedding = given[0], PerToken()
    layers = (
        Layer("input", given, LINEAR, Role.INPUT),
        Layer("tokens", (tokens, block.width), TANH),
        Layer("memory", (tokens, block.memory), TANH, shared=(1, block.memory)),
        Layer("output", (outputs,), LINEAR, Role.OUTPUT),
    )
    looks: tuple[Connection, ...] = ()
    if block.attention is not None:
        looks = (Connection("tokens", "tokens", block.attention, bound=block.attention_bound),)
    read = Dense() if query is None else AtToken(query)
    connections = (
        Connection("input", "tokens", embedding),
        *looks,
        Connection("tokens", "memory", PerToken(), bound=block.bound),
        Connection("tokens", "output", read),
    )
    return Network(layers, connections, Cost.CROSS_ENTROPY)
