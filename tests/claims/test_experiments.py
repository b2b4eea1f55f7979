from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.data.cifar10 import RECORD, TEST, TRAIN
from neuro_eqprop.dynamics.field import field
from neuro_eqprop.dynamics.inference import infer
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Cost
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.runs.executors.task import canonical
from neuro_eqprop.training.gradients import finite_difference, implicit
from neuro_eqprop.training.loop import initial_parameters
from neuro_eqprop.training.rules.base import Batch
from neuro_eqprop.training.rules.registry import RULES
from neuro_eqprop.training.settings import ContrastiveSettings, Nudging
from neuro_eqprop.training.study import make_study
from sims.claims.cell_builders import TRANSFORMER
from sims.claims.claim import Cell, timeless
from sims.claims.definitions import claim, hierarchical_cifar, text_sst2
from sims.claims.experiments.backprop_mlp import accuracy_of, perceptron, train_by_backprop
from sims.claims.experiments.common import (
    TEST_STOP,
    Trained,
    data_of,
    study_of,
)
from sims.claims.experiments.lipschitz import jacobians
from sims.claims.experiments.patch_stem_transformer import with_stem
from sims.claims.experiments.settling import early_exit
from sims.claims.experiments.variational import Shapes, autoencoder
from sims.claims.registry import run_cell

DIGITS: dict[str, Any] = {"dataset": "digits", "images": 300, "tests": 60}
LOOPED = {
    **{"model": "looped", "hidden": [16], "activation": "tanh", "output": "linear"},
    **{"beta": 0.22, "epochs": 2, "free_steps": 8, "nudged_steps": 4, "learning_rate": 0.01},
}


def run(function: str, arguments: dict[str, Any], seed: int = 0) -> dict[str, Any]:
    done = run_cell(Cell("", function, {**DIGITS, **arguments}, seed))
    assert done.error is None
    return done.values


def test_missing_data_is_no_failure() -> None:
    study = {"epochs": 1}
    done = run_cell(Cell("", "accuracy", {**DIGITS, "dataset": "moonlight", "study": study}, 0))
    assert done.error == "undecided: data not present (moonlight)"


def test_gradients_separate_symmetric_from_other_weights() -> None:
    result = {"hidden": 12, "coupling": 0.6, "nudging": "centered", "betas": [0.1], "samples": 8}
    for model in ("layered", "looped"):
        assert run("gradient", {**result, "model": model})["cosine"][0] > 0.999
    assert run("gradient", {**result, "model": "nonsymmetric"})["cosine"][0] < 0.95


def test_a_contest_is_searched_alike_for_both() -> None:
    study = {"hidden": [24], "activation": "relu", "output": "linear", "beta": 0.25, "epochs": 6}
    result = {"study": study, "rates": [0.0001, 0.01], "held_out": 60, "search": 2}
    result["costs"] = ["squared", "cross_entropy"]
    for rule in ("eqprop", "backprop"):
        found = run("contest", {**result, "rule": rule})
        assert found["rate"] == 0.01
        assert len(found["held_out_accuracy"]) == 4
        assert found["held_out_accuracy"][1] > found["held_out_accuracy"][0]
        assert found["test_accuracy"] > 0.7
        assert found["data"] == {"train": 300, "test": 60}


def test_the_twin_learns_by_either_cost() -> None:
    data = data_of(DIGITS)
    nets = [perceptron((64, 32, 10), "relu", 0) for _ in range(2)]
    study = make_study(epochs=25, batch=16, learning_rate=0.01)
    for net, cost in zip(nets, Cost, strict=True):
        for _ in train_by_backprop(net, data.train, study, cost):
            pass
        assert accuracy_of(net, data.test) > 0.7
    one, two = (net.state_dict()["0.weight"] for net in nets)
    assert not torch.equal(one, two)


