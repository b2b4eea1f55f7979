"""Early stopping by validation samples, and warnings where nothing is learnt."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.cli import main
from neuro_eqprop.runs.run_folder import BEST, RunError

SETTINGS: dict[str, Any] = {
    **{"hidden": (8,), "epochs": 12, "validation": 0.25, "patience": 2, "batch": 10},
    **{"learning_rate": 0.02, "seed": 1},
}


def noisy() -> ne.Dataset:
    """A few samples with many wrong labels, on which the validation accuracy soon falls."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 4))
    y = ((x[:, 0] + 1.5 * rng.normal(size=80)) > 0).astype(int)
    return ne.Dataset(x, y)


def test_training_stops_and_keeps_the_best_epoch() -> None:
    model = ne.train("layered", noisy(), **SETTINGS)
    held = model.history["validation_accuracy"]
    assert len(held) < 12
    assert model.epochs == int(held.argmax()) + 1 == len(held) - 2
    whole = ne.train("layered", noisy(), **{**SETTINGS, "patience": 0})
    assert len(whole.history) == whole.epochs == 12
    assert whole.history["validation_accuracy"][: len(held)].tolist() == held.tolist()


class InterruptedHereError(Exception):
    """Stops a training."""


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_resumed_training_ends_with_the_same_bytes(tmp_path: Path, after: int) -> None:
    data, seen = noisy(), list[int]()

    def interrupt(row: dict[str, Any]) -> None:
        seen.append(row["epoch"])
        if len(seen) == after:
            raise InterruptedHereError

    ne.train("layered", data, out=tmp_path / "whole", **SETTINGS)
    with pytest.raises(InterruptedHereError):
        ne.train("layered", data, out=tmp_path / "cut", progress=interrupt, **SETTINGS)
    ne.train("layered", data, out=tmp_path / "cut", resume=True, **SETTINGS)
    whole, cut = (ne.open_run(tmp_path / name).model for name in ("whole", "cut"))
    assert whole.epochs == cut.epochs
    for name, value in whole.params.items():
        assert value.tobytes() == cut.params[name].tobytes()
    assert not (tmp_path / "cut" / BEST).exists()
    with pytest.raises(RunError, match="its run is finished"):
        ne.train("layered", data, out=tmp_path / "cut", resume=True, **SETTINGS)


def test_patience_needs_validation_samples() -> None:
    with pytest.raises(ValueError, match="patience is 2, but no samples are held out"):
        ne.train("layered", noisy(), patience=2)


def test_zero_switches_patience_validation_and_bound_off_as_the_help_says(tmp_path: Path) -> None:
    first, again = tmp_path / "first", tmp_path / "again"
    given = "--hidden 4 --epochs 2 --bound 0.9 --validation 0.1 --patience 1"
    assert main(["train", *given.split(), "--out", str(first)]) == 0
    off = "--bound 0 --validation 0 --patience 0"
    study = str(first / "study.toml")
    assert main(["train", study, *off.split(), "--out", str(again)]) == 0
    found = ne.open_run(again).study
    assert (found.get("bound"), found.get("validation"), found.get("patience")) == (0, 0, 0)
    for wrong in ("--patience -1", "--validation -0.1", "--bound -1", "--bound nan"):
        assert main(["train", *wrong.split(), "--out", str(tmp_path / "none")]) == 2


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"learning_rate": 50.0}, "smaller learning_rate"),
        ({"nudging": "negative"}, "nudging 'centered'"),
    ],
)
def test_a_network_that_learns_nothing_is_warned_of(settings: dict[str, Any], remedy: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.random((300, 5))
    random = ne.Dataset(x, rng.integers(0, 3, 300), x[:100], np.arange(100) % 3)
    warning = ne.train("layered", random, hidden=(4,), epochs=1, **settings).history[-1]["warning"]
    assert warning is not None
    assert remedy in warning
    learnt = ne.Dataset(x, (x[:, 0] > 0.5).astype(int))
    assert ne.train("layered", learnt, hidden=(8,), epochs=60).history[-1]["warning"] is None


def test_the_loss_is_in_the_history_and_drawn() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    history = ne.train("layered", noisy(), hidden=(8,), epochs=3, seed=0).history
    assert history["loss"][-1] < history["loss"][0]
    assert history.plot(loss=True).get_ylabel() == "mean cost of training samples"
