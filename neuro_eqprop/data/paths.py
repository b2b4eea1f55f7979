"""Where the files of data sets are looked for, and where fetched ones are put."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from neuro_eqprop.data.dataset import DataError

FOLDER = "NEURO_EQPROP_DATA"
"""The environment variable that names a folder with a sub-folder for each data set."""

SYSTEM = Path("/usr/share/datasets")
"""Where Debian puts data sets, Fashion-MNIST with its package dataset-fashion-mnist."""


def cache() -> Path:
    """The user's own folder for what was fetched."""
    named = os.environ.get("XDG_CACHE_HOME")
    return (Path(named) if named else Path.home() / ".cache") / "neuro_eqprop" / "datasets"


def home() -> Path:
    """The folder above those of fetched data sets: the named one, or the user's own."""
    named = os.environ.get(FOLDER)
    return Path(named) if named else cache()


def folders(name: str) -> list[Path]:
    """Where the files of a data set are looked for, in this order."""
    named = os.environ.get(FOLDER)
    places = [Path(named)] if named else []
    return [place / name for place in (*places, SYSTEM, Path("datasets"), cache())]


def find_any(name: str, patterns: Sequence[str]) -> Path | None:
    """The first folder of a data set that holds a file of one of these patterns."""
    for folder in folders(name):
        if any(any(folder.glob(pattern)) for pattern in patterns):
            return folder
    return None


def not_here(name: str, what: str) -> DataError:
    """The sentence on a data set whose files are not here."""
    places = ", ".join(str(place) for place in folders(name))
    return DataError(
        f"data set {name!r} is not here (looked in {places}); `neuro-eqprop data get {name}` "
        f"fetches it, or put its {what} into a folder {name}/ and name the folder above it in "
        f"{FOLDER}"
    )