def test_a_sample_leaves_when_its_answer_came_often_enough() -> None:
    answers = np.array([[1, 0], [1, 2], [1, 2], [1, 2]])
    right = answers == np.array([1, 2])
    taken = np.array([4, 4])
    once, twice = (early_exit(answers, right, taken, same) for same in (1, 2))
    assert (once["accuracy"], once["steps"]) == (0.5, 1.0)
    assert (twice["accuracy"], twice["steps"]) == (1.0, 2.5)
    assert twice["saved"] == pytest.approx(1 - 2.5 / 4)


def test_the_bound_is_kept_in_the_lipschitz_cell() -> None:
    study = {**LOOPED, "learning_rate": 0.05, "epochs": 4}
    kept, free = (
        run("lipschitz", {"study": {**study, "bound": bound}, "samples": 4}) for bound in (0.5, 1e6)
    )
    assert max(kept["loop"]) < 0.5 < max(free["loop"])
    assert len(kept["loop"]) == 5


def test_the_jacobian_of_a_loop_is_slope_times_weight() -> None:
    data, study = data_of(DIGITS), study_of({**DIGITS, "study": LOOPED}, 1)
    network = study.network(data)
    found = Trained(network, initial_parameters(study, network), data)
    x = data.test.x[:3]
    h = infer(NumpyOps(), network, found.float64, x, TEST_STOP).state["hidden"]
    expected = (1.0 - h**2)[:, :, None] * found.float64["hidden->hidden"]
    np.testing.assert_allclose(jacobians(found, x), expected, rtol=1e-3)


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "toroidal"},
        {"model": "modern", "memory": 24},
        {"model": "modern", "memory": 24, "symmetric": False, "rule": "vector-field"},
    ],
)
def test_once_around_other_loops_is_that_of_small_steps(changes: dict[str, Any]) -> None:
    result = {**DIGITS, "study": {**LOOPED, **changes}}
    data, study = data_of(result), study_of(result, 1)
    network = study.network(data)
    found = Trained(network, initial_parameters(study, network), data)
    x, small = data.test.x[:2], 1e-6
    free = field(NumpyOps(), network, found.float64, x)
    rest = infer(NumpyOps(), network, found.float64, x, TEST_STOP).state

    def around(h: Array) -> Array:
        state = {**rest, "hidden": h}
        if "memory" in state:
            state["memory"] = free.update_layer("memory", state)
        return np.asarray(free.update_layer("hidden", state))

    step = np.zeros_like(rest["hidden"])
    step[:, 3] = small
    slope = (around(rest["hidden"] + step) - around(rest["hidden"] - step)) / (2 * small)
    np.testing.assert_allclose(jacobians(found, x)[:, :, 3], slope, rtol=1e-4, atol=1e-7)


def test_memory_is_counted() -> None:
    base = {"model": "looped", "width": 64, "depth": 1, "batch": 32}
    few, many = (run("memory", {**base, "steps": steps}) for steps in (10, 40))
    assert few["eqprop"] == many["eqprop"]
    assert many["bptt"] > 2.5 * few["bptt"]
    assert few["feedforward"] < few["eqprop"]
    # A chain that is settled must hold at least one state of every layer.
    deep = run("memory", {**base, "model": "layered", "depth": 6, "steps": 4})
    assert deep["eqprop"] > 6 * 64 * 32 * 4


def test_annealing_follows_its_plan_and_forgetting_is_measured() -> None:
    plan = {"start": 0.3, "end": 0.1, "over": 1.0}
    found = run("annealing", {"study": {**LOOPED, "epochs": 3}, "plan": plan})
    assert found["beta"] == pytest.approx([0.3, 0.2, 0.1])
    assert len(found["test_accuracy"]) == 3
    jump = run("annealing", {"study": {**LOOPED, "epochs": 2}, "plan": {**plan, "over": 0}})
    assert jump["beta"] == [0.3, 0.1]
    for rule in ("eqprop", "backprop"):
        study = {"hidden": [24], "epochs": 6, "learning_rate": 0.01}
        lost = run("continual", {"study": study, "rule": rule})
        assert lost["before"] > 0.7
        assert lost["lost"] == pytest.approx(lost["before"] - lost["after"])
        assert lost["lost"] > 0.3


