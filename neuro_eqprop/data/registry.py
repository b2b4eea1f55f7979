"""Every data set by its name: what it holds, what it needs, and how it is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from neuro_eqprop.arrays import Shape, UnknownNameError
from neuro_eqprop.data import behaviour_cloning, cifar10, sequences, sst2
from neuro_eqprop.data.behaviour_cloning import PACKAGE, TASKS, cloning
from neuro_eqprop.data.cifar10 import cifar10
from neuro_eqprop.data.dataset import Dataset
from neuro_eqprop.data.digits import digits
from neuro_eqprop.data.idx import IMAGES, idx
from neuro_eqprop.data.npz import is_own, own
from neuro_eqprop.data.paths import find_any
from neuro_eqprop.data.sequences import KINDS, generate
from neuro_eqprop.data.sst2 import sst2

EMBEDDED, MADE, MISSING = "embedded", "made by seed", "not here"


@dataclass(frozen=True, slots=True)
class Entry:
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


def pictures(name: str, what: str) -> Entry:
    """A data set of the size of MNIST."""
    return Entry(name, what, lambda: idx(name), (1, 28, 28), 10, 60000, 10000, IMAGES)


def cloned(name: str, what: str) -> Entry:
    """What an expert does in an environment."""
    task = TASKS[name]
    shape, sizes = (task.features,), (behaviour_cloning.TRAIN, behaviour_cloning.TEST)
    return Entry(name, what, lambda: cloning(name), shape, task.actions, *sizes, package=PACKAGE)


def sequence(name: str, what: str) -> Entry:
    """Sequences of the default length."""
    kind = KINDS[name]
    shape = kind.see(kind.draw(np.random.default_rng(0), 1, kind.length)).shape[1:]
    sizes = kind.classes(kind.length), kind.samples, sequences.TEST
    return Entry(name, what, lambda: generate(name), shape, *sizes)


ENTRIES = (
    Entry("digits", "handwritten digits", digits, (1, 8, 8), 10, 1437, 360, origin=EMBEDDED),
    pictures("mnist", "handwritten digits"),
    pictures("fashion-mnist", "clothes"),
    pictures("kmnist", "cursive Japanese"),
    Entry("cifar10", "small photographs", cifar10, cifar10.SHAPE, 10, 50000, 10000, cifar10.FILES),
    cloned("cartpole-bc", "hold up a pole"),
    cloned("acrobot-bc", "swing up an arm"),
    Entry("sst2", "film reviews", sst2, (sst2.TOKENS, sst2.WIDTH), 2, 67349, 872, sst2.FILES),
    sequence("parity", "is the count odd?"),
    sequence("addition", "sum of two numbers"),
    sequence("copying", "letter at a place"),
    sequence("sorting", "number of a rank"),
    sequence("recall", "value of a key"),
)

CATALOGUE: Mapping[str, Entry] = {entry.name: entry for entry in ENTRIES}

NAMES = tuple(CATALOGUE)


def entry_of(name: str) -> Entry:
    """The data set of that name in the list."""
    if name not in CATALOGUE:
        raise UnknownNameError("data set", name, NAMES)
    return CATALOGUE[name]


def load(name: str) -> Dataset:
    """The data set of that name, or in the `.npz` file of that path."""
    if is_own(name):
        return own(Path(name))
    return entry_of(name).load()


def find(name: str) -> Path | None:
    """The folder that holds the files of a data set, if one does."""
    return find_any(name, entry_of(name).files)


def place(entry: Entry) -> str:
    """Where a data set is, or that it is not here."""
    if entry.package and find_spec(entry.package) is None:
        return MISSING
    return str(find(entry.name) or MISSING) if entry.files else entry.origin


def missing(entry: Entry) -> str | None:
    """The way to get what a data set lacks; None if it lacks nothing."""
    if place(entry) != MISSING:
        return None
    if entry.package:
        return f"needs {entry.package}: `pip install 'neuro_eqprop[{behaviour_cloning.EXTRA}]'` brings it"
    return f"`neuro-eqprop data get {entry.name}` fetches it"


def summary() -> Mapping[str, str]:
    """For each data set, where it is, or that it is not here."""
    return {entry.name: place(entry) for entry in ENTRIES}
