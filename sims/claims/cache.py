"""Stored results of cells: one JSON file per cell, named by the SHA-256 of its configuration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from neuro_eqprop.files.read import read_json
from neuro_eqprop.files.write import write_bytes
from neuro_eqprop.runs.executors.task import outcome_line
from sims.claims.claim import Cell, CellResult

CELLS = "cells"


class CacheError(ValueError):
    """A stored result is invalid."""


def cell_path(folder: Path, cell: Cell) -> Path:
    """The file with the result of a cell."""
    return folder / CELLS / f"{cell.key}.json"


def store(folder: Path, outcome: CellResult) -> None:
    """Write a result, or the error of a failed cell, atomically."""
    cell = outcome.cell
    line = outcome_line(
        outcome.values, outcome.error, outcome.seconds, configuration=cell.configuration()
    )
    write_bytes(cell_path(folder, cell), line)


def load(folder: Path, cell: Cell) -> CellResult | None:
    """The stored result of a cell, or None if there is none."""
    path = cell_path(folder, cell)
    if not path.is_file():
        return None
    try:
        entry = read_json(path)
    except (OSError, ValueError) as error:
        raise CacheError(f"{path} cannot be read ({error}); remove it and run again") from error
    if not isinstance(entry, dict) or entry.get("configuration") != cell.configuration():
        raise CacheError(f"{path} holds the result of another configuration; remove it")
    values, failure, seconds = entry.get("values"), entry.get("error"), entry.get("seconds")
    if not isinstance(values, dict) or not isinstance(seconds, int | float):
        raise CacheError(f"{path} is not the result of a cell; remove it and run again")
    return CellResult(cell, values, None if failure is None else str(failure), float(seconds))


def missing(folder: Path, cells: Iterable[Cell]) -> list[Cell]:
    """The distinct cells without a stored result; a failed cell counts as missing."""
    wanted: dict[str, Cell] = {}
    for cell in cells:
        kept = load(folder, cell)
        if kept is None or kept.error is not None:
            wanted.setdefault(cell.key, cell)
    return list(wanted.values())


def gather(folder: Path, cells: Sequence[Cell]) -> list[CellResult] | None:
    """The stored results of all cells, or None if one is missing."""
    found = [load(folder, cell) for cell in cells]
    complete = [each for each in found if each is not None]
    return complete if len(complete) == len(found) else None
