"""Operators of the notes' forms: slopes against torch's graph, torch against NumPy, refusals."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.networks.operators import (
    AttentionKind,
    CrossAttention,
    Identity,
    LayerNorm,
    Query,
)
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.networks.ops.torch import TorchOps

CASES: list[tuple[CrossAttention | LayerNorm | Identity | Query, Shape, Shape]] = [
    (CrossAttention(AttentionKind.SOFTMAX, 2), (4, 18), (4, 6)),
    (CrossAttention(AttentionKind.LINEAR, 2), (4, 18), (4, 6)),
    (Query(), (4, 6), (4, 18)),
    (LayerNorm(), (4, 6), (4, 5)),
    (LayerNorm(), (6,), (5,)),
    (Identity(normed=True), (4, 6), (4, 6)),
    (Identity(), (4, 6), (4, 6)),
]


@pytest.mark.parametrize(("operator", "source", "target"), CASES, ids=str)
def test_pull_and_slope_are_those_of_the_graph(
    operator: CrossAttention | LayerNorm | Identity | Query, source: Shape, target: Shape
) -> None:
    rng = np.random.default_rng(1)
    weight = rng.normal(0, 1, operator.weight_shape(source, target))
    x, y = rng.normal(0, 1, (3, *source)), rng.normal(0, 1, (3, *target))
    ops, plain = TorchOps(torch.float64), NumpyOps()
    w, at = ops.from_numpy(weight).requires_grad_(), ops.from_numpy(x).requires_grad_()
    result = (operator.forward(ops, w, at, ops.zeros((1,))) * ops.from_numpy(y)).sum()
    on_x, on_w = torch.autograd.grad(result, [at, w], allow_unused=True)
    np.testing.assert_allclose(operator.vjp(plain, weight, x, y), on_x.numpy(), atol=1e-12)
    asked = operator.weight_gradient(plain, weight, y, x)
    assert asked.shape == weight.shape
    if weight.size:
        np.testing.assert_allclose(asked, on_w.numpy(), atol=1e-12)
    with torch.no_grad():
        brought = operator.vjp(ops, ops.from_numpy(weight), ops.from_numpy(x), ops.from_numpy(y))
    np.testing.assert_allclose(ops.to_numpy(brought), on_x.numpy(), atol=1e-12)


@pytest.mark.parametrize(
    ("operator", "source", "target"),
    [
        (Query(), (4, 6), (4, 6)),
        (CrossAttention(AttentionKind.LINEAR, 2), (4, 6), (4, 6)),
        (CrossAttention(AttentionKind.LINEAR, 4), (4, 18), (4, 6)),
        (LayerNorm(), (4, 6), (3, 6)),
        (Identity(), (4, 6), (4, 5)),
    ],
    ids=str,
)
def test_layers_that_do_not_fit_are_refused(
    operator: CrossAttention | LayerNorm | Identity | Query, source: Shape, target: Shape
) -> None:
    with pytest.raises(ValueError, match=r"not|cannot"):
        operator.weight_shape(source, target)
