"""Ready callbacks for the metrics of each epoch: `progress` of `train` and `learn_on_chip`."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, Protocol

from neuro_eqprop.common.arrays import check_callback
from neuro_eqprop.files.write import write_text

MetricsCallback = Callable[[dict[str, Any]], None]
"""Called with the metrics of an epoch, as they stand in `metrics.jsonl`."""


class ScalarWriter(Protocol):
    """What TensorBoard's `SummaryWriter` has."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> object:
        """Write one value."""


def in_turn(
    callbacks: MetricsCallback | Sequence[MetricsCallback] | None,
) -> MetricsCallback | None:
    """One callback that calls several in turn; TypeError for what cannot be called."""
    if not isinstance(callbacks, Sequence):
        check_callback("progress", callbacks)
        return callbacks
    for callback in callbacks:
        check_callback("progress", callback)

    def call(row: dict[str, Any]) -> None:
        for callback in callbacks:
            callback(row)

    return call


def flat_metrics(row: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a row of metrics, without the epoch; nested ones are named "name/key".

    Parameters
    ----------
    row : mapping
        The metrics of an epoch.

    Returns
    -------
    dict of str to float
        What experiment trackers log: `wandb.log(flat_metrics(row))`.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> ne.flat_metrics({"epoch": 1, "loss": 0.5, "cosine": {"hidden": 1.0}, "warning": None})
    {'loss': 0.5, 'cosine/hidden': 1.0}
    """
    found: dict[str, float] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            found |= {f"{name}/{key}": each for key, each in flat_metrics(value).items()}
        elif isinstance(value, Real) and not isinstance(value, bool) and name != "epoch":
            found[name] = float(value)
    return found


def scalar_logger(writer: ScalarWriter) -> MetricsCallback:
    """A callback that writes the metrics of each epoch to TensorBoard.

    Parameters
    ----------
    writer : torch.utils.tensorboard.SummaryWriter
        Or another object with `add_scalar(tag, value, step)`; you close it.

    Returns
    -------
    callable
        For `progress` of `train` and `learn_on_chip`.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> from torch.utils.tensorboard import SummaryWriter  # doctest: +SKIP
    >>> with SummaryWriter("logs") as writer:  # doctest: +SKIP
    ...     _ = ne.train("layered", "digits", epochs=2, progress=ne.scalar_logger(writer))
    """

    def log(row: Mapping[str, Any]) -> None:
        for name, value in flat_metrics(row).items():
            writer.add_scalar(name, value, int(row["epoch"]))

    return log


def csv_logger(path: str | Path) -> MetricsCallback:
    """A callback that keeps the metrics of all epochs in a CSV file, a line each.

    Parameters
    ----------
    path : str or Path
        The file, replaced after each epoch; it is complete at any time.

    Returns
    -------
    callable
        For `progress` of `train` and `learn_on_chip`.

    Examples
    --------
    >>> from pathlib import Path
    >>> import neuro_eqprop as ne
    >>> _ = ne.train("layered", "digits", hidden=(8,), epochs=2, progress=ne.csv_logger("log.csv"))
    >>> Path("log.csv").read_text().split(",")[:3]
    ['epoch', 'train_accuracy', 'test_accuracy']
    """
    rows: list[dict[str, float]] = []

    def log(row: Mapping[str, Any]) -> None:
        rows.append({"epoch": int(row["epoch"]), **flat_metrics(row)})
        text = io.StringIO()
        columns = dict.fromkeys(name for each in rows for name in each)
        table = csv.DictWriter(text, list(columns), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
        write_text(Path(path), text.getvalue())

    return log
