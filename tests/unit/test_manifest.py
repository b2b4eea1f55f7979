"""Manifests of data sets: every data set that is not embedded has one, and it is compared with."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest

from neuro_eqprop.data import FOLDER, IDX, DataError
from neuro_eqprop.files import manifestfile
from neuro_eqprop.files.manifestfile import digest, hashes, verify


def test_every_data_set_of_files_has_a_manifest() -> None:
    for name in IDX:
        told = hashes(name)
        assert set(told) == {f"{p}-{w}" for p in ("train", "t10k") for w in ("images", "labels")}
        assert all(len(value) == 64 for value in told.values())
    assert verify("digits") == []


def test_files_are_compared_uncompressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mnist").mkdir()
    expected = {}
    for stem in hashes("mnist"):
        raw = stem.encode()
        expected[stem] = hashlib.sha256(raw).hexdigest()
        kind = "idx3" if "images" in stem else "idx1"
        (tmp_path / "mnist" / f"{stem}-{kind}-ubyte.gz").write_bytes(gzip.compress(raw))
    monkeypatch.setenv(FOLDER, str(tmp_path))
    with pytest.raises(DataError, match=r"train-images of 'mnist': its SHA-256 differs"):
        verify("mnist")
    monkeypatch.setattr(manifestfile, "hashes", lambda _: expected)
    assert len(verify("mnist")) == 4
    plain = tmp_path / "plain"
    plain.write_bytes(b"x")
    assert digest(plain) == hashlib.sha256(b"x").hexdigest()
