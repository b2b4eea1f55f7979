"""Facts of each data set, known without loading it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from neuro_eqprop.arrays import Shape
from neuro_eqprop.data.dataset import Dataset

EMBEDDED, GENERATED = "embedded", "made by seed"


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """A data set by name, as `data list` shows it.

    Parameters
    ----------
    name, what
        The name, and a short description of the samples.
    load
        Loads or generates the data set.
    shape, classes, train, test
        Shape of one sample, number of classes, of training samples and of test samples.
    files
        Patterns of file names, one of which must be present; none if no files are needed.
    package, extra
        Package that must be installed, and the optional dependency of this one that installs it.
    origin
        Where a data set without files comes from.
    copies
        Known copies that differ from the original files: SHA-256 by file name, by what they are.

    """

    name: str
    what: str
    load: Callable[[], Dataset]
    shape: Shape
    classes: int
    train: int
    test: int
    files: tuple[str, ...] = ()
    package: str = ""
    extra: str = ""
    origin: str = GENERATED
    copies: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
