"""The result of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.common.html import html_table
from neuro_eqprop.runs.sweeps.spec import Sweep
from neuro_eqprop.runs.sweeps.table import columns


@dataclass(frozen=True, repr=False)
class SweepResult:
    """The rows of a sweep, one for each cell, and the files that hold them.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> axes = {"hidden": [[8], [16]], "seed": [0, 1]}
    >>> found = ne.sweep({"axes": axes, "settings": {"epochs": 1}}, "runs/sweep")
    >>> found
    SweepResult(4 cells, 0 failed, 'runs/sweep')
    >>> found.best("test_accuracy")["hidden"]
    [16]
    """

    sweep: Sweep
    rows: tuple[Mapping[str, Any], ...]
    path: Path
    files: tuple[Path, ...]
    """The table as CSV and, where pyarrow is installed, as Parquet."""
    page: Path

    def __repr__(self) -> str:
        return f"SweepResult({self.cells} cells, {self.failed} failed, {str(self.path)!r})"

    def _repr_html_(self) -> str:
        best = self.best() if self.has(self.objective) else {}
        facts = {"cells": self.cells, "failed": self.failed, "table": self.table, **best}
        return html_table(f"Sweep {self.path}", facts)

    @property
    def cells(self) -> int:
        """The number of combinations."""
        return len(self.rows)

    @property
    def failed(self) -> int:
        """The number of combinations that ended with an error."""
        return sum(1 for row in self.rows if row["error"])

    @property
    def table(self) -> Path:
        """The table as CSV."""
        return self.files[0]

    @property
    def objective(self) -> str:
        """The objective of the search, or an accuracy if no row has that column."""
        wanted = self.sweep.search.objective
        return next(
            (name for name in (wanted, "validation_accuracy", "test_accuracy") if self.has(name)),
            wanted,
        )

    def has(self, column: str) -> bool:
        """Whether any row has a value in this column."""
        return any(row.get(column) is not None for row in self.rows)

    def best(self, column: str | None = None) -> Mapping[str, Any]:
        """The row with the largest value of a column, or the smallest of joules, latency or errors.

        Parameters
        ----------
        column : str, optional
            Default: `objective`.
        """
        name = column or self.objective
        if not self.has(name):
            known = [each for each in columns(self.rows) if self.has(each)]
            raise UnknownNameError("column with values", name, known)
        least = name in ("joules", "latency", "rmse", "loss") or (
            name == self.sweep.search.minimise
        )
        rows = [row for row in self.rows if row.get(name) is not None]
        return (min if least else max)(rows, key=lambda row: float(row[name]))

    def to_pandas(self) -> Any:  # noqa: ANN401
        """The rows as a pandas data frame."""
        import pandas as pd

        return pd.DataFrame([dict(row) for row in self.rows], columns=columns(self.rows))

    def to_json(self) -> dict[str, Any]:
        """The fields of `sweep --json`."""
        best = dict(self.best()) if self.has(self.objective) else None
        return {
            "out": str(self.path),
            "cells": self.cells,
            "done": self.cells - self.failed,
            "failed": self.failed,
            "table": str(self.table),
            "files": [str(path) for path in self.files],
            "page": str(self.page),
            "objective": self.objective,
            "best": best,
            "errors": sorted({str(row["error"]) for row in self.rows if row["error"]}),
        }
