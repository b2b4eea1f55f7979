"""Execute the tutorials and store their outputs, pictures included.

    python sims/tutorials/execute.py [NAME ...]

The tests execute them as well, and compare nothing but that they run.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"


def execute(path: Path) -> float:
    """Execute a notebook in an empty folder and write it back; the seconds that it took."""
    book = nbformat.read(path, as_version=4)
    for cell in book.cells:
        cell.metadata = {}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(
            book, timeout=300, kernel_name="python3", resources=resources, record_timing=False
        ).execute()
    book.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    nbformat.write(book, path)
    return time.monotonic() - began


def main() -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    paths = [FOLDER / f"{name}.ipynb" for name in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb"))
    for path in paths:
        sys.stdout.write(f"{path.stem}: {execute(path):.1f} s\n")


if __name__ == "__main__":
    main()
