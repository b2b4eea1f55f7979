"""Token ids: vectors of a table, padding, and sums and means over tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import neuro_eqprop as ne
from neuro_eqprop.data import DataError, Dataset, one_hot
from neuro_eqprop.dynamics.energy import energy
from neuro_eqprop.dynamics.inference import infer
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.operators import Embedding, Operator, TokenMean, TokenSum
from neuro_eqprop.networks.operators.serialize import from_json, to_json
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.networks.ops.protocol import Ops
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.gradients import cost, equilibrium, implicit
from neuro_eqprop.training.study import make_study

IDS = np.array([[1.0, 3.0, 3.0, 0.0], [2.0, 0.0, 0.0, 0.0], [3.0, 2.0, 1.0, 3.0]])
TABLE = np.random.default_rng(0).normal(size=(4, 5))
MODELS = (
    {"model": "text", "width": 8, "hidden": 5, "pooling": "mean"},
    {"model": "text", "width": 8, "hidden": 5, "pooling": "mean", "attention": "linear"},
    {"model": "text", "width": 8, "hidden": 5, "pooling": "mean", "attention": "softmax"},
    {"model": "transformer", "hidden": 8, "attention": "softmax"},
)


def sentences(tokens: int) -> Dataset:
    """Sentences of one to five words, followed by padding."""
    rng = np.random.default_rng(0)
    x = np.zeros((6, tokens))
    for row, length in enumerate((5, 1, 3, 2, 4, 5)):
        x[row, :length] = rng.integers(1, 7, length)
    return Dataset(x, np.arange(6) % 2, x, np.arange(6) % 2, vocabulary=7)


@pytest.mark.parametrize("ops", [NumpyOps(), TorchOps(torch.float64)])
def test_a_row_of_the_table_drives_each_token_and_padding_nothing(ops: Ops) -> None:
    onto = np.full((1, 1, 5), 0.25)
    weight, x, bias = (ops.from_numpy(each) for each in (TABLE, IDS, onto))
    found = ops.to_numpy(Embedding(4).forward(ops, weight, x, bias))
    wanted = TABLE[IDS.astype(int)] * (IDS > 0)[..., None] + 0.25
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("ops", [NumpyOps(), TorchOps(torch.float64)])
def test_the_gradient_of_a_row_is_the_sum_over_its_tokens(ops: Ops) -> None:
    post = np.random.default_rng(1).normal(size=(3, 4, 5))
    weight, x, end = (ops.from_numpy(each) for each in (TABLE, IDS, post))
    found = ops.to_numpy(Embedding(4).weight_gradient(ops, weight, end, x))
    encoded = one_hot(IDS.astype(int), 4)
    wanted = np.einsum("ntv,ntd->vd", encoded, post)
    assert not found[0].any()
    np.testing.assert_allclose(found[1:], wanted[1:])


@pytest.mark.parametrize("operator", [TokenSum(0.3), TokenMean(), TokenMean().with_mask(IDS > 0)])
def test_backwards_is_the_transpose(operator: Operator) -> None:
    rng, ops = np.random.default_rng(2), NumpyOps()
    x, y, weight = rng.normal(size=(3, 4, 5)), rng.normal(size=(3, 2)), rng.normal(size=(2, 5))
    up = operator.forward(ops, weight, x, np.zeros(1))
    down = operator.backward(ops, weight, y, np.zeros(1), gain=0.5, shape=(4, 5))
    assert 0.5 * (up * y).sum() == pytest.approx((down * x).sum())
    slope = operator.weight_gradient(ops, weight, y, x)
    assert (slope * weight).sum() == pytest.approx((up * y).sum())


def test_a_mean_counts_real_tokens_alone() -> None:
    mean = TokenMean().with_mask((IDS > 0).astype(float))
    x = np.random.default_rng(2).normal(size=(3, 4, 5))
    found = mean.forward(NumpyOps(), np.eye(5), x, np.zeros(1))
    np.testing.assert_allclose(found, [x[0, :3].mean(0), x[1, 0], x[2].mean(0)])
    empty = TokenMean().with_mask(np.zeros((3, 4)))
    assert not empty.forward(NumpyOps(), np.eye(5), x, np.zeros(1)).any()


@pytest.mark.parametrize("settings", MODELS)
def test_more_padding_changes_nothing(settings: dict[str, object]) -> None:
    drives = []
    # Weights of one network for both: the initial scale depends on the number of positions.
    short = make_study(**settings).network(sentences(5))
    for tokens in (5, 9):
        data = sentences(tokens)
        network = make_study(**settings).network(data)
        params = initialize(short, np.random.default_rng(0))
        if "memory" in params:  # each position has its own bias: the same for the first five
            params["tokens"] = np.random.default_rng(1).normal(size=(9, 8))[:tokens]
        linear = settings.get("attention") == "linear"
        if linear:  # its scale is divided by the number of positions
            params["words->words"] = params["words->words"] * (tokens / 5) ** 0.25
        drives.append(infer(NumpyOps(), network, params, data.train.x).drive)
    np.testing.assert_allclose(drives[0], drives[1], atol=1e-5)


@pytest.mark.parametrize("settings", MODELS)
def test_the_gradient_of_the_table_is_the_true_one(settings: dict[str, object]) -> None:
    data = sentences(6)
    network = make_study(**settings).network(data)
    params = initialize(network, np.random.default_rng(0))
    target = one_hot(data.train.y, 2)
    x = data.train.x[:3]
    exact = implicit(network, params, x, target[:3])
    name = next(c.name for c in network.connections if c.source == "input")
    rng = np.random.default_rng(1)
    for _ in range(3):
        way = rng.normal(size=exact[name].shape)
        ends = ({**params, name: params[name] + step * way} for step in (1e-5, -1e-5))
        high, low = (cost(network, each, x, target[:3]) for each in ends)
        assert (exact[name] * way).sum() == pytest.approx((high - low) / 2e-5, abs=1e-7)
    assert not exact[name][0].any()
    assert exact[name][1:].any()


@pytest.mark.parametrize("settings", MODELS)
def test_the_equilibrium_is_a_minimum_of_the_energy(settings: dict[str, object]) -> None:
    data = sentences(6)
    network = make_study(**settings).network(data)
    params = initialize(network, np.random.default_rng(0))
    x = data.train.x
    state = equilibrium(network, params, x)
    lowest, rng = energy(network, params, x, state), np.random.default_rng(3)
    for _ in range(5):
        moved = {
            n: np.clip(s + 1e-2 * rng.normal(size=s.shape), -0.999, 0.999) if n != "output" else s
            for n, s in state.items()
        }
        assert (energy(network, params, x, moved) > lowest).all()


def test_files_hold_the_operators() -> None:
    for operator in (Embedding(7), TokenSum(0.1), TokenMean()):
        assert from_json(to_json(operator)) == operator


def test_layers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="equal tokens"):
        Embedding(4).weight_shape((3,), (4, 5))
    with pytest.raises(ValueError, match="at least one token id besides padding"):
        Embedding(1)
    with pytest.raises(ValueError, match="sum over tokens"):
        TokenMean().weight_shape((4,), (2,))


def test_ids_are_checked_where_a_model_is_used() -> None:
    data = sentences(6)
    model = ne.train("text", data, width=4, hidden=3, epochs=1)
    x, y = data.test.x, data.test.y
    for wrong in (x + 7, x - 1, x + 0.5):
        for use in (model.predict, lambda x: model.evaluate((x, y))):
            with pytest.raises(DataError, match=r"x: token ids are integers in 0\.\.6"):
                use(wrong)
    with pytest.raises(ValueError, match="takes samples of 6 features"):
        model.evaluate((x[:, :4], y))
    with pytest.raises(ValueError, match="not finite"):
        model.evaluate((x * np.nan, y))
    numbers = model.evaluate((x.astype(np.uint8), y))  # bytes of ids are not pixels
    assert numbers.accuracy == model.evaluate(data.test).accuracy
    assert len(model.predict(np.zeros((2, 6)))) == 2  # sentences without a word


@pytest.mark.parametrize("settings", MODELS)
def test_sentences_without_a_word_are_learnt_from(settings: dict[str, Any]) -> None:
    x = sentences(6).train.x.copy()
    x[0] = x[3] = 0
    trained = ne.train(
        data=ne.Dataset(x, np.arange(6) % 2, vocabulary=7),
        **{"network": settings["model"], "epochs": 2},
        **{key: value for key, value in settings.items() if key != "model"},
    )
    assert all(np.isfinite(value).all() for value in trained.params.values())
    assert np.isfinite(trained.history["loss"]).all()


def test_settings_may_say_that_numbers_are_ids() -> None:
    x = sentences(6).train.x
    plain = Dataset(x, np.arange(6) % 2, x, np.arange(6) % 2)
    declared = Dataset(x, np.arange(6) % 2, x, np.arange(6) % 2, vocabulary=7)
    models = [
        ne.train("text", data, width=4, hidden=3, epochs=1, vocabulary=7)
        for data in (plain, declared)
    ]
    for name, value in models[0].params.items():
        np.testing.assert_array_equal(value, models[1].params[name])
    for wrong in (x + 1, x + 0.5, x - 1):
        with pytest.raises(DataError, match=r"integers in 0\.\.6"):
            ne.train(
                "text", Dataset(wrong, np.arange(6) % 2, wrong, np.arange(6) % 2), vocabulary=7
            )
    with pytest.raises(ValueError, match="cannot be normalized"):
        make_study(model="text", vocabulary=7, normalize=True).network(plain)


@pytest.mark.parametrize("wrong", [-3, 2.5, "9", None])
def test_a_vocabulary_is_a_number_of_ids(wrong: Any) -> None:  # noqa: ANN401
    with pytest.raises(DataError, match="it is the number of token ids"):
        Dataset(IDS, np.arange(3) % 2, vocabulary=wrong)


def test_ids_and_models_have_to_fit() -> None:
    data = sentences(6)
    with pytest.raises(ValueError, match="use model text or transformer"):
        make_study(model="layered").network(data)
    numbers = Dataset(np.random.default_rng(0).random((6, 4)), np.arange(6) % 2)
    with pytest.raises(ValueError, match="takes rows of token ids"):
        make_study(model="text").network(numbers)
    with pytest.raises(ValueError, match="has 7 token ids"):
        make_study(model="text", vocabulary=4).network(data)
    with pytest.raises(ValueError, match=r"integers in 0\.\.2"):
        Dataset(np.full((4, 2), 3.0), np.arange(4) % 2, vocabulary=3)
    with pytest.raises(ValueError, match="cannot be normalized"):
        make_study(model="text", normalize=True).network(data)
