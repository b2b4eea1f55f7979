"""`Section`: a part of the report page, with its text, chart data and script."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any, NamedTuple, TypeAlias

from neuro_eqprop.html_report.contents import PAGE_SAMPLES, RunContents

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PageLimits:
    """How much recorded data goes into the page."""

    samples: int = PAGE_SAMPLES
    lines: int = 16
    """Units of a layer drawn as lines."""
    rows: int = 200
    """Units of a layer in a raster and in a weight matrix."""

    def smaller(self) -> PageLimits:
        """Limits with fewer samples or, if there are few already, with fewer units."""
        if self.samples > 3:
            return replace(self, samples=max(3, self.samples * 3 // 4))
        return PageLimits(*(max(1, n // 2) for n in (self.samples, self.lines, self.rows)))


class Shown(NamedTuple):
    """What a section shows of a run."""

    html: str = ""
    """HTML below the heading; the section is left out where it is empty."""
    data: Callable[[PageLimits], Json] | None = None
    """Chart data by name; the script finds them in `data`."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page; `neuro_eqprop.html_report.sections` lists them in their order."""

    id: str
    title: str
    show: Callable[[RunContents], Shown]
    """What a run holds for it or, if it holds nothing, the command that makes what is missing."""
    script: str = ""
    """JavaScript that draws the charts; it calls `register(draw, fill)`."""


def asset(name: str) -> str:
    """Text of a file in `assets`."""
    folder = files("neuro_eqprop.html_report").joinpath("assets")
    return folder.joinpath(name).read_text(encoding="utf-8")
