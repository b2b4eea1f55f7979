"""Backends and codes of another package, found by entry points."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from neuro_eqprop import check_backend
from neuro_eqprop.cli import main
from neuro_eqprop.runs.environment import check_environment
from neuro_eqprop.simulators.base import Feature
from neuro_eqprop.simulators.registry import BACKENDS, with_features
from neuro_eqprop.spiking.codes import CODES

MODULE = """
from dataclasses import dataclass, replace

from neuro_eqprop.simulators.base import EVERYTHING, BackendInfo, Support
from neuro_eqprop.simulators.reference.simulator import Reference
from neuro_eqprop.spiking.codes import Code

BACKEND = BackendInfo("tiny", "Tiny", "the reference again", "tiny:Tiny", EVERYTHING)
CODE = replace(Code.RATE, name="tiny", summary="rate, with other steps", steps=20, learning=None)


@dataclass(frozen=True)
class Tiny:
    name: str = "tiny"
    support: Support = EVERYTHING

    def run(self, *arguments, **options):
        return Reference().run(*arguments, **options)
"""
ENTRY_POINTS = """
[neuro_eqprop.backends]
tiny = tiny:BACKEND
broken = tiny:CODE
missing = tiny:NOTHING

[neuro_eqprop.codes]
tiny = tiny:CODE
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package with a backend and a code, and two entry points that are broken."""
    (tmp_path / "tiny.py").write_text(MODULE)
    info = tmp_path / "tiny-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "tiny", raising=False)
    for registry in (BACKENDS, CODES):
        monkeypatch.setattr(registry, "_plugins", None)
        monkeypatch.setattr(registry, "_loaded", {})


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> str:
    run = str(tmp_path_factory.mktemp("trained") / "run")
    assert main(["train", "--out", run, "--epochs", "1", "--hidden", "16"]) == 0
    return run


@pytest.mark.usefixtures("plugin")
def test_evaluate_runs_a_backend_and_a_code_of_another_package(
    trained: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def evaluate(*words: str) -> dict[str, Any]:
        capsys.readouterr()
        assert main(["evaluate", trained, "--samples", "10", "--json", *words]) == 0
        return dict(json.loads(capsys.readouterr().out))

    found = evaluate("--on", "tiny", "--code", "tiny")
    assert (found["on"], found["code"], found["steps"]) == ("tiny", "tiny", 20)
    reference = evaluate("--on", "reference", "--code", "rate", "--steps", "20")
    for key in ("accuracy", "agreement", "rmse", "spikes_per_neuron"):
        assert found[key] == reference[key]


@pytest.mark.usefixtures("plugin")
def test_help_doctor_and_refusals_list_what_another_package_adds(
    trained: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit):
        main(["evaluate", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "20 for tiny" in shown
    assert "snntorch, tiny, broken, missing" in shown
    assert main(["evaluate", trained, "--on", "tinny"]) == 2
    assert "unknown backend 'tinny'; known: tiny, " in capsys.readouterr().err
    assert main(["learn", "--out", str(tmp_path / "run"), "--code", "tiny"]) == 1
    assert "code 'tiny' cannot learn: " in capsys.readouterr().err
    notes = {each.thing: (each.here, each.note) for each in check_environment()}
    assert notes["backend tiny"] == (True, "the reference again")
    assert not notes["backend missing"][0]


@pytest.mark.usefixtures("plugin")
def test_a_plug_in_that_cannot_be_loaded_is_named_and_spoils_no_list(
    trained: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", trained, "--on", "broken"]) == 1
    assert "backend 'broken' is a Code" in capsys.readouterr().err
    assert main(["evaluate", trained, "--on", "missing"]) == 1
    assert (
        "plug-in 'missing' (tiny:NOTHING, group neuro_eqprop.backends)" in capsys.readouterr().err
    )
    assert set(with_features([Feature.EXACT])) == set(BACKENDS) - {
        *("broken", "missing", "lava-stock", "biology", "brian2-biology")
    }


@pytest.mark.usefixtures("plugin")
def test_the_conformance_suite_accepts_a_backend_of_another_package() -> None:
    assert check_backend("tiny", networks=1).backend == "tiny"
