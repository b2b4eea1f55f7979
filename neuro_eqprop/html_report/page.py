"""The report page: sections, chart data and scripts in one HTML file without any references."""

from __future__ import annotations

import json
import shlex
from base64 import b64encode
from collections.abc import Iterable, Sequence
from gzip import decompress
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import NamedTuple

from neuro_eqprop import __version__
from neuro_eqprop.html_report.contents import RunContents
from neuro_eqprop.html_report.header import lead, tiles, title
from neuro_eqprop.html_report.section import Json, PageLimits, Shown, asset
from neuro_eqprop.html_report.sections import SECTIONS

MAX_DATA = 420_000
"""Characters of chart data in a page; the chart library adds one and a half million."""


def render(run: RunContents) -> str:
    """HTML of the report of a run and of the runs beside it."""
    shown = [section.show(run) for section in SECTIONS]
    pairs = zip(SECTIONS, shown, strict=True)
    return page(
        Heading("report", title(run), f'<p class="lead">{lead(run)}</p>\n{tiles(run)}'),
        [PageBlock(section.id, section.title, part.html) for section, part in pairs if part.html],
        data=small_data(shown),
        scripts=[section.script for section in SECTIONS],
        command=f"report {shlex.join(str(each.path) for each in run.runs)}",
    )


def chart_data(shown: Iterable[Shown], limits: PageLimits) -> Json:
    """Data of the charts of all sections."""
    data: Json = {}
    for part in shown:
        data |= part.data(limits) if part.data else {}
    return data


def small_data(shown: Sequence[Shown]) -> str:
    """Chart data as JSON, with fewer samples if they are too large."""
    limits = PageLimits()
    while True:
        text = as_json(chart_data(shown, limits))
        if len(text) <= MAX_DATA or limits == limits.smaller():
            return text
        limits = limits.smaller()


class Heading(NamedTuple):
    """What stands at the top of a page."""

    kind: str
    title: str
    html: str


class PageBlock(NamedTuple):
    """A part of a page."""

    id: str
    title: str
    html: str


def page(
    heading: Heading,
    blocks: Sequence[PageBlock],
    *,
    data: str,
    scripts: Sequence[str],
    command: str,
) -> str:
    """A page from its parts: all text in them is escaped already, but for titles."""
    parts = [asset("script/core.js"), *scripts, asset("script/main.js")]
    held = {
        "library": chart_library(),
        "script": f'"use strict";\n(() => {{\n{"".join(parts)}}})();\n',
    }
    allowed = " ".join(
        f"'sha256-{b64encode(sha256(each.encode()).digest()).decode()}'" for each in held.values()
    )
    links = "".join(f'<li><a href="#{b.id}">{escape(b.title)}</a></li>' for b in blocks)
    return Template(asset("page.html")).substitute(
        held,
        kind=heading.kind,
        title=escape(heading.title),
        # The page cannot load anything, and runs no script but these two.
        policy=f"default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; "
        f"script-src {allowed}",
        style=asset("page.css"),
        heading=heading.html,
        contents=f'<nav aria-label="Contents"><ol>{links}</ol></nav>' if links else "",
        sections="\n".join(
            f'<section id="{b.id}"><h2>{escape(b.title)}</h2>{b.html}</section>' for b in blocks
        ),
        data=data,
        version=escape(__version__),
        command=escape(command),
    )


def chart_library() -> str:
    """The chart library, reduced to charts with axes; see `plotly/LICENSE`."""
    folder = files("neuro_eqprop.html_report").joinpath("assets").joinpath("plotly")
    packed = folder.joinpath("plotly-cartesian.min.js.gz").read_bytes()
    # These occur only in strings and regular expressions, where the backslash has no effect.
    return decompress(packed).decode().replace("</script", "<\\/script")


def as_json(data: Json) -> str:
    """Chart data as JSON that cannot end its HTML element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
