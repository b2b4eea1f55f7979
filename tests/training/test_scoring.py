"""The score by compiled code equals that of the general solver."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.dynamics import inference
from neuro_eqprop.dynamics.solve import Stop
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.fast import scoring
from neuro_eqprop.training.fast.structure import is_supported

DATA = ne.load_data("digits")


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("layered", {"hidden": (32,)}),
        ("layered", {"hidden": (24, 16), "feedback": 0.5}),
        ("looped", {"hidden": (32,)}),
        ("conv", {"hidden": (4,)}),
        ("transformer", {}),
        ("toroidal", {}),
    ],
)
@pytest.mark.parametrize("stop", [inference.SETTLED, inference.COARSE])
def test_scores_are_those_of_the_general_solver(
    model: str, settings: dict[str, Any], stop: Stop, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = ne.train(model, DATA, epochs=1, **settings)
    ops = TorchOps()
    params = {name: ops.from_numpy(values) for name, values in trained.params.items()}
    expected = inference.score(ops, trained.network, params, DATA.test, stop)
    if is_supported(trained.network):
        monkeypatch.setattr(inference, "settle", None)  # not needed
    found = scoring.score(ops, trained.network, params, DATA.test, stop)
    np.testing.assert_array_equal(found.confusion, expected.confusion)
    assert found.settled == expected.settled == 1.0


def test_a_network_that_settles_slowly_is_left_to_the_general_solver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trained = ne.train("layered", DATA, hidden=(24, 16), feedback=0.9, epochs=1)
    monkeypatch.setattr(scoring, "MOST_PAIRS", 1)
    ops = TorchOps()
    params = {name: ops.from_numpy(values) for name, values in trained.params.items()}
    found = scoring.score(ops, trained.network, params, DATA.test)
    expected = inference.score(ops, trained.network, params, DATA.test)
    np.testing.assert_array_equal(found.confusion, expected.confusion)
    assert found.settled == expected.settled
