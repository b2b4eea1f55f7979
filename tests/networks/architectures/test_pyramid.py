"""The convolutional pyramid, and networks that normalize their input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.data import Dataset, Split, one_hot
from neuro_eqprop.data.statistics import channel_statistics
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.operators import Normalized
from neuro_eqprop.networks.operators.serialize import from_json, to_json
from neuro_eqprop.training.gradients import finite_difference, implicit
from neuro_eqprop.training.study import make_study


def pictures(side: int = 8, samples: int = 60) -> Dataset:
    """Bytes: images of two classes, of which one is brighter in its first channel."""
    rng = np.random.default_rng(0)
    y = np.arange(samples) % 2
    x = rng.integers(60, 120, (samples, 3, side, side))
    x[y == 1, 0] += 25
    split = Split(x.reshape(samples, -1).astype(np.uint8), y)
    return Dataset.from_splits("pictures", split, split, 2, (3, side, side))


def test_scales_are_halved_and_all_of_them_are_coupled_and_read() -> None:
    network = make_study(model="pyramid", hidden=(4, 6, 8), memory=3).network(pictures(16))
    shapes = {layer.name: layer.shape for layer in network.layers}
    assert (shapes["scale1"], shapes["scale3"]) == ((4, 16, 16), (8, 4, 4))
    assert shapes["scale2-memory"] == (3, 8, 8)
    names = {c.name for c in network.connections}
    for k in (1, 2, 3):
        assert {f"input->scale{k}", f"scale{k}->output", f"scale{k}->scale{k}-memory"} <= names
    assert {"scale1->scale2", "scale2->scale3"} <= names
    parameters = make_study(model="pyramid").network(pictures(32)).parameters()
    assert sum(int(np.prod(shape)) for shape in parameters.values()) == 105_602


@pytest.mark.parametrize(
    ("settings", "side", "message"),
    [
        ({"hidden": (4, 4, 4, 4, 4)}, 8, "at most 4 sizes, not 5"),
        ({"kernel": 4}, 8, "are odd"),
        ({"places": 3}, 8, "use places=2"),
    ],
)
def test_what_does_not_fit_is_refused(settings: dict[str, object], side: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_study(model="pyramid", **settings).network(pictures(side))
    with pytest.raises(ValueError, match="a pyramid takes images"):
        make_study(model="pyramid").network(Dataset(np.eye(9), np.arange(9) % 2))


def test_the_gradient_is_the_true_one() -> None:
    data = pictures(4, 4)
    network = make_study(model="pyramid", hidden=(2, 3), feedback=0.3).network(data)
    params = initialize(network, np.random.default_rng(0))
    target = one_hot(data.train.y, 2)
    exact = implicit(network, params, data.train.x, target)
    few = finite_difference(network, params, data.train.x, target=target, epsilon=1e-5)
    for name, gradient in exact.items():
        np.testing.assert_allclose(gradient, few[name], atol=1e-6, err_msg=name)


def test_it_learns_and_its_update_is_the_gradient() -> None:
    model = ne.train(
        "pyramid", pictures(), hidden=(4, 6), epochs=6, batch=10, learning_rate=0.02, flip=True
    )
    last = model.history[-1]
    assert last["test_accuracy"] == 1.0
    assert min(last["cosine"].values()) > 0.99
    assert last["warning"] is None


def test_means_and_deviations_are_those_of_the_training_samples() -> None:
    data = pictures(4, 10)
    mean, deviation = channel_statistics(data)
    x = data.train.x.reshape(10, 3, -1)
    np.testing.assert_allclose(mean, x.mean(axis=(0, 2)))
    np.testing.assert_allclose(deviation, x.std(axis=(0, 2)))
    constant = Dataset(np.c_[np.ones(6), np.arange(6.0)], np.arange(6) % 2)
    assert channel_statistics(constant)[1][0] == 1.0


def test_a_normalized_network_takes_raw_samples() -> None:
    data = pictures(4, 10)
    plain = make_study(model="layered", hidden=(5,)).network(data)
    network = make_study(model="layered", hidden=(5,), normalize=True).network(data)
    params = initialize(plain, np.random.default_rng(0))
    mean, deviation = channel_statistics(data)
    images = data.train.x.reshape(10, 3, 16)
    scaled = (images - np.reshape(mean, (3, 1))) / np.reshape(deviation, (3, 1))
    wanted = ne.Model(plain, params).equilibrium(scaled.reshape(10, -1)).drive
    given = ne.Model(network, params).equilibrium(data.train.x).drive
    np.testing.assert_allclose(given, wanted, rtol=1e-9)
    operator = network.connections[0].operator
    assert isinstance(operator, Normalized)
    assert operator.mean[:17] == (*[mean[0]] * 16, mean[1])
    assert from_json(to_json(operator)) == operator


def test_normalized_models_are_saved_and_opened(tmp_path: Path) -> None:
    data = pictures(4, 12)
    model = ne.train("pyramid", data, hidden=(2,), epochs=1, out=tmp_path / "run")
    again = ne.open_run(tmp_path / "run").model
    assert again.network == model.network
    assert again.evaluate(data.test).accuracy == model.evaluate(data.test).accuracy


def test_a_pyramid_runs_as_spikes() -> None:
    data = pictures()
    settings: dict[str, Any] = {"hidden": (4, 6), "epochs": 6, "batch": 10, "learning_rate": 0.02}
    model = ne.train("pyramid", data, **settings)
    found = model.evaluate(data.test.take(slice(20)), on="emulator", code="graded", steps=64)
    assert found.agreement == 1.0
    assert found.rmse < 0.01
    with pytest.raises(ValueError, match="feed the input as a current"):
        model.evaluate(data.test, on="emulator", code="graded", input="graded")


def test_a_text_runs_as_spikes_if_its_words_are_summed() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    ids = np.where(rng.random((60, 5)) < 0.5, 2 + y[:, None], rng.integers(4, 9, (60, 5)))
    data = Dataset(ids, y, ids[:20], y[:20], vocabulary=9)
    sizes: dict[str, Any] = {"width": 6, "hidden": (5,), "epochs": 5, "batch": 10}
    settings = sizes | {"learning_rate": 0.02}
    model = ne.train("text", data, **settings)
    found = model.evaluate(data.test, on="emulator", code="graded", steps=64)
    assert found.agreement == 1.0
    mean = ne.train("text", data, pooling="mean", **settings)
    with pytest.raises(ValueError, match="train with pooling 'sum'"):
        mean.to_spiking(code="graded").run(data.test.x, on="emulator", steps=16)
