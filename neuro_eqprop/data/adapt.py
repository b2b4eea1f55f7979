"""`as_dataset`: data in the forms that people hold them, as a `Dataset`.

Arrays, tensors, torch data sets and loaders, data frames, CSV files, and dictionaries of columns or
of splits as Hugging Face has them. None of these packages is imported: objects are known by their
methods.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import type_name
from neuro_eqprop.data.dataset import Dataset
from neuro_eqprop.data.split import DataError
from neuro_eqprop.files.read import read_text

Arrays = tuple[npt.NDArray[Any], npt.NDArray[Any]]
"""Samples (samples, ...) and labels (samples,)."""

LABELS = ("label", "labels", "target", "y", "class", "species")
"""Names of columns with labels; without one, the last column has them."""
TRAIN, TEST = ("train", "training"), ("test", "validation", "valid", "val", "dev")
"""Names of splits; the first one of `TEST` that is there has the test samples."""
LARGEST_CSV = 2**31
"""Most bytes of a CSV file."""
CHANNELS = (1, 3, 4)
"""Lengths of a last axis that is that of the colours of an image."""


def as_dataset(given: Any, name: str = "arrays") -> Dataset:  # noqa: ANN401
    """Make a data set of data in one of the known forms.

    Parameters
    ----------
    given : object
        A pair (x, y) or four arrays (x, y, x_test, y_test); a pair of training and test data in any
        other form; a torch `Dataset` or `DataLoader`; a data frame or a mapping of columns; a
        mapping of splits "train" and "test".
    name : str
        The name of the data set.

    Returns
    -------
    Dataset
        Without test samples, a seeded, stratified fifth of the training samples.

    Raises
    ------
    TypeError
        If the form is not known.
    DataError
        If labels or samples are missing, or do not fit.
    """
    if isinstance(given, Dataset):
        return given
    if isinstance(given, Mapping):
        train = next((given[key] for key in TRAIN if key in given), None)
        test = next((given[key] for key in TEST if key in given), None)
        if train is not None:
            return joined(arrays_of(train), None if test is None else arrays_of(test), name)
    if isinstance(given, tuple | list) and len(given) == 4:
        x, y, x_test, y_test = map(as_array, given)
        return joined((x, y), (x_test, y_test), name)
    if is_pair(given) and all(holds_labels(part) for part in given):
        return joined(arrays_of(given[0]), arrays_of(given[1]), name)
    return joined(arrays_of(given), None, name)


def joined(train: Arrays, test: Arrays | None, name: str) -> Dataset:
    """A data set of training samples and, if there are any, test samples."""
    return Dataset(*train, *(test or (None, None)), name=name)


def is_pair(given: object) -> TypeGuard[Sequence[Any]]:
    """Whether it is a tuple or list of two."""
    return isinstance(given, tuple | list) and len(given) == 2


def holds_labels(given: object) -> bool:
    """Whether it holds samples with their labels, unlike an array of one of them."""
    loader = hasattr(given, "dataset") and hasattr(given, "__iter__")
    samples = hasattr(given, "__getitem__") and hasattr(given, "__len__")
    known = hasattr(given, "shape") or isinstance(given, str | tuple | list)
    arrays = is_pair(given) and not any(np.isscalar(part) for part in given)
    return is_frame(given) or arrays or (not known and (loader or samples))


def is_frame(given: object) -> bool:
    """Whether it is a data frame, of pandas or polars, or a table of columns."""
    return hasattr(given, "columns") and hasattr(given, "__getitem__")


def arrays_of(given: Any) -> Arrays:  # noqa: ANN401
    """Samples and labels of data in one form."""
    if is_pair(given):
        return as_array(given[0]), labels_of(as_array(given[1]))
    if isinstance(given, Mapping):
        return from_columns(given)
    if hasattr(given, "column_names") and hasattr(given, "__getitem__"):  # Hugging Face
        return from_columns({key: given[key] for key in given.column_names})
    if is_frame(given):
        return from_columns({str(key): as_array(given[key]) for key in given.columns})
    if hasattr(given, "dataset") and hasattr(given, "__iter__"):
        return from_batches(given)
    samples = hasattr(given, "__getitem__") and hasattr(given, "__len__")
    if samples and not isinstance(given, str) and not hasattr(given, "shape"):
        return from_samples(given)
    raise TypeError(
        f"data are a name, a .npz or .csv file, a Dataset, arrays (x, y), a torch Dataset or "
        f"DataLoader, a data frame or a mapping of columns, not {type_name(given)}; "
        f"ne.Dataset(x, y) makes a Dataset of arrays"
    )


def as_array(values: Any) -> npt.NDArray[Any]:  # noqa: ANN401
    """An array of a tensor on any device, a column, images, or nested lists."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    if hasattr(values, "cat") and hasattr(values, "to_numpy"):  # a categorical column of pandas
        return np.asarray(values.astype(str))
    try:
        found = np.asarray(values)
    except ValueError as error:
        raise DataError(f"samples differ in shape ({error}); give all the same one") from error
    if found.dtype == object and all(isinstance(each, str) for each in found.ravel()):
        return found.astype(str)
    if found.dtype == object and found.size:
        return np.stack([as_array(each) for each in found])
    return found


