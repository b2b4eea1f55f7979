from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.common.settings import settings_of
from neuro_eqprop.data import Dataset, Split, load_data, one_hot
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR, RELU, TANH, activation, box
from neuro_eqprop.networks.architectures.registry import MODELS
from neuro_eqprop.training.rules.registry import RULES
from neuro_eqprop.training.settings import TrainingSettings
from neuro_eqprop.training.study import Study, adapt, make_study, read, write

POSITIVE = st.floats(1e-6, 1e6)
STUDIES = st.builds(
    make_study,
    hidden=st.lists(st.integers(1, 500), min_size=1, max_size=3).map(tuple),
    activation=st.sampled_from(["hard_sigmoid", "relu", "tanh"]),
    output=st.sampled_from(["hard_sigmoid", "linear"]),
    bound=st.just(0.0) | POSITIVE,
    nudging=st.sampled_from(["positive", "centered"]),
    beta=st.floats(1e-6, 0.999),
    epochs=st.integers(1, 10**6),
    learning_rate=POSITIVE,
    seed=st.integers(0, 2**63 - 1),
) | st.builds(make_study, activation=st.just("box"), height=POSITIVE)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(study=STUDIES)
def test_a_study_survives_its_file(tmp_path_factory: pytest.TempPathFactory, study: Study) -> None:
    path = tmp_path_factory.getbasetemp() / "study.toml"
    path.write_text(write(study))
    assert read(path) == study
    assert write(read(path)) == write(study)


def test_text_from_the_command_line_is_converted_to_the_type_of_the_setting() -> None:
    result = {"hidden": "96,96", "epochs": "3", "beta": "0.25", "batch": "1e2", "model": "layered"}
    study = adapt(Study(), result)
    assert (study.get("hidden"), study.training.epochs, study.rule.beta, study.training.batch) == (
        (96, 96),
        3,
        0.25,
        100,
    )
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
    ("epochs", "1.5", "not an integer"),
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
    ("seed", 0.5, "not an integer"),
    ("height", 0, "height is 0"),
    ("hidden", "", "'hidden' cannot be"),
    ("hidden", "0", "at least one unit"),
    ("hidden", [], "at least one unit"),
    ("hidden", [3.7], "not an integer"),
    ("hidden", 3.7, "not an integer"),
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
        ("optimizer", "adm", "adam"),
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
        (b"epochs = ", "not readable as TOML"),
        (b"\xff\xfe", "not UTF-8 text"),
        (b"epochs = 0", "epochs is 0"),
        (b"[network]\nhidden = 3", "unknown setting 'network'; known: "),
        (b"[model]\nname = 'modern'\nfeedback = 0.5", "study.toml: model 'modern' has no setting"),
        (b"[training]\nepoch = 3", "unknown setting 'epoch'; known: epochs"),
        (b"model = 3", "unknown model '3'; known: "),
        (b"[model]\nhidden = 'wide'", "'hidden' cannot be 'wide'"),
        (b"epochs = 2023-01-01", "'epochs' cannot be"),
    ],
)
def test_a_bad_study_file_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "study.toml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=reason):
        read(path)


def test_a_missing_study_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none\.toml: there is no such file"):
        read(tmp_path / "none.toml")


def small() -> Dataset:
    y = one_hot(range(3), 3).argmax(axis=1)  # type: ignore[arg-type]
    split = Split(one_hot(y, 7), y)
    return Dataset.from_splits("small", split, split, 3)


def test_the_network_of_a_study_follows_its_settings() -> None:
    study = make_study(
        hidden=(5, 4), activation="box", height=2.0, output="linear", bound=0.6, feedback=0.5
    )
    network = study.network(small())
    assert [layer.size for layer in network.layers] == [7, 5, 4, 3]
    assert network["hidden1"].activation == box(2.0)
    assert network["output"].activation == LINEAR
    assert [c.bound for c in network.connections] == [None, 0.6, 0.6]
    assert [layer.stiffness for layer in network.moving] == [1.0, 0.5, 0.25]


def test_a_looped_study_is_bounded_by_default() -> None:
    network = make_study(model="looped", hidden=(5,)).network(small())
    assert {c.name: c.bound for c in network.connections}["hidden->hidden"] == 0.95
    network = make_study(model="looped", hidden=(5,), bound=0.5).network(small())
    assert {c.name: c.bound for c in network.connections}["hidden->hidden"] == 0.5


