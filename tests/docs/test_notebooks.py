"""The notebooks were executed, hold no errors, and run again."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
NEEDS = {
    "zero-to-spikes": [pytest.mark.brian2, pytest.mark.snntorch],
    "your-data-and-torch": [],
    "lava-graph": [pytest.mark.lava],
    "learning-on-chip": [pytest.mark.brian2],
    "synapse-history": [],
    "energy-on-chips": [],
    "sweep-and-cluster": [],
}
"""The tutorials, and what each needs."""
NOTEBOOKS = tuple(NEEDS)


def cells(name: str) -> list[dict[str, Any]]:
    held = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    return [cell for cell in held["cells"] if cell["cell_type"] == "code"]


def test_these_are_all() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NOTEBOOKS)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_was_executed_from_top_to_bottom(name: str) -> None:
    found = cells(name)
    assert [cell["execution_count"] for cell in found] == [*range(1, len(found) + 1)]
    outputs = [output for cell in found for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    text = json.dumps(found)
    assert "/tmp/" not in text
    assert "\\u001b" not in text


@pytest.mark.slow
@pytest.mark.drawn(3)
@pytest.mark.skipif(find_spec("nbclient") is None, reason="nbclient is not installed")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", [pytest.param(n, marks=NEEDS[n]) for n in NOTEBOOKS])
def test_it_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    root = str(FOLDER.parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]))
    book = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(book, timeout=500, kernel_name="python3", resources=resources).execute()
    shown = [o for cell in book.cells if cell.cell_type == "code" for o in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in shown)
