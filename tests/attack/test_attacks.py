"""Some of the attacks of sims/attack; more of them are run by hand, see docs/results/attacks.md."""

from __future__ import annotations

import gzip
import importlib
import io
import os
import shutil
import sys
import tarfile
from pathlib import Path
from random import Random

import h5py
import pytest

from neuro_eqprop.chips.profiles.load import load_profile
from neuro_eqprop.chips.profiles.schema import ProfileError
from neuro_eqprop.data.cifar10 import from_archive
from neuro_eqprop.data.split import DataError
from neuro_eqprop.files.read import BoundedReader, FileFormatError
from neuro_eqprop.traces.lazy import read
from neuro_eqprop.traces.schema import TraceError

SIMS = Path(__file__).parents[2] / "sims" / "attack"
sys.path.insert(0, str(SIMS))
fuzz, harness, readers = (importlib.import_module(n) for n in ("fuzz", "harness", "readers"))
sys.path.remove(str(SIMS))

COUNT = 320
"""Mutated files of each reader: more than 10,000 for all of them."""


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("valid")
    readers.make_valid_files(folder)
    return folder


@pytest.mark.parametrize("name", readers.readers())
def test_mutated_files_are_read_or_refused_by_name(name: str, valid: Path, tmp_path: Path) -> None:
    found = fuzz.attack(name, valid, COUNT, seed=3, keep=tmp_path)
    fuzz.keep_row({"reader": name, "files": COUNT, **found})
    assert set(found) <= {"read", "refused"}
    assert sum(found.values()) == COUNT
    assert "report" in name or name == "lock" or found["refused"] > COUNT // 4


@pytest.mark.parametrize(
    ("name", "count"),
    [
        *(("disks", 2), ("parents", 1), ("soak", 20)),
        *(("force", 4), ("links", 4), ("locks", 200), ("caches", 8)),
    ],
)
def test_the_harness_finds_nothing(name: str, count: int, tmp_path: Path) -> None:
    tried, held, failures = harness.ATTACKS[name](count, tmp_path, Random(1))
    assert (tried, failures) == (held, [])


def test_a_chain_of_profiles_is_refused_where_it_is_too_long(tmp_path: Path) -> None:
    for k in range(40):
        (tmp_path / f"p{k}.toml").write_text(f'extends = "p{k + 1}"\n')
    with pytest.raises(ProfileError, match="16 profiles extend each other"):
        load_profile(tmp_path / "p0.toml")


def test_links_of_a_trace_to_other_files_are_not_followed(valid: Path, tmp_path: Path) -> None:
    path, pipe = tmp_path / "t.h5", tmp_path / "pipe"
    shutil.copy(valid / "trace.h5", path)
    os.mkfifo(pipe)
    with h5py.File(path, "r+") as file:
        del file["origin"]
        file["origin"] = h5py.ExternalLink(str(pipe), "/")
    with pytest.raises(TraceError, match="lies in another file"):
        read(path)


def test_a_member_of_an_archive_that_claims_too_much_is_refused(tmp_path: Path) -> None:
    path, buffer = tmp_path / "cifar.tar.gz", io.BytesIO()
    entry = tarfile.TarInfo("cifar-10-batches-bin/data_batch_1.bin")
    entry.pax_headers = {"size": "9" * 30}
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(entry)
    path.write_bytes(gzip.compress(buffer.getvalue()))
    with pytest.raises(DataError, match="claims 9999"):
        from_archive(path)


def test_a_stream_that_is_read_again_and_again_at_its_end_is_an_error() -> None:
    stream = BoundedReader(io.BytesIO(b"abc"), 10, "a file", FileFormatError)
    assert stream.read(5) == b"abc"
    with pytest.raises(FileFormatError, match="a file: claims to hold more than it does"):
        list(iter(lambda: stream.read(5), b"never"))