@pytest.mark.parametrize("start", [make_study(rule="backprop"), make_study(model="predictive")])
def test_a_bound_that_is_asked_for_is_kept_without_feedback(start: Study) -> None:
    for bound, kept in ((0.6, [None, 0.6, 0.6]), (0.0, [None, None, None])):
        network = adapt(start, {"hidden": (5, 4), "bound": bound}).network(small())
        assert [c.bound for c in network.connections] == kept


def test_backprop_leaves_out_the_bounds_that_let_a_model_settle() -> None:
    own = make_study(model="conv", hidden=(5,), bound=2.5).network(load_data("digits"))
    assert [c.bound for c in own.connections] == [None, 2.5]
    for study in (make_study(model="modern"), make_study(model="conv", bound=2.5)):
        network = adapt(study, {"hidden": (5,), "rule": "backprop"}).network(load_data("digits"))
        assert all(c.bound is None for c in network.connections)


def test_the_rule_of_a_study_makes_the_phases_of_a_batch() -> None:
    study = make_study(nudging="positive", beta=0.2, free_steps=9, nudged_steps=5)
    assert [(p.name, p.beta, p.steps) for p in study.rule.schedule()] == [
        ("free", 0.0, 9),
        ("nudged", 0.2, 5),
    ]
    assert study.rule.beta_at(0.5) == 0.2
    assert adapt(study, {"beta_end": 0.1}).rule.beta_at(0.5) == pytest.approx(0.15)


def test_a_rule_without_a_setting_has_its_neutral_value() -> None:
    rule = make_study(rule="backprop").rule
    assert (rule.damping, rule.order, rule.anderson, rule.tolerance) == (1.0, "sequential", 0, 0.0)
    assert "damping" not in make_study(rule="backprop").flat()


def test_activations_are_found_by_name() -> None:
    names = ("hard_sigmoid", "relu", "tanh", "linear", "box")
    assert [activation(name, 3.0) for name in names] == [HARD_SIGMOID, RELU, TANH, LINEAR, box(3.0)]


def test_a_model_brings_defaults_that_give_way_to_what_was_set() -> None:
    conv = make_study(model="conv")
    assert (conv.get("activation"), conv.rule.free_steps) == ("relu", 3)
    chosen = make_study(model="conv", activation="tanh")
    assert (chosen.get("activation"), chosen.get("output")) == ("tanh", "linear")
    before = adapt(make_study(free_steps=7), {"model": "conv"})
    assert (before.rule.free_steps, before.rule.nudged_steps) == (7, 1)
    assert adapt(conv, {"seed": 1, "free_steps": 15}).rule.free_steps == 15
    assert adapt(conv, {"model": "layered"}) == Study()
    assert make_study(model="layered") == Study()


def test_a_rule_that_was_chosen_stays_when_the_model_changes() -> None:
    chosen = make_study(rule="implicit", tolerance=1e-3)
    assert adapt(chosen, {"model": "looped"}).rule == chosen.rule
    assert adapt(make_study(model="predictive"), {"model": "looped"}).rule.name == "hebbian"
    assert make_study(model="looped", symmetric=False).rule.name == "asymmetric"
    assert make_study(model="looped", symmetric=False, rule="bptt").rule.name == "bptt"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"model": "modern", "feedback": 0.1}, "model 'modern' has no setting 'feedback' (here"),
        (
            {"model": "modern", "feedback": 0.1},
            "belongs to layered, looped, sparse, toroidal, conv, pyramid, text; leave it out",
        ),
        (
            {"model": "looped", "heads": 2},
            "'heads' (here 2), which belongs to text, transformer; leave",
        ),
        ({"model": "layered", "symmetric": False}, "'symmetric' (here False)"),
        ({"model": "transformer", "activation": "relu"}, "'activation' (here 'relu')"),
        ({"rule": "bptt", "tolerance": 0.1}, "rule 'bptt' has no setting 'tolerance'"),
        ({"rule": "bptt", "anderson": 3}, "'anderson'"),
        ({"rule": "backprop", "damping": 0.5}, "'damping'"),
        ({"activation": "relu", "height": 2.0}, "'height' (here 2.0) belongs to activation 'box'"),
        ({"points": 6}, "'points' (here 6) belongs to nudging 'holomorphic', and nudging is 'cen"),
        ({"model": "transformer", "attention_sharpness": 2.0}, "belongs to attention 'softmax'"),
    ],
)
def test_settings_that_the_model_or_the_rule_does_not_have_are_refused(
    changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError, match="leave it out") as caught:
        make_study(**changes)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("model", [name for name in MODELS if name != "text"])
