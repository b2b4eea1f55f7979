"""Weights of the first hidden layer as images, before and after training."""

from __future__ import annotations

from math import isqrt

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.html_report.contents import RunContents
from neuro_eqprop.html_report.encoding import encode
from neuro_eqprop.html_report.html import chart
from neuro_eqprop.html_report.section import Section, Shown, asset
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Role

IMAGES = ("digits", "mnist", "kmnist", "fashion-mnist")
"""Data sets whose samples are square grey images, in rows."""
MOST = 32
"""Largest number of units shown."""
LARGEST = 32
"""Largest side of an image in pixels."""


def show(run: RunContents) -> Shown:
    """The images of the units that training changed most."""
    found = None if run.others else weights(run)
    if found is None:
        return Shown()
    before, after = found
    units = np.sort(np.argsort(-np.abs(after - before).sum(axis=1), kind="stable")[:MOST])
    images = np.stack([before[units], after[units]])
    held = {"side": isqrt(after.shape[1]), "units": units.tolist(), "images": encode(images)}
    return Shown(
        "<p>Each square is a hidden unit, and each of its pixels the weight from that pixel of the "
        "image: green excites the unit, violet inhibits it. These are the "
        f"{len(units)} of {len(after)} units that changed most.</p>"
        f'<div class="grid two">{chart("fields-before", "Before training", tall=True)}'
        f"{chart('fields-after', 'After training', tall=True)}</div>",
        lambda _: {"fields": held},
    )


def weights(run: RunContents) -> tuple[Array, Array] | None:
    """The weights of the first hidden layer (units, pixels), initial and trained; None if unknown.

    The initial ones are drawn again from the seed of the study.
    """
    seed = run.setting("seed")
    if run.model is None or run.converted or run.setting("dataset") not in IMAGES or seed is None:
        return None
    network = run.model.network
    pixels, side = network.input.size, isqrt(network.input.size)
    first = next(c for c in network.connections if network[c.source].role is Role.INPUT)
    after = run.model.params.get(first.name)
    if side * side != pixels or side > LARGEST or after is None or after.shape[1:] != (pixels,):
        return None  # a convolution, or a connection of patches
    return initialize(network, np.random.default_rng(seed))[first.name], after


SECTION = Section("fields", "What hidden units see", show, asset("script/fields.js"))
