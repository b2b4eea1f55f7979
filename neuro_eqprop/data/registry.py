"""Registry of data sets: built-in, and from the entry points `neuro_eqprop.datasets`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neuro_eqprop.common.arrays import UnknownNameError, closest_first
from neuro_eqprop.common.plugins import Registry
from neuro_eqprop.data.adapt import as_dataset, load_csv
from neuro_eqprop.data.dataset import Dataset
from neuro_eqprop.data.info import DatasetInfo
from neuro_eqprop.data.npz import load_npz
from neuro_eqprop.data.paths import find_any
from neuro_eqprop.data.split import DataError

HERE = "neuro_eqprop.data"
DATASETS = Registry(
    "data set",
    DatasetInfo,
    {
        "digits": f"{HERE}.digits:DIGITS",
        "mnist": f"{HERE}.idx:MNIST",
        "fashion-mnist": f"{HERE}.idx:FASHION_MNIST",
        "kmnist": f"{HERE}.idx:KMNIST",
        "cifar10": f"{HERE}.cifar10:CIFAR10",
        "sst2": f"{HERE}.sst2:SST2",
    },
    "neuro_eqprop.datasets",
)
MOVED = frozenset(
    ("cartpole-bc", "acrobot-bc", "parity", "addition", "copying", "sorting", "recall")
)
"""Data sets of versions up to 0.2 that the repository makes now."""
ABSENT = "not here"
"""Value of `place` for a data set that is missing."""


FILES = (".npz", ".csv")
"""Endings of the files that are data sets."""


def is_data_file(name: object) -> bool:
    """Whether the name of a data set is the path of a file."""
    return Path(str(name)).suffix in FILES


def load_data(name: Any) -> Dataset:  # noqa: ANN401
    """Load a data set.

    Parameters
    ----------
    name : str, Path, Dataset or data in another form
        A name that `neuro-eqprop data list` shows; the path of a `.npz` file with arrays `x` and
        `y`, and optionally `x_test` and `y_test`, or of a `.csv` file; arrays `(x, y)`, a torch
        `Dataset` or `DataLoader`, a data frame or a mapping of columns, see
        `neuro_eqprop.data.adapt`. A `Dataset` is returned unchanged.

    Returns
    -------
    Dataset
        Training and test samples, flattened to (samples, features).

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> ne.load_data("digits")
    Dataset('digits', 1437 training and 360 test samples of 1x8x8, 10 classes)

    """
    if not isinstance(name, str | Path):
        return as_dataset(name)
    if is_data_file(name):
        path = Path(name)
        return load_csv(path) if path.suffix == ".csv" else load_npz(path)
    if isinstance(name, Path) or Path(name).suffix:
        raise DataError(
            f"data file {str(name)!r} cannot be read: only NumPy files .npz with arrays x and y "
            f"(np.savez('data.npz', x=x, y=y)) and tables .csv can; data sets by name: "
            f"{', '.join(closest_first(str(name), DATASETS))}"
        )
    if name in MOVED and name not in DATASETS:
        command = f"python -m sims.claims data {name} --out {name}.npz"
        raise UnknownNameError(
            "data set",
            name,
            DATASETS,
            f"in a clone of the repository, `{command}` makes a file that can stand for the name",
        )
    return DATASETS.find(name).load()


def find(name: str) -> Path | None:
    """Return the folder with the files of a data set, or None."""
    return find_any(name, DATASETS.find(name).files)


def place(entry: DatasetInfo) -> str:
    """Return the folder or origin of a data set, or `ABSENT`."""
    return str(find(entry.name) or ABSENT) if entry.files else entry.origin


def missing(entry: DatasetInfo) -> str | None:
    """Return how to get a missing data set; None if it is present."""
    if place(entry) != ABSENT:
        return None
    return f"`neuro-eqprop data get {entry.name}` fetches it"


def summary() -> Mapping[str, str]:
    """Return the folder or origin of each data set, or `ABSENT`."""
    return {name: place(entry) for name, entry in DATASETS.items()}