def test_settling_and_landscape_give_their_values() -> None:
    steps = run("settling", {"study": LOOPED, "steps": 40, "tolerance": 1e-4})
    assert steps["within_10"] <= steps["within_25"] <= steps["samples"] == 60
    assert steps["accuracy_by_step"][-1] == pytest.approx(steps["accuracy"])
    assert -1 <= steps["rho_steps"] <= 1
    sizes = {"samples": 3, "starts": 2, "sweeps": 6, "points": 5}
    place = run("landscape", {"study": {**LOOPED, "bound": 0.5}, **sizes})
    assert place["alike"] == place["pairs"] == 6
    assert place["rising"] == 0
    heights = np.array(place["plane"]["height"])
    assert heights.min() == pytest.approx(heights[2, 2], abs=1e-12)


def test_ways_to_a_gradient_are_compared() -> None:
    study = {**LOOPED, "bound": 0.6, "free_steps": 30, "nudged_steps": 15, "batch": 16}
    found = run("deq", {"study": study, "rounds": 1, "tails": [1, 40]})
    for way in ("implicit", "bptt", "phantom 40", "eqprop"):
        assert found[way]["cosine"] > 0.995
    assert found["phantom 1"]["cosine"] < found["phantom 40"]["cosine"]
    result = run("kernel", {"study": {"hidden": [16]}, "rounds": 1, "times": 1})
    assert result["close"] is True
    cost = run("cost", {"study": {**LOOPED, "epochs": 1}, "rounds": 1})
    assert all(cost[way]["seconds"] > 0 for way in ("eqprop", "backprop", "bptt", "implicit"))


def test_a_grid_is_searched_with_damping() -> None:
    result = {"betas": [0.2], "rates": [0.001, 0.01], "damping": 0.8}
    rows = run("grid", {**result, "held_out": 60, "study": {**LOOPED, "epochs": 3}})["rows"]
    assert all(0 < row["held_out"] < 1 for row in rows)
    assert [row["rate"] for row in rows] == [0.001, 0.01]
    assert rows[1]["test_accuracy"] > rows[0]["test_accuracy"]


@pytest.mark.slow
def test_joules_are_compared_with_and_without_static_power() -> None:
    result = {
        **{"samples": 4, "steps": 16, "code": "rate", "gpu": "gpu_k4000"},
        **{"chips": ["loihi1"], "batches": [1, 64], "study": {"hidden": [16], "epochs": 2}},
    }
    one, many = run("joules", result)["rows"]
    for side in ("dynamic", "total", "hosted"):
        value, low, high = one[side]
        assert low <= value <= high
        assert value > many[side][0]
    assert one["hosted"][0] < one["total"][0]


def test_a_cell_gives_the_same_twice() -> None:
    study = {"hidden": [8], "epochs": 1}
    one, two = (run("accuracy", {"study": study}, seed=3) for _ in range(2))
    assert canonical(timeless(one)) == canonical(timeless(two))


SMALL = {**TRANSFORMER, "hidden": [16], "patch": 4, "epochs": 4, "batch": 16}


def test_a_hybrid_trains_the_layer_below_the_tokens() -> None:
    result = {"study": {**SMALL, "attention": "softmax", "rule": "hybrid"}}
    found = run("stemmed", result)
    assert found["test_accuracy"] > 0.3
    network = with_stem(study_of({**DIGITS, **result}, 0).network(data_of(DIGITS)))
    assert network.layers_without_feedback == ("stem",)


def test_sequences_of_several_lengths_are_learnt_and_timed() -> None:
    study = {**SMALL, "attention": "softmax", "epochs": 20, "learning_rate": 0.01}
    found = run("algorithmic", {"dataset": "parity", "lengths": [1, 3], "study": study})
    assert found["accuracy"][0] == 1.0
    assert found["majority"][1] < 0.8
    assert len(found["steps"]) == 2
    assert -1 <= found["rho"] <= 1


def test_an_autoencoder_learns_to_reconstruct() -> None:
    study = {"hidden": [32], "batch": 16, "beta": 0.2, "epochs": 15, "learning_rate": 0.003}
    found = run("autoencoder", {"study": study})
    assert found["error"] < 0.7 < found["before"]


