"""Fetching from mirrors that fail, lie, are cut short, or work; served on this machine."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import threading
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from neuro_eqprop.cli import main
from neuro_eqprop.data import FOLDER, DataError, fetch, load_data, manage, verify
from neuro_eqprop.data.manifest import DatasetFile, Manifest
from neuro_eqprop.data.verify import SAME, UNKNOWN

CONTENT = bytes(range(256)) * 600
PACKED = gzip.compress(CONTENT, mtime=0)
INSIDE = {"a-ubyte": hashlib.sha256(CONTENT).hexdigest()}


def image_file(array: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return gzip.compress(head + array.astype(np.uint8).tobytes(), mtime=0)


RNG = np.random.default_rng(0)
PICTURES = {
    f"{part}-{kind}-ubyte.gz": image_file(RNG.integers(0, 10, shape))
    for part, count in (("train", 6), ("t10k", 4))
    for kind, shape in (("images-idx3", (count, 2, 2)), ("labels-idx1", (count,)))
}


class Mirror(BaseHTTPRequestHandler):
    """Serves the same files in several ways, named by the folder."""

    def do_GET(self) -> None:
        _, way, name = self.path.split("/")
        body = PICTURES.get(name, PACKED)
        if way == "gone":
            self.send_error(404)
            return
        if way == "moved":
            self.send_response(302)
            self.send_header("Location", "http://nowhere.invalid/a-ubyte.gz")
            self.end_headers()
            return
        self.send_response(200)
        if way == "endless":
            self.end_headers()
            self.wfile.write(body * 1000)
            return
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        body = {"lies": b"x" + body[1:], "cut": body[:-9]}.get(way, body)
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with ThreadingHTTPServer(("127.0.0.1", 0), Mirror) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def listed(*, sha256: str = "", known: bool = True) -> DatasetFile:
    return DatasetFile("a-ubyte.gz", len(PACKED), sha256, INSIDE if known else {"a-ubyte": ""})


def described(file: DatasetFile, *mirrors: str) -> Manifest:
    return Manifest("made", "", "", "", mirrors, (file,))


def ignore(received: int) -> None:
    pass


def test_mirrors_are_tried_until_one_serves_the_right_bytes(mirror: str, tmp_path: Path) -> None:
    ways = [f"{mirror}/{way}/" for way in ("gone", "lies", "cut", "works", "lies")]
    came: list[int] = []
    folder = tmp_path / "new" / "made"
    (found,) = fetch.fetch(described(listed(), *ways), folder, came.append)
    assert found.address == f"{mirror}/works/a-ubyte.gz"
    assert found.verdict == SAME
    assert (folder / "a-ubyte.gz").read_bytes() == PACKED
    assert [path.name for path in folder.iterdir()] == ["a-ubyte.gz"]
    assert sum(came) >= len(PACKED)


def test_the_hash_of_the_file_as_served_is_compared_too(mirror: str, tmp_path: Path) -> None:
    right = hashlib.sha256(PACKED).hexdigest()
    file = listed(sha256=right, known=False)
    ways = [f"{mirror}/{way}/" for way in ("lies", "works")]
    assert fetch.fetch(described(file, *ways), tmp_path, ignore)[0].address is not None
    wrong = listed(sha256="0" * 64, known=False)
    with pytest.raises(DataError, match=r"lies/.*another SHA-256.*works/.*another SHA-256"):
        fetch.fetch(described(wrong, *ways), tmp_path / "other", ignore)
    assert not (tmp_path / "other").exists()


def test_without_a_known_checksum_this_is_said(mirror: str, tmp_path: Path) -> None:
    manifest = described(listed(known=False), f"{mirror}/works/")
    assert fetch.fetch(manifest, tmp_path, ignore)[0].verdict == UNKNOWN


def test_what_is_here_is_kept_and_what_is_wrong_is_replaced(mirror: str, tmp_path: Path) -> None:
    manifest, path = described(listed(), f"{mirror}/works/"), tmp_path / "a-ubyte.gz"
    path.write_bytes(gzip.compress(b"other"))
    assert fetch.fetch(manifest, tmp_path, ignore)[0].address == f"{mirror}/works/a-ubyte.gz"
    before = path.stat().st_mtime_ns
    assert fetch.fetch(manifest, tmp_path, ignore)[0].address is None
    assert path.stat().st_mtime_ns == before


def test_a_failure_leaves_the_old_file_and_nothing_else(mirror: str, tmp_path: Path) -> None:
    path = tmp_path / "a-ubyte.gz"
    path.write_bytes(gzip.compress(b"old"))
    ways = [f"{mirror}/{way}/" for way in ("gone", "lies", "cut")]
    with pytest.raises(DataError, match=rf"gone/a-ubyte\.gz: .*Not Found.*{FOLDER}"):
        fetch.fetch(described(listed(), *ways), tmp_path, ignore)
    assert [each.name for each in tmp_path.iterdir()] == ["a-ubyte.gz"]
    assert gzip.decompress(path.read_bytes()) == b"old"


def test_an_interrupt_leaves_nothing(mirror: str, tmp_path: Path) -> None:
    def interrupted(received: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch.fetch(described(listed(), f"{mirror}/works/"), tmp_path / "made", interrupted)
    assert list(tmp_path.iterdir()) == []


def test_a_file_far_too_large_is_not_swallowed(mirror: str, tmp_path: Path) -> None:
    small = DatasetFile("a-ubyte.gz", 1, "", {})
    noise = described(small, f"{mirror}/works/")
    body = PICTURES["a-ubyte.gz"] = RNG.bytes(fetch.CHUNK + 100)
    try:
        with pytest.raises(DataError, match=f"announces {fetch.CHUNK + 100} bytes"):
            fetch.fetch(noise, tmp_path, ignore)
    finally:
        del PICTURES["a-ubyte.gz"]
    assert len(body) > fetch.CHUNK + 2


def test_a_server_that_announces_no_size_is_cut_off(mirror: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="received more than"):
        fetch.fetch(described(listed(), f"{mirror}/endless/"), tmp_path / "made", ignore)
    assert list(tmp_path.iterdir()) == []


def test_a_redirect_away_from_https_is_not_followed(mirror: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.invalid.*not https"):
        fetch.fetch(described(listed(), f"{mirror}/moved/"), tmp_path, ignore)


def test_a_mirror_without_https_is_refused() -> None:
    with pytest.raises(ValueError, match="https addresses"):
        described(listed(), "http://example.org/")


def test_without_a_network_one_sentence_says_so(tmp_path: Path) -> None:
    empty = described(listed(), "http://127.0.0.1:9/", "https://nowhere.invalid/")
    with pytest.raises(DataError, match=r"not be downloaded.*refused.*try again with a network"):
        fetch.fetch(empty, tmp_path / "made", ignore)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"cannot create .*choose another folder"):
        fetch.fetch(described(listed(), "http://127.0.0.1:9/"), tmp_path / "file" / "a", ignore)


def call(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(words))
    return code, out.getvalue(), err.getvalue()


def test_a_data_set_is_fetched_checked_and_loaded(
    mirror: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = tuple(
        DatasetFile(name, len(body), hashlib.sha256(body).hexdigest(), {name[:-3]: ""})
        for name, body in PICTURES.items()
    )
    mirrors = (f"{mirror}/gone/", f"{mirror}/works/")
    small = Manifest("kmnist", "", "", "", mirrors, files)
    for module in (manage, verify):
        monkeypatch.setattr(module, "load_manifest", lambda _: small)
    monkeypatch.setenv(FOLDER, str(tmp_path))
    code, out, err = call("data", "get", "kmnist", "--json")
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert result["folder"] == str(tmp_path / "kmnist")
    assert [each["verdict"] for each in result["files"]] == [SAME] * 4
    found = load_data("kmnist")
    assert (len(found.train), len(found.test), found.shape) == (6, 4, (1, 2, 2))
    checked = json.loads(call("data", "check", "kmnist", "--json")[1])
    assert len(checked["files_as_in_manifest"]) == 4
    (tmp_path / "kmnist" / "t10k-labels-idx1-ubyte.gz").write_bytes(image_file(np.arange(4)))
    code, _, err = call("data", "check", "kmnist")
    assert code == 1
    assert "its SHA-256 differs" in err
    assert call("data", "get", "kmnist")[0] == 0
    assert call("data", "check", "kmnist")[0] == 0


def test_getting_what_needs_no_files_is_done_at_once_and_strange_names_are_refused() -> None:
    code, out, _ = call("data", "get", "digits", "--json")
    assert (code, json.loads(out)["files"]) == (0, [])
    code, _, err = call("data", "get", "mnst")
    assert code == 2
    assert "known: mnist" in err
