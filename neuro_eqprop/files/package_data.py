"""Data folders that ship with the package."""

from __future__ import annotations

from pathlib import Path


def data_folder(name: str) -> Path:
    """A data folder: inside an installed package, or beside the package in a checkout."""
    package = Path(__file__).resolve().parent.parent
    for folder in (package / name, package.parent / name):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(
        f"no folder {name} in {package} or {package.parent}; install the package again"
    )
