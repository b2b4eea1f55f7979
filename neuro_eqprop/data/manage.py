"""The data sets of this machine: list them, download one, verify one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from neuro_eqprop.common.arrays import Shape
from neuro_eqprop.data.cifar10 import CIFAR10, RECORD
from neuro_eqprop.data.cifar10_copy import find_copy, unpack_copy
from neuro_eqprop.data.fetch import fetch
from neuro_eqprop.data.manifest import load_manifest
from neuro_eqprop.data.paths import cache, home
from neuro_eqprop.data.registry import DATASETS, load_data, missing, place
from neuro_eqprop.data.verify import SAME, UNKNOWN, VerifiedFile, copy_of, verify

DownloadCallback = Callable[[int, int], None]
"""Called with the bytes that were received so far, and those of the data set."""


@dataclass(frozen=True, slots=True)
class DatasetStatus:
    """A data set, where it is, and how to get it."""

    name: str
    place: str
    what: str
    shape: Shape
    classes: int
    train: int
    test: int
    missing: str | None
    """How to get it; None if it is here."""
    note: str


def list_data() -> list[DatasetStatus]:
    """Every data set by name, without loading any.

    Returns
    -------
    list of DatasetStatus
        Content, shape, sizes, and the folder or package each comes from.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> first = ne.list_data()[0]
    >>> first.name, first.shape, first.missing
    ('digits', (1, 8, 8), None)
    """
    return [
        DatasetStatus(
            entry.name,
            place(entry),
            entry.what,
            tuple(entry.shape),
            entry.classes,
            entry.train,
            entry.test,
            missing(entry),
            copy_of(entry),
        )
        for entry in DATASETS.values()
    ]


@dataclass(frozen=True, slots=True)
class Download:
    """The files of a data set after `download_data`."""

    name: str
    folder: str
    files: list[VerifiedFile]


def download_data(
    name: str, to: str | Path | None = None, *, progress: DownloadCallback | None = None
) -> Download:
    """Download the files of a data set that are not here yet, and verify their checksums.

    The JPEG copies of CIFAR-10 are unpacked instead where their archive is here, in a folder
    cifar10-jpeg beside those of the data sets.

    Parameters
    ----------
    name : str
        A data set of `list_data`.
    to : str or Path, optional
        The parent folder; the default is NEURO_EQPROP_DATA, or the cache of the user, and for
        copies the cache.
    progress : callable, optional
        Called with the bytes that were received so far, and those of the data set.

    Returns
    -------
    Download
        The folder, and for each file its address and the result of its checksum.

    Raises
    ------
    DataError
        If a file cannot be downloaded.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> ne.download_data("digits").folder
    'nothing to download: embedded'
    """
    entry = DATASETS.find(name)
    if not entry.files:
        return Download(name, f"nothing to download: {entry.origin}", [])
    copy = find_copy() if name == CIFAR10.name else None
    folder, listed = Path(to or (home() if copy is None else cache())) / name, load_manifest(name)
    done, total = 0, sum(file.bytes for file in listed.files)
    if copy is not None:
        total = (entry.train + entry.test) * RECORD

    def report(more: int) -> None:
        nonlocal done
        done += more
        if progress is not None:
            progress(done, total)

    if copy is None:
        return Download(name, str(folder), fetch(listed, folder, report))
    what, known = next(iter(entry.copies.items()))
    made = unpack_copy(copy, folder, report, dict(known))
    return Download(name, str(folder), [VerifiedFile(str(path), what, str(copy)) for path in made])


@dataclass(frozen=True, slots=True)
class DatasetCheck:
    """Sizes of a data set that was read, and the results of its checksums."""

    name: str
    train: int
    test: int
    features: int
    shape: Shape
    classes: int
    note: str
    files_as_in_manifest: list[str]
    files_without_checksum: list[str]
    files_of_a_copy: list[str]


def check_data(name: str | Path) -> DatasetCheck:
    """Compare the files of a data set with their checksums, then read it.

    Parameters
    ----------
    name : str or Path
        A data set of `list_data`, or a `.npz` file.

    Returns
    -------
    DatasetCheck
        The sizes, and the files by the result of their checksum.

    Raises
    ------
    DataError
        If a file is damaged or missing.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> found = ne.check_data("digits")
    >>> found.train, found.test, found.features
    (1437, 360, 64)
    """
    files, data = verify(str(name)), load_data(name)
    return DatasetCheck(
        data.name,
        len(data.train),
        len(data.test),
        data.features,
        data.shape,
        data.classes,
        data.note,
        [file.path for file in files if file.verdict == SAME],
        [file.path for file in files if file.verdict == UNKNOWN],
        [file.path for file in files if file.verdict not in (SAME, UNKNOWN)],
    )
