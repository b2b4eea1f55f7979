"""`DatasetInfo`: description of a data set that is available without loading it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.data.dataset import Dataset

EMBEDDED, GENERATED = "embedded", "made by seed"


@dataclass(frozen=True, slots=True)
class DatasetInfo:
    """Registry entry of a data set.

    Parameters
    ----------
    name, what : str
        Name, and short description of the samples.
    load : callable
        Loads or generates the data set.
    shape : tuple of int
        Shape of one sample.
    classes, train, test : int
        Numbers of classes, training samples and test samples.
    files : tuple of str
        Patterns of file names, of which at least one must match; empty if no files are needed.
    origin : str
        Origin of a data set without files.
    copies : mapping
        Known copies that differ from the original: description to file name to SHA-256.
    """

    name: str
    what: str
    load: Callable[[], Dataset]
    shape: Shape
    classes: int
    train: int
    test: int
    files: tuple[str, ...] = ()
    origin: str = GENERATED
    copies: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def copy_with(self, file: str, sha256: str) -> str:
        """Return which known copy has a file with this name and checksum; empty if none."""
        return next((what for what, files in self.copies.items() if files.get(file) == sha256), "")
