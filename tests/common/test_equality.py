"""What holds arrays is pickled, copied and compared as other objects are."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.common.equality import equal


@pytest.fixture(scope="module")
def objects() -> dict[str, object]:
    data = ne.load_data("digits")
    model = ne.train("layered", data, hidden=(8,), epochs=1, seed=0)
    made: dict[str, object] = {"data": data, "split": data.test, "model": model}
    for coding in ("current", "rate"):
        spiking = model.to_spiking(code="rate", input=coding)
        run = spiking.run(data.test.x[:2], on="emulator", steps=8)
        made |= {f"spiking, {coding}": spiking, f"run, {coding}": run}
    graded = model.to_spiking(code="graded", input="graded")
    trace = model.record(data.test.x[:2], data.test.y[:2], phases=True, steps=8)
    made |= {"graded": graded, "network": graded.network, "trace": trace}
    made |= {"history": model.history, "comparison": ne.compare(trace, trace)}
    made |= {"energy": ne.estimate_energy(run, "loihi1"), "profile": ne.load_profile("loihi1")}
    return made


def test_every_object_pickles_copies_and_compares(objects: dict[str, object]) -> None:
    for name, one in objects.items():
        for made in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
            assert made == one, name
        assert one != "another", name
        assert isinstance(hash(type(one)), int)


def test_a_different_weight_makes_a_different_model(objects: dict[str, object]) -> None:
    model = objects["model"]
    assert isinstance(model, ne.Model)
    name, weight = next(iter(model.params.items()))
    changed = replace(model, params={**model.params, name: weight + 1.0})
    assert changed != model
    assert changed.to_spiking() != model.to_spiking()


def test_arrays_are_compared_by_shape_and_value() -> None:
    assert equal([np.array([1.0, np.nan])], [np.array([1.0, np.nan])])
    assert equal(float("nan"), float("nan"))
    assert not equal(np.ones(2), np.ones((1, 2)))
    assert not equal({"a": 1}, {"b": 1})
    assert not equal((1, 2), (1, 2, 3))
    assert not equal(1, "1")
