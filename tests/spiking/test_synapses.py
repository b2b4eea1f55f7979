"""Each kind of synapses is the matrix that it stands for, and stays small."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.networks.operators import (
    AtToken,
    Conv2d,
    DelayedFeedback,
    Dense,
    Identity,
    Operator,
    Patches,
    PerToken,
    Pooled,
    Sparse,
)
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.spiking import synapses
from neuro_eqprop.spiking.ir import Projection
from neuro_eqprop.spiking.operator_synapses import operator_synapses, unit_vectors
from neuro_eqprop.spiking.synapses import (
    ConvolutionSynapses,
    DenseSynapses,
    DiagonalSynapses,
    SparseSynapses,
    Synapses,
    csr,
    rebuild_synapses,
)

RNG = np.random.default_rng(0)


def grid(*shape: int) -> Array:
    """Multiples of 1/16, some of them zero: sums of products are exact in any order."""
    return np.asarray(np.rint(RNG.normal(size=shape) * 16) / 16 * (RNG.random(shape) < 0.8))


def convolutions() -> dict[str, ConvolutionSynapses]:
    plain = ConvolutionSynapses(grid(3, 2, 3, 3), (2, 6, 8))
    padded = ConvolutionSynapses(grid(4, 1, 5, 3), (1, 7, 6), stride=2, padding=2)
    pooled = ConvolutionSynapses(grid(2, 3, 2, 2), (3, 9, 6), stride=1, padding=1, pool=3)
    whole = ConvolutionSynapses(grid(5, 2, 2, 3), (2, 4, 6), pool=2)
    wide = ConvolutionSynapses(grid(2, 1, 2, 2), (1, 3, 3), stride=3, padding=2)
    corner = ConvolutionSynapses(grid(3, 2, 1, 2), (2, 2, 3), stride=2)
    made = {
        "corner": corner,
        "plain": plain,
        "padded": padded,
        "pooled": pooled,
        "whole": whole,
        "wide": wide,
    }
    return made | {f"{name} backwards": each.T for name, each in made.items()}


KINDS: dict[str, Synapses] = {
    "dense": DenseSynapses(grid(7, 5)),
    "sparse": csr(grid(9, 11) * (RNG.random((9, 11)) < 0.3)),
    "empty": csr(np.zeros((3, 4))),
    "diagonal": DiagonalSynapses(grid(6)),
    **convolutions(),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_view_is_that_of_the_matrix(name: str) -> None:
    synapses = KINDS[name]
    matrix = synapses.dense()
    assert matrix.shape == synapses.shape
    x = grid(3, synapses.shape[1])
    np.testing.assert_array_equal(synapses.apply(x), x @ matrix.T)
    np.testing.assert_array_equal(synapses.T.dense(), matrix.T)
    np.testing.assert_array_equal(synapses.to_csr().dense(), matrix)
    np.testing.assert_array_equal(synapses.fan_in(), np.count_nonzero(matrix, axis=1))
    np.testing.assert_array_equal(synapses.fan_out(), np.count_nonzero(matrix, axis=0))
    assert synapses.count == np.count_nonzero(matrix)
    rows = [block for _, block in synapses.blocks(entries=2 * synapses.shape[1])]
    np.testing.assert_array_equal(np.concatenate(rows), matrix)
    assert len(rows) == -(-synapses.shape[0] // 2)
    np.testing.assert_array_equal(synapses.scaled(-2.0).dense(), -2 * matrix)
    spread = synapses.with_values(np.broadcast_to(synapses.row_maxima(), synapses.values.shape))
    most = np.abs(matrix).max(axis=1, initial=0.0, keepdims=True)
    assert (spread.dense() >= most * (matrix != 0)).all()


@pytest.mark.parametrize("name", KINDS)
def test_arrays_and_settings_describe_it(name: str) -> None:
    synapses = KINDS[name]
    again = rebuild_synapses(synapses.kind, synapses.settings, synapses.arrays)
    assert again.equals(synapses)
    assert b"".join(again.hashed()) == b"".join(synapses.hashed())
    assert synapses.T.T.equals(synapses)
    changed = synapses.with_values(synapses.values + 1)
    assert changed.equals(synapses) == (synapses.count == 0)


def test_a_convolution_is_found_by_an_independent_sum() -> None:
    kernel, image = grid(2, 2, 3, 2), grid(2, 6, 4)
    made = ConvolutionSynapses(kernel, (2, 6, 4), stride=2, padding=1, pool=2)
    m = image.reshape(2, 3, 2, 2, 2).sum(axis=(2, 4))
    wanted = np.zeros(made.output)
    for o, i, j in np.ndindex(*made.output):
        for c, a, b in np.ndindex(2, 3, 2):
            y, x = 2 * i + a - 1, 2 * j + b - 1
            if 0 <= y < 3 and 0 <= x < 2:
                wanted[o, i, j] += kernel[o, c, a, b] * m[c, y, x]
    np.testing.assert_array_equal(made.apply(image.reshape(1, -1))[0], wanted.ravel())


OPERATORS: dict[str, tuple[Operator, tuple[int, ...], tuple[int, ...]]] = {
    "dense": (Dense(), (5,), (4,)),
    "convolution": (Conv2d(3, padding=1, stride=2), (2, 5, 5), (3, 3, 3)),
    "pooled": (Pooled(2, Conv2d(2)), (2, 8, 6), (3, 3, 2)),
    "pooled twice": (Pooled(2, Pooled(2, Conv2d(2, padding=1))), (1, 8, 8), (2, 3, 3)),
    "pooled to units": (Pooled(2, Dense()), (2, 4, 4), (7,)),
    "sparse": (Sparse(3, seed=1), (9,), (12,)),
    "sparse symmetric": (Sparse(2, symmetric=True), (30,), (30,)),
    "identity": (Identity(), (6,), (6,)),
    "per token": (PerToken(), (8, 3), (8, 4)),
    "patches": (Patches(2), (1, 6, 6), (9, 5)),
    "token": (AtToken(-1), (6, 3), (4,)),
    "feedback": (DelayedFeedback((0.5, 0.25)), (4,), (4,)),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_synapses_do_what_the_operator_does(name: str) -> None:
    operator, source, target = OPERATORS[name]
    weight = grid(*operator.weight_shape(source, target))
    made = operator_synapses(operator, weight, source)
    for part, x in unit_vectors(source):
        wanted = operator.forward(NumpyOps(), weight, x, np.zeros(1)).reshape(len(x), -1)
        np.testing.assert_array_equal(made.dense()[:, part], wanted.T)
    kinds = {"per token": "sparse", "patches": "sparse", "token": "sparse"}
    kinds |= {"sparse": "sparse", "sparse symmetric": "sparse"}
    kinds |= {"dense": "dense", "identity": "diagonal", "feedback": "diagonal"}
    assert made.kind == kinds.get(name, "convolution")


def test_synapses_are_read_only_and_refuse_what_is_no_matrix() -> None:
    sparse = KINDS["sparse"]
    assert isinstance(sparse, SparseSynapses)
    with pytest.raises(ValueError, match="read-only"):
        sparse.data[0] = 1.0
    with pytest.raises(ValueError, match="increase"):
        replace(sparse, indices=sparse.indices[::-1])
    with pytest.raises(ValueError, match="one sparse matrix"):
        replace(sparse, data=sparse.data[1:])
    with pytest.raises(ValueError, match=r"lie in 0\.\.3"):
        replace(sparse, shape=(9, 4))
    with pytest.raises(ValueError, match="must not decrease"):
        SparseSynapses((2, 9), np.array([0, 3, 2]), np.array([1, 2]), np.ones(2))
    with pytest.raises(ValueError, match="does not fit"):
        ConvolutionSynapses(grid(2, 3, 3, 3), (2, 6, 6))
    with pytest.raises(ValueError, match="squares of 4"):
        ConvolutionSynapses(grid(2, 3, 3, 3), (3, 6, 6), pool=4)
    with pytest.raises(ValueError, match="no pixel"):
        ConvolutionSynapses(grid(2, 3, 7, 7), (3, 6, 6))
    with pytest.raises(ValueError, match="not finite"):
        Projection("a", "b", DiagonalSynapses(np.array([np.nan])))
    with pytest.raises(ValueError, match="unknown kind"):
        rebuild_synapses("cubic", {}, {})


def test_a_large_matrix_is_refused_with_its_size() -> None:
    large = DiagonalSynapses(np.ones(100_000))
    with pytest.raises(ValueError, match="80 GB"):
        large.dense()
    assert large.dense(5, 7).shape == (2, 100_000)
    assert large.count == large.parameters == 100_000


def test_a_sparse_matrix_is_the_transpose_of_its_transpose_alone() -> None:
    weight = grid(9, 7)
    made = csr(weight)
    assert made.is_transpose_of(made.T)
    assert not made.is_transpose_of(csr(grid(7, 9)))
    other = weight.T.copy()
    other[weight.T != 0] += 1.0  # the same places
    assert not made.is_transpose_of(csr(other))
    assert not made.is_transpose_of(DenseSynapses(weight.T))


@pytest.mark.parametrize("part", [1, 5, 1000])
def test_parts_of_rows_are_all_rows(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synapses, "PART", part)
    weight = grid(11, 6)
    weight[3] = 0.0
    parts = list(csr(weight).row_parts())
    assert np.array_equal(np.concatenate([each.dense() for each in parts]), weight)
    assert np.array_equal(np.concatenate([each.row_sums() for each in parts]), weight.sum(axis=1))
