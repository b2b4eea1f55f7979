"""`Section`: a part of the report page, with its text, chart data and script."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from html import escape
from importlib.resources import files
from typing import Any, TypeAlias

from neuro_eqprop.html_report.contents import RunContents

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much recorded data goes into the page."""

    samples: int = 16
    lines: int = 16
    """Units of a layer drawn as lines."""
    rows: int = 200
    """Units of a layer in a raster and in a weight matrix."""

    def smaller(self) -> Limits:
        """Limits with fewer samples or, if there are few already, with fewer units."""
        if self.samples > 3:
            return replace(self, samples=max(3, self.samples * 3 // 4))
        return Limits(*(max(1, n // 2) for n in (self.samples, self.lines, self.rows)))


def no_data(_: RunContents, __: Limits) -> Json:
    """Chart data of a section without charts."""
    return {}


def nothing(_: RunContents) -> str:
    """HTML of a section that is left out."""
    return ""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page; `neuro_eqprop.html_report.sections` lists them in their order."""

    id: str
    title: str
    body: Callable[[RunContents], str]
    """HTML below the heading; the section is left out where it is empty."""
    needs: Callable[[RunContents], bool] = bool
    """Whether the run holds what the section shows."""
    hint: Callable[[RunContents], str] = nothing
    """HTML in place of the body if not, usually the command that makes what is missing."""
    data: Callable[[RunContents, Limits], Json] = no_data
    """Chart data by name; the script finds them in `data`."""
    script: str = ""
    """JavaScript that draws the charts; it calls `register(draw, fill)`."""

    def html(self, run: RunContents) -> str:
        """The section as HTML, or an empty text."""
        body = self.body(run) if self.needs(run) else self.hint(run)
        if not body:
            return ""
        return f'<section id="{self.id}"><h2>{escape(self.title)}</h2>{body}</section>'


def asset(name: str) -> str:
    """Text of a file in `assets`."""
    folder = files("neuro_eqprop.html_report").joinpath("assets")
    return folder.joinpath(name).read_text(encoding="utf-8")
