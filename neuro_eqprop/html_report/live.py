"""A trace that is being written, followed in a browser on this machine.

`serve` answers two addresses on the loopback interface: a page, and the state of the trace as JSON,
which the page fetches twice a second. Nothing but the standard library runs the server.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from neuro_eqprop.html_report.section import asset
from neuro_eqprop.simulators.recordings import TraceData
from neuro_eqprop.traces.lazy import read_progress
from neuro_eqprop.traces.schema import TraceError

LOOPBACK = "127.0.0.1"
WIDTH = 200
"""Points of a curve."""
MAX_TICKS = 20_000
"""Spikes of a raster."""


def state(path: Path) -> dict[str, Any]:
    """The content of the page for a trace; only a message until the file can be read."""
    empty: dict[str, Any] = {
        "file": path.name,
        "complete": False,
        "accuracy": [],
        "populations": [],
        "rasters": [],
    }
    try:
        seen = read_progress(path, last=8)
    except TraceError as error:
        return empty | {"message": f"waiting: {error}"}
    trace = seen.trace
    message = f"{seen.taken} of {seen.announced} samples"
    done = len(trace.epochs.get("epoch", ()))
    message += f", {done} of {seen.epochs} epochs" if seen.epochs else ""
    layers = trace.layers_with_rates if len(trace.index) else ()
    return empty | {
        "message": message + (", complete" if trace.complete else ""),
        "complete": bool(trace.complete),
        "accuracy": [float(v) for v in trace.epochs.get("test_accuracy", np.zeros(0))],
        "populations": [{"name": name, "course": course(trace, name)} for name in layers],
        "rasters": [raster(trace, name) for name in trace.spikes if len(trace.index)],
    }


def course(trace: TraceData, layer: str) -> list[float]:
    """Mean activity of a layer over the steps."""
    mean = trace.time_course(layer).mean(axis=(0, 2))
    return [float(part.mean()) for part in np.array_split(mean, min(WIDTH, len(mean)))]


def raster(trace: TraceData, layer: str) -> dict[str, Any]:
    """Steps and units of the spikes of the last sample."""
    fired = trace.recording(len(trace.index) - 1).spikes[layer]
    steps, units = (each[:MAX_TICKS].tolist() for each in np.nonzero(fired))
    return {"name": layer, "steps": steps, "units": units, "of": len(fired), "size": fired.shape[1]}


def page() -> str:
    """HTML of the live view."""
    return Template(asset("watch.html")).safe_substitute(style=asset("page.css"))


def serve(path: Path, *, port: int = 0) -> ThreadingHTTPServer:
    """A server of the live view on the loopback interface; the caller runs and closes it."""

    class Handler(BaseHTTPRequestHandler):
        """Answers the page and its data, and nothing else."""

        def do_GET(self) -> None:
            """Answer a request."""
            answers: dict[str, tuple[str, Callable[[], str]]] = {
                "/": ("text/html; charset=utf-8", page),
                "/data": ("application/json", lambda: json.dumps(state(path))),
            }
            # Another host name that resolves to this machine may be that of a foreign site.
            host = (self.headers.get("Host") or "").rpartition(":")[0]
            if self.path not in answers or host not in (LOOPBACK, "localhost"):
                self.send_error(404)
                return
            kind, make = answers[self.path]
            body = make().encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    return ThreadingHTTPServer((LOOPBACK, port), Handler)
