"""Every data set by its name: what it holds, what it needs, and how it is loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from neuro_eqprop.arrays import Shape, UnknownNameError
from neuro_eqprop.data.dataset import Dataset
from neuro_eqprop.data.embedded import digits
from neuro_eqprop.data.idx_files import IMAGES, idx
from neuro_eqprop.data.own import is_own, own
from neuro_eqprop.data.places import find_any


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


def pictures(name: str, what: str) -> Entry:
    """A data set of the size of MNIST."""
    return Entry(name, what, lambda: idx(name), (1, 28, 28), 10, 60000, 10000, IMAGES)


ENTRIES = (
    Entry("digits", "handwritten digits", digits, (1, 8, 8), 10, 1437, 360),
    pictures("mnist", "handwritten digits"),
    pictures("fashion-mnist", "clothes"),
    pictures("kmnist", "cursive Japanese characters"),
)

CATALOGUE: Mapping[str, Entry] = {entry.name: entry for entry in ENTRIES}

NAMES = tuple(CATALOGUE)

EMBEDDED, MISSING = "embedded", "not here"


def load(name: str) -> Dataset:
    """The data set of that name, or in the `.npz` file of that path."""
    if is_own(name):
        return own(Path(name))
    if name not in CATALOGUE:
        raise UnknownNameError("data set", name, NAMES)
    return CATALOGUE[name].load()


def find(name: str) -> Path | None:
    """The folder that holds the files of a data set, if one does."""
    return find_any(name, CATALOGUE[name].files)


def place(entry: Entry) -> str:
    """Where a data set is, or that it is not here."""
    return str(find(entry.name) or MISSING) if entry.files else EMBEDDED


def missing(entry: Entry) -> str | None:
    """The way to get what a data set lacks; None if it lacks nothing."""
    if place(entry) != MISSING:
        return None
    return f"`neuro-eqprop data get {entry.name}` fetches it"


def summary() -> Mapping[str, str]:
    """For each data set, where it is, or that it is not here."""
    return {entry.name: place(entry) for entry in ENTRIES}
