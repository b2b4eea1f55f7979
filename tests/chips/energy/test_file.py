"""Energy files that versions 0.1 and 0.2 wrote still open, with all they say."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from math import isclose
from pathlib import Path
from typing import Any

import pytest

from neuro_eqprop.chips.energy.file import EnergyFileError, read_energy, read_report

FILES = Path(__file__).parents[1] / "files"


def changed(old: Any, new: Any, path: str = "") -> list[str]:  # noqa: ANN401
    """The paths of values of `old` that `new` does not have."""
    if isinstance(old, dict):
        return [
            each
            for key, value in old.items()
            for each in (
                changed(value, new[key], f"{path}.{key}") if key in new else [f"{path}.{key}"]
            )
        ]
    if isinstance(old, list) and len(old) == len(new):
        return [
            each
            for k, (one, other) in enumerate(zip(old, new, strict=True))
            for each in changed(one, other, f"{path}[{k}]")
        ]
    if isinstance(old, float) and isinstance(new, float):
        # Computed again on reading, and from Python 3.12 on, `sum` of floats rounds once.
        return [] if isclose(old, new, rel_tol=1e-14) else [path]
    return [] if old == new else [path]


def without_nothing(value: Any) -> Any:  # noqa: ANN401
    """JSON without keys whose value is null and that came with version 0.3."""
    later = ("tier", "bits", "accuracy")
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if not (k in later and v is None)}
        return {key: without_nothing(each) for key, each in kept.items()}
    return [without_nothing(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("version", ["0_1", "0_2"])
def test_a_file_of_an_older_version_keeps_all_it_says(version: str) -> None:
    path = FILES / f"energy_{version}.json"
    old = json.loads(path.read_text())
    old.pop("schema", None)
    report = read_energy(path)
    assert [chip.profile for chip in report] == ["loihi1", "truenorth"]
    read = json.loads(json.dumps(report.to_json()))
    assert read.pop("file") == str(path)
    for each in (*old["comparison"], *read["comparison"]):
        each.pop("verdict", None)  # made from the other fields, in today's words
    assert changed(old, read) == []
    # Fields that came later say nothing about an older file.
    assert changed(without_nothing(read), old) == [] or version == "0_1"


def places(content: Any, most: int = 1) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401
    """The keys to every value, of lists only to the first ones."""
    if isinstance(content, dict | list):
        inside = content if isinstance(content, dict) else range(min(most, len(content)))
        for key in inside:
            yield (key,)
            yield from ((key, *rest) for rest in places(content[key]))


def test_a_wrong_value_anywhere_is_refused_with_a_sentence_or_ignored() -> None:
    content = json.loads((FILES / "energy_0_2.json").read_text())
    refused = 0
    for place in places(content):
        for wrong in (None, "x", [1, "x"], {"x": 1}):
            other = copy.deepcopy(content)
            *path, last = place
            inner = other
            for key in path:
                inner = inner[key]
            inner[last] = wrong
            try:
                read_report(other, "energy.json")
            except EnergyFileError as error:
                assert str(error).startswith("energy.json: ")  # noqa: PT017
                refused += 1
    assert refused > 500
