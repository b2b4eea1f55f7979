"""A simulator that takes longer than its deadline ends with one sentence."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.api.model import Model
from neuro_eqprop.files import deadlines
from neuro_eqprop.files.deadlines import DeadlineError, check, deadline
from neuro_eqprop.runs.request_size import SHORTEST_DEADLINE, simulation_deadline

SIMULATORS = [
    "emulator",
    "reference",
    pytest.param("snntorch", marks=pytest.mark.snntorch),
    pytest.param("brian2", marks=pytest.mark.brian2),
    pytest.param("brian2-biology", marks=pytest.mark.brian2),
    pytest.param("lava", marks=pytest.mark.lava),
]
STEPS = {"emulator": 100_000_000}
LEARNERS = [each for each in SIMULATORS if "snntorch" not in str(each)]


@pytest.fixture(scope="module")
def data() -> ne.Dataset:
    return ne.load_data("digits")


@pytest.fixture(scope="module")
def model(data: ne.Dataset) -> Model:
    made = ne.train("layered", data, hidden=(8,), epochs=1)
    made.to_spiking(code="rate").run(data.test.x[:1], steps=2)  # compiles
    return made


@pytest.mark.parametrize("on", SIMULATORS)
def test_a_simulation_ends_at_its_deadline(model: Model, data: ne.Dataset, on: str) -> None:
    spiking, began = model.to_spiking(code="rate"), time.monotonic()
    with pytest.raises(DeadlineError, match=rf"simulation on {on} was ended at its deadline of"):
        spiking.run(data.test.x[:2], on=on, steps=STEPS.get(on, 50_000), deadline=0.3)
    assert time.monotonic() - began < 30


@pytest.mark.filterwarnings("ignore::neuro_eqprop.runs.learn_on_chip.loop.OnChipWarning")
@pytest.mark.parametrize("on", LEARNERS)
def test_learning_ends_at_its_deadline(data: ne.Dataset, on: str) -> None:
    with pytest.raises(DeadlineError, match=rf"simulation on {on} was ended at its deadline of"):
        ne.learn_on_chip("layered", data, on=on, code="rate", hidden=(8,), epochs=30, deadline=0.5)


@pytest.mark.filterwarnings("ignore::neuro_eqprop.runs.learn_on_chip.loop.OnChipWarning")
def test_learning_that_was_ended_is_resumed(
    data: ne.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_late(_: object) -> None:
        monkeypatch.setattr(deadlines, "monotonic", lambda: 1e18)

    settings: dict[str, Any] = {"hidden": (8,), "samples": 10, "epochs": 2}
    with pytest.raises(DeadlineError, match="and continue with resume=True"):
        ne.learn_on_chip("layered", data, out=tmp_path / "run", progress=too_late, **settings)
    monkeypatch.undo()
    resumed = ne.learn_on_chip("layered", data, out=tmp_path / "run", resume=True, **settings)
    assert [row["epoch"] for row in resumed.history] == [1, 2]
    whole = ne.learn_on_chip("layered", data, **settings)
    for name, value in whole.params.items():
        np.testing.assert_array_equal(resumed.params[name], value)


def test_a_training_that_was_ended_at_its_deadline_is_resumed(
    data: ne.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_late(_: object) -> None:
        monkeypatch.setattr(deadlines, "monotonic", lambda: 1e18)

    settings: dict[str, Any] = {"hidden": (8,), "epochs": 3}
    begun = settings | {"out": tmp_path / "run"}
    with pytest.raises(DeadlineError, match=r"the training was .* continue with resume=True"):
        ne.train("layered", data, progress=too_late, deadline=100.0, **begun)
    monkeypatch.undo()
    resumed = ne.train("layered", data, resume=True, **begun)
    assert [row["epoch"] for row in resumed.history] == [1, 2, 3]
    whole = ne.train("layered", data, **settings)
    for name, value in whole.params.items():
        np.testing.assert_array_equal(resumed.params[name], value)


def test_a_training_ends_at_its_deadline(data: ne.Dataset) -> None:
    began = time.monotonic()
    with pytest.raises(DeadlineError, match=r"the training was ended at its deadline of 0\.2 s"):
        ne.train("layered", data, hidden=(8,), epochs=10_000, deadline=0.2)
    assert time.monotonic() - began < 30


def test_a_recording_ends_at_its_deadline_without_a_file_of_its_name(
    model: Model, data: ne.Dataset, tmp_path: Path
) -> None:
    with pytest.raises(DeadlineError, match=r"deadline of 0\.2 s"):
        model.to_spiking(code="rate").record(
            *(data.test.x[:300],), steps=20_000, out=tmp_path / "t.h5", deadline=0.2
        )
    assert not (tmp_path / "t.h5").exists()


def test_the_default_grows_with_the_work_and_with_the_slowness_of_the_simulator(
    model: Model,
) -> None:
    network, found = model.to_spiking(code="rate").network, []
    for name, steps in (("emulator", 1), ("emulator", 10**9), ("brian2", 10**9)):
        with simulation_deadline(name, network, steps, None) as limit:
            assert isinstance(limit, deadlines.Deadline)
            found.append(limit.seconds)
    assert SHORTEST_DEADLINE <= found[0] < found[1] < found[2]


def test_an_earlier_deadline_outside_counts() -> None:
    with deadline(0.01, "the first"), deadline(60, "the second") as limit:
        assert limit.what == "the first"
        time.sleep(0.02)
        with pytest.raises(DeadlineError, match="the first was ended"):
            check()
    check()


def test_a_deadline_is_above_zero() -> None:
    with pytest.raises(ValueError, match="above zero"), deadline(0, "nothing"):
        pass


def test_a_signal_stops_a_compiled_loop(model: Model, data: ne.Dataset) -> None:
    timer = Timer(0.3, deadlines.stop_compiled_loops)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.to_spiking(code="rate").run(data.test.x[:1], steps=100_000_000)
    finally:
        timer.join()
        deadlines.stop_compiled_loops(False)


def test_what_does_not_end_at_its_deadline_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "GRACE", 0.01)
    ended: list[str] = []
    monkeypatch.setattr(deadlines, "end_process", [ended.append])
    with deadline(0.01, "a call that hangs"):
        time.sleep(0.3)
    assert len(ended) == 1
    assert "a call that hangs was ended at its deadline of 0.01 s" in ended[0]
