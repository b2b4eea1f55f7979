"""Where the folders of data lie that come with the package."""

from __future__ import annotations

from pathlib import Path


def shipped(name: str) -> Path:
    """A folder of that name: inside an installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    for place in (package / name, package.parent / name):
        if place.is_dir():
            return place
    raise FileNotFoundError(
        f"no folder {name} in {package} or {package.parent}; install the package again"
    )
