"""A trace that is being written, followed in a browser on this machine.

`serve` answers two addresses on the loopback interface: a page, and the state of the trace as JSON,
which the page fetches twice a second. Both begin with a random token, which other users of the
machine do not know. Nothing but the standard library runs the server.
"""

from __future__ import annotations

import json
import sys
from hmac import compare_digest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from secrets import token_urlsafe
from string import Template
from threading import BoundedSemaphore, Timer
from typing import Any

import numpy as np

from neuro_eqprop.html_report.section import asset
from neuro_eqprop.simulators.recordings import TraceData
from neuro_eqprop.traces.lazy import read_progress
from neuro_eqprop.traces.schema import TraceError

LOOPBACK = "127.0.0.1"
CONNECTIONS, LONGEST = 32, 10.0
"""Connections that are answered at a time, and seconds that each may take."""
POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What the page may load: its own script and style, and data from this server."""
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


def page(nonce: str = "") -> str:
    """HTML of the live view; `nonce` allows its script and its style to run."""
    return Template(asset("watch.html")).safe_substitute(style=asset("page.css"), nonce=nonce)


class LiveServer(ThreadingHTTPServer):
    """A server of the live view on the loopback interface, with a token in its address.

    It answers at most `CONNECTIONS` at a time, each for at most `LONGEST` seconds.
    """

    daemon_threads = True

    def __init__(self, path: Path, port: int) -> None:
        super().__init__((LOOPBACK, port), Handler)
        self.path, self.token = path, token_urlsafe(18)
        self.free = BoundedSemaphore(CONNECTIONS)

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://{LOOPBACK}:{self.server_address[1]}/{self.token}/"

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Answer a connection in a thread, unless too many are open."""
        if self.free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Answer a connection, which is closed when it takes too long."""
        end = Timer(LONGEST, self.shutdown_request, [request])
        end.daemon = True
        end.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            end.cancel()
            self.free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Say nothing of connections that were dropped."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """Answers the page and its data, and nothing else."""

    server: LiveServer
    timeout = LONGEST

    def do_GET(self) -> None:
        """Answer a request."""
        # Another host name that resolves to this machine may be that of a foreign site.
        host = (self.headers.get("Host") or "").rpartition(":")[0]
        asked = {
            name: compare_digest(self.path.encode(), f"/{self.server.token}/{name}".encode())
            for name in ("", "data")
        }
        if not any(asked.values()) or host not in (LOOPBACK, "localhost"):
            self.send_error(404)
            return
        nonce = token_urlsafe(18)
        content = page(nonce) if asked[""] else json.dumps(state(self.server.path))
        kind = "text/html; charset=utf-8" if asked[""] else "application/json"
        body = content.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", POLICY.format(nonce=nonce))
        self.end_headers()
        self.wfile.write(body)

    def end_headers(self) -> None:
        """End the headers with those of every answer."""
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def serve(path: Path, *, port: int = 0) -> LiveServer:
    """A server of the live view of a trace; the caller runs and closes it."""
    return LiveServer(path, port)
