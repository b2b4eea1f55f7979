"""`History`: the metrics of a training by epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from neuro_eqprop.common.arrays import Array, UnknownNameError
from neuro_eqprop.files.read import read_jsonl

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CURVES = ("train_accuracy", "validation_accuracy", "test_accuracy")
"""The columns that `History.plot` draws."""


MOST_ROWS = 12
"""Epochs in the table of a notebook: the first one and the last ones."""


@dataclass(frozen=True, slots=True, repr=False)
class History(Sequence[Mapping[str, Any]]):
    """The metrics of a training, a row for each epoch.

    Parameters
    ----------
    rows : tuple of mappings
        The lines of `metrics.jsonl` in a run folder: `epoch`, `train_accuracy`, `test_accuracy`,
        `loss`, `settle_steps`, `spectral`, `seconds` (of the epoch) and more.

    Examples
    --------
    >>> history = History(({"epoch": 1, "test_accuracy": 0.8}, {"epoch": 2, "test_accuracy": 0.9}))
    >>> history
    History(2 epochs, test_accuracy 0.9000)
    >>> history["test_accuracy"]
    array([0.8, 0.9])
    >>> history[-1]["epoch"]
    2

    """

    rows: tuple[Mapping[str, Any], ...] = ()

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, key: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> History: ...
    @overload
    def __getitem__(self, key: str) -> Array: ...
    def __getitem__(self, key: int | slice | str) -> Mapping[str, Any] | History | Array:
        if isinstance(key, slice):
            return History(self.rows[key])
        if not isinstance(key, str):
            return self.rows[key]
        if key not in self.columns:
            raise UnknownNameError("column of the history", key, self.columns)
        return np.array([row.get(key, np.nan) for row in self.rows], dtype=np.float64)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self.rows)

    def __repr__(self) -> str:
        found = [f"{name} {self.rows[-1][name]:.4f}" for name in CURVES if name in self.columns]
        epochs = f"{len(self)} epoch{'' if len(self) == 1 else 's'}"
        return f"History({', '.join([epochs, *found])})"

    def _repr_html_(self) -> str:
        shown = [name for name in ("epoch", *CURVES, "loss", "seconds") if name in self.columns]
        heads = "".join(f"<th>{name.replace('_', ' ')}</th>" for name in shown)
        picked = (
            self.rows if len(self) <= MOST_ROWS else (*self.rows[:1], *self.rows[1 - MOST_ROWS :])
        )
        lines = "".join(
            f"<tr>{''.join(f'<td>{row[name]:.4g}</td>' for name in shown if name in row)}</tr>"
            for row in picked
        )
        return f"<div><strong>{self!r}</strong><table><tr>{heads}</tr>{lines}</table></div>"

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that hold one number per epoch."""
        last = self.rows[-1] if self.rows else {}
        return tuple(k for k, v in last.items() if isinstance(v, int | float))

    def to_pandas(self) -> Any:  # noqa: ANN401
        """The rows as a `pandas.DataFrame` indexed by epoch; nested metrics become `name.key`."""
        import pandas as pd

        frame = pd.json_normalize([dict(row) for row in self.rows])
        return frame.set_index("epoch") if "epoch" in frame else frame

    def plot(self, ax: Axes | None = None, *, loss: bool = False) -> Axes:
        """Draw the accuracies over the epochs.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The axes to draw into; a new figure if None.
        loss : bool
            Whether to draw the mean training cost instead of the accuracies.

        Returns
        -------
        matplotlib.axes.Axes
            The axes, to label or save.

        """
        import matplotlib.pyplot as plt

        axes: Axes = plt.subplots()[1] if ax is None else ax
        for name in ("loss",) if loss else CURVES:
            if name in self.columns:
                label = name.removesuffix("_accuracy")
                axes.plot(self["epoch"], self[name], marker=".", label=label)
        axes.set_xlabel("epoch")
        axes.set_ylabel("mean cost of training samples" if loss else "accuracy")
        if self.rows:
            axes.legend()
        return axes


def read_history(path: Path) -> History:
    """The history in a `metrics.jsonl` file; empty if there is none.

    A training that is killed while it writes leaves half a line, which is skipped.
    """
    return History(tuple(read_jsonl(path)))
