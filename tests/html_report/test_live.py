"""The live view of a trace in a browser."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread

import pytest

from neuro_eqprop.html_report.live import LOOPBACK, page, serve, state
from neuro_eqprop.traces.file import write
from neuro_eqprop.traces.trace import Trace


def ask(port: int, path: str, host: str = LOOPBACK) -> tuple[int, str]:
    connection = HTTPConnection(LOOPBACK, port, timeout=30)
    connection.request("GET", path, headers={"Host": f"{host}:{port}"})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_the_server_answers_on_loopback_alone(episode: dict[str, Trace], tmp_path: Path) -> None:
    path = tmp_path / "t.h5"
    server = serve(path)
    assert server.server_address[0] == LOOPBACK
    port = server.server_address[1]
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        status, text = ask(port, "/")
        assert status == 200
        assert text == page()
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
        assert json.loads(ask(port, "/data")[1])["message"].startswith("waiting")
        write(path, episode["spikes"], overwrite=False)
        seen = json.loads(ask(port, "/data")[1])
        assert seen["complete"]
        assert seen["message"] == "6 of 6 samples, complete"
        assert [each["name"] for each in seen["populations"]] == ["hidden", "output"]
        fired = episode["spikes"].recording(5).spikes["hidden"]
        assert len(seen["rasters"][0]["steps"]) == int((fired != 0).sum())
        for other in ("/etc/passwd", "/../t.h5", "/t.h5"):
            assert ask(port, other)[0] == 404
        assert ask(port, "/data", host="evil.example")[0] == 404
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("kind", ["rate", "graded"])
def test_the_state_has_a_curve_for_each_layer(
    kind: str, episode: dict[str, Trace], tmp_path: Path
) -> None:
    write(tmp_path / "t.h5", episode[kind], overwrite=False)
    found = state(tmp_path / "t.h5")
    assert len(found["populations"]) == 2
    assert len(found["rasters"]) == (0 if kind == "rate" else 2)
    json.dumps(found, allow_nan=False)
