from __future__ import annotations

import numpy as np
import pytest

from neuro_eqprop.simulators.reference.learning import arrive


@pytest.mark.parametrize("targets", [1, 2])
def test_what_arrives_is_added_source_by_source(targets: int) -> None:
    weight = np.random.default_rng(0).normal(size=(targets, 200))
    total = np.zeros(targets)
    for column in weight.T:
        total = total + column
    found = arrive(np.zeros(targets), weight, np.ones(200))
    np.testing.assert_array_equal(found, total)
