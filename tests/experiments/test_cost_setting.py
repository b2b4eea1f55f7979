"""The cost of a study."""

from __future__ import annotations

import pytest

from neuro_eqprop.arrays import UnknownNameError
from neuro_eqprop.data import load_digits
from neuro_eqprop.experiments.config import adapt, make_study
from neuro_eqprop.networks import Cost


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
