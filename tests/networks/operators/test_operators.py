"""Every operator: its transpose, its slope, its norm, and the same numbers from torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from neuro_eqprop.common.arrays import Array, Shape
from neuro_eqprop.networks.operators import (
    OPERATORS,
    Attention,
    AttentionKind,
    AtToken,
    Conv2d,
    CrossAttention,
    DelayedFeedback,
    Dense,
    Embedding,
    Identity,
    LayerNorm,
    MaxPooled,
    Normalized,
    Operator,
    OwnFeedback,
    Patches,
    PerToken,
    Pooled,
    Query,
    Sparse,
    TokenMean,
    TokenSum,
)
from neuro_eqprop.networks.operators.serialize import from_json, to_json
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.networks.ops.torch import TorchOps

Case = tuple[Operator, Shape, Shape]
CASES: list[Case] = [
    (Dense(), (5,), (4,)),
    (Dense(), (2, 3, 3), (4,)),
    (Conv2d(3), (2, 6, 7), (3, 4, 5)),
    (Conv2d(3, padding=1), (2, 4, 5), (3, 4, 5)),
    (Conv2d(2, stride=2), (2, 5, 6), (3, 2, 3)),
    (Conv2d(4, padding=2, stride=3), (1, 5, 7), (2, 2, 3)),
    (Pooled(2, Conv2d(3, padding=1, stride=2)), (2, 6, 8), (3, 2, 2)),
    (Pooled(2, Conv2d(2)), (2, 6, 8), (3, 2, 3)),
    (Pooled(2, Dense()), (2, 4, 4), (5,)),
    (MaxPooled(2, Conv2d(3, padding=1)), (2, 4, 6), (3, 2, 3)),
    (MaxPooled(3, Conv2d(2)), (2, 4, 7), (3, 1, 2)),
    (Sparse(3), (7,), (5,)),
    (Sparse(2, seed=4), (2, 40), (9,)),
    (Sparse(3, symmetric=True), (8,), (8,)),
    (PerToken(), (4, 3), (4, 5)),
    (Patches(2), (2, 4, 6), (6, 5)),
    (AtToken(-1), (4, 3), (5,)),
    (DelayedFeedback((0.9, 0.5)), (4,), (4,)),
    (OwnFeedback(0.25), (3,), (5,)),
    (LayerNorm(), (6,), (4,)),
    (LayerNorm(), (4, 6), (4, 5)),
    (Query(), (4, 6), (4, 18)),
    (CrossAttention(AttentionKind.LINEAR, 2), (4, 18), (4, 6)),
    (CrossAttention(AttentionKind.SOFTMAX, 3), (4, 18), (4, 6)),
    (Identity(), (4, 6), (4, 6)),
    (Identity(normed=True), (4, 6), (4, 6)),
    (TokenSum(0.3), (4, 3), (5,)),
    (TokenMean(), (4, 3), (5,)),
    (Embedding(6), (4,), (4, 3)),
    (Normalized(Dense(), (0.5, -1.0, 2.0), (1.0, 2.0, 0.5)), (3,), (4,)),
    (Normalized(Conv2d(2), (0.5, -1.0), (1.0, 2.0)), (2, 4, 4), (3, 3, 3)),
    (Attention(AttentionKind.LINEAR, 2, 0.7), (4, 6), (4, 6)),
    (Attention(AttentionKind.LINEAR, 1, 0.7, others=True), (4, 6), (4, 6)),
    (Attention(AttentionKind.SOFTMAX, 3, 0.7, sharpness=2.0), (4, 6), (4, 6)),
    (Attention(AttentionKind.SOFTMAX, 1, 0.7, others=True), (4, 6), (4, 6)),
]
NAMES = [f"{type(o).__name__}-{k}" for k, (o, _, _) in enumerate(CASES)]
EVERY = pytest.mark.parametrize("case", CASES, ids=NAMES)
LINEAR = pytest.mark.parametrize(
    "case",
    [c for c in CASES if c[0].linear],
    ids=[n for n, c in zip(NAMES, CASES, strict=True) if c[0].linear],
)
OPS = NumpyOps()
NOTHING = np.zeros(1)


def draw(case: Case) -> tuple[Array, Array, Array]:
    operator, source, target = case
    rng = np.random.default_rng(3)
    weight = rng.normal(0, 1, operator.weight_shape(source, target))
    x, y = rng.normal(0, 1, (3, *source)), rng.normal(0, 1, (3, *target))
    if isinstance(operator, Embedding):
        x = rng.integers(0, operator.vocabulary, x.shape).astype(float)
    return weight, x, y


def test_every_kind_is_among_the_cases() -> None:
    assert {type(operator) for operator, _, _ in CASES} == set(OPERATORS)


@LINEAR
def test_backward_is_the_transpose_of_forward(case: Case) -> None:
    operator, source, _ = case
    weight, x, y = draw(case)
    there = operator.forward(OPS, weight, x, NOTHING)
    back = operator.backward(OPS, weight, y, NOTHING, gain=0.5, shape=source)
    assert there.shape == y.shape
    assert back.shape == x.shape
    assert 0.5 * np.sum(y * there) == pytest.approx(np.sum(back * x), rel=1e-12)


@EVERY
def test_what_is_there_already_is_added_to(case: Case) -> None:
    operator, source, _ = case
    weight, x, y = draw(case)
    plain = operator.forward(OPS, weight, x, NOTHING)
    np.testing.assert_allclose(operator.forward(OPS, weight, x, y), plain + y, atol=1e-12)
    if operator.linear:
        bare = operator.backward(OPS, weight, y, NOTHING, gain=1.0, shape=source)
        more = operator.backward(OPS, weight, y, x, gain=1.0, shape=source)
        np.testing.assert_allclose(more, bare + x, atol=1e-12)
    else:
        with pytest.raises(ValueError, match="no transpose"):
            operator.backward(OPS, weight, y, NOTHING, gain=1.0, shape=source)


def numeric_slope(operator: Operator, weight: Array, post: Array, pre: Array) -> Array:
    """d/dW of post . A(W) pre, or of the value of attention, by central differences."""

    def scalar(w: Array) -> float:
        if isinstance(operator, Attention):
            return float(operator.energy(OPS, w, pre).sum())
        return float(np.sum(post * operator.forward(OPS, w, pre, NOTHING)))

    slope = np.zeros_like(weight)
    for place in np.ndindex(weight.shape):
        step = np.zeros_like(weight)
        step[place] = 1e-5
        slope[place] = (scalar(weight + step) - scalar(weight - step)) / 2e-5
    return slope


@EVERY
def test_the_slope_is_the_gradient_by_the_weight(case: Case) -> None:
    operator, _, _ = case
    weight, x, y = draw(case)
    slope = operator.weight_gradient(OPS, weight, y, x)
    wanted = numeric_slope(operator, weight, y, x)
    assert isinstance(operator, Identity) or np.abs(wanted).max() > 0.01
    assert slope.shape == weight.shape
    np.testing.assert_allclose(slope, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("case", [c for c in CASES if isinstance(c[0], Attention)])
def test_attention_drives_by_the_gradient_of_its_value(case: Case) -> None:
    operator = case[0]
    assert isinstance(operator, Attention)
    weight, x, _ = draw(case)
    drive = operator.forward(OPS, weight, x, NOTHING)
    for place in ((0, 0, 0), (1, 2, 3), (2, 3, 5)):
        step = np.zeros_like(x)
        step[place] = 1e-5
        up, down = (operator.energy(OPS, weight, x + s).sum() for s in (step, -step))
        assert drive[place] == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-7)


@LINEAR
def test_the_norm_is_that_of_the_whole_matrix(case: Case) -> None:
    operator, source, target = case
    weight, _, _ = draw(case)
    size = int(np.prod(source))
    rows = operator.forward(
        OPS, weight, np.eye(size).reshape(size, *source), np.zeros((size, *target))
    )
    wanted = np.linalg.norm(rows.reshape(size, -1), 2)
    assert operator.spectral_norms(OPS, weight, source)[0] == pytest.approx(wanted, rel=1e-5)


@EVERY
def test_torch_gives_the_same_numbers(case: Case) -> None:
    operator, source, _ = case
    weight, x, y = draw(case)
    ops = TorchOps(torch.float64)
    w, xs, ys = ops.from_numpy(weight), ops.from_numpy(x), ops.from_numpy(y)
    pairs = [
        (operator.forward(OPS, weight, x, NOTHING), operator.forward(ops, w, xs, ops.zeros((1,)))),
        (operator.weight_gradient(OPS, weight, y, x), operator.weight_gradient(ops, w, ys, xs)),
        (
            np.array(operator.spectral_norms(OPS, weight, source)),
            np.array(operator.spectral_norms(ops, w, source)),
        ),
    ]
    if operator.linear:
        back = operator.backward(OPS, weight, y, NOTHING, gain=2.0, shape=source)
        theirs = operator.backward(ops, w, ys, ops.zeros((1,)), gain=2.0, shape=source)
        pairs.append((back, theirs))
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, np.asarray(theirs), rtol=1e-7, atol=1e-12)


@EVERY
def test_an_operator_comes_back_from_its_text(case: Case) -> None:
    assert from_json(to_json(case[0])) == case[0]


@pytest.mark.parametrize(
    ("expected", "reason"),
    [
        ("magic", "unknown to this version"),
        ({"operator": "conv2d", "colour": 3}, "no setting"),
        ({"kernel": 3}, "unknown to this version"),
    ],
)
def test_what_is_no_operator_is_refused(expected: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        from_json(expected)


@pytest.mark.parametrize(
    ("operator", "source", "target", "reason"),
    [
        (Dense(), (3,), (2, 2), "target of shape"),
        (Conv2d(3), (1, 5, 5), (2, 4, 4), "kernel 3"),
        (Conv2d(3), (5,), (2, 4, 4), "channels, height, width"),
        (Conv2d(3, padding=1), (1, 5, 5), (2, 4, 4), "padding 1"),
        (Conv2d(3, padding=1), (5,), (2, 4, 4), "channels, height, width"),
        (Pooled(2, Dense()), (1, 5, 4), (3,), "squares of 2"),
        (Patches(3), (1, 4, 4), (1, 2), "patches of 3"),
        (Patches(2), (1, 4, 4), (3, 2), "4 tokens"),
        (PerToken(), (3, 2), (4, 2), "equal tokens"),
        (AtToken(4), (3, 2), (4,), "token 4"),
        (DelayedFeedback((1.0,)), (3,), (4,), "equal shape"),
        (LayerNorm(), (3, 1), (4,), "equal tokens"),
        (Attention(AttentionKind.LINEAR, 2, 1.0), (3, 5), (3, 5), "2 heads"),
        (Attention(AttentionKind.LINEAR, 1, 1.0), (3, 5), (3, 4), "to itself"),
    ],
)
def test_layers_that_do_not_fit_are_refused(
    operator: Operator, source: Shape, target: Shape, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        operator.weight_shape(source, target)
