"""Damaged, hostile and oversized files give errors that name the file and the key."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from neuro_eqprop.data.idx import read_idx
from neuro_eqprop.data.split import DataError
from neuro_eqprop.files.arrays import read_npz
from neuro_eqprop.files.read import (
    BoundedReader,
    FileFormatError,
    json_lines,
    parse_json,
    read_bytes,
    read_json,
    read_jsonl,
    read_text,
    read_toml,
)

HUGE = "9" * 400


def test_an_integer_beyond_64_bits_is_refused_with_its_key(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(f'{{"rows": [{{"epoch": {HUGE}}}]}}')
    with pytest.raises(FileFormatError, match=r"a\.json: rows\[0\]\.epoch: the integer"):
        read_json(tmp_path / "a.json")
    (tmp_path / "a.toml").write_text(f"[energy]\nspike = {HUGE}\n")
    with pytest.raises(FileFormatError, match=r"a\.toml: energy\.spike: the integer"):
        read_toml(tmp_path / "a.toml")


@pytest.mark.parametrize(
    "text",
    ['{"a": 1e999}', '{"a": NaN}', '{"a": ' + "9" * 5000 + "}", "[" * 100000, '{"a"', "[]", ""],
    ids=["inf", "nan", "long", "deep", "cut", "list", "empty"],
)
def test_json_that_is_no_object_of_finite_numbers_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(FileFormatError, match=r"a\.json"):
        read_json(tmp_path / "a.json")


def test_toml_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("a = " + "[" * 20000 + "]" * 20000)
    with pytest.raises(FileFormatError, match="nested too deeply"):
        read_toml(tmp_path / "a.toml")


def test_files_are_utf8_in_every_locale(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('name = "größer"\n', encoding="utf-8")
    code = (
        "from pathlib import Path; from neuro_eqprop.files.read import read_toml;"
        f"assert read_toml(Path({str(tmp_path / 'a.toml')!r}))['name'] == 'gr\\u00f6\\u00dfer'"
    )
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    (tmp_path / "a.toml").write_bytes(b'name = "\xff"')
    with pytest.raises(FileFormatError, match="not UTF-8"):
        read_toml(tmp_path / "a.toml")


def test_what_is_no_file_is_refused_before_it_is_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(FileFormatError, match="not a regular file"):
            read_text(path)
    with pytest.raises(FileFormatError, match="no such file"):
        read_text(tmp_path / "none")


def test_a_file_beyond_the_limit_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(FileFormatError, match="more than the 10 that such a file may have"):
        read_bytes(tmp_path / "sparse", 10)


def test_half_a_last_line_is_skipped_and_half_a_line_before_is_named(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text('{"epoch": 1}\n{"epoch": 2}\n{"epo')
    assert read_jsonl(path) == [{"epoch": 1}, {"epoch": 2}]
    assert [line.unfinished for line in json_lines(path)] == [False, False, True]
    path.write_text('{"epoch": 1}\n{"epoch": 2}')
    assert read_jsonl(path) == [{"epoch": 1}, {"epoch": 2}]
    path.write_text('{"epoch": 1}\n{"epo\n{"epoch": 3}\n')
    with pytest.raises(FileFormatError, match=r"m\.jsonl: line 2"):
        read_jsonl(path)


def npz(path: Path, header: str, body: bytes) -> Path:
    text = header.ljust(117) + "\n"
    raw = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + body
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", raw)
    return path


@pytest.mark.parametrize("shape", ["(10**23,)", "(99999999999999999999999,)", "(-1,)", "(2, 3)"])
def test_an_array_that_claims_another_size_than_it_has_is_refused(
    tmp_path: Path, shape: str
) -> None:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    path = npz(tmp_path / "a.npz", header, bytes(40))
    with pytest.raises(FileFormatError, match=r"a\.npz"):
        read_npz(path)


def test_a_header_that_python_cannot_parse_is_refused(tmp_path: Path) -> None:
    path, header = tmp_path / "a.npz", b"{'descr': '<f8', 'shape': (" + b"1L, " * 10
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", content)
    with pytest.raises(FileFormatError, match=r"a\.npz: x: its header cannot be read"):
        read_npz(path)


def test_a_file_of_proc_that_never_ends_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "link"
    path.symlink_to("/proc/self/status")  # states a size of zero, as /proc/kmsg does, and has more
    assert read_bytes(path) == b""
    with pytest.raises(FileFormatError, match="the file is empty"):
        read_npz(path)


def test_an_archive_that_unpacks_to_more_than_the_limit_is_not_unpacked(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, x=np.zeros(10**6))
    (tmp_path / "bomb.npz").write_bytes(buffer.getvalue())
    assert len(buffer.getvalue()) < 10**5
    with pytest.raises(FileFormatError, match="x: unpacks to more than 1000 bytes"):
        read_npz(tmp_path / "bomb.npz", most=1000)


def test_arrays_are_read_as_numpy_does(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {
        "a": rng.normal(size=(3, 4)),
        "f": np.asfortranarray(rng.integers(0, 9, (2, 5))),
        "s": np.array(["x", "yz"]),
        "zero": np.zeros((0, 3)),
        "scalar": np.array(3.0),
    }
    np.savez(tmp_path / "a.npz", **cast(dict[str, Any], arrays))
    found, names = read_npz(tmp_path / "a.npz")
    assert names == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)


def test_an_idx_file_is_measured_by_its_header_before_it_is_unpacked(tmp_path: Path) -> None:
    head = b"\x00\x00\x08\x03" + b"".join(n.to_bytes(4, "big") for n in (6000, 1000, 1000))
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(head + bytes(10**6)))
    with pytest.raises(DataError, match="which it cannot hold"):
        read_idx(path)
    small = b"\x00\x00\x08\x01" + (4).to_bytes(4, "big")
    path.write_bytes(gzip.compress(small + bytes(10**6)))
    with pytest.raises(DataError, match="but holds more"):
        read_idx(path)
    path.write_bytes(gzip.compress(small + bytes([1, 2, 3, 4])))
    assert read_idx(path).tolist() == [1, 2, 3, 4]


def test_a_bounded_reader_stops_a_stream_that_goes_on(tmp_path: Path) -> None:
    packed = tmp_path / "a.gz"
    packed.write_bytes(gzip.compress(bytes(10**6)))
    with gzip.open(packed) as file:
        bounded = BoundedReader(file, 1000, "a.gz", ValueError)
        assert len(bounded.read(1000)) == 1000
        with pytest.raises(ValueError, match=r"a\.gz: unpacks to more than the 1000 bytes"):
            bounded.read()


def test_rows_survive_being_read_and_written(tmp_path: Path) -> None:
    row = {"epoch": 1, "loss": 0.1 + 0.2, "name": "ü", "n": 2**62}
    (tmp_path / "m.jsonl").write_text(json.dumps(row) + "\n")
    assert json.dumps(read_jsonl(tmp_path / "m.jsonl")[0]) == json.dumps(row)


@pytest.mark.parametrize("text", ['{"a": "\\ud800"}', '{"\\udc00": 1}', '[["\\udfff"]]'])
def test_half_a_character_is_refused(text: str) -> None:
    with pytest.raises(FileFormatError, match="an unpaired surrogate"):
        parse_json(text, "a file")
