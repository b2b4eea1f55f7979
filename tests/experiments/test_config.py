from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuro_eqprop.activations import HARD_SIGMOID, LINEAR, RELU, TANH, box
from neuro_eqprop.arrays import UnknownNameError
from neuro_eqprop.data import Dataset, Split, load, one_hot
from neuro_eqprop.experiments.config import Study, adapt, read, write
from neuro_eqprop.experiments.models import rate
from neuro_eqprop.training.config import Nudging, Rule

POSITIVE = st.floats(1e-6, 1e6)
STUDIES = st.builds(
    Study,
    hidden=st.lists(st.integers(1, 500), min_size=1, max_size=3).map(tuple),
    activation=st.sampled_from(["hard_sigmoid", "box", "relu", "tanh"]),
    height=POSITIVE,
    output=st.sampled_from(["hard_sigmoid", "linear"]),
    bound=st.just(0.0) | POSITIVE,
    nudging=st.sampled_from(["positive", "centered"]),
    beta=st.floats(1e-6, 0.999),
    epochs=st.integers(1, 10**6),
    learning_rate=POSITIVE,
    seed=st.integers(0, 2**63),
)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(study=STUDIES)
def test_a_study_survives_its_file(tmp_path_factory: pytest.TempPathFactory, study: Study) -> None:
    path = tmp_path_factory.getbasetemp() / "study.toml"
    path.write_text(write(study))
    assert read(path) == study
    assert write(read(path)) == write(study)


def test_words_of_the_command_line_are_taken_in_the_type_of_the_setting() -> None:
    told = {"hidden": "96,96", "epochs": "3", "beta": "0.25", "batch": "1e2", "model": "layered"}
    study = adapt(Study(), told)
    assert (study.hidden, study.epochs, study.beta, study.batch) == ((96, 96), 3, 0.25, 100)
    assert adapt(study, {}) == study


def test_a_large_seed_is_kept_to_the_last_digit() -> None:
    seed = 2**53 + 1
    assert adapt(Study(), {"seed": str(seed)}).seed == seed
    assert adapt(Study(), {"seed": seed}).seed == seed


BAD: list[tuple[str, Any, str]] = [
    ("beta", -0.5, "beta is -0.5"),
    ("beta", 0, "beta is 0"),
    ("beta", 1.0, "beta is 1.0"),
    ("beta", "nan", "beta is nan"),
    ("beta", "strong", "'beta' cannot be 'strong'"),
    ("epochs", 0, "epochs is 0"),
    ("epochs", "inf", "'epochs' cannot be 'inf'"),
    ("epochs", "1.5", "not a whole number"),
    ("epochs", [1], "'epochs' cannot be"),
    ("batch", -1, "batch is -1"),
    ("free_steps", 0, "free_steps is 0"),
    ("nudged_steps", 0, "nudged_steps is 0"),
    ("learning_rate", float("inf"), "learning_rate is inf"),
    ("learning_rate", float("nan"), "learning_rate is nan"),
    ("bound", float("nan"), "bound is nan"),
    ("bound", -1.0, "bound is -1"),
    ("bound", float("inf"), "bound is inf"),
    ("feedback", 0.0, "feedback is 0"),
    ("feedback", "nan", "feedback is nan"),
    ("seed", -1, "seed is -1"),
    ("seed", 0.5, "not a whole number"),
    ("height", 0, "height is 0"),
    ("hidden", "", "'hidden' cannot be"),
    ("hidden", "0", "at least one unit"),
    ("hidden", [], "at least one unit"),
    ("hidden", [3.7], "not a whole number"),
    ("hidden", 3.7, "not a whole number"),
    ("hidden", "12,x", "'hidden' cannot be '12,x'"),
]


@pytest.mark.parametrize(("key", "value", "reason"), BAD, ids=lambda v: str(v)[:12])
def test_an_impossible_value_is_refused(key: str, value: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        adapt(Study(), {key: value})


@pytest.mark.parametrize(
    ("key", "name", "closest"),
    [
        ("model", "loopd", "looped"),
        ("rule", "hebb", "hebbian"),
        ("activation", "sigmoid", "hard_sigmoid"),
        ("output", "linar", "linear"),
        ("nudging", "center", "centered"),
        ("optimiser", "adm", "adam"),
    ],
)
def test_an_unknown_name_lists_the_known_ones(key: str, name: str, closest: str) -> None:
    with pytest.raises(UnknownNameError, match=rf"unknown {key} '{name}'; known: {closest}"):
        adapt(Study(), {key: name})


def test_an_unknown_setting_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="unknown setting 'epoch'; known: epochs"):
        adapt(Study(), {"epoch": 3})


