"""Architectures, one in each file; each builds a `Network`."""

from neuro_eqprop.architectures.convolutional import convolutional
from neuro_eqprop.architectures.hopfield import modern, modern_notes
from neuro_eqprop.architectures.looped import looped
from neuro_eqprop.architectures.mlp import feed_forward, layered
from neuro_eqprop.architectures.multiscale import multiscale
from neuro_eqprop.architectures.pyramid import pyramid
from neuro_eqprop.architectures.sparse import sparse_recurrent
from neuro_eqprop.architectures.text import text
from neuro_eqprop.architectures.toroidal import toroidal
from neuro_eqprop.architectures.transformer import Block, looped_block, transformer

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
