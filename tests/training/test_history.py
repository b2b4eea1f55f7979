from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.training.history import History, read_history

ROWS = (
    {"epoch": 1, "train_accuracy": 0.5, "test_accuracy": 0.25, "settle_steps": {"free": 9.0}},
    {"epoch": 2, "train_accuracy": 0.75, "test_accuracy": 0.5, "settle_steps": {"free": 8.0}},
)


def test_a_history_gives_rows_by_number_and_columns_by_name() -> None:
    history = History(ROWS)
    assert history[-1]["epoch"] == 2
    assert len(history[:1]) == 1
    assert np.array_equal(history["test_accuracy"], [0.25, 0.5])
    with pytest.raises(UnknownNameError, match=r"unknown column .* known: test_accuracy"):
        history["test_acuracy"]


def test_the_repr_of_a_history_is_one_short_line() -> None:
    assert repr(History(ROWS)) == "History(2 epochs, train_accuracy 0.7500, test_accuracy 0.5000)"
    assert repr(History()) == "History(0 epochs)"


def test_a_history_becomes_a_pandas_table_with_nested_metrics_as_columns() -> None:
    pytest.importorskip("pandas")
    table = History(ROWS).to_pandas()
    assert list(table.index) == [1, 2]
    assert list(table["settle_steps.free"]) == [9.0, 8.0]


def test_plot_draws_a_curve_for_each_accuracy() -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    axes = History(ROWS).plot()
    assert [line.get_label() for line in axes.lines] == ["train", "test"]
    assert np.array_equal(axes.lines[1].get_ydata(), [0.25, 0.5])


def test_a_metrics_file_without_its_last_line_end_is_read_up_to_there(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    assert len(read_history(path)) == 0
    path.write_text('{"epoch": 1}\n{"epoch": 2}\n{"epo')
    assert [row["epoch"] for row in read_history(path)] == [1, 2]
