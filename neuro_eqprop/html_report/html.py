"""Numbers, tables and other pieces of HTML; all text that comes from a file is escaped here."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence
from html import escape
from typing import TypeAlias

from neuro_eqprop.common.units import with_prefix

DASH = "\u2013"


class Html(str):
    """Text of a table cell that is HTML already and is not escaped."""

    __slots__ = ()


Cell: TypeAlias = "str | tuple[object, str] | None"
"""Text of a table cell, or the value that it is sorted by and its text."""


def number(value: object) -> float | None:
    """A finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def percent(value: object, digits: int = 1) -> str:
    """A fraction of one as a percentage."""
    known = number(value)
    return DASH if known is None else f"{100 * known:.{digits}f}\u00a0%"


def decimal(value: object, digits: int = 4) -> str:
    """A number with a fixed number of decimals."""
    known = number(value)
    return DASH if known is None else f"{known:.{digits}f}"


def correlation(value: object, digits: int = 4) -> str:
    """A correlation, with enough decimals that a value below one is not shown as one."""
    known = number(value)
    if known is None or abs(known) >= 1.0:
        return decimal(value, digits)
    while digits < 12 and abs(float(f"{known:.{digits}f}")) == 1.0:
        digits += 1
    return f"{known:.{digits}f}"


def count(value: object) -> str:
    """A number with thin spaces between thousands; one decimal below a hundred."""
    known = number(value)
    if known is None:
        return DASH
    integral = known == int(known) or abs(known) >= 100
    return f"{known:,.0f}".replace(",", "\u202f") if integral else f"{known:.1f}"


def quantity(value: float, unit: str) -> str:
    """Three digits with an SI prefix: 3.1e-6 J is 3.1 µJ."""
    if value == 0:
        return f"0 {unit}"
    digits, prefixed = with_prefix(value, unit)
    micro = prefixed == f"u{unit}"
    return f"{digits}\u00a0{'µ' + unit if micro else prefixed}"


def command(*arguments: object) -> str:
    """A command line as HTML."""
    return f"<code>{escape(shlex.join(str(each) for each in arguments))}</code>"


def reproduce(*commands: str) -> str:
    """The block with the commands that reproduce a section."""
    return f'<div class="made"><span>Reproduce</span>{"".join(commands)}</div>'


def missing(what: str, *arguments: object) -> str:
    """A sentence on what is missing, and the arguments of `neuro-eqprop` that make it."""
    return f'<p class="missing">{escape(what)} {command("neuro-eqprop", *arguments)}</p>'


def chart(name: str, label: str, *, tall: bool = False) -> str:
    """The element that a script draws a chart in."""
    kind = "chart tall" if tall else "chart"
    return (
        f'<figure><figcaption>{escape(label)}</figcaption><div class="{kind}" id="{name}" '
        f'role="img" aria-label="{escape(label)}"></div></figure>'
    )


def table(name: str, header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """A sortable table, of which columns without any value are left out."""
    lines = [
        [given if isinstance(given, tuple) else text_cell(given) for given in row] for row in rows
    ]
    kept = [k for k in range(len(header)) if any(line[k][1] not in ("", DASH) for line in lines)]
    heads = "".join(
        f'<th scope="col"><button type="button">{escape(header[k])}</button></th>' for k in kept
    )
    body = "".join(f"<tr>{''.join(cell(*line[k]) for k in kept)}</tr>" for line in lines)
    return (
        f'<div class="wide"><table class="sorts" id="{name}-table"><thead><tr>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def cell(value: object, text: str) -> str:
    """One table cell; numbers are right-aligned."""
    known, shown = number(value), text if isinstance(text, Html) else escape(text)
    if known is None and isinstance(value, str):
        return f'<td data-value="{escape(value)}">{shown}</td>'
    return f'<td class="number" data-value="{"" if known is None else repr(known)}">{shown}</td>'


def text_cell(value: object) -> tuple[object, str]:
    """A cell of text; a dash for None."""
    shown = DASH if value is None else str(value)
    return shown, shown


def setting_cell(value: object) -> tuple[object, str]:
    """A cell of a setting; a list as on the command line."""
    if isinstance(value, list | tuple):
        return text_cell(",".join(str(each) for each in value))
    return (value, f"{value:.6g}") if number(value) is not None else text_cell(value)


def listing(title: str, items: Sequence[str]) -> str:
    """A titled list; empty without items."""
    if not items:
        return ""
    points = "".join(f"<li>{escape(item)}</li>" for item in items)
    return f'<p class="listed">{escape(title)}</p><ul>{points}</ul>'
