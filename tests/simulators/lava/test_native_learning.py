"""The Lava process that learns has, in a user's script, the weights of `learn --on lava`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from neuro_eqprop import learn_on_chip, open_run
from neuro_eqprop.api.model import Model
from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.data import Dataset, load_digits
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.runs.learn_on_chip.task import OnChipTask, prepare
from neuro_eqprop.runs.on_chip_config import learning_settings
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.spiking.plasticity import PlasticityError

if TYPE_CHECKING:
    from neuro_eqprop.simulators.lava.native.learning.network import LearningNetwork

pytestmark = pytest.mark.lava
SETTINGS: dict[str, Any] = {
    "hidden": (6,),
    "epochs": 1,
    "samples": 10,
    "beta": 0.3,
    "learning_rate": 0.1,
}
STEPS = {"graded": 8, "rate": 8}


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load_digits()


def task_of(code: str, data: Dataset, **more: Any) -> OnChipTask:  # noqa: ANN401
    given = {**SETTINGS, "on": "lava", "code": code, "steps": STEPS[code], "dataset": "digits"}
    given |= more
    study, config = learning_settings(given)
    return prepare(study, config, data, study.network(data))


def start(task: OnChipTask) -> Model:
    params = initialize(task.network, np.random.default_rng(task.study.seed))
    for layer in task.network.moving:
        params[layer.name] = params[layer.name] + task.config.bias
    return Model(task.network, params, study=task.study)


def run(net: LearningNetwork, x: Array, y: Ints) -> tuple[dict[str, Array], Ints]:
    """The learned weights and the predictions of the free phases."""
    from lava.magma.core.run_conditions import RunSteps
    from lava.magma.core.run_configs import Loihi2SimCfg
    from lava.proc.io.sink import RingBuffer as Sink
    from lava.proc.io.source import RingBuffer as Source

    samples, targets = (Source(data=data) for data in net.encode(x, y))
    samples.s_out.connect(net.inp)
    targets.s_out.connect(net.target)
    sink = Sink(shape=net.out.shape, buffer=len(x) * net.steps)
    net.out.connect(sink.a_in)
    condition = RunSteps(len(x) * net.steps)
    try:
        net.run(condition=condition, run_cfg=Loihi2SimCfg(select_tag=net.tag))
        return net.weights(), net.decode(sink.data.get())
    finally:
        net.stop()


@pytest.mark.filterwarnings("ignore::neuro_eqprop.runs.learn_on_chip.loop.OnChipWarning")
@pytest.mark.parametrize("code", ["graded", "rate"])
def test_after_ten_samples_the_weights_equal_those_of_learn_on_lava(
    code: str, data: Dataset, tmp_path: Path
) -> None:
    task = task_of(code, data)
    rows, training = task.training_samples(0)
    net = (
        start(task)
        .to_spiking(code=code)
        .to_lava(learning=True, beta=0.3, rate=training.rates, phases=STEPS[code])
    )
    train = data.train.take(slice(0, 10))
    weights, predictions = run(net, train.x[rows], train.y[rows])
    learned = learn_on_chip(
        "layered", "digits", on="lava", code=code, steps=STEPS[code], **SETTINGS
    )
    made = net.model(weights)
    for name, value in learned.params.items():
        np.testing.assert_array_equal(made.params[name], value)
    assert np.abs(weights["input->hidden"] - start(task).params["input->hidden"]).max() > 1e-3
    if code == "graded":  # after a few steps of binary spikes rates tie, which the drive does not
        accuracy = float((predictions == train.y[rows]).mean())
        assert accuracy == learned.history[-1]["train_accuracy"]
    net.save(tmp_path / "run", weights=weights)
    saved = open_run(tmp_path / "run").model
    np.testing.assert_array_equal(saved.params["hidden"], learned.params["hidden"])


@pytest.mark.filterwarnings("ignore::neuro_eqprop.runs.learn_on_chip.loop.OnChipWarning")
def test_with_the_integers_of_the_engine_the_weights_equal_those_of_learn_on_lava(
    data: Dataset,
) -> None:
    task = task_of("rate", data, engine=True)
    rows, training = task.training_samples(0)
    spiking = start(task).to_spiking(code="rate")
    net = spiking.to_lava(
        learning=True, engine=True, beta=0.3, rate=training.rates, phases=STEPS["rate"]
    )
    assert net.tag == "fixed_pt"
    train = data.train.take(slice(0, 10))
    weights, _ = run(net, train.x[rows], train.y[rows])
    learned = learn_on_chip(
        "layered", "digits", on="lava", code="rate", steps=STEPS["rate"], engine=True, **SETTINGS
    )
    made = net.model(weights)
    for name, value in learned.params.items():
        np.testing.assert_array_equal(made.params[name], value)
    assert len(np.unique(made.params["input->hidden"])) <= 512
    before = task.plastic.network.projections[0].weight
    assert np.abs(weights["input->hidden"] - before).max() > 1e-3
    with pytest.raises(PlasticityError, match="learn with code rate"):
        start(task).to_spiking(code="graded").to_lava(learning=True, engine=True)


def test_fixed_point_wrong_targets_and_an_open_port_are_refused(data: Dataset) -> None:
    from lava.magma.core.run_conditions import RunSteps
    from lava.magma.core.run_configs import Loihi2SimCfg
    from lava.proc.io.source import RingBuffer as Source

    model = start(task_of("graded", data))
    with pytest.raises(BackendError, match="engine=True"):
        model.to_spiking(code="graded", bits=8).to_lava(learning=True)
    net = model.to_spiking(code="graded").to_lava(learning=True)
    with pytest.raises(ValueError, match="2 samples of 10 classes"):
        net.encode(np.zeros((2, 64)), np.zeros((2, 3)))
    rows = {row.kind: row.stock for row in net.processes()}
    assert rows == {"RoundedInput": False, "LearningGraded": False, "LearningDense": True} | {
        "Dense": True
    }
    Source(data=net.encode(np.zeros((1, 64)), [3])[0]).s_out.connect(net.inp)
    with pytest.raises(ValueError, match="`target` is not connected"):
        net.run(condition=RunSteps(2), run_cfg=Loihi2SimCfg(select_tag=net.tag))
