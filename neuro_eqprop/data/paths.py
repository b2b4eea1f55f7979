"""Folders that are searched for data sets, and the folder for downloads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from neuro_eqprop.data.split import DataError

FOLDER = "NEURO_EQPROP_DATA"
"""Environment variable for a folder with a subfolder per data set."""

SYSTEM = Path("/usr/share/datasets")
"""Folder of Debian packages with data sets, such as dataset-fashion-mnist."""


def cache() -> Path:
    """Return the user's cache folder for data sets."""
    named = os.environ.get("XDG_CACHE_HOME")
    return (Path(named) if named else Path.home() / ".cache") / "neuro_eqprop" / "datasets"


def home() -> Path:
    """Return the folder for downloads: that of the environment variable, else the cache."""
    named = os.environ.get(FOLDER)
    return Path(named) if named else cache()


def folders(name: str) -> list[Path]:
    """Return the folders that are searched for a data set, in order."""
    named = os.environ.get(FOLDER)
    places = [Path(named)] if named else []
    return [place / name for place in (*places, SYSTEM, Path("datasets"), cache())]


def find_any(name: str, patterns: Sequence[str]) -> Path | None:
    """Return the first folder of a data set with a file that matches a pattern, or None."""
    for folder in folders(name):
        if any(any(folder.glob(pattern)) for pattern in patterns):
            return folder
    return None


def folder_of(name: str, patterns: Sequence[str], what: str) -> Path:
    """Return the folder of a data set; raise DataError if there is none with a file that matches.

    `what` names the files in the error.
    """
    folder = find_any(name, patterns)
    if folder is not None:
        return folder
    places = ", ".join(str(place) for place in folders(name))
    raise DataError(
        f"data set {name!r} is not here (searched {places}); `neuro-eqprop data get {name}` "
        f"fetches it, or put its {what} into a folder {name}/ and name the folder above it in "
        f"{FOLDER}"
    )
