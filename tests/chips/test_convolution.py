"""Convolutions are placed by their geometry, without a matrix of their synapses."""

from __future__ import annotations

import time
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuro_eqprop.chips.convolution import ConvolutionShape, column_blocks
from neuro_eqprop.chips.noc_traffic import noc_traffic
from neuro_eqprop.chips.placement import PlacementStatus, place
from neuro_eqprop.chips.profiles.load import load_profile
from neuro_eqprop.chips.workload import (
    NetworkShape,
    PopulationShape,
    convolution_projection,
    convolution_shape,
    network_shape,
)
from neuro_eqprop.networks.activations import HARD_SIGMOID
from neuro_eqprop.networks.architectures import convolutional
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.spiking.codes import Code, Coding
from neuro_eqprop.spiking.input_coding import InputCoding, outer, with_input
from neuro_eqprop.spiking.lower import lower
from neuro_eqprop.spiking.synapses import ConvolutionSynapses


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(2, 7),
    st.integers(1, 3),
    st.integers(1, 2),
    st.integers(0, 1),
    st.sampled_from([1, 2]),
    st.booleans(),
)
def test_the_geometry_has_the_synapses_of_the_matrix(
    inputs: int,
    outputs: int,
    size: int,
    kernel: int,
    stride: int,
    padding: int,
    pool: int,
    transposed: bool,
) -> None:
    kernel = min(kernel, size + 2 * padding)
    synapses = ConvolutionSynapses(
        np.ones((outputs, inputs, kernel, kernel)),
        (inputs, pool * size, pool * size),
        stride,
        padding,
        pool,
        transposed,
    )
    shape = convolution_shape(synapses)
    assert shape is not None
    matrix = synapses.dense() != 0
    assert shape.synapses == matrix.sum()
    assert shape.max_fan_in == matrix.sum(axis=1).max()
    assert shape.max_fan_out == matrix.sum(axis=0).max()
    assert shape.parameters == synapses.kernel.size
    assert shape.reverse.synapses == shape.synapses
    assert shape.reverse.max_fan_in == shape.max_fan_out


def test_a_spike_reaches_the_blocks_of_columns_that_its_kernel_touches() -> None:
    shape = ConvolutionShape((1, 8, 16), (1, 6, 14), (3, 3))
    for width in (1, 2, 4, 16):
        reached = [len({o // width for o in range(14) if 0 <= x - o < 3}) for x in range(16)]
        mean, most = column_blocks(shape, width)
        assert mean == pytest.approx(np.mean(reached))
        assert most == max(reached)


def gesture() -> NetworkShape:
    """The network of a published gesture recogniser, 1024-3600-5408-7744-891-11."""
    maps = ((1, 32, 32), (16, 15, 15), (32, 13, 13), (64, 11, 11), (11, 9, 9), (11, 1, 1))
    names = ("input", "conv1", "conv2", "conv3", "conv4", "output")
    layers = tuple(PopulationShape(n, int(np.prod(m))) for n, m in zip(names, maps, strict=True))
    links = []
    for k, (stride, kernel) in enumerate(((2, 3), (1, 3), (1, 3), (1, 3), (1, 9))):
        geometry = ConvolutionShape(maps[k], maps[k + 1], (kernel, kernel), (stride, stride))
        links.append(convolution_projection(names[k], names[k + 1], geometry))
    return NetworkShape(layers, tuple(links), "output")


def test_kernels_are_shared_where_the_chip_shares_them() -> None:
    shape, loihi = gesture(), load_profile("loihi1")
    placement = place(shape, loihi)
    assert placement.status is PlacementStatus.FITS
    assert placement.chips == 1
    assert placement.cores == 1 + 4 + 6 + 8 + 1 + 1
    given_cores = {"conv1": 4, "conv2": 16, "conv3": 16, "conv4": 11}
    published = place(shape, loihi, at_least=given_cores)
    assert published.cores == 49
    traffic = noc_traffic(shape, published, loihi)
    spikes = {"input": 3064, "conv1": 2867, "conv2": 7453, "conv3": 19091, "conv4": 5735}
    messages = sum(traffic[name].messages * number for name, number in spikes.items())
    assert messages == pytest.approx(386_640, rel=0.05)
    expanded = place(shape, load_profile("truenorth"))
    assert expanded.status is PlacementStatus.DOES_NOT_FIT


def test_the_small_convolutional_network_for_digits_takes_one_chip() -> None:
    hard = HARD_SIGMOID
    rate = convolutional((1, 28, 28), (16, 32), 10, kernel=5, hidden_rate=hard, output_rate=hard)
    params = initialize(rate, np.random.default_rng(0))
    assert sum(value.size for value in params.values()) == 18_378
    network = lower(rate, params, dt=1e-3, coding=Coding(Code.RATE), nudged=False)
    made = with_input(rate, params, network, coding=Coding(Code.RATE), entry=InputCoding.RATE)
    placement = place(network_shape(made, bits=8, off_chip=outer(rate)), load_profile("loihi1"))
    assert placement.status is PlacementStatus.FITS
    assert placement.chips == 1
    assert placement.cores == 23


def test_a_million_neurons_of_maps_are_placed_in_seconds() -> None:
    maps = ((16, 256, 256), (16, 254, 254))
    layers = [PopulationShape("input", 16 * 256 * 256, off_chip=True)]
    layers.append(PopulationShape("conv", 16 * 254 * 254))
    geometry = ConvolutionShape(maps[0], maps[1], (3, 3))
    shape = NetworkShape(
        tuple(layers), (convolution_projection("input", "conv", geometry),), "conv"
    )
    began = time.process_time()
    for name in ("loihi1", "loihi2"):
        placement = place(shape, load_profile(name))
        assert placement.cores is not None
        assert placement.cores >= 16 * 254 * 254 / 8192
    assert time.process_time() - began < 10


def test_maps_must_have_the_neurons_of_their_populations() -> None:
    geometry = ConvolutionShape((1, 4, 4), (1, 2, 2), (3, 3))
    populations = (PopulationShape("a", 15), PopulationShape("b", 4))
    with pytest.raises(ValueError, match="15 and 4 neurons"):
        NetworkShape(populations, (convolution_projection("a", "b", geometry),), "b")
    for wrong in product((0,), (1, 2)):
        with pytest.raises(ValueError, match="at least 1"):
            ConvolutionShape((1, 4, 4), (1, 2, 2), (wrong[0], wrong[1]))
