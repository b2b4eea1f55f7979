from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from neuro_eqprop import data
from neuro_eqprop.common.arrays import Array, Ints, UnknownNameError
from neuro_eqprop.data import (
    DATASETS,
    DataError,
    Dataset,
    DatasetInfo,
    Split,
    batches,
    load_data,
    missing,
    one_hot,
)
from neuro_eqprop.data.idx import read_idx

Spoil = Callable[[bytes], bytes]
FILES = {
    "train-images-idx3-ubyte": (12, 4, 4),
    "train-labels-idx1-ubyte": (12,),
    "t10k-images-idx3-ubyte": (5, 4, 4),
    "t10k-labels-idx1-ubyte": (5,),
}


def idx_bytes(array: Array | Ints) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    return head + array.astype(np.uint8).tobytes()


def contents() -> dict[str, bytes]:
    rng = np.random.default_rng(0)
    return {
        name: idx_bytes(rng.integers(0, 256 if "images" in name else 10, shape))
        for name, shape in FILES.items()
    }


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a small data set under the name mnist."""
    folder = tmp_path / "mnist"
    folder.mkdir()
    for name, content in contents().items():
        (folder / name).write_bytes(content)
    monkeypatch.setenv(data.FOLDER, str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return folder


def test_digits_are_split_as_promised() -> None:
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    x, y = load_digits(return_X_y=True)
    parts = train_test_split(x, y, test_size=360, stratify=y, random_state=0)
    found = load_data("digits")
    assert np.array_equal(found.train.x, parts[0] / 16)
    assert np.array_equal(found.test.x, parts[1] / 16)
    assert np.array_equal(found.train.y, parts[2])
    assert np.array_equal(found.test.y, parts[3])
    assert (len(found.train), len(found.test), found.features, found.classes) == (1437, 360, 64, 10)
    assert found.train.x.min() == 0.0
    assert found.train.x.max() == 1.0


def test_an_unknown_name_lists_the_known_ones_closest_first() -> None:
    with pytest.raises(UnknownNameError, match=r"'fashion'; known: fashion-mnist, "):
        load_data("fashion")


@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gzipped"])
def test_idx_files_are_read_gzipped_or_not(shelf: Path, zipped: bool) -> None:
    if zipped:
        for path in list(shelf.iterdir()):
            Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    found, raw = load_data("mnist"), contents()
    assert (len(found.train), len(found.test), found.features, found.classes) == (12, 5, 16, 10)
    pixels = np.frombuffer(raw["t10k-images-idx3-ubyte"][16:], np.uint8).reshape(5, 16)
    assert np.array_equal(found.test.x, pixels / 255)
    assert found.test.y.tolist() == list(raw["t10k-labels-idx1-ubyte"][8:])
    assert found.shape == (1, 4, 4)
    assert data.summary()["mnist"] == str(shelf)


def test_the_named_folder_is_looked_at_first_and_then_debians(shelf: Path) -> None:
    assert data.folders("mnist")[0] == shelf
    assert data.folders("fashion-mnist")[1] == Path("/usr/share/datasets/fashion-mnist")


def cut(content: bytes) -> bytes:
    return content[:-1]


def more(content: bytes) -> bytes:
    return content + b"\0"


def foreign(content: bytes) -> bytes:
    return b"\x89PNG" + content


def floats(content: bytes) -> bytes:
    return content[:2] + b"\x0d" + content[3:]


def headless(content: bytes) -> bytes:
    return content[:3]


def without_axes(content: bytes) -> bytes:
    return b"\0\0\x08\0" + b"\x05"


def overflowing(content: bytes) -> bytes:
    return b"\0\0\x08\x02" + 2 * (2**32 - 1).to_bytes(4, "big")


def zero_rows(content: bytes) -> bytes:
    return b"\0\0\x08\x01" + bytes(4)


def nothing(content: bytes) -> bytes:
    return b""


SPOILS = [cut, more, foreign, floats, headless, without_axes, overflowing, zero_rows, nothing]


@pytest.mark.parametrize("spoil", SPOILS, ids=lambda f: str(f.__name__))
@pytest.mark.parametrize("name", list(FILES))
def test_a_file_that_is_not_whole_is_refused_by_name(shelf: Path, name: str, spoil: Spoil) -> None:
    path = shelf / name
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(DataError, match=name):
        load_data("mnist")


def test_every_cut_of_a_gzipped_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "labels-ubyte.gz"
    whole = gzip.compress(contents()["train-labels-idx1-ubyte"])
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"labels-ubyte\.gz"):
            read_idx(path)
    path.write_bytes(whole)
    assert read_idx(path).shape == (12,)


def test_a_gzipped_file_with_a_broken_byte_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "labels-ubyte.gz"
    whole = gzip.compress(contents()["train-labels-idx1-ubyte"], mtime=0)
    for place in range(10, len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with pytest.raises(DataError, match=r"labels-ubyte\.gz"):
            read_idx(path)


def test_counts_that_do_not_match_are_refused(shelf: Path) -> None:
    (shelf / "train-labels-idx1-ubyte").write_bytes(idx_bytes(np.zeros(11)))
    with pytest.raises(DataError, match="train samples of 'mnist'"):
        load_data("mnist")


def test_labels_beyond_the_classes_are_refused(shelf: Path) -> None:
    (shelf / "t10k-labels-idx1-ubyte").write_bytes(idx_bytes(np.full(5, 10)))
    with pytest.raises(DataError, match=r"test samples of 'mnist': labels are outside 0\.\.9"):
        load_data("mnist")


def test_images_of_another_size_are_refused(shelf: Path) -> None:
    (shelf / "t10k-images-idx3-ubyte").write_bytes(idx_bytes(np.zeros((5, 3, 3))))
    with pytest.raises(DataError, match="differ in size"):
        load_data("mnist")


def test_a_missing_part_is_named(shelf: Path) -> None:
    (shelf / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(DataError, match="no t10k-labels file"):
        load_data("mnist")


def test_a_data_set_that_is_not_here_says_where_to_put_it(shelf: Path) -> None:
    with pytest.raises(DataError, match=rf"searched {shelf.parent}.*NEURO_EQPROP_DATA"):
        load_data("kmnist")
    assert data.summary()["kmnist"] == "not here"
    assert data.summary()["digits"] == "embedded"


def test_a_shape_is_that_of_one_sample() -> None:
    good = Split(np.zeros((3, 6)), np.zeros(3, dtype=np.int64))
    assert Dataset.from_splits("made", good, good, 2).shape == (6,)
    assert Dataset.from_splits("made", good, good, 2, (2, 3)).shape == (2, 3)
    assert load_data("digits").shape == (1, 8, 8)
    with pytest.raises(DataError, match=r"shape \(2, 2\) has 4 numbers, but there are 6"):
        Dataset.from_splits("made", good, good, 2, (2, 2))


def test_validation_samples_are_checked_like_the_others() -> None:
    good = Split(np.zeros((3, 2)), np.zeros(3, dtype=np.int64))
    for bad, match in (
        (Split(np.zeros((3, 2)), np.full(3, 2)), "validation samples of 'made': labels"),
        (Split(np.zeros((3, 4)), good.y), "train and validation samples differ"),
    ):
        with pytest.raises(DataError, match=match):
            Dataset.from_splits("made", good, good, 2, validation=bad)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(value: float) -> None:
    good = Split(np.zeros((3, 2)), np.zeros(3, dtype=np.int64))
    x = np.zeros((3, 2))
    x[1, 0] = value
    with pytest.raises(DataError, match="test samples of 'made': sample 1 holds values"):
        Dataset.from_splits("made", good, Split(x, good.y), 2)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (Split(np.zeros((0, 2)), np.zeros(0, dtype=np.int64)), "there are no samples"),
        (Split(np.zeros((3, 2)), np.zeros(2, dtype=np.int64)), "do not match"),
        (Split(np.zeros((3, 2, 2)), np.zeros(3, dtype=np.int64)), "do not match"),
        (Split(np.zeros((3, 2)), np.full(3, -1)), "labels are outside"),
    ],
    ids=["empty", "fewer labels", "not flat", "negative label"],
)
def test_samples_that_do_not_fit_are_refused(bad: Split, why: str) -> None:
    good = Split(np.zeros((3, 2)), np.zeros(3, dtype=np.int64))
    with pytest.raises(DataError, match=f"train samples of 'made': .*{why}"):
        Dataset.from_splits("made", bad, good, 2)


def test_batches_hold_every_sample_once_in_an_order_of_their_seed() -> None:
    split = Split(np.zeros((10, 1)), np.zeros(10, dtype=np.int64))
    orders = [list(batches(split, 4, np.random.default_rng(seed))) for seed in (0, 0, 1)]
    assert [len(rows) for rows in orders[0]] == [4, 4, 2]
    assert sorted(np.concatenate(orders[0])) == list(range(10))
    assert np.array_equal(np.concatenate(orders[0]), np.concatenate(orders[1]))
    assert not np.array_equal(np.concatenate(orders[0]), np.concatenate(orders[2]))


def test_targets_are_one_at_the_class() -> None:
    assert one_hot(np.array([2, 0]), 3).tolist() == [[0, 0, 1], [1, 0, 0]]


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get(data.FOLDER), reason=f"{data.FOLDER} names no folder")
@pytest.mark.parametrize(
    ("name", "train", "test"),
    [
        (
            "mnist",
            [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
            [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
        ),
        ("fashion-mnist", [6000] * 10, [1000] * 10),
    ],
)
def test_the_real_files_are_what_the_world_knows(
    name: str, train: list[int], test: list[int]
) -> None:
    if data.find(name) is None:
        pytest.skip(f"{os.environ[data.FOLDER]} holds no {name}")
    found = load_data(name)
    assert np.bincount(found.train.y).tolist() == train
    assert np.bincount(found.test.y).tolist() == test
    assert (found.features, found.classes, found.shape) == (784, 10, (1, 28, 28))
    assert (found.train.x.min(), found.train.x.max()) == (0.0, 1.0)


@pytest.mark.data
@pytest.mark.parametrize("entry", DATASETS.values(), ids=list(DATASETS))
def test_the_list_agrees_with_what_is_loaded(entry: DatasetInfo) -> None:
    if missing(entry):
        pytest.skip(f"{entry.name} is not here")
    found = load_data(entry.name)
    assert found.name == entry.name
    assert (found.shape, found.classes) == (entry.shape, entry.classes)
    assert (len(found.train), len(found.test)) == (entry.train, entry.test)


def test_the_list_loads_nothing() -> None:
    heavy = {"sklearn", "gymnasium", "torch", "h5py"}
    code = f"""
import sys
from neuro_eqprop.cli import main
assert main(["data", "list", "--json"]) == 0
assert not {heavy} & set(sys.modules), {heavy} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    names = [each["name"] for each in json.loads(done.stdout)["datasets"]]
    assert names == list(DATASETS)
