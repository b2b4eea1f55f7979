"""An interactive figure of a trace: rates of a layer in one sample, with zoom and hover."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.files.write import write_text
from neuro_eqprop.simulators.recordings import TraceData
from neuro_eqprop.traces.plots.traces import at, phase_colour, times

HEIGHT = 400
"""Pixels."""
PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>
<body style="margin:0;background:#fff"><div id="figure" style="height:{height}px"></div>
<script>{library}</script><script>Plotly.newPlot("figure", {figure}, {layout},
{{responsive: true, displaylogo: false}});</script></body></html>
"""


@dataclass(frozen=True, slots=True, repr=False)
class InteractiveFigure:
    """A figure that a notebook shows, and that `save` writes as one page without references."""

    title: str
    lines: tuple[dict[str, Any], ...]
    layout: dict[str, Any]

    def __repr__(self) -> str:
        return f"InteractiveFigure({self.title}, {len(self.lines)} lines; save(path) writes a page)"

    def to_html(self) -> str:
        """The page: data, chart library and nothing from another server."""
        packed = files("neuro_eqprop") / "html_report" / "assets" / "plotly"
        library = gzip.decompress((packed / "plotly-cartesian.min.js.gz").read_bytes()).decode()
        return PAGE.format(
            title=escape(self.title),
            height=HEIGHT,
            library=library.replace("</script", "<\\/script"),
            figure=in_script(self.lines),
            layout=in_script(self.layout),
        )

    def _repr_html_(self) -> str:
        return (
            f'<iframe title="{escape(self.title)}" srcdoc="{escape(self.to_html())}" '
            f'style="width:100%;height:{HEIGHT + 20}px;border:0"></iframe>'
        )

    def save(self, path: str | Path) -> Path:
        """Write the page and return its path.

        Parameters
        ----------
        path : str or Path
            The HTML file, which is replaced if it exists.

        Returns
        -------
        Path

        """
        write_text(Path(path), self.to_html())
        return Path(path)


def show_trace(trace: TraceData, layer: str, sample: int, units: int) -> InteractiveFigure:
    """The rates of the units of a layer that vary most, over the phases of a sample."""
    if units < 1:
        raise ValueError(f"units is {units}; draw at least one")
    place = at(trace, sample)
    rates = np.concatenate([trace.running_rate(layer, phase)[place] for phase in trace.phases])
    chosen = np.sort(np.argsort(-np.ptp(rates, axis=0), kind="stable")[:units])
    time, ends = times(trace), np.cumsum([phase.steps for phase in trace.schedule])
    lines = [
        {"x": np.round(time, 6).tolist(), "y": np.round(rates[:, unit], 5).tolist()}
        | {"name": f"unit {unit}", "mode": "lines"}
        for unit in chosen
    ]
    edges = [0.0, *(float(time[end - 1]) for end in ends)]
    spans = list(zip(trace.schedule, edges[:-1], edges[1:], strict=True))
    across = {"xref": "x", "yref": "paper"}
    layout = {
        "title": {"text": f"{layer}, sample {trace.index[place]}, label {trace.label[place]}"},
        "xaxis": {"title": {"text": "time (ms)"}},
        "yaxis": {"title": {"text": f"{layer}, rate"}},
        "hovermode": "x",
        "shapes": [
            across
            | {"type": "rect", "x0": low, "x1": high, "y0": 0, "y1": 1, "layer": "below"}
            | {"fillcolor": phase_colour(phase.beta), "opacity": 0.13, "line": {"width": 0}}
            for phase, low, high in spans
        ],
        "annotations": [
            across
            | {"text": phase.name, "x": (low + high) / 2, "y": 1, "yanchor": "bottom"}
            | {"showarrow": False}
            for phase, low, high in spans
        ],
    }
    return InteractiveFigure(f"{layer}, sample {trace.index[place]}", tuple(lines), layout)


def in_script(value: Any) -> str:  # noqa: ANN401
    """JSON that cannot end its script element."""
    return json.dumps(value).replace("<", "\\u003c")
