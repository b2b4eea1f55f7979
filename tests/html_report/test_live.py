"""The live view of a trace in a browser."""

from __future__ import annotations

import json
import re
import struct
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET, create_connection
from threading import Thread, active_count

import pytest

from neuro_eqprop.html_report import live
from neuro_eqprop.html_report.live import LOOPBACK, LiveServer, page, serve, state
from neuro_eqprop.traces.file import write
from neuro_eqprop.traces.trace import Trace


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LiveServer]:
    made = serve(tmp_path / "t.h5")
    Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def answer(server: LiveServer, path: str, host: str = LOOPBACK) -> tuple[HTTPResponse, str]:
    port = server.server_address[1]
    connection = HTTPConnection(LOOPBACK, port, timeout=30)
    connection.request("GET", path, headers={"Host": f"{host}:{port}"})
    with closing(connection):
        found = connection.getresponse()
        return found, found.read().decode()


def test_the_server_answers_on_loopback_alone(
    episode: dict[str, Trace], server: LiveServer
) -> None:
    assert server.server_address[0] == LOOPBACK
    base = "/" + server.address.split("/", 3)[3]
    found, text = answer(server, base)
    assert found.status == 200
    nonce = re.findall('nonce="([^"]*)"', text)
    assert len(nonce) == 2
    assert text == page(nonce[0])
    assert f"script-src 'nonce-{nonce[0]}'" in (found.headers["Content-Security-Policy"] or "")
    assert found.headers["X-Content-Type-Options"] == "nosniff"
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert json.loads(answer(server, f"{base}data")[1])["message"].startswith("waiting")
    write(server.path, episode["spikes"], overwrite=False)
    seen = json.loads(answer(server, f"{base}data")[1])
    assert seen["complete"]
    assert seen["message"] == "6 of 6 samples, complete"
    assert [each["name"] for each in seen["populations"]] == ["hidden", "output"]
    fired = episode["spikes"].recording(5).spikes["hidden"]
    assert len(seen["rasters"][0]["steps"]) == int((fired != 0).sum())
    for other in ("/", "/data", f"{base}t.h5", f"{base}../t.h5", "/" + "x" * 24 + "/data"):
        assert answer(server, other)[0].status == 404
    assert answer(server, f"{base}data", host="evil.example")[0].status == 404


def test_half_open_connections_are_few_and_end(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(live, "LONGEST", 2.0)
    monkeypatch.setattr(live.Handler, "timeout", 2.0)
    before, address = active_count(), (LOOPBACK, server.server_address[1])
    opened = [create_connection(address, timeout=30) for _ in range(100)]
    for k, each in enumerate(opened):
        with suppress(OSError):
            each.sendall(b"GET / HT")  # and never the rest of it
            if k % 3 == 0:  # dropped
                each.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
                each.close()
    time.sleep(0.5)
    # A thread and a timer for each connection.
    assert active_count() <= before + 2 * live.CONNECTIONS
    time.sleep(2.5)
    assert answer(server, "/" + server.token + "/data")[0].status == 200
    for each in opened:
        each.close()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", ["rate", "graded"])
def test_the_state_has_a_curve_for_each_layer(
    kind: str, episode: dict[str, Trace], tmp_path: Path
) -> None:
    write(tmp_path / "t.h5", episode[kind], overwrite=False)
    found = state(tmp_path / "t.h5")
    assert len(found["populations"]) == 2
    assert len(found["rasters"]) == (0 if kind == "rate" else 2)
    json.dumps(found, allow_nan=False)
