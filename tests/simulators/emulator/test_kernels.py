"""Compiled loops of the emulator stay within their arrays."""

from __future__ import annotations

import numpy as np

from neuro_eqprop.simulators.emulator.kernels import Sent, pool_messages, workspace


def test_places_whose_messages_cancel_again_and_again_fit_the_workspace() -> None:
    # One channel of 2 x 2 pixels, averaged into one, and a kernel of one weight.
    image = np.array([1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 2])
    space = workspace(4, np.ones((1, 7), dtype=np.int64), 1, image[np.newaxis])
    sent, pooled, places = (
        Sent(space.lists, space.payloads, 0, 4),
        space.image_buffers[0],
        space.places,
    )
    sent.lists[:4], sent.payloads[:4] = np.arange(4), [1.0, -1.0, 0.5, -0.5]
    # Not compiled, so that NumPy checks every index.
    found = pool_messages.py_func(image, sent, pooled, places)  # type: ignore[attr-defined]
    assert found == 2
    assert pooled.tolist() == [0.0]
