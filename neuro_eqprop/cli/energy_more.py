"""More of `energy`: accuracy for joules over a run's evaluations, and two runs side by side."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from neuro_eqprop.cli.base import Json

if TYPE_CHECKING:
    from neuro_eqprop.analysis.joules import Options
    from neuro_eqprop.analysis.trade import Point
    from neuro_eqprop.profiles import Profile
    from neuro_eqprop.spiking.workloads import Workload


def points(
    workload: Workload, chips: Iterable[Profile], how: Options, *, code: str, accuracy: float
) -> Iterator[tuple[str, Point]]:
    """One point of the curve for each chip whose joules are known."""
    from neuro_eqprop.analysis.joules import bill
    from neuro_eqprop.analysis.trade import Point

    for chip in chips:
        found = bill(workload, chip, replace(how, draws=2001)).inference.estimate
        if found is not None and found.joules is not None:
            joules = found.joules
            numbers = (joules.value, joules.low, joules.high)
            yield chip.name, Point(code, workload.steps, accuracy, *numbers)


def evaluations(run: Path) -> dict[tuple[str, int], float]:
    """Accuracy by code and steps, from the run's evaluations; the last of each counts."""
    path = run / "evaluations.jsonl"
    if not path.is_file():
        way = f"`neuro-eqprop evaluate {run} --on reference`"
        raise ValueError(f"{path} is missing; {way} makes it")
    found = {}
    for place, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        row = evaluation(line, f"{path}: line {place}")
        if row.get("code") and row.get("steps"):
            found[str(row["code"]), int(row["steps"])] = float(row["accuracy"])
    if not found:
        raise ValueError(f"{path} holds no evaluation of spikes; evaluate on a simulator first")
    return found


def evaluation(line: str, where: str) -> Json:
    """One line, checked for what is read of it."""
    try:
        row = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{where} is not JSON: {error}") from error
    if not isinstance(row, dict) or not isinstance(row.get("accuracy"), int | float):
        raise ValueError(f"{where} is no evaluation: it has no accuracy")
    if not isinstance(row.get("steps"), int | None):
        raise ValueError(f"{where} is no evaluation: its steps are no number")
    return row


def beside(outcome: Json, other: Path) -> list[Json]:
    """The joules of an inference of two runs; not compared where they enclose different things."""
    from neuro_eqprop.files.countsfile import read_json

    path = other / "energy.json"
    if not path.is_file():
        raise ValueError(f"{path} is missing; `neuro-eqprop energy {other}` makes it")
    try:
        theirs = {each["profile"]: each["inference"] for each in read_json(path)["profiles"]}
        rows = []
        for each in outcome["profiles"]:
            mine, its = each["inference"], theirs.get(each["profile"])
            if its is None:
                continue
            same = mine["boundary"] == its["boundary"] and mine["joules"] and its["joules"]
            times = mine["joules"] / its["joules"] if same else None
            row = {"profile": each["profile"], "joules": mine["joules"], "other": its["joules"]}
            boundaries = [mine["boundary"], its["boundary"]]
            rows.append({**row, "times": times, "boundaries": boundaries})
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} is no file of this command: {error!r} is not there") from error
    return rows
