"""CIFAR-10 from its binary version, packed or not, and files that are not whole."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from neuro_eqprop.cli import main
from neuro_eqprop.data import (
    DATASETS,
    FOLDER,
    DataError,
    cifar10,
    cifar10_copy,
    load_data,
    summary,
)
from neuro_eqprop.data.cifar10 import ARCHIVE, RECORD, TEST, TRAIN
from neuro_eqprop.data.manage import download_data
from neuro_eqprop.data.verify import verify


def contents() -> dict[str, bytes]:
    """A few records under the names of the real files."""
    rng = np.random.default_rng(0)
    found = {}
    for name in TRAIN + TEST:
        rows = rng.integers(0, 256, (4, RECORD))
        rows[:, 0] %= 10
        found[name] = rows.astype(np.uint8).tobytes()
    return found


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cifar10").mkdir()
    return tmp_path / "cifar10"


def pack(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in {"readme.html": b"hello", **files}.items():
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def lay(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


@pytest.mark.parametrize("way", ["packed", "unpacked", "in its folder"])
def test_records_become_pictures(shelf: Path, way: str) -> None:
    files = contents()
    if way == "packed":
        pack(shelf / ARCHIVE, files)
    else:
        lay(shelf if way == "unpacked" else shelf / "cifar-10-batches-bin", files)
    found = load_data("cifar10")
    assert (found.shape, found.features, found.classes) == ((3, 32, 32), 3072, 10)
    assert (len(found.train), len(found.test)) == (20, 4)
    raw = files["data_batch_3.bin"][2 * RECORD : 3 * RECORD]
    sample = found.train.x[2 * 4 + 2].reshape(found.shape)
    assert found.train.y[2 * 4 + 2] == raw[0]
    green = np.frombuffer(raw[1 + 1024 : 1 + 2048], np.uint8).reshape(32, 32)
    assert np.array_equal(sample[1], green / 255)
    assert summary()["cifar10"] == str(shelf)


def test_made_files_are_not_the_real_ones(shelf: Path) -> None:
    lay(shelf, contents())
    with pytest.raises(DataError, match=r"data_batch_1\.bin is not .*SHA-256 differs"):
        verify("cifar10")
    (shelf / TEST[0]).unlink()
    with pytest.raises(DataError, match=r"neither cifar-10-binary\.tar\.gz nor test_batch\.bin"):
        verify("cifar10")


def test_a_missing_file_is_named(shelf: Path) -> None:
    files = contents()
    del files[TEST[0]]
    lay(shelf, files)
    with pytest.raises(DataError, match=r"test_batch\.bin"):
        load_data("cifar10")
    pack(shelf / ARCHIVE, files)
    with pytest.raises(DataError, match=r"holds no test_batch\.bin"):
        load_data("cifar10")


@pytest.mark.parametrize("spoil", [b"", bytes(RECORD - 1), bytes(2 * RECORD + 1)])
def test_records_that_are_not_whole_are_refused(shelf: Path, spoil: bytes) -> None:
    lay(shelf, contents() | {TRAIN[1]: spoil})
    with pytest.raises(
        DataError, match=r"data_batch_2\.bin has \d+ bytes, not a multiple.*fetch it again"
    ):
        load_data("cifar10")


def test_labels_beyond_the_classes_are_refused(shelf: Path) -> None:
    lay(shelf, contents() | {TRAIN[1]: b"\x0a" + bytes(RECORD - 1)})
    with pytest.raises(DataError, match=r"data_batch_2\.bin holds labels outside 0\.\.9; fetch"):
        load_data("cifar10")


def test_an_archive_that_is_not_whole_is_refused(shelf: Path) -> None:
    path = shelf / ARCHIVE
    pack(path, contents())
    whole = path.read_bytes()
    for bad in (whole[: len(whole) // 2], whole[:-3], b"nonsense", gzip.compress(b"nonsense")):
        path.write_bytes(bad)
        with pytest.raises(DataError, match=r"cifar-10-binary\.tar\.gz"):
            load_data("cifar10")


def test_what_is_not_here_says_how_it_is_had(shelf: Path) -> None:
    with pytest.raises(DataError, match=r"'cifar10' is not here.*data get cifar10.*binary version"):
        load_data("cifar10")
    assert verify("cifar10") == []


def test_pictures_are_kept_as_bytes(shelf: Path) -> None:
    lay(shelf, contents())
    found = load_data("cifar10")
    for split in (found.train, found.test):
        assert split.stored.dtype == np.uint8
        assert split.stored.nbytes == split.stored.size
        assert split.x.dtype == np.float64
        assert np.array_equal(split.take(slice(2)).x, split.x[:2])
        assert [len(part) for part in split.parts(3)] == [3] * (len(split) // 3) + (
            [len(split) % 3] if len(split) % 3 else []
        )


def test_a_known_copy_is_named(
    shelf: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = contents()
    lay(shelf, files)
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    monkeypatch.setattr(cifar10, "LARGEST", len(files[TEST[0]]))
    assert (
        load_data("cifar10").note
        == "not the original files: the test records have another checksum"
    )
    info = replace(cifar10.CIFAR10, copies={"JPEG copies, quality 75": hashes})
    monkeypatch.setattr(cifar10, "CIFAR10", info)
    monkeypatch.setitem(DATASETS._loaded, "cifar10", info)
    assert load_data("cifar10").note == "JPEG copies, quality 75"
    assert {each.verdict for each in verify("cifar10")} == {"JPEG copies, quality 75"}
    assert main(["data", "list"]) == 0
    assert "cifar10: JPEG copies, quality 75" in capsys.readouterr().out
    assert main(["data", "check", "cifar10", "--json"]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert checked["note"] == "JPEG copies, quality 75"
    assert len(checked["files_of_a_copy"]) == 6
    (shelf / TRAIN[0]).write_bytes(files[TRAIN[1]])
    with pytest.raises(DataError, match=r"data_batch_1\.bin is not .*SHA-256 differs"):
        verify("cifar10")


def copy_archive(path: Path, pictures: int = 12) -> None:
    """An archive of JPEG pictures as the copies have it."""
    from PIL import Image

    path.parent.mkdir(parents=True)
    rng = np.random.default_rng(3)
    with tarfile.open(path, "w:xz") as archive:
        for k in range(pictures):
            part, name = ("train", "test")[k % 3 == 2], cifar10_copy.CLASSES[k % 10]
            content = io.BytesIO()
            pixels = rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(content, "JPEG", quality=75)
            info = tarfile.TarInfo(f"{part}/{name}/{k:04}.jpg")
            info.size = content.tell()
            content.seek(0)
            archive.addfile(info, content)


def test_jpeg_copies_are_unpacked_in_a_fixed_order(
    shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = shelf.parent / "cifar10-jpeg" / cifar10_copy.ARCHIVE
    copy_archive(archive)
    known = {"data_batch_1.bin": "", "test_batch.bin": ""}
    with pytest.raises(DataError, match="does not unpack to the known copy"):
        cifar10_copy.unpack_copy(archive, shelf, lambda _: None, known)
    assert not list(shelf.iterdir())
    rows: dict[str, list[cifar10_copy.Records]] = {"train": [], "test": []}
    for part, record in cifar10_copy.pictures(archive):
        rows[part].append(record)
    for seed, (part, name) in enumerate(zip(rows, known, strict=True)):
        order = np.random.default_rng(seed).permutation(len(rows[part]))
        content = np.stack(rows[part])[order].tobytes()
        known[name] = hashlib.sha256(content).hexdigest()
    info = replace(DATASETS["cifar10"], copies={"made here": known}, train=8, test=4)
    monkeypatch.setattr(type(DATASETS), "find", lambda *_: info)
    found = download_data("cifar10")
    assert {Path(file.path).name: file.verdict for file in found.files} == dict.fromkeys(
        known, "made here"
    )
    assert all(Path(file.path).stat().st_size % RECORD == 0 for file in found.files)
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    with pytest.raises(DataError, match="cannot be read"):
        download_data("cifar10")
