"""Operators of the notes' forms: slopes against torch's graph, torch against NumPy, refusals."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from neuro_eqprop.arrays import Shape
from neuro_eqprop.operators import CrossAttention, Identity, Kind, LayerNorm, Query
from neuro_eqprop.ops.numpy import NumpyOps
from neuro_eqprop.ops.torch import TorchOps

CASES: list[tuple[CrossAttention | LayerNorm | Identity | Query, Shape, Shape]] = [
    (CrossAttention(Kind.SOFTMAX, 2), (4, 18), (4, 6)),
    (CrossAttention(Kind.LINEAR, 2), (4, 18), (4, 6)),
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
    weight = rng.normal(0, 1, operator.parameter(source, target))
    x, y = rng.normal(0, 1, (3, *source)), rng.normal(0, 1, (3, *target))
    ops, plain = TorchOps(torch.float64), NumpyOps()
    w, at = ops.bring(weight).requires_grad_(), ops.bring(x).requires_grad_()
    told = (operator.forward(ops, w, at, ops.zeros((1,))) * ops.bring(y)).sum()
    on_x, on_w = torch.autograd.grad(told, [at, w], allow_unused=True)
    np.testing.assert_allclose(operator.pull(plain, weight, x, y), on_x.numpy(), atol=1e-12)
    asked = operator.slope(plain, weight, y, x)
    assert asked.shape == weight.shape
    if weight.size:
        np.testing.assert_allclose(asked, on_w.numpy(), atol=1e-12)
    with torch.no_grad():
        brought = operator.pull(ops, ops.bring(weight), ops.bring(x), ops.bring(y))
    np.testing.assert_allclose(ops.numpy(brought), on_x.numpy(), atol=1e-12)


@pytest.mark.parametrize(
    ("operator", "source", "target"),
    [
        (Query(), (4, 6), (4, 6)),
        (CrossAttention(Kind.LINEAR, 2), (4, 6), (4, 6)),
        (CrossAttention(Kind.LINEAR, 4), (4, 18), (4, 6)),
        (LayerNorm(), (4, 6), (3, 6)),
        (Identity(), (4, 6), (4, 5)),
    ],
    ids=str,
)
def test_layers_that_do_not_fit_are_refused(
    operator: CrossAttention | LayerNorm | Identity | Query, source: Shape, target: Shape
) -> None:
    with pytest.raises(ValueError, match=r"not|cannot"):
        operator.parameter(source, target)
