"""Isolated pairs of spikes against the kernel of the rule."""

from __future__ import annotations

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.runs import pair_protocol as module
from neuro_eqprop.simulators.learning import Learned
from neuro_eqprop.simulators.reference.learning import ReferenceLearner


@pytest.mark.parametrize("on", ["reference", "emulator", "brian2"])
@pytest.mark.parametrize("factor", [1.0, -1.0])
def test_a_pair_of_spikes_leaves_the_symmetric_exponential_kernel(on: str, factor: float) -> None:
    curve = ne.pair_protocol(on, tau=5.0, most=10, factor=factor)
    np.testing.assert_allclose(curve.tag, curve.kernel, atol=1e-10)
    np.testing.assert_allclose(curve.tag, curve.tag[::-1], atol=1e-10)
    keep = np.exp(-1 / 5.0)
    assert curve.tag[10] == pytest.approx(factor * (1 - keep) / (1 + keep))
    np.testing.assert_allclose(curve.tag[11:] / curve.tag[10:-1], keep)


def test_in_continuous_time_the_kernel_is_that_of_the_traces() -> None:
    curve = ne.pair_protocol("brian2-biology", tau=5.0, most=10)
    # 1 / (2 tau) exp(-|lag| / tau); spikes fall anywhere in their step of 10 ms.
    expected = np.exp(-np.abs(curve.lag) / 5.0) / 10.0
    np.testing.assert_allclose(curve.tag, expected, rtol=0.25)
    assert curve.step_seconds == 0.01


def test_every_neuron_fires_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Learned] = []
    learn = ReferenceLearner.learn

    def spy(*args: object, **settings: object) -> Learned:
        seen.append(learn(*args, **settings))  # type: ignore[arg-type]
        return seen[-1]

    monkeypatch.setattr(ReferenceLearner, "learn", spy)
    module.pair_protocol("reference", tau=3.0, most=6)
    sent = {key: counts.spikes for key, counts in seen[0].counts.items()}
    assert sent["pre", "second"] == 1
    assert sent["post", "second"] == 13
    assert sent["pre", "first"] == sent["post", "first"] == 0


def test_wrong_factors_and_lags_are_refused() -> None:
    with pytest.raises(ValueError, match="the third factor of a phase is 1 or -1"):
        ne.pair_protocol(factor=0.5)
    with pytest.raises(ValueError, match="at least one step"):
        ne.pair_protocol(most=0)
    axes = ne.pair_protocol(most=3).plot()
    assert axes.get_ylabel() == "tag of one pair"
