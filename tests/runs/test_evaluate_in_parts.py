"""Rates of a large network are evaluated in parts, with the same accuracies."""

from __future__ import annotations

import pytest

import neuro_eqprop as ne
from neuro_eqprop.runs import evaluate as module


def test_parts_give_the_accuracies_of_all_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    data = ne.load_data("digits")
    model = ne.train("layered", data, hidden=(8,), epochs=1, seed=0)
    whole, done = model.evaluate(data.test), list[int]()
    monkeypatch.setattr(module, "RATES_COMPARED", 18 * 100)
    parts = model.evaluate(data.test, progress=done.append)
    assert sum(done) == len(data.test) == parts.samples
    for name in ("accuracy", "rate_accuracy", "agreement"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name))
    assert parts.rmse < 1e-3


def test_spikes_in_parts_give_the_counts_and_accuracies_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = ne.load_data("digits")
    model = ne.train("layered", data, hidden=(8,), epochs=1)
    test = data.test.take(slice(250))
    whole = model.evaluate(test, on="emulator", code="graded", steps=16, bits=8).to_dict()
    monkeypatch.setattr(module, "RATES_COMPARED", 18 * 100)
    parts = model.evaluate(test, on="emulator", code="graded", steps=16, bits=8).to_dict()
    for key, value in whole.items():
        if key not in ("pearson", "p999", "seconds", "compile_seconds", "warnings"):
            assert parts[key] == (pytest.approx(value) if isinstance(value, float) else value)
