"""Results of cells, one JSON file each, found again by the SHA-256 of the configuration."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from neuro_eqprop.claims.claim import Cell, Outcome, canonical
from neuro_eqprop.io.atomic import write_bytes

CELLS = "cells"


class CacheError(ValueError):
    """A stored result is not as it should be; the message says the way out."""


def place(folder: Path, cell: Cell) -> Path:
    """The file of a cell."""
    return folder / CELLS / f"{cell.key}.json"


def store(folder: Path, outcome: Outcome) -> None:
    """Keep an outcome, also a failure; the file appears whole or not at all."""
    entry = {
        "configuration": outcome.cell.configuration(),
        "values": outcome.values,
        "error": outcome.error,
        "seconds": outcome.seconds,
    }
    write_bytes(place(folder, outcome.cell), canonical(entry) + b"\n")


def recall(folder: Path, cell: Cell) -> Outcome | None:
    """What is kept of a cell, if anything."""
    path = place(folder, cell)
    if not path.is_file():
        return None
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CacheError(f"{path} cannot be read ({error}); remove it and run again") from error
    if not isinstance(entry, dict) or entry.get("configuration") != cell.configuration():
        raise CacheError(f"{path} holds the result of another configuration; remove it")
    values, failure, seconds = entry.get("values"), entry.get("error"), entry.get("seconds")
    if not isinstance(values, dict) or not isinstance(seconds, int | float):
        raise CacheError(f"{path} is no result of a cell; remove it and run again")
    return Outcome(cell, values, None if failure is None else str(failure), float(seconds))


def missing(folder: Path, cells: Iterable[Cell]) -> list[Cell]:
    """The cells that have to be run, each configuration once; failures are tried again."""
    wanted: dict[str, Cell] = {}
    for cell in cells:
        kept = recall(folder, cell)
        if kept is None or kept.error is not None:
            wanted.setdefault(cell.key, cell)
    return list(wanted.values())


def gather(folder: Path, cells: Sequence[Cell]) -> list[Outcome] | None:
    """The outcomes of all cells, or None while one has not been run."""
    found = [recall(folder, cell) for cell in cells]
    whole = [each for each in found if each is not None]
    return whole if len(whole) == len(found) else None
