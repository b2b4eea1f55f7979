"""Files that the program wrote satisfy the schemas of the file formats, and broken ones do not."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from neuro_eqprop.chips.profiles.load import profile_folder
from neuro_eqprop.cli import main

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "docs" / "reference" / "schemas"


def call(*words: str) -> str:
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        assert main(list(words)) == 0
    return out.getvalue()


def errors(name: str, value: object) -> list[str]:
    """The violations of a schema, which is itself checked."""
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    found = jsonschema.Draft202012Validator(schema).iter_errors(value)
    return [f"{each.json_path}: {each.message}" for each in found]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder with everything that the commands write into one."""
    path = tmp_path_factory.mktemp("schemas") / "run"
    small = ("--hidden", "8", "--epochs", "1", "--batch", "512")
    call("train", *small, "--out", str(path))
    call("evaluate", str(path), "--samples", "5")
    call("evaluate", str(path), "--samples", "5", "--on", "emulator", "--bits", "8")
    call("energy", str(path), "--samples", "2")
    record = ("--record", "hidden:voltage", "--record", "hidden->output:hebbian")
    call("simulate", str(path), "--on", "emulator", "--phases", "--samples", "2", *record)
    return path


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_files_of_a_run_satisfy_their_schemas(run: Path) -> None:
    assert errors("study", tomllib.loads((run / "study.toml").read_text())) == []
    for row in rows(run / "metrics.jsonl"):
        assert errors("metrics", row) == []
    assert len(rows(run / "evaluations.jsonl")) == 2
    for row in rows(run / "evaluations.jsonl"):
        assert errors("evaluations", row) == []
    assert errors("energy", json.loads((run / "energy.json").read_text())) == []
    described = json.loads(call("traces", "show", str(run / "traces.h5"), "--json"))
    assert errors("trace", described) == []


def test_the_files_of_learning_in_a_simulator_satisfy_their_schemas(tmp_path: Path) -> None:
    path = tmp_path / "chip"
    small = ("--hidden", "8", "--samples", "20", "--epochs", "1", "--code", "graded")
    call("learn", *small, "--out", str(path), "--traces")
    assert errors("study", tomllib.loads((path / "study.toml").read_text())) == []
    for row in rows(path / "metrics.jsonl"):
        assert errors("metrics", row) == []
    described = json.loads(call("traces", "show", str(path / "traces.h5"), "--json"))
    assert errors("trace", described) == []


@pytest.mark.parametrize("path", sorted(profile_folder().glob("*.toml")), ids=lambda p: p.stem)
def test_every_profile_satisfies_its_schema(path: Path) -> None:
    assert errors("profile", tomllib.loads(path.read_text())) == []


def test_broken_files_do_not(run: Path) -> None:
    energy = json.loads((run / "energy.json").read_text())
    energy["profiles"][0]["inference"]["joules"] = "many"
    assert any("joules" in each for each in errors("energy", energy))
    row = rows(run / "evaluations.jsonl")[0]
    assert errors("evaluations", row | {"accuracy": 98.0})
    assert errors("evaluations", {key: row[key] for key in row if key != "agreement"})
    assert errors("metrics", rows(run / "metrics.jsonl")[0] | {"epoch": 0})
    study = tomllib.loads((run / "study.toml").read_text())
    assert errors("study", study | {"seed": -1})
    loihi = tomllib.loads((profile_folder() / "loihi1.toml").read_text())
    loihi["energy"]["synop"].pop("src")
    assert errors("profile", loihi)
    mine: dict[str, Any] = {"schema": "neuro_eqprop.profile/1", "name": "mine"}
    mine["energy"] = {"synop": {"value": 30, "unit": "pJ"}}
    assert errors("profile", mine | {"title": "mine"})
    assert errors("profile", mine | {"extends": "loihi1"}) == []
    described = json.loads(call("traces", "show", str(run / "traces.h5"), "--json"))
    assert errors("trace", described | {"phases": []})
