"""The metrics of each epoch go to files and experiment trackers."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

import neuro_eqprop as ne


class Writer:
    """An event writer that keeps what it is given."""

    def __init__(self) -> None:
        self.values: dict[tuple[str, int], float] = {}

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        self.values[tag, global_step] = scalar_value


def test_each_callback_gets_the_metrics_of_each_epoch(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = []
    writer, path = Writer(), tmp_path / "log.csv"
    callbacks = (rows.append, ne.csv_logger(path), ne.scalar_logger(writer))
    model = ne.train("layered", "digits", hidden=(4,), epochs=2, progress=callbacks)
    assert [row["epoch"] for row in rows] == [1, 2]
    table = list(csv.DictReader(path.read_text().splitlines()))
    for k, row in enumerate(model.history):
        assert float(table[k]["loss"]) == row["loss"] == writer.values["loss", k + 1]
        assert writer.values["spectral/input->hidden", k + 1] == row["spectral"]["input->hidden"]
    assert "warning" not in table[0]


def test_what_cannot_be_called_is_refused() -> None:
    for progress in (3, [print, 3]):
        with pytest.raises(TypeError, match="give a function"):
            ne.train("layered", "digits", epochs=1, progress=progress)  # type: ignore[arg-type]
