"""Small HTML tables, the `_repr_html_` of results in notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape


def html_table(title: str, rows: Mapping[str, object]) -> str:
    """A table with a title and a row for each name and value."""
    left = "style='text-align:left'"
    cells = "".join(
        f"<tr><th {left}>{escape(str(name))}</th><td {left}>{escape(str(value))}</td></tr>"
        for name, value in rows.items()
    )
    return f"<table><caption {left}>{escape(title)}</caption>{cells}</table>"