def test_every_model_of_matrices_takes_a_bound_and_keeps_its_defaults_in_a_file(
    model: str, tmp_path: Path
) -> None:
    study = make_study(model=model, bound=0.5)
    assert study.get("bound") == 0.5
    (tmp_path / "study.toml").write_text(write(study))
    assert read(tmp_path / "study.toml") == study


def test_flat_names_are_unique_across_the_tables() -> None:
    for model in MODELS.values():
        for rule in RULES.values():
            names = [*settings_of(Study), *settings_of(type(model.settings()))]
            names += [*settings_of(rule.settings), *settings_of(TrainingSettings)]
            assert len(names) == len(set(names))


def test_settings_are_found_by_flat_name_by_table_and_in_tables() -> None:
    flat = make_study(model="looped", hidden=(9,), epochs=3, beta=0.2)
    dotted = {"model.name": "looped", "model.hidden": "9", "training.epochs": 3, "rule.beta": 0.2}
    assert adapt(Study(), dotted) == flat
    tables = {
        "model": {"name": "looped", "hidden": [9]},
        "training": {"epochs": 3},
        "rule": {"beta": 0.2},
    }
    assert adapt(Study(), tables) == flat
    with pytest.raises(UnknownNameError, match="unknown table of a study 'train'; known: training"):
        adapt(Study(), {"train.epochs": 3})


def test_names_of_version_0_2_are_read_from_files_and_calls(tmp_path: Path) -> None:
    new = make_study(optimizer="sgd", lr_schedule="linear", normalize=True)
    assert make_study(optimiser="sgd", fall="linear", normalise=True) == new
    path = tmp_path / "study.toml"
    path.write_text("[training]\noptimiser = 'sgd'\nfall = 'linear'\nnormalise = true\n")
    assert read(path) == new
    assert adapt(Study(), {"training.fall": "linear"}).training.lr_schedule == "linear"


def test_a_study_file_has_a_table_for_the_model_the_rule_and_the_training() -> None:
    text = write(make_study(model="looped", hidden=(9,), rule="implicit"))
    assert text.startswith('dataset = "digits"\nseed = 0\n\n[model]\nname = "looped"\nhidden = [9]')
    assert '\n[rule]\nname = "implicit"\nnudging = "centered"\n' in text
    assert "\n[training]\nepochs = 30\n" in text
    assert "heads" not in text


OLD = Path(__file__).parents[1] / "runs" / "version_0_1"


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("layered", {}),
        ("looped", {"model": "looped"}),
        ("toroidal", {"model": "toroidal"}),
        ("modern", {"model": "modern", "symmetric": False}),
        ("conv", {"model": "conv"}),
        ("multiscale", {"model": "multiscale"}),
        ("predictive", {"model": "predictive"}),
        (
            "transformer",
            {
                "model": "transformer",
                "attention_bound": 1.2,
                "free_steps": 6,
                "nudged_steps": 3,
            },
        ),
        ("backprop", {"rule": "backprop", "hidden": 64, "activation": "box", "height": 2.0}),
        ("implicit", {"model": "looped", "rule": "implicit", "tolerance": 1e-4, "bound": 0.8}),
    ],
)
def test_flat_study_files_of_version_0_1_still_open(name: str, changes: dict[str, Any]) -> None:
    assert read(OLD / f"{name}.toml") == make_study(**changes)


def test_a_flat_study_file_with_a_setting_that_has_no_use_is_refused(tmp_path: Path) -> None:
    text = (OLD / "looped.toml").read_text().replace("heads = 4", "heads = 8")
    (tmp_path / "study.toml").write_text(text)
    with pytest.raises(ValueError, match="model 'looped' has no setting 'heads'"):
        read(tmp_path / "study.toml")


def test_a_strong_nudge_is_refused_only_where_nothing_would_settle() -> None:
    with pytest.raises(ValueError, match=r"beta is 1.5; .*use nudging 'positive'"):
        make_study(beta=1.5)
    with pytest.raises(ValueError, match=r"beta_end is 1.5"):
        make_study(beta_end=1.5)
    assert make_study(beta=1.5, nudging="positive").rule.beta == 1.5
    assert make_study(model="transformer", beta=2.0).rule.beta == 2.0
    with pytest.raises(ValueError, match=r"damping is 1.5; it must not be above one"):
        make_study(damping=1.5)
