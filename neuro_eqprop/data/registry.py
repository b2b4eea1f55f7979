"""Every data set by its name: what it holds, what it needs, and how it is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from neuro_eqprop.arrays import Shape, UnknownNameError
from neuro_eqprop.data import behaviour_cloning, cifar10, sequences, sst2
from neuro_eqprop.data.behaviour_cloning import PACKAGE, TASKS, load_behaviour_cloning
from neuro_eqprop.data.cifar10 import load_cifar10
from neuro_eqprop.data.dataset import DataError, Dataset
from neuro_eqprop.data.digits import load_digits
from neuro_eqprop.data.idx import IMAGES, load_idx
from neuro_eqprop.data.npz import is_npz, load_npz
from neuro_eqprop.data.paths import find_any
from neuro_eqprop.data.sequences import KINDS, make_sequences
from neuro_eqprop.data.sst2 import load_sst2

EMBEDDED, MADE, MISSING = "embedded", "made by seed", "not here"


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """A data set as the list shows it, without loading it."""

    name: str
    what: str
    load: Callable[[], Dataset]
    shape: Shape
    classes: int
    train: int
    test: int
    files: tuple[str, ...] = ()
    """Patterns of which one has to be there; none: the data set needs no files."""
    package: str = ""
    """What has to be installed beyond what this package needs itself."""
    origin: str = MADE
    """Where it is from, if not from files."""


def pictures(name: str, what: str) -> DatasetInfo:
    """A data set of the size of MNIST."""
    return DatasetInfo(name, what, lambda: load_idx(name), (1, 28, 28), 10, 60000, 10000, IMAGES)


def cloned(name: str, what: str) -> DatasetInfo:
    """What an expert does in an environment."""
    task = TASKS[name]
    shape, sizes = (task.features,), (behaviour_cloning.TRAIN, behaviour_cloning.TEST)
    return DatasetInfo(
        name,
        what,
        lambda: load_behaviour_cloning(name),
        shape,
        task.actions,
        *sizes,
        package=PACKAGE,
    )


def sequence(name: str, what: str) -> DatasetInfo:
    """Sequences of the default length."""
    kind = KINDS[name]
    shape = kind.see(kind.draw(np.random.default_rng(0), 1, kind.length)).shape[1:]
    sizes = kind.classes(kind.length), kind.samples, sequences.TEST
    return DatasetInfo(name, what, lambda: make_sequences(name), shape, *sizes)


ENTRIES = (
    DatasetInfo(
        "digits", "handwritten digits", load_digits, (1, 8, 8), 10, 1437, 360, origin=EMBEDDED
    ),
    pictures("mnist", "handwritten digits"),
    pictures("fashion-mnist", "clothes"),
    pictures("kmnist", "cursive Japanese"),
    DatasetInfo(
        "cifar10",
        "small photographs",
        load_cifar10,
        cifar10.SHAPE,
        10,
        50000,
        10000,
        cifar10.FILES,
    ),
    cloned("cartpole-bc", "hold up a pole"),
    cloned("acrobot-bc", "swing up an arm"),
    DatasetInfo(
        "sst2",
        "film reviews",
        load_sst2,
        (sst2.TOKENS, sst2.WIDTH),
        2,
        67349,
        872,
        sst2.FILES,
    ),
    sequence("parity", "is the count odd?"),
    sequence("addition", "sum of two numbers"),
    sequence("copying", "letter at a place"),
    sequence("sorting", "number of a rank"),
    sequence("recall", "value of a key"),
)

DATASETS: Mapping[str, DatasetInfo] = {entry.name: entry for entry in ENTRIES}

NAMES = tuple(DATASETS)


def entry_of(name: str) -> DatasetInfo:
    """The data set of that name in the list."""
    if name not in DATASETS:
        raise UnknownNameError("data set", name, NAMES)
    return DATASETS[name]


def load(name: str | Path | Dataset) -> Dataset:
    """Load a data set.

    Parameters
    ----------
    name : str, Path or Dataset
        A name that `neuro-eqprop data list` shows, or the path of a `.npz` file with arrays `x`
        and `y`, and `x_test` and `y_test` if there are. A `Dataset` is returned unchanged.

    Returns
    -------
    Dataset
        Training and test samples.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> ne.load_data("digits")
    Dataset('digits', 1437 training and 360 test samples of 1x8x8, 10 classes)
    """
    if isinstance(name, Dataset):
        return name
    if is_npz(str(name)):
        return load_npz(Path(name))
    if Path(name).suffix or isinstance(name, Path):
        raise DataError(f"{name} is no .npz file; save the arrays x and y with np.savez")
    return entry_of(name).load()


def find(name: str) -> Path | None:
    """The folder that holds the files of a data set, if one does."""
    return find_any(name, entry_of(name).files)


def place(entry: DatasetInfo) -> str:
    """Where a data set is, or that it is not here."""
    if entry.package and find_spec(entry.package) is None:
        return MISSING
    return str(find(entry.name) or MISSING) if entry.files else entry.origin


def missing(entry: DatasetInfo) -> str | None:
    """The way to get what a data set lacks; None if it lacks nothing."""
    if place(entry) != MISSING:
        return None
    if entry.package:
        extra = behaviour_cloning.EXTRA
        return f"needs {entry.package}: `pip install 'neuro_eqprop[{extra}]'` installs it"
    return f"`neuro-eqprop data get {entry.name}` fetches it"


def summary() -> Mapping[str, str]:
    """For each data set, where it is, or that it is not here."""
    return {entry.name: place(entry) for entry in ENTRIES}
