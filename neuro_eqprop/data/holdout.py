"""Stratified hold-out splits."""

from __future__ import annotations

import numpy as np

from neuro_eqprop.data.dataset import Dataset
from neuro_eqprop.data.split import DataError, stratified


def hold_out(dataset: Dataset, part: float, seed: int) -> Dataset:
    """Hold out a stratified fraction of the training samples for validation.

    Samples keep their order; the same seed holds out the same samples.

    Parameters
    ----------
    dataset : Dataset
        A data set without validation samples.
    part : float
        Fraction to hold out, in (0, 1).
    seed : int
        Random seed.

    Returns
    -------
    Dataset
        The data set with the held-out samples as `validation`.
    """
    if not 0.0 < part < 1.0:
        raise DataError(f"a fraction of {part} cannot be held out; it must be between 0 and 1")
    if dataset.validation is not None:
        raise DataError(f"{dataset.name!r} has validation samples already")
    aside = stratified(dataset.train.y, part, np.random.default_rng(seed))
    if not aside.any():
        raise DataError(
            f"{dataset.name!r} has one training sample of each class: none can be held out; "
            f"give more samples, or use validation=0 and patience=0"
        )
    kept, held = (dataset.train.take(np.flatnonzero(rows)) for rows in (~aside, aside))
    return Dataset.from_splits(
        dataset.name,
        kept,
        dataset.test,
        dataset.classes,
        dataset.shape,
        validation=held,
        note=dataset.note,
        vocabulary=dataset.vocabulary,
    )
