"""A third-party package adds an entry to each registry by entry points."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PLUGIN = Path(__file__).parent / "plugins"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the plug-in as an installer would put it there."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(PLUGIN / "tiny_plugin", folder / "tiny_plugin")
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
    info = folder / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir()
    name, version = project["name"], project["version"]
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    return folder


def command(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(site), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "COLUMNS": "100"}
    return subprocess.run(
        [sys.executable, "-m", "neuro_eqprop", *words],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


WORDS = ("train", "--dataset", "corners", "--model", "direct", "--rule", "scaled", "--epochs", "2")


def test_a_model_a_rule_and_a_data_set_of_a_plug_in_train(site: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = command(
        site, *WORDS, "--set", "width=5", "--set", "factor=0.5", "--out", str(out), "--json"
    )
    assert (done.returncode, done.stderr) == (0, "")
    outcome = json.loads(done.stdout)
    assert (outcome["model"], outcome["rule"], outcome["dataset"]) == (
        "direct",
        "scaled",
        "corners",
    )
    assert (outcome["beta"], outcome["parameters"]) == (0.3, 2 * 5 + 5 * 4 + 5 + 4)
    study = tomllib.loads((out / "study.toml").read_text())
    assert study["model"] == {"name": "direct", "width": 5}
    assert (study["rule"]["name"], study["rule"]["factor"]) == ("scaled", 0.5)
    evaluated = command(site, "evaluate", str(out), "--samples", "4", "--json")
    assert evaluated.returncode == 0


@pytest.mark.parametrize("options", [(), ("--bits", "8")], ids=["float", "8 bits"])
def test_an_activation_of_a_plug_in_trains_and_runs_alike_on_reference_and_emulator(
    site: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    out = str(tmp_path / "run")
    words = ("--hidden", "8", "--activation", "softsign", "--output", "linear", "--epochs", "2")
    done = command(site, "train", *words, "--out", out)
    assert done.returncode == 0, done.stderr
    outcomes = []
    for simulator in ("reference", "emulator"):
        run = ("--on", simulator, "--code", "graded", "--samples", "8", "--json")
        done = command(site, "evaluate", out, *run, *options)
        assert (done.returncode, done.stderr) == (0, "")
        outcomes.append(json.loads(done.stdout))
    for key in ("accuracy", "rmse", "spikes_per_neuron", "rate_accuracy", "agreement"):
        assert outcomes[0][key] == outcomes[1][key]
    assert outcomes[0]["rmse"] < 0.05
    done = command(site, "evaluate", out, "--on", "emulator", "--code", "rate")
    assert done.returncode == 1
    assert "has activation 'softsign'" in done.stderr


def test_a_run_with_an_activation_whose_package_is_gone_says_so(site: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    words = ("--hidden", "4", "--activation", "softsign", "--epochs", "1")
    assert command(site, "train", *words, "--out", out).returncode == 0
    done = command(tmp_path, "evaluate", out)
    assert (done.returncode, "unknown activation 'softsign'" in done.stderr) == (2, True), (
        done.stderr
    )


def test_a_code_and_a_backend_of_a_plug_in_run(site: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    assert command(site, "train", "--hidden", "8", "--epochs", "1", "--out", out).returncode == 0
    done = command(
        site, "evaluate", out, "--on", "tiny", "--code", "slow", "--samples", "4", "--json"
    )
    assert (done.returncode, done.stderr) == (0, "")
    outcome = json.loads(done.stdout)
    assert (outcome["on"], outcome["code"], outcome["steps"]) == ("tiny", "slow", 256)
    checked = "import neuro_eqprop as ne; print(ne.check_backend('tiny', networks=1).backend)"
    path = os.pathsep.join([str(site), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", checked],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert (done.returncode, done.stdout) == (0, "tiny\n"), done.stderr


def test_the_help_and_the_lists_name_what_a_plug_in_adds(site: Path) -> None:
    said = " ".join(command(site, "train", "--help").stdout.split())
    assert "transformer, direct" in said
    assert "relu, tanh, softsign" in said
    assert "single-phase, scaled;" in said
    assert "corners" in command(site, "data", "list").stdout


def test_settings_of_a_plug_in_are_refused_elsewhere(site: Path, tmp_path: Path) -> None:
    done = command(site, "train", "--set", "width=5", "--out", str(tmp_path / "run"))
    assert done.returncode == 2
    assert (
        "model 'layered' has no setting 'width' (here '5'), which belongs to text, direct"
        in done.stderr
    )
    done = command(site, *WORDS, "--hidden", "5", "--out", str(tmp_path / "run"))
    assert (done.returncode, "model 'direct' has no setting 'hidden'" in done.stderr) == (2, True)
