"""Samples that are shown several times in a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.runs.learn_on_chip.model import OnChipNetwork


def learned(repeats: int, **settings: object) -> OnChipNetwork:
    """A network that learned a few samples."""
    given: dict[str, Any] = {
        "hidden": (8,),
        "epochs": 1,
        "samples": 6,
        "batch": 2,
        "steps": 32,
        **settings,
    }
    return ne.learn_on_chip("layered", "digits", repeats=repeats, **given)


@pytest.mark.filterwarnings("ignore::neuro_eqprop.runs.learn_on_chip.loop.OnChipWarning")
def test_repeats_share_a_commit() -> None:
    once, thrice = learned(1), learned(3)
    assert thrice.samples_seen == 3 * once.samples_seen
    for name, value in once.params.items():  # without noise, the mean of equal updates
        assert np.allclose(thrice.params[name], value, atol=1e-9)


def test_none_are_refused() -> None:
    with pytest.raises(ValueError, match="repeats"):
        learned(0)
