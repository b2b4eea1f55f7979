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


def decode(packed: dict[str, Any]) -> Array:
    """Array from `encode`, as the script of the page reads it; rows must have one length."""
    step = (packed["high"] - packed["low"]) / (LEVELS - 1)
    return np.asarray(packed["low"] + step * np.array(levels_of(packed["rows"])))


def levels_of(rows: Any) -> Any:  # noqa: ANN401
    """Nested lists of levels from nested lists of texts."""
    if not isinstance(rows, str):
        return [levels_of(each) for each in rows]
    found: list[int] = []
    for a, b in zip(rows[::2], rows[1::2], strict=True):
        if a == "~":
            found += [found[-1]] * (LETTERS.index(b) + 1)
        else:
            found.append(LETTERS.index(a) * len(LETTERS) + LETTERS.index(b))
    return found


def encode_steps(steps: Ints) -> str:
    """Text of increasing steps, the first at least one."""
    differences = np.diff(steps, prepend=0).tolist()
    return "".join("~" * (gap // len(LETTERS)) + LETTERS[gap % len(LETTERS)] for gap in differences)


def decode_steps(text: str) -> list[int]:
    """Steps from `encode_steps`."""
    found, at = [], 0
    for letter in text:
        at += len(LETTERS) if letter == "~" else LETTERS.index(letter)
        if letter != "~":
            found.append(at)
    return found
