"""The report page: sections, chart data and scripts in one HTML file without any references."""

from __future__ import annotations

import json
import shlex
from base64 import b64encode
from collections.abc import Mapping, Sequence
from gzip import decompress
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from neuro_eqprop import __version__
from neuro_eqprop.html_report.contents import RunContents, read_contents
from neuro_eqprop.html_report.header import lead, tiles, title
from neuro_eqprop.html_report.section import Json, Limits, asset
from neuro_eqprop.html_report.sections import SECTIONS
from neuro_eqprop.traces.trace import Trace

MAX_DATA = 420_000
"""Characters of chart data in a page; the chart library adds one and a half million."""


def page(path: Path, traces: Mapping[str, Trace], *, notes: Sequence[str] = ()) -> str:
    """HTML of the report of a run folder, given its traces by file name."""
    return render(read_contents(path, traces, notes))


def render(run: RunContents) -> str:
    """HTML of the report of a run and of the runs beside it."""
    scripts = {"library": chart_library(), "script": script()}
    made = {each.id: html for each in SECTIONS if (html := each.html(run))}
    allowed = " ".join(f"'sha256-{digest(each)}'" for each in scripts.values())
    return Template(asset("page.html")).substitute(
        scripts,
        title=escape(title(run)),
        # The page cannot load anything, and runs no script but these two.
        policy=f"default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; "
        f"script-src {allowed}",
        style=asset("page.css"),
        lead=lead(run),
        tiles=tiles(run),
        contents=contents(made),
        sections="\n".join(made.values()),
        data=embed(run),
        version=escape(__version__),
        path=escape(shlex.join(str(each.path) for each in run.runs)),
    )


def contents(made: Mapping[str, str]) -> str:
    """Links to the sections of the page."""
    titles = {section.id: section.title for section in SECTIONS}
    links = "".join(f'<li><a href="#{key}">{escape(titles[key])}</a></li>' for key in made)
    return f'<nav aria-label="Contents"><ol>{links}</ol></nav>' if links else ""


def script() -> str:
    """The script of the page: shared functions, the scripts of the sections, the start."""
    parts = [asset("script/core.js"), *(each.script for each in SECTIONS), asset("script/main.js")]
    return f'"use strict";\n(() => {{\n{"".join(parts)}}})();\n'


def chart_library() -> str:
    """The chart library, reduced to charts with axes; see `plotly/LICENSE`."""
    folder = files("neuro_eqprop.html_report").joinpath("assets").joinpath("plotly")
    packed = folder.joinpath("plotly-cartesian.min.js.gz").read_bytes()
    # These occur only in strings and regular expressions, where the backslash has no effect.
    return decompress(packed).decode().replace("</script", "<\\/script")


def digest(text: str) -> str:
    """Hash by which a content security policy allows a script."""
    return b64encode(sha256(text.encode()).digest()).decode()


def chart_data(run: RunContents, limits: Limits) -> Json:
    """Data of the charts of all sections."""
    found: Json = {}
    for section in SECTIONS:
        found |= section.data(run, limits)
    return found


def embed(run: RunContents) -> str:
    """Chart data as JSON that cannot end its HTML element; with fewer samples if too large."""
    limits = Limits()
    while True:
        text = json.dumps(chart_data(run, limits), separators=(",", ":"), allow_nan=False)
        if len(text) <= MAX_DATA or limits == limits.smaller():
            return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
        limits = limits.smaller()
