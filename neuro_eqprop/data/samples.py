"""Samples that people pass to a model: rows of features, and labelled samples."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, type_name
from neuro_eqprop.data.dataset import Dataset
from neuro_eqprop.data.registry import load_data
from neuro_eqprop.data.split import Split, check_ids

LabelledSamples: TypeAlias = "Split | Dataset | str | Path | tuple[npt.ArrayLike, npt.ArrayLike]"
"""Labelled samples: a split, a pair (x, y), or a data set or its name for its test samples."""


def sample_rows(x: npt.ArrayLike, features: int, vocabulary: int = 0) -> Array:
    """Samples as float64 rows (samples, features).

    Raises ValueError if they do not have that many features, are not finite, or, with a
    vocabulary, are not token ids.
    """
    try:
        rows = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"x holds no array of numbers ({error})") from error
    if rows.ndim > 1:
        rows = rows.reshape(len(rows), int(np.prod(rows.shape[1:])))
    if rows.ndim != 2 or rows.shape[1] != features:
        raise ValueError(
            f"x has shape {np.shape(x)}; this model takes samples of {features} features: "
            f"(samples, {features})"
        )
    if not np.isfinite(rows).all():
        raise ValueError("x holds values that are not finite (NaN or inf); replace them first")
    if vocabulary:
        check_ids(Split(rows, np.zeros(len(rows), dtype=np.int64)), "x", vocabulary)
    return rows


def as_split(given: LabelledSamples) -> Split:
    """Labelled samples as a split; of a data set, the test samples."""
    if isinstance(given, Split):
        return given
    if isinstance(given, tuple | list):
        if len(given) != 2:
            raise ValueError(f"labelled samples are a pair (x, y), not {len(given)} arrays")
        x, y = np.asarray(given[0]), np.asarray(given[1])
        if len(x) != len(y):
            raise ValueError(f"{len(x)} samples have {len(y)} labels; give one for each")
        return Split(x, y)
    if not isinstance(given, Dataset | str | Path):
        raise TypeError(
            f"labelled samples are a Split, a Dataset or a pair (x, y), not {type_name(given)}"
        )
    return load_data(given).test
