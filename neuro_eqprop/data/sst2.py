"""SST-2, sentences of film reviews with their sentiment (Socher et al. 2013), as token ids.

A sentence is split into lower-case words and punctuation marks, and its first `tokens` ones become
ids: 0 is padding, 1 stands for every word that is not among the `words` most frequent of the
training sentences, and the others are numbered from 2, the most frequent first.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.checked_files.read import file_size, read_bytes
from neuro_eqprop.data.dataset import DataError, Dataset, Split
from neuro_eqprop.data.info import DatasetInfo
from neuro_eqprop.data.paths import find_any, not_here

NAME, ARCHIVE = "sst2", "SST-2.zip"
PARTS = ("train.tsv", "dev.tsv")
FILES = (ARCHIVE, PARTS[0], f"SST-2/{PARTS[0]}")
"""A folder with one of these holds the data set: as the downloaded archive, or unpacked."""
TOKENS, WORDS = 40, 20000
LARGEST = 1 << 26
"""Limit on the bytes of a file of sentences, far above those of SST-2."""

PADDING, UNKNOWN = 0, 1
TOKEN = re.compile(r"[a-z0-9]+(?:'[a-z]+)?|[^\sa-z0-9]")


def load_sst2(*, tokens: int = TOKENS, words: int = WORDS) -> Dataset:
    """Sentences as rows of token ids; GLUE's development sentences are the test samples."""
    if min(tokens, words) < 1:
        raise DataError(f"{NAME!r} needs at least one token and word")
    (train, train_y), (test, test_y) = (
        sentences(*given) for given in zip(raw(), PARTS, strict=True)
    )
    known = vocabulary(train, words)
    return Dataset.from_splits(
        NAME,
        Split(token_ids(train, known, tokens), train_y),
        Split(token_ids(test, known, tokens), test_y),
        2,
        (tokens,),
        vocabulary=len(known) + 2,
    )


def raw() -> tuple[bytes, bytes]:
    """The bytes of the training and the development sentences."""
    folder = find_any(NAME, FILES)
    if folder is None:
        raise not_here(NAME, f"GLUE files ({ARCHIVE}, or {' and '.join(PARTS)})")
    archive, inner = folder / ARCHIVE, folder / "SST-2"
    try:
        if archive.is_file() and file_size(archive, DataError, empty=False):
            with zipfile.ZipFile(archive) as packed:
                first, second = (member(packed, part) for part in PARTS)
            return first, second
        place = inner if inner.is_dir() else folder
        train, test = (read_bytes(place / part, LARGEST, DataError) for part in PARTS)
        return train, test
    except (
        *(OSError, EOFError, KeyError, DataError, NotImplementedError, RuntimeError),
        *(zipfile.BadZipFile, zlib.error, ValueError),
    ) as error:
        raise DataError(f"{folder} does not hold all of {NAME!r} ({error})") from error


def member(archive: zipfile.ZipFile, part: str) -> bytes:
    """One file of the archive."""
    with archive.open(f"SST-2/{part}") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise DataError(f"{part} of {NAME!r} has more than {LARGEST} bytes; fetch it again")
    return content


def tokenise(text: str) -> list[str]:
    """The lower-case words and punctuation marks of a text."""
    return TOKEN.findall(text.lower())


def sentences(content: bytes, part: str) -> tuple[list[list[str]], Ints]:
    """The tokens and the label (0 bad, 1 good) of each line: a sentence, a tab, a label."""
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{part} of {NAME!r} is not text ({error}); fetch it again") from error
    if not lines or lines[0].split("\t") != ["sentence", "label"]:
        raise DataError(f"{part} of {NAME!r} does not start with the line 'sentence<tab>label'")
    texts, labels = [], []
    for number, line in enumerate(lines[1:], start=2):
        text, tab, label = line.rpartition("\t")
        if not tab or label not in {"0", "1"}:
            raise DataError(f"{part} of {NAME!r}, line {number}: no sentence, tab and 0 or 1")
        texts.append(tokenise(text))
        labels.append(int(label))
    if not texts:
        raise DataError(
            f"{part} of {NAME!r} has no samples, only its first line; fetch it again with "
            f"`neuro-eqprop data get {NAME}`"
        )
    return texts, np.array(labels, dtype=np.int64)


def vocabulary(texts: Iterable[Sequence[str]], words: int) -> dict[str, int]:
    """The index of each of the most frequent tokens, from 2; ties in alphabetical order."""
    counts = Counter(token for text in texts for token in text)
    order = sorted(counts, key=lambda token: (-counts[token], token))
    return {token: place + 2 for place, token in enumerate(order[:words])}


def token_ids(texts: Sequence[Sequence[str]], known: Mapping[str, int], tokens: int) -> Array:
    """The ids of the first tokens of each text, followed by padding."""
    ids = np.full((len(texts), tokens), float(PADDING))
    for row, text in enumerate(texts):
        cut = text[:tokens]
        ids[row, : len(cut)] = [known.get(token, UNKNOWN) for token in cut]
    return ids


SST2 = DatasetInfo(NAME, "film reviews", load_sst2, (TOKENS,), 2, 67349, 872, files=FILES)
