"""Data in the forms that people hold them become the same data set."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import neuro_eqprop as ne
from neuro_eqprop.data import DataError, Split

RNG = np.random.default_rng(0)
X, Y = RNG.random((40, 3)).round(3), np.arange(40) % 2
TENSORS = torch.tensor(X), torch.tensor(Y)


def as_csv(folder: Path, separator: str = ",", head: bool = True) -> Path:
    names = [["a", "b", "c", "kind"]] if head else []
    words = [[*map(str, row), ("no", "yes")[label]] for row, label in zip(X, Y, strict=True)]
    (folder / "mine.csv").write_text("\n".join(separator.join(row) for row in names + words))
    return folder / "mine.csv"


def numbered_csv(folder: Path) -> Path:
    pd.DataFrame(X).assign(label=Y).to_csv(folder / "mine.csv", index=False)
    return folder / "mine.csv"


class Columns(dict[str, Any]):
    """A table as Hugging Face has it."""

    column_names = ("a", "label")


class Pairs:
    """A sequence of samples with their labels."""

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, k: int) -> tuple[Any, int]:
        return X[k], int(Y[k])


FORMS: dict[str, Callable[[Path], object]] = {
    "arrays": lambda _: (X, Y),
    "lists": lambda _: [X.tolist(), Y.tolist()],
    "tensors": lambda _: TENSORS,
    "labels as floats, a column": lambda _: (X, Y[:, None].astype(float)),
    "torch data set": lambda _: TensorDataset(*TENSORS),
    "torch loader": lambda _: DataLoader(TensorDataset(*TENSORS), batch_size=7),
    "sequence of pairs": lambda _: Pairs(),
    "data frame": lambda _: pd.DataFrame(X, columns=list("abc")).assign(label=Y),
    "label in front": lambda _: pd.DataFrame(
        {"target": Y, "a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}
    ),
    "categories": lambda _: pd.DataFrame(X).assign(kind=pd.Categorical.from_codes(Y, ["n", "y"])),
    "columns": lambda _: {"data": X.tolist(), "label": Y.tolist()},
    "Hugging Face": lambda _: Columns(a=X, label=Y),
    "CSV": as_csv,
    "CSV without head": lambda folder: as_csv(folder, head=False),
    "CSV with numbers as names": numbered_csv,
    "CSV with semicolons": lambda folder: as_csv(folder, ";"),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_gives_the_same_samples(form: str, tmp_path: Path) -> None:
    expected, found = ne.Dataset(X, Y), ne.load_data(FORMS[form](tmp_path))
    np.testing.assert_allclose(found.train.x, expected.train.x)
    np.testing.assert_array_equal(found.train.y, expected.train.y)
    np.testing.assert_allclose(found.test.x, expected.test.x)


@pytest.mark.parametrize(
    "given",
    [
        (X[:30], Y[:30], X[30:], Y[30:]),
        ((X[:30], Y[:30]), (X[30:], Y[30:])),
        {"train": {"data": X[:30], "label": Y[:30]}, "test": {"data": X[30:], "label": Y[30:]}},
        {"train": (X[:30], Y[:30]), "validation": (X[30:], Y[30:])},
        tuple(TensorDataset(*(t[part] for t in TENSORS)) for part in (slice(30), slice(30, 40))),
    ],
    ids=["four arrays", "two pairs", "splits of columns", "splits of pairs", "torch data sets"],
)
def test_test_samples_that_are_given_are_kept(given: object) -> None:
    data = ne.load_data(given)
    assert len(data.train) == 30
    np.testing.assert_allclose(data.test.x, X[30:])


def test_images_of_bytes_have_their_colours_first() -> None:
    pictures = RNG.integers(0, 256, (20, 6, 5, 3), dtype=np.uint8)
    data = ne.load_data({"image": list(pictures), "label": Y[:20].tolist()})
    assert data.shape == (3, 6, 5)
    grey = ne.load_data([(picture[..., 0], int(k % 2)) for k, picture in enumerate(pictures)])
    assert grey.shape == (1, 6, 5)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"text": ["a", "b"] * 20, "label": Y}, "column 'text' holds no numbers"),
        ({"label": Y}, "needs columns of samples and of labels"),
        (TensorDataset(TENSORS[0]), "pairs"),
        ((X, Y[:-1]), "40 samples, y has 39"),
        (([[1.0], [2.0, 3.0]], [0, 1]), "differ in shape"),
    ],
)
def test_what_is_missing_is_said(given: object, words: str) -> None:
    with pytest.raises(DataError, match=words):
        ne.load_data(given)


@pytest.mark.parametrize("given", [3, object(), X])
def test_other_things_are_refused_with_the_known_forms(given: object) -> None:
    with pytest.raises(TypeError, match="DataLoader"):
        ne.load_data(given)


@pytest.mark.parametrize(
    ("text", "words"),
    [("a,b\n1,2\n3\n", "row 2: 1 cells"), ("a,a\n1,2\n3,4\n", "same name"), ("1,2\n", "1 lines")],
)
def test_a_damaged_table_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(DataError, match=rf"bad\.csv.*{words}"):
        ne.load_data(tmp_path / "bad.csv")


def test_splits_of_arrays_say_what_to_give() -> None:
    with pytest.raises(TypeError, match=r"takes a Split\(x, y\)"):
        ne.Dataset.from_splits("mine", (X, Y), Split(X, Y), 2)  # type: ignore[arg-type]


def test_a_run_of_arrays_and_of_a_table_can_be_opened_again(tmp_path: Path) -> None:
    for name, data in (("arrays", (X, Y)), ("table", as_csv(tmp_path))):
        ne.train("layered", data, hidden=(4,), epochs=1, out=tmp_path / name)
        assert len(ne.open_run(tmp_path / name).data.test) == 8
