"""Architectures, one in each file; each builds a `Network`."""

from neuro_eqprop.networks.architectures.convolutional import convolutional
from neuro_eqprop.networks.architectures.hopfield import modern, modern_notes
from neuro_eqprop.networks.architectures.looped import looped
from neuro_eqprop.networks.architectures.mlp import feed_forward, layered
from neuro_eqprop.networks.architectures.multiscale import multiscale
from neuro_eqprop.networks.architectures.pyramid import pyramid
from neuro_eqprop.networks.architectures.sparse import sparse_recurrent
from neuro_eqprop.networks.architectures.text import text
from neuro_eqprop.networks.architectures.toroidal import toroidal
from neuro_eqprop.networks.architectures.transformer import Block, looped_block, transformer

__all__ = [
    "Block",
    "convolutional",
    "feed_forward",
    "layered",
    "looped",
    "looped_block",
    "modern",
    "modern_notes",
    "multiscale",
    "pyramid",
    "sparse_recurrent",
    "text",
    "toroidal",
    "transformer",
]
