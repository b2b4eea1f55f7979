"""The tour of the library: one script through all nouns, executed as a user would type it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest

TOUR = """
import neuro_eqprop as ne

data  = ne.load_data("digits")
model = ne.train("layered", data, hidden=(128,), epochs=20, seed=0, out="runs/digits")
accuracy = model.evaluate(data.test).accuracy
model.history.plot()

spiking = model.to_spiking(code="graded")
run     = spiking.run(data.test.x[:60], on="lava", steps=32)
trace   = spiking.record(data.test.x[:5], on="brian2", phases=True,
                         record=["hidden:voltage", "hidden->output:hebbian"])
trace.plot_raster("hidden"); trace.to_nwb("trace.nwb")
comparison = ne.compare(model.record(data.test.x[:5], phases=True), trace)

estimate = ne.estimate_energy(run, "loihi1")
estimate.table()
ne.report("runs/digits")

chip = ne.learn_on_chip("layered", data, on="emulator", code="graded", bits=8, epochs=3)
"""


@pytest.mark.slow
@pytest.mark.lava
@pytest.mark.brian2
def test_the_tour_of_the_library_runs_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mpl.use("Agg")
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    exec(compile(TOUR, "tour", "exec"), found)
    assert found["accuracy"] > 0.95
    assert found["run"].accuracy(found["data"].test.y[:60]) > 0.95
    assert len(found["comparison"].connections) == 2
    assert ("hidden", "state") in found["trace"].signals
    assert (tmp_path / "trace.nwb").is_file()
    assert (tmp_path / "runs" / "digits" / "report.html").is_file()
    assert found["estimate"].joules > 0
    assert len(found["chip"].history) == 3
