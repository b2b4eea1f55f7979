"""Compact text encoding of numbers in the page.

A number is two letters, one of 4096 levels between the lowest and the highest value; `~` and a
letter repeat it, so that constant stretches are short. Spike times are encoded as the gaps between
them, a letter each; `~` adds 64 to a gap.
"""

from __future__ import annotations

from itertools import groupby
from string import ascii_lowercase, ascii_uppercase, digits
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints

LETTERS = ascii_uppercase + ascii_lowercase + digits + "-_"
LEVELS = len(LETTERS) ** 2


def encode(values: Array) -> dict[str, Any]:
    """Lowest and highest value, and a text per row of the last axis, nested like the array.

    NaN becomes the lowest value, because the charts draw finite numbers only.
    """
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)
    span = high - low if high > low else 1.0
    finite = np.nan_to_num(values, nan=low, posinf=high, neginf=low)
    levels = np.rint((finite - low) / span * (LEVELS - 1)).astype(np.int64)
    return {"low": low, "high": low + span, "rows": texts(levels.tolist())}


def texts(levels: list[Any]) -> Any:  # noqa: ANN401
    """Nested lists with a text in place of each innermost list of levels."""
    if levels and isinstance(levels[0], list):
        return [texts(each) for each in levels]
    return "".join(repeated(level, len(list(same))) for level, same in groupby(levels))


def repeated(level: int, times: int) -> str:
    """A level repeated `times` times."""
    one = LETTERS[level // len(LETTERS)] + LETTERS[level % len(LETTERS)]
    text, left = one, times - 1
    while left > 1:
        more = min(left, len(LETTERS))
        text += "~" + LETTERS[more - 1]
        left -= more
    return text + one * left


def encode_steps(steps: Ints) -> str:
    """Text of increasing steps, the first at least one."""
    differences = np.diff(steps, prepend=0).tolist()
    return "".join("~" * (gap // len(LETTERS)) + LETTERS[gap % len(LETTERS)] for gap in differences)


def evenly_spaced(count: int, most: int) -> Ints:
    """At most `most` indices, from the first to the last of `count`."""
    return np.unique(np.linspace(0, count - 1, min(most, count)).astype(np.int64))
