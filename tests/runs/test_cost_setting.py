"""The cost of a study."""

from __future__ import annotations

import pytest

from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.data import load_digits
from neuro_eqprop.networks.network import Cost
from neuro_eqprop.training.study import adapt, make_study


def test_a_study_names_its_cost_or_leaves_it_to_the_model() -> None:
    data = load_digits()
    plain = make_study(model="looped", hidden=(8,))
    assert plain.network(data).cost is Cost.SQUARED
    asked = adapt(plain, {"cost": "cross_entropy"})
    assert asked.network(data).cost is Cost.CROSS_ENTROPY
    tokens = make_study(model="transformer", hidden=(8,), patch=4)
    assert tokens.network(data).cost is Cost.CROSS_ENTROPY
    with pytest.raises(UnknownNameError, match=r"known: squared, cross_entropy$"):
        make_study(cost="hinge")
