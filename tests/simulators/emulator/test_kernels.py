"""Compiled loops of the emulator stay within their arrays."""

from __future__ import annotations

import numpy as np

from neuro_eqprop.simulators.emulator.kernels import Sent, pool_messages


def test_places_whose_messages_cancel_again_and_again_fit_the_workspace() -> None:
    # One channel of 2 x 2 pixels, averaged into one, and a kernel of one weight.
    image = np.array([1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 2])
    pooled, places = np.zeros(1), np.zeros(4, dtype=np.uint64)
    lists, payloads = np.arange(4, dtype=np.uint32), np.array([1.0, -1.0, 0.5, -0.5])
    sent = Sent(lists, payloads, np.uint64(0), np.uint64(4))
    # Not compiled, so that NumPy checks every index.
    found = pool_messages.py_func(image, sent, pooled, places)  # type: ignore[attr-defined]
    assert found == 2
    assert pooled.tolist() == [0.0]
