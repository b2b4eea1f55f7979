"""Quantiles of the weights in the metrics of an epoch."""

from __future__ import annotations

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.training import metrics as module
from neuro_eqprop.training.metrics import QUANTILES, weight_quantiles


def test_the_last_row_of_a_training_has_the_quantiles_of_its_weights() -> None:
    data = ne.load_data("digits")
    model = ne.train("layered", data, hidden=(8,), epochs=1)
    found = model.history[-1]["weight_quantiles"]
    assert list(found) == ["input->hidden", "hidden->output"]
    for name, values in found.items():
        np.testing.assert_allclose(values, np.quantile(model.params[name], QUANTILES), rtol=1e-6)


def test_of_many_weights_evenly_spaced_ones_are_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    data = ne.load_data("digits")
    network = ne.train("layered", data, hidden=(8,), epochs=1).network
    params = {"input->hidden": np.arange(512, dtype=np.float64).reshape(8, 64)}
    monkeypatch.setattr(module, "MAX_WEIGHTS", 100)
    found = weight_quantiles(network, params)
    assert list(found) == ["input->hidden"]
    np.testing.assert_allclose(
        found["input->hidden"], np.quantile(np.arange(512, dtype=np.float64), QUANTILES), atol=6
    )