def test_a_variational_autoencoder_learns_through_its_draws() -> None:
    study = {"hidden": [16, 4], "feedback": 0.1, "batch": 16, "beta": 0.1, "learning_rate": 0.02}
    study |= {"free_steps": 6, "nudged_steps": 4, "epochs": 12}
    noise = {"deviation": 0.4, "variance": 0.05}
    found = run("variational", {"study": study, **noise})
    assert found["error"] < 0.9
    assert found["bound"] > found["without_latent"]
    assert found["distance_of_digits"] < found["distance"]
    assert found["divergence"] > 0


def test_the_update_of_a_variational_autoencoder_is_its_gradient() -> None:
    network = autoencoder(Shapes(6, 5, 2, feedback=0.1, deviation=0.4, variance=0.05))
    rng = np.random.default_rng(0)
    params = initialize(network, rng)
    x, target = rng.standard_normal((4, 8)), np.hstack([rng.random((4, 6)), np.zeros((4, 2))])
    exact = implicit(network, params, x, target)
    differences = finite_difference(network, params, x, target=target, epsilon=1e-5)
    for name, gradient in exact.items():
        np.testing.assert_allclose(gradient, differences[name], atol=1e-6)
    ops = TorchOps(torch.float64)
    tensors = {name: ops.from_numpy(value) for name, value in params.items()}
    config = ContrastiveSettings(
        "hebbian", nudging=Nudging.CENTERED, beta=1e-3, free_steps=200, nudged_steps=200
    )
    batch = Batch(ops.from_numpy(x), ops.from_numpy(target), measured=False)
    update = RULES["hebbian"].update(ops, network, tensors, batch, config).gradients
    for name, gradient in exact.items():
        if gradient.size:
            np.testing.assert_allclose(ops.to_numpy(update[name]), gradient / 4, atol=1e-6)


def test_the_cifar_cell_runs_where_there_are_pictures(empty_data_folder: Path) -> None:
    result = {"dataset": "cifar10", "images": 60, "tests": 12}
    result["study"] = {**hierarchical_cifar.STUDY, "hidden": [4, 4], "epochs": 8, "batch": 10}
    cell = Cell("", "accuracy", result, 0)
    assert run_cell(cell).error == "undecided: data not present (cifar10)"
    rng = np.random.default_rng(0)
    (empty_data_folder / "cifar10").mkdir()
    for name in TRAIN + TEST:
        rows = rng.integers(0, 100, (12, RECORD))
        rows[:, 0] = np.arange(12) % 2
        rows[rows[:, 0] == 1, 1025:2049] += 150  # one of the two classes is green
        (empty_data_folder / "cifar10" / name).write_bytes(rows.astype(np.uint8).tobytes())
    done = run_cell(cell)
    assert done.error is None
    assert done.values["test_accuracy"] == 1.0
    assert claim("hierarchical-cifar").cells is hierarchical_cifar.cells


def test_the_text_cell_runs_where_there_are_sentences(empty_data_folder: Path) -> None:
    result = {"dataset": "sst2", "images": 80, "tests": 20}
    quick = {"hidden": [8], "epochs": 6, "batch": 10, "learning_rate": 0.02}
    result["study"] = {**text_sst2.STUDY, **quick}
    cell = Cell("", "accuracy", result, 0)
    assert run_cell(cell).error == "undecided: data not present (sst2)"
    lines = [f"{('a dull', 'a fine')[k % 2]} film {k % 7}\t{k % 2}\n" for k in range(80)]
    (empty_data_folder / "sst2").mkdir()
    (empty_data_folder / "sst2" / "train.tsv").write_text("sentence\tlabel\n" + "".join(lines))
    (empty_data_folder / "sst2" / "dev.tsv").write_text("sentence\tlabel\n" + "".join(lines[:20]))
    done = run_cell(cell)
    assert done.error is None
    assert done.values["test_accuracy"] > 0.9