def labels_of(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Labels without a second axis of one; whole numbers as integers."""
    y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if y.dtype.kind == "f" and np.isfinite(y).all() and (y == np.round(y)).all():
        return y.astype(np.int64)
    return y


def from_columns(columns: Mapping[str, Any]) -> Arrays:
    """Samples and labels of named columns; one column of arrays, or several of numbers."""
    names = list(columns)
    if len(names) < 2:
        raise DataError(f"a table needs columns of samples and of labels, and has {names}")
    lower = {str(key).lower(): key for key in names}
    label = next((lower[key] for key in LABELS if key in lower), names[-1])
    others = [key for key in names if key != label]
    y, parts = labels_of(as_array(columns[label])), [as_array(columns[key]) for key in others]
    words = [key for key, part in zip(others, parts, strict=True) if part.dtype.kind not in "fiub"]
    if words:
        raise DataError(
            f"column {words[0]!r} holds no numbers; replace its values by numbers, or leave it out "
            f"(labels are taken from column {label!r})"
        )
    return (images(parts[0]) if parts[0].ndim > 1 else np.stack(parts, axis=1)), y


def images(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Images with their colours first, as networks take them; other arrays unchanged."""
    if x.dtype != np.uint8 or x.ndim not in (3, 4):
        return x
    if x.ndim == 3:
        return x[:, None]
    colours_last = x.shape[-1] in CHANNELS and x.shape[1] not in CHANNELS
    return np.moveaxis(x, -1, 1) if colours_last else x


def from_samples(samples: Any) -> Arrays:  # noqa: ANN401
    """Samples and labels of a torch data set, or another sequence of pairs."""
    if not len(samples):
        raise DataError("the data set holds no samples")
    return from_pairs([samples[k] for k in range(len(samples))])


def from_pairs(pairs: Iterable[Any]) -> Arrays:
    """Samples and labels of pairs (sample, label), or of rows with named columns."""
    rows = list(pairs)
    if all(isinstance(row, Mapping) for row in rows):
        return from_columns({key: [row[key] for row in rows] for key in rows[0]})
    if not all(is_pair(row) for row in rows):
        raise DataError("the samples of a data set are pairs (sample, label)")
    x, y = zip(*rows, strict=True)
    return (
        images(np.stack([as_array(each) for each in x])),
        labels_of(np.stack([as_array(each) for each in y])),
    )


def from_batches(loader: Iterable[Any]) -> Arrays:
    """Samples and labels of the batches of a loader, in its order."""
    batches = list(loader)
    if not batches or not all(is_pair(batch) for batch in batches):
        raise DataError("the batches of a loader are pairs (samples, labels), at least one")
    x, y = ([as_array(batch[k]) for batch in batches] for k in (0, 1))
    return np.concatenate(x), labels_of(np.concatenate(y))


def load_csv(path: Path) -> Dataset:
    """Load a data set from a CSV file.

    Parameters
    ----------
    path : Path
        A line for each sample; columns are separated by commas, semicolons or tabs. The first line
        may name them. The labels are in the column named like one of `LABELS`, else in the last.

    Returns
    -------
    Dataset
        The data set, named by its path; a seeded, stratified fifth of the samples is the test
        split.
    """
    if not path.exists():
        raise DataError(f"there is no file {path}")
    text = read_text(path, LARGEST_CSV, DataError).removeprefix("\ufeff")
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        raise DataError(f"{path} has {len(lines)} lines; it needs one for each sample")
    separator = max(",;\t", key=lines[0].count)
    rows = list(csv.reader(lines, delimiter=separator, skipinitialspace=True))
    head = (
        rows.pop(0)
        if names_columns(*rows[:2])
        else [f"column {k + 1}" for k in range(len(rows[0]))]
    )
    wrong = next((k for k, row in enumerate(rows) if len(row) != len(head)), None)
    if wrong is not None:
        raise DataError(
            f"{path}, row {wrong + 1}: {len(rows[wrong])} cells, but {len(head)} columns"
        )
    if len(set(head)) < len(head):
        raise DataError(f"{path}: two columns have the same name")
    columns = {key: column_of([row[k] for row in rows]) for k, key in enumerate(head)}
    try:
        return joined(from_columns(columns), None, str(path))
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def names_columns(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether a first line names the columns: it has no numbers, or text above a number."""
    numbers = [is_number(cell) for cell in first]
    below = [is_number(cell) for cell in second[: len(first)]]
    return not any(numbers) or any(b and not a for a, b in zip(numbers, below, strict=False))


def column_of(cells: Sequence[str]) -> npt.NDArray[Any]:
    """A column as integers or floats where all cells are numbers, else as text."""
    if not all(map(is_number, cells)):
        return np.array(cells, dtype=np.str_)
    whole = all(cell.lstrip("+-").isdecimal() for cell in map(str.strip, cells))
    return np.array([int(cell) if whole else float(cell) for cell in cells])


def is_number(cell: str) -> bool:
    """Whether a cell holds a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True
