"""Manifests of data sets: every data set of files has one, and its files are compared with it."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest

from neuro_eqprop.data import DATASETS, FOLDER, DataError
from neuro_eqprop.data import verify as verify_module
from neuro_eqprop.data.idx import IDX
from neuro_eqprop.data.manifest import DatasetFile, Manifest, load_manifest, read_manifest
from neuro_eqprop.data.verify import SAME, UNKNOWN, digest, matches, verify

WITH_FILES = [name for name, entry in DATASETS.items() if entry.files]


@pytest.mark.parametrize("name", WITH_FILES)
def test_every_data_set_of_files_has_a_manifest(name: str) -> None:
    found = load_manifest(name)
    assert found.name == name
    assert found.what
    assert found.licence
    assert found.checksums
    for file in found.files:
        assert file.sha256 or any(file.unpacked.values()), f"no checksum of {file.name} is known"


def test_the_four_files_of_pictures_are_listed() -> None:
    for name in IDX:
        stems = {file.name.partition("-idx")[0] for file in load_manifest(name).files}
        assert stems == {f"{p}-{w}" for p in ("train", "t10k") for w in ("images", "labels")}


def test_what_has_no_files_is_not_compared() -> None:
    assert verify("digits") == []
    assert verify("my.npz") == []


def made(content: bytes, *, packed: str = "", inside: str | None = None) -> DatasetFile:
    plain = hashlib.sha256(content).hexdigest() if inside is None else inside
    return DatasetFile("a-ubyte.gz", 100, packed, {"a-ubyte": plain})


def test_a_file_agrees_packed_or_not(tmp_path: Path) -> None:
    content, packed, plain = b"content", tmp_path / "a-ubyte.gz", tmp_path / "a-ubyte"
    packed.write_bytes(gzip.compress(content))
    plain.write_bytes(content)
    for path in (packed, plain):
        assert matches(path, made(content)) is True
        assert matches(path, made(b"other")) is False
        assert matches(path, made(content, inside="")) is None
    served = digest(packed)
    assert matches(packed, made(content, packed=served, inside="")) is True
    assert matches(packed, made(content, packed="0" * 64, inside="")) is False
    assert matches(packed, made(content, packed="0" * 64)) is True, "packed by another program"
    assert matches(plain, made(content, packed=served, inside="")) is None


def test_a_packed_file_that_is_cut_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a-ubyte.gz"
    path.write_bytes(gzip.compress(bytes(1000))[:-4])
    with pytest.raises(DataError, match=r"a-ubyte\.gz cannot be read"):
        matches(path, made(bytes(1000)))


def shelve(folder: Path, name: str) -> Manifest:
    """Small files under the names of the real ones, and a manifest of them."""
    (folder / name).mkdir()
    files = []
    for file in load_manifest(name).files:
        raw = file.name.encode()
        (folder / name / file.name).write_bytes(gzip.compress(raw))
        inside = {key: hashlib.sha256(raw).hexdigest() for key in file.unpacked}
        files.append(DatasetFile(file.name, 100, "", inside))
    return Manifest(name, "", "", "", ("http://127.0.0.1/",), tuple(files))


def test_files_are_compared_uncompressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = shelve(tmp_path, "mnist")
    monkeypatch.setenv(FOLDER, str(tmp_path))
    with pytest.raises(DataError, match=r"of 'mnist': its SHA-256 differs.*data get mnist"):
        verify("mnist")
    monkeypatch.setattr(verify_module, "load_manifest", lambda _: small)
    assert [each.verdict for each in verify("mnist")] == [SAME] * 4


def test_a_file_without_a_known_checksum_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelve(tmp_path, "kmnist")
    for path in list((tmp_path / "kmnist").iterdir()):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    monkeypatch.setenv(FOLDER, str(tmp_path))
    assert [each.verdict for each in verify("kmnist")] == [UNKNOWN] * 4


GOOD = """\
schema = "neuro_eqprop.dataset/2"
name = "made"
what = "nothing"
licence = "none"
checksums = "not known"
mirrors = ["http://127.0.0.1/"]
[files."a.gz"]
bytes = 5
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("dataset/2", "dataset/9"),
        ('name = "made"', ""),
        ("http://127.0.0.1/", "file:///etc/"),
        ("http://127.0.0.1/", "http://127.0.0.1"),
        ('["http://127.0.0.1/"]', "[]"),
        ('"a.gz"', '"../a.gz"'),
        ('"a.gz"', '".a"'),
        ("bytes = 5", "bytes = 0"),
        ("bytes = 5", "bytes = 99999999999"),
        ("bytes = 5", 'bytes = "x"'),
        ("bytes = 5", 'bytes = 5\nsha256 = "12"'),
        ("bytes = 5", 'bytes = 5\nunpacked = {"/a" = ""}'),
        ('[files."a.gz"]\nbytes = 5', ""),
    ],
)
def test_a_manifest_that_is_not_whole_is_refused(tmp_path: Path, old: str, new: str) -> None:
    path = tmp_path / "made.toml"
    path.write_text(GOOD)
    assert read_manifest(path).files == (DatasetFile("a.gz", 5, "", {}),)
    assert old in GOOD
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(DataError, match=r"made\.toml"):
        read_manifest(path)
