"""SST-2, sentiment of sentences from film reviews (Socher et al. 2013), as token ids.

A sentence is split into lower-case words and punctuation marks. The first `tokens` of them become
ids: 0 is padding, 1 is an unknown word, and the `words` most frequent words of the training
sentences are numbered from 2, the most frequent first.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.data.dataset import Dataset
from neuro_eqprop.data.info import DatasetInfo
from neuro_eqprop.data.paths import folder_of
from neuro_eqprop.data.split import DataError, Split
from neuro_eqprop.files.read import file_size, read_bytes

NAME, ARCHIVE = "sst2", "SST-2.zip"
PARTS = ("train.tsv", "dev.tsv")
FILES = (ARCHIVE, PARTS[0], f"SST-2/{PARTS[0]}")
"""Files by which the folder of the data set is found, packed or unpacked."""
TOKENS, WORDS = 40, 20000
"""Default length of a sentence, and size of the vocabulary."""
LARGEST = 1 << 26
"""Most bytes of a file of sentences, far above the size of SST-2."""

PADDING, UNKNOWN = 0, 1
TOKEN = re.compile(r"[a-z0-9]+(?:'[a-z]+)?|[^\sa-z0-9]")


def load_sst2(*, tokens: int = TOKENS, words: int = WORDS) -> Dataset:
    """Load SST-2; the development sentences of GLUE are the test samples.

    Parameters
    ----------
    tokens : int
        Tokens of a sentence; longer ones are cut, shorter ones padded.
    words : int
        Number of most frequent words with an id.

    Returns
    -------
    Dataset
        Token ids (samples, tokens); classes 0 (negative) and 1 (positive).
    """
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
    """Read the files of the training and the development sentences."""
    folder = folder_of(NAME, FILES, f"GLUE files ({ARCHIVE}, or {' and '.join(PARTS)})")
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
    """Read one file of the archive."""
    with archive.open(f"SST-2/{part}") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise DataError(f"{part} of {NAME!r} has more than {LARGEST} bytes; fetch it again")
    return content


def tokenise(text: str) -> list[str]:
    """Split a text into lower-case words and punctuation marks."""
    return TOKEN.findall(text.lower())


def sentences(content: bytes, part: str) -> tuple[list[list[str]], Ints]:
    """Parse lines of a sentence, a tab and a label (0 negative, 1 positive)."""
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
    """Return the ids of the most frequent tokens, from 2; ties are in alphabetical order."""
    counts = Counter(token for text in texts for token in text)
    order = sorted(counts, key=lambda token: (-counts[token], token))
    return {token: place + 2 for place, token in enumerate(order[:words])}


def token_ids(texts: Sequence[Sequence[str]], known: Mapping[str, int], tokens: int) -> Array:
    """Return token ids (texts, tokens), cut or padded."""
    ids = np.full((len(texts), tokens), float(PADDING))
    for row, text in enumerate(texts):
        cut = text[:tokens]
        ids[row, : len(cut)] = [known.get(token, UNKNOWN) for token in cut]
    return ids


SST2 = DatasetInfo(NAME, "film reviews", load_sst2, (TOKENS,), 2, 67349, 872, files=FILES)
