"""`Dataset`: labelled samples for training and test."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import NamedDict, Shape, type_name
from neuro_eqprop.common.equality import Comparable
from neuro_eqprop.common.html import html_table
from neuro_eqprop.data.from_arrays import split_arrays
from neuro_eqprop.data.split import DataError, Split, check, check_ids


@dataclass(frozen=True, eq=False, slots=True, repr=False, init=False)
class Dataset(Comparable):
    """Labelled training and test samples.

    Parameters
    ----------
    x_train : array (samples, features) or (samples, *shape)
        Training samples, scaled to about -1 to 1.
    y_train : array (samples,)
        Class labels, integers or strings. Labels other than 0..n-1 are renumbered in sorted order.
    x_test, y_test : arrays, optional
        Test samples and labels; default: a seeded, stratified fifth of the training samples.
    name : str
        Name of the data set.
    vocabulary : int
        Number of token ids if samples are rows of ids (tokens,), 0 otherwise; id 0 is padding.

    Attributes
    ----------
    train, test, validation : Split
        Samples `x` (samples, features) and class numbers `y` (samples,); validation may be None.
    classes : int
        Number of classes.
    shape : tuple of int
        Shape of a sample before flattening: (channels, height, width) of an image, (tokens, width)
        of a sequence, (features,) of a vector.
    note : str
        Remarks on the data, for example renumbered labels or an unusual scale.
    vocabulary : int
        Number of token ids if samples are rows of ids, 0 otherwise; id 0 is padding.

    Examples
    --------
    >>> import numpy as np
    >>> import neuro_eqprop as ne
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.random((100, 4)), rng.integers(0, 2, 100)
    >>> data = ne.Dataset(x[:80], y[:80], x[80:], y[80:])
    >>> data
    Dataset('arrays', 80 training and 20 test samples of 4, 2 classes)
    >>> data.test.x.shape
    (20, 4)
    """

    name: str
    train: Split
    test: Split
    classes: int
    shape: Shape
    validation: Split | None
    note: str
    vocabulary: int

    def __init__(
        self,
        x_train: npt.ArrayLike,
        y_train: npt.ArrayLike,
        x_test: npt.ArrayLike | None = None,
        y_test: npt.ArrayLike | None = None,
        *,
        name: str = "arrays",
        vocabulary: int = 0,
    ) -> None:
        made = split_arrays((x_train, y_train), (x_test, y_test), name)
        self._fill(name=name, validation=None, vocabulary=vocabulary, **made._asdict())

    @classmethod
    def from_splits(
        cls,
        name: str,
        train: Split,
        test: Split,
        classes: int,
        shape: Shape = (),
        *,
        validation: Split | None = None,
        note: str = "",
        vocabulary: int = 0,
    ) -> Dataset:
        """Make a data set from splits.

        Parameters
        ----------
        name : str
            Name of the data set.
        train, test, validation : Split
            Samples (samples, features), with classes numbered from 0; validation is optional.
        classes : int
            Number of classes.
        shape : tuple of int
            Shape of a sample; empty for (features,).
        note : str
            Remarks on the data.
        vocabulary : int
            Number of token ids if samples are rows of ids, 0 otherwise.

        Returns
        -------
        Dataset
            The checked data set.
        """
        made = cls.__new__(cls)
        made._fill(
            name=name,
            train=train,
            test=test,
            classes=classes,
            shape=shape,
            validation=validation,
            note=note,
            vocabulary=vocabulary,
        )
        return made

    def _fill(self, **values: Any) -> None:  # noqa: ANN401
        """Set the attributes, and check that they fit each other."""
        for field in fields(self):
            object.__setattr__(self, field.name, values[field.name])
        for part, split in self.parts.items():
            if not isinstance(split, Split):
                raise TypeError(
                    f"the {part} samples of {self.name!r} are {type_name(split)}, and from_splits "
                    f"takes a Split(x, y) for each part; Dataset(x, y, x_test, y_test) takes arrays"
                )
        shape = tuple(int(n) for n in self.shape) or (int(self.train.stored.shape[-1]),)
        object.__setattr__(self, "shape", shape)
        if not isinstance(self.vocabulary, int | np.integer) or self.vocabulary < 0:
            raise DataError(
                f"vocabulary of {self.name!r} is {self.vocabulary!r}; it is the number of token "
                f"ids, or 0 if samples are numbers"
            )
        for part, split in self.parts.items():
            check(split, f"{part} samples of {self.name!r}", self.classes)
            if self.vocabulary:
                check_ids(split, f"{part} samples of {self.name!r}", self.vocabulary)
            if split.stored.shape[1] != self.features:
                raise DataError(f"{self.name!r}: train and {part} samples differ in size")
        if prod(shape) != self.features:
            raise DataError(
                f"{self.name!r}: a sample of shape {shape} has {prod(shape)} numbers, "
                f"but there are {self.features}"
            )

    def _repr_html_(self) -> str:
        rows: dict[str, object] = {
            part: f"{len(split)} samples" for part, split in self.parts.items()
        }
        rows |= {"shape": self.shape, "classes": self.classes}
        return html_table(f"Dataset {self.name}", rows | ({"note": self.note} if self.note else {}))

    def __repr__(self) -> str:
        counts = f"{len(self.train)} training and {len(self.test)} test samples"
        shape = "x".join(map(str, self.shape))
        return f"Dataset({self.name!r}, {counts} of {shape}, {self.classes} classes)"

    @property
    def parts(self) -> dict[str, Split]:
        """Splits by name."""
        held = {} if self.validation is None else {"validation": self.validation}
        return NamedDict("split", {"train": self.train, "test": self.test} | held)

    @property
    def features(self) -> int:
        """Number of features of a sample."""
        return int(self.train.stored.shape[1])