def test_a_looped_network_has_one_hidden_layer() -> None:
    with pytest.raises(ValueError, match="does not take 2 hidden sizes"):
        adapt(Study(), {"model": "looped", "hidden": "8,8"})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"epochs = ", "cannot be read as a study"),
        (b"\xff\xfe", "cannot be read as a study"),
        (b"epochs = 0", "epochs is 0"),
        (b"[network]\nhidden = 3", "unknown setting 'network'"),
        (b"epochs = 2023-01-01", "'epochs' cannot be"),
    ],
)
def test_a_bad_study_file_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "study.toml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=reason):
        read(path)


def test_a_missing_study_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no study file .*none\.toml"):
        read(tmp_path / "none.toml")


def small() -> Dataset:
    y = one_hot(range(3), 3).argmax(axis=1)  # type: ignore[arg-type]
    split = Split(one_hot(y, 7), y)
    return Dataset("small", split, split, 3)


def test_the_network_of_a_study_is_as_told() -> None:
    study = Study(
        hidden=(5, 4), activation="box", height=2.0, output="linear", bound=0.6, feedback=0.5
    )
    network = study.network(small())
    assert [layer.size for layer in network.layers] == [7, 5, 4, 3]
    assert network["hidden1"].activation == box(2.0)
    assert network["output"].activation == LINEAR
    assert [c.bound for c in network.connections] == [None, 0.6, 0.6]
    assert [layer.stiffness for layer in network.moving] == [1.0, 0.5, 0.25]


def test_a_looped_study_is_bounded_by_default() -> None:
    network = Study(model="looped", hidden=(5,)).network(small())
    assert {c.name: c.bound for c in network.connections}["hidden->hidden"] == 0.95
    network = Study(model="looped", hidden=(5,), bound=0.5).network(small())
    assert {c.name: c.bound for c in network.connections}["hidden->hidden"] == 0.5


@pytest.mark.parametrize("start", [Study(rule="backprop"), Study(model="predictive")])
def test_a_bound_that_is_asked_for_is_kept_without_feedback(start: Study) -> None:
    for bound, kept in ((0.6, [None, 0.6, 0.6]), (0.0, [None, None, None])):
        network = replace(start, hidden=(5, 4), bound=bound).network(small())
        assert [c.bound for c in network.connections] == kept


def test_backprop_leaves_out_the_bounds_that_let_a_model_settle() -> None:
    own = Study(model="conv", hidden=(5,), bound=2.5).network(load("digits"))
    assert [c.bound for c in own.connections] == [None, 2.5]
    for study in (Study(model="modern"), Study(model="conv", bound=2.5)):
        network = replace(study, hidden=(5,), rule="backprop").network(load("digits"))
        assert all(c.bound is None for c in network.connections)


ENUMS = {"nudging", "rule", "beta_end", "tolerance"}


def test_the_recipe_of_a_study_is_as_told() -> None:
    study = Study(nudging="positive", beta=0.2, epochs=3, seed=4, free_steps=9, nudged_steps=5)
    recipe = study.recipe()
    shared = set(asdict(study)) & set(asdict(recipe))
    assert {"epochs", "batch", "optimiser", "learning_rate", "beta", "seed"} <= shared
    assert all(getattr(recipe, key) == getattr(study, key) for key in shared - ENUMS)
    assert recipe.nudging is Nudging.POSITIVE
    assert recipe.rule is Rule.HEBBIAN
    assert recipe.tolerance is None
    assert recipe.beta_end is None
    assert [(p.name, p.beta, p.steps) for p in recipe.schedule()] == [
        ("free", 0.0, 9),
        ("nudged", 0.2, 5),
    ]


def test_activations_are_found_by_name() -> None:
    names = ("hard_sigmoid", "relu", "tanh", "linear", "box")
    assert [rate(name, 3.0) for name in names] == [HARD_SIGMOID, RELU, TANH, LINEAR, box(3.0)]


def test_a_model_brings_settings_of_its_own_that_give_way() -> None:
    conv = adapt(Study(), {"model": "conv"})
    assert (conv.activation, conv.free_steps) == ("relu", 3)
    asked = adapt(Study(), {"model": "conv", "activation": "tanh"})
    assert (asked.activation, asked.output) == ("tanh", "linear")
    before = adapt(Study(free_steps=7), {"model": "conv"})
    assert (before.free_steps, before.nudged_steps) == (7, 1)
    assert adapt(conv, {"seed": 1, "free_steps": 15}).free_steps == 15
    assert adapt(Study(), {"model": "layered"}) == Study()
