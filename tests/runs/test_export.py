"""Exported packages run where this library is not installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from neuro_eqprop import open_run
from neuro_eqprop.cli import main
from neuro_eqprop.data import load_digits
from neuro_eqprop.files.write import WriteError
from neuro_eqprop.runs.export import Export, export_lava, export_netx
from neuro_eqprop.simulators.base import BackendError

ALONE = """
import runpy, sys
for name in ("neuro_eqprop", "torch", "brian2", "snntorch"):
    sys.modules[name] = None
sys.argv = [sys.argv[1], "--json"]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.lava
@pytest.mark.parametrize(
    ("neurons", "code", "bits"),
    [("exact", "graded", None), ("exact", "rate", 8), ("stock", "graded", 8)],
)
def test_a_package_runs_with_lava_alone_and_predicts_the_same(
    neurons: str, code: str, bits: int | None, trained_run: Path, tmp_path: Path
) -> None:
    model, x = open_run(trained_run).model, load_digits().test.x[:6]
    place = tmp_path / "mynet"
    made = export_lava(model, place, x, code=code, bits=bits, neurons=neurons)
    assert made.agreement >= 5 / 6
    (tmp_path / "boom.py").write_text("open('executed', 'w')")
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(place / "example" / "run.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout.splitlines()[-1])
    same = np.mean(np.array(printed["predictions"]) == model.predict(x))
    assert same == made.agreement
    assert sorted(path.name for path in tmp_path.iterdir()) == ["boom.py", "mynet"]
    assert f"{100 * made.agreement:.2f} % of 6 samples" in (place / "README.md").read_text()


def test_translate_writes_a_netx_file_and_reports_the_agreement(
    trained_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["translate", str(trained_run), "--to", "netx", "--out", str(tmp_path / "a.net")]
    assert main([*words, "--samples", "50", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["samples"] == 50
    assert printed["agreement"] >= 0.9
    assert main(words) == 1
    assert "--force" in capsys.readouterr().err
    assert main([*words, "--force", "--code", "rate"]) == 2


def test_a_low_agreement_is_a_warning() -> None:
    good = Export(Path("a"), "graded", "stock", 8, 0.995, 200, "")
    bad = Export(Path("a"), "graded", "stock", 8, 0.9, 20, "")
    assert good.warning is None
    assert bad.warning is not None
    assert "90.0 % of 20 samples" in bad.warning


def test_a_folder_that_is_no_package_name_and_an_existing_file_are_refused(
    trained_run: Path, tmp_path: Path
) -> None:
    model, x = open_run(trained_run).model, load_digits().test.x[:2]
    with pytest.raises(BackendError, match="not a valid name for a Python package"):
        export_lava(model, tmp_path / "my-net", x)
    (tmp_path / "a.net").write_text("mine")
    with pytest.raises(WriteError, match="exists already"):
        export_netx(model, tmp_path / "a.net", x)
    assert (tmp_path / "a.net").read_text() == "mine"
