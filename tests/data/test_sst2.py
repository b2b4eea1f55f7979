"""SST-2 from small made files: tokens, vocabulary, ids, and lines that do not fit."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from neuro_eqprop.data import FOLDER, DataError, load_data, load_sst2
from neuro_eqprop.data.sst2 import ARCHIVE, tokenise, vocabulary
from neuro_eqprop.data.verify import UNKNOWN, verify

TRAIN = "sentence\tlabel\nA good film , good fun\t1\nbad , bad film\t0\nit 's bad\t0\n"
DEV = "sentence\tlabel\ngood zebra\t1\n"


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sst2").mkdir()
    return tmp_path / "sst2"


def lay(folder: Path, train: str = TRAIN, dev: str = DEV) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "train.tsv").write_text(train)
    (folder / "dev.tsv").write_text(dev)


def pack(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("SST-2/train.tsv", TRAIN)
        archive.writestr("SST-2/dev.tsv", DEV)


def test_a_text_is_cut_into_lower_case_words_and_marks() -> None:
    assert tokenise("It's A good-ish film, No. 2!") == [
        *("it's", "a", "good", "-", "ish", "film", ",", "no", ".", "2", "!")
    ]
    assert tokenise("  ") == []


def test_the_vocabulary_is_by_frequency_and_then_by_the_alphabet() -> None:
    texts = [["b", "a", "c"], ["b", "c", "d"]]
    assert vocabulary(texts, 3) == {"b": 2, "c": 3, "a": 4}


@pytest.mark.parametrize("way", ["packed", "unpacked", "in its folder"])
def test_sentences_become_rows_of_token_ids(shelf: Path, way: str) -> None:
    if way == "packed":
        pack(shelf / ARCHIVE)
    else:
        lay(shelf if way == "unpacked" else shelf / "SST-2")
    found = load_sst2(tokens=5, words=4)
    assert (found.shape, found.features, found.classes, found.vocabulary) == ((5,), 5, 2, 6)
    assert found.train.y.tolist() == [1, 0, 0]
    assert found.test.y.tolist() == [1]
    bad, comma, film, good = 2, 3, 4, 5  # by frequency, then by the alphabet; 1 is any other word
    assert found.train.x.tolist() == [
        [1, good, film, comma, good],
        [bad, comma, bad, film, 0],
        [1, 1, 1, bad, 0],
    ]
    assert found.test.x.tolist() == [[good, 1, 0, 0, 0]]


def test_by_name_it_has_the_listed_size(shelf: Path) -> None:
    lay(shelf)
    assert load_data("sst2").shape == (40,)
    assert {each.verdict for each in verify("sst2")} == {UNKNOWN}
    pack(shelf / ARCHIVE)
    with pytest.raises(DataError, match=r"SST-2\.zip is not .*SHA-256 differs"):
        verify("sst2")


@pytest.mark.parametrize(
    ("train", "match"),
    [
        ("", "does not start with"),
        ("good\t1\n", "does not start with"),
        ("sentence\tlabel\ngood 1\n", r"train\.tsv of 'sst2', line 2"),
        ("sentence\tlabel\ngood\t1\nbad\t2\n", r"train\.tsv of 'sst2', line 3"),
        ("sentence\tlabel\n", r"train\.tsv of 'sst2' has no samples, .*fetch it again"),
    ],
)
def test_lines_that_do_not_fit_are_refused(shelf: Path, train: str, match: str) -> None:
    lay(shelf, train)
    with pytest.raises(DataError, match=match):
        load_data("sst2")


def test_files_that_are_not_whole_are_refused(shelf: Path) -> None:
    lay(shelf)
    (shelf / "train.tsv").write_bytes(b"sentence\tlabel\n\xff\t1\n")
    with pytest.raises(DataError, match=r"train\.tsv of 'sst2' is not text"):
        load_data("sst2")
    (shelf / "dev.tsv").unlink()
    with pytest.raises(DataError, match=r"dev\.tsv"):
        load_data("sst2")
    pack(shelf / ARCHIVE)
    whole = (shelf / ARCHIVE).read_bytes()
    for bad in (b"", whole[:100], whole.replace(b"dev.tsv", b"dav.tsv")):
        (shelf / ARCHIVE).write_bytes(bad)
        with pytest.raises(DataError, match="does not hold all of 'sst2'"):
            load_data("sst2")


def test_what_cannot_be_asked_for_is_refused(shelf: Path) -> None:
    with pytest.raises(DataError, match=r"'sst2' is not here.*data get sst2"):
        load_data("sst2")
    for tokens, words in ((0, 1), (1, 0)):
        with pytest.raises(DataError, match="at least one"):
            load_sst2(tokens=tokens, words=words)
