"""The table of a sweep, a row for each cell, as CSV and as Parquet.

It has no times, hosts or dates, so that two runs of the same sweep give the same table.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from neuro_eqprop.files.write import write_bytes

CSV, PARQUET = "table.csv", "table.parquet"


def columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns of all rows, in the order in which they appear, the error last."""
    names = dict.fromkeys(key for row in rows for key in row)
    names.pop("error", None)
    return [*names, "error"]


def write_table(rows: Sequence[Mapping[str, Any]], folder: Path) -> list[Path]:
    """Write the table; Parquet only where pyarrow is installed. Returns the files."""
    made = [folder / CSV]
    write_bytes(made[0], as_csv(rows))
    parquet = as_parquet(rows)
    if parquet is not None:
        write_bytes(folder / PARQUET, parquet)
        made.append(folder / PARQUET)
    return made


def as_csv(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """The table as CSV; lists are written as JSON, missing values are empty."""
    text, names = io.StringIO(), columns(rows)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([csv_value(row.get(name)) for name in names] for row in rows)
    return text.getvalue().encode()


def csv_value(value: Any) -> Any:  # noqa: ANN401
    """A value for the CSV writer; lists and booleans become JSON."""
    return json.dumps(value) if isinstance(value, list | tuple | bool) else value


def as_parquet(rows: Sequence[Mapping[str, Any]]) -> bytes | None:
    """The table as Parquet, or None where pyarrow is not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return None
    found = {name: one_type([row.get(name) for row in rows]) for name in columns(rows)}
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(found), sink)
    return sink.getvalue()


def one_type(values: list[Any]) -> list[Any]:
    """Values of one type for Parquet: mixed numbers become floats, other mixtures text."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) <= 1:
        return values
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    return [
        value if value is None or isinstance(value, str) else json.dumps(value) for value in values
    ]
