"""The estimator in scikit-learn's manner."""

from __future__ import annotations

import pickle
import warnings
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

import neuro_eqprop as ne
from neuro_eqprop.api import estimator
from neuro_eqprop.api.estimator import EqPropClassifier
from neuro_eqprop.cli.train import SETTINGS, changes, options
from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.data import Dataset, load_digits
from neuro_eqprop.networks.architectures.registry import MODELS
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.runs import checkpoint
from neuro_eqprop.runs.evaluate import equilibria
from neuro_eqprop.runs.run_folder import MODEL
from neuro_eqprop.training import loop
from neuro_eqprop.training.defaults import derive
from neuro_eqprop.training.diagnostics import Diagnostics
from neuro_eqprop.training.rules.base import TrainingError
from neuro_eqprop.training.study import Study, adapt, make_study

SMALL = EqPropClassifier(hidden=(32,), epochs=6)


@pytest.fixture(scope="module")
def fitted() -> EqPropClassifier:
    data = load_digits()
    made: EqPropClassifier = clone(SMALL)
    return made.fit(data.train.x, np.array(list("abcdefghij"))[data.train.y])


def test_it_learns_labels_of_any_kind(fitted: EqPropClassifier) -> None:
    data = load_digits()
    names = np.array(list("abcdefghij"))[data.test.y]
    assert fitted.score(data.test.x, names) > 0.9
    assert set(fitted.predict(data.test.x)) == set("abcdefghij")
    assert fitted.decision_function(data.test.x).shape == (360, 10)


def test_spikes_answer_as_the_rates_do(fitted: EqPropClassifier) -> None:
    x = load_digits().test.x[:60]
    spikes = fitted.predict_spikes(x, on="reference", code="rate", steps=128)
    assert (spikes == fitted.predict(x)).mean() >= 0.95


def test_its_parameters_are_those_of_a_study() -> None:
    made = EqPropClassifier(hidden=(7, 5), activation="relu", output="linear", feedback=0.1, seed=3)
    expected = make_study(hidden=(7, 5), activation="relu", output="linear", feedback=0.1, seed=3)
    assert made.study() == expected
    assert EqPropClassifier().study() == Study()


def as_the_command_has_it(*words: str) -> Study:
    parser = ArgumentParser()
    options(parser)
    return adapt(Study(), changes(parser.parse_args(["--out", "anywhere", *words])))


@pytest.mark.parametrize("model", MODELS)
def test_a_model_has_the_defaults_that_the_command_gives_it(model: str) -> None:
    assert EqPropClassifier(model=model).study() == as_the_command_has_it("--model", model)


def test_what_is_given_stands_against_a_models_own_defaults() -> None:
    usual, conv = Study(), make_study(model="conv")
    given = {
        key: usual.get(key)
        for key in set(SETTINGS) - {"model"}
        if usual.get(key) != conv.get(key) and key in conv.flat()
    }
    assert {"hidden", "activation", "output", "feedback", "beta", "learning_rate"} <= set(given)
    study = EqPropClassifier(model="conv", **given).study()
    assert {key: study.get(key) for key in given} == given
    assert study.rule.free_steps == MODELS["conv"].training["free_steps"]


def test_every_option_of_training_that_an_estimator_has_a_use_for_is_a_parameter() -> None:
    of_study = set(Study().flat()) & set(EqPropClassifier().get_params())
    assert of_study == set(SETTINGS) - set(estimator.UNSUPPORTED) - {"device"}


def test_it_learns_what_the_command_learns(tmp_path: Path) -> None:
    data = load_digits()
    whole = Dataset.from_splits("fit", data.train, data.train, data.classes)
    made = EqPropClassifier(model="looped", epochs=1, hidden=(16,))
    study = derive({"model": "looped", "epochs": 1, "hidden": (16,)}, whole)
    assert study == made.study(whole)
    ne.train(study, whole, out=tmp_path / "run")
    fitted = made.fit(data.train.x, data.train.y)
    for name, value in checkpoint.load(tmp_path / "run" / MODEL).params.items():
        assert np.array_equal(fitted.model_.params[name], value)


@pytest.mark.parametrize(("key", "value"), [("dataset", "zzz"), ("validation", 0.5)])
def test_settings_it_has_no_use_for_are_refused(key: str, value: Any) -> None:  # noqa: ANN401
    with pytest.raises(ValueError, match=f"no setting '{key}': .*leave it out"):
        EqPropClassifier(more={key: value}).fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(UnknownNameError, match="zzz"):
        EqPropClassifier(more={"zzz": 1}).fit(np.eye(4), [0, 1, 0, 1])


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match=r"torch cannot use device 'nonsense' here .*use cpu"):
        EqPropClassifier(more={"device": "nonsense"}).fit(np.eye(4), [0, 1, 0, 1])


def test_it_trains_on_the_chosen_device(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def made(*, device: str = "cpu") -> TorchOps:
        asked.append(device)
        return TorchOps(device="cpu")

    monkeypatch.setattr(loop, "TorchOps", made)
    monkeypatch.setattr(loop, "usable_device", lambda name: name)
    made_on = EqPropClassifier(hidden=(4,), epochs=1, more={"device": "cuda:7"})
    made_on.fit(np.eye(4), [0, 1, 0, 1])
    assert set(asked) == {"cuda:7"}


def test_a_rule_that_cannot_teach_a_model_is_refused_as_the_command_does() -> None:
    for net in (
        EqPropClassifier(model="predictive", rule="hebbian"),
        EqPropClassifier(model="predictive", more={"rule": "hebbian"}),
    ):
        with pytest.raises(TrainingError, match="use rule 'single-phase'"):
            net.fit(np.eye(4), [0, 1, 0, 1])
    assert EqPropClassifier(model="predictive").study().rule.name == "single-phase"
    assert EqPropClassifier(rule="vector-field").study().rule.name == "vector-field"


def test_a_free_phase_that_has_not_settled_is_warned_of() -> None:
    data = load_digits()
    x, y = data.train.x[:100], data.train.y[:100]
    steps = {"free_steps": 1, "nudged_steps": 1, "normalize": False}
    hasty = EqPropClassifier(
        hidden=(16,), epochs=1, beta=0.001, nudging="centered", feedback=1.0, more=steps
    )
    with pytest.warns(ConvergenceWarning) as heard:
        hasty.fit(x, y)
    drift = float(str(heard[0].message).split("it drifts ")[1].split()[0])
    assert drift > 0.01
    assert str(heard[0].message) == Diagnostics(drift=drift).warning
    assert heard[0].filename == __file__


def test_it_answers_by_settling_as_its_study_says() -> None:
    data = load_digits()
    net = clone(SMALL).set_params(epochs=1, more={"damping": 0.5})
    net.fit(data.train.x[:100], data.train.y[:100])
    # So strong that it does not come to rest: where it is then depends on how it went there.
    params = {name: 60.0 * value for name, value in net.model_.params.items()}
    net.model_ = replace(net.model_, params=params)
    damped, plain = (
        equilibria(net.model_.network, params, data.test.x[:20], damping=part, ops=NumpyOps()).drive
        for part in (0.5, 1.0)
    )
    assert not np.allclose(damped, plain)
    assert np.array_equal(net.drive(data.test.x[:20]), damped)


def test_a_fitted_network_can_be_kept(fitted: EqPropClassifier) -> None:
    x = load_digits().test.x[:5]
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict(x), fitted.predict(x))
    assert again.model_.study == fitted.model_.study


def test_it_takes_part_in_a_search_over_a_grid() -> None:
    data = load_digits()
    grid = {"rule": [None, "vector-field"], "hidden": [None, (8,)], "beta": [0.2]}
    search = GridSearchCV(EqPropClassifier(epochs=1), grid, cv=2)
    search.fit(data.train.x[:200], data.train.y[:200])
    assert len(search.cv_results_["params"]) == 4
    assert search.best_estimator_.model_.study.rule.beta == 0.2


def test_it_takes_part_in_cross_validation() -> None:
    data = load_digits()
    scores = cross_val_score(SMALL, data.train.x[:300], data.train.y[:300], cv=2)
    assert scores.shape == (2,)
    assert scores.min() > 0.4


def test_bad_input_is_refused() -> None:
    with pytest.raises(NotFittedError):
        EqPropClassifier().predict(np.zeros((1, 4)))
    with pytest.raises(ValueError, match="NaN"):
        EqPropClassifier().fit(np.full((4, 2), np.nan), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="beta"):
        EqPropClassifier(beta=-1.0).fit(np.eye(4), [0, 1, 0, 1])


def test_a_model_of_images_gets_their_shape() -> None:
    data = load_digits()
    made = EqPropClassifier(
        model="conv", hidden=(4,), epochs=1, shape=(1, 8, 8), more={"kernel": 3}
    )
    assert made.study().get("kernel") == 3
    fitted = made.fit(data.train.x[:100], data.train.y[:100])
    assert fitted.model_.network["conv1"].shape == (4, 6, 6)
    assert fitted.predict(data.test.x[:5]).shape == (5,)


@pytest.mark.parametrize(
    "name",
    [
        "check_n_features_in_after_fitting",
        "check_classifiers_classes",
        "check_classifiers_regression_target",
        "check_estimators_unfitted",
        "check_estimators_nan_inf",
        "check_classifiers_one_label",
        "check_get_params_invariance",
        "check_dict_unchanged",
    ],
)
def test_it_behaves_as_scikit_learn_expects(name: str) -> None:
    from sklearn.utils import estimator_checks

    net = EqPropClassifier(hidden=(16,), epochs=12, learning_rate=0.02)
    getattr(estimator_checks, name)("EqPropClassifier", net)


def test_unscaled_samples_are_warned_of_before_training() -> None:
    x, y = np.random.default_rng(0).uniform(0, 255, (20, 4)), np.arange(20) % 2
    net = EqPropClassifier(hidden=(4,), epochs=1, more={"normalize": False})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        net.fit(x, y)
    first = str(caught[0].message)
    assert "networks expect about -1 to 1; scale it" in first
    assert "StandardScaler" in first


def test_probabilities_sum_to_one_and_rank_as_the_predictions(fitted: EqPropClassifier) -> None:
    x = load_digits().test.x[:50]
    found = fitted.predict_proba(x)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert np.array_equal(fitted.classes_[found.argmax(axis=1)], fitted.predict(x))


def test_the_history_has_a_row_an_epoch_and_verbose_prints_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    split = load_digits().train.take(slice(200))
    net = EqPropClassifier(hidden=(8,), epochs=2, verbose=True, more={"tolerance": 1e-4})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net.fit(split.x, split.y)
    assert [row["epoch"] for row in net.history_] == [1, 2]
    assert capsys.readouterr().out.splitlines()[1].startswith("epoch 2/2: train accuracy 0.")


def test_spikes_predict_with_defaults(fitted: EqPropClassifier) -> None:
    x = load_digits().test.x[:30]
    assert np.mean(fitted.predict_spikes(x) == fitted.predict(x)) >= 0.9


def test_parts_of_the_samples_train_one_network() -> None:
    train, test = load_digits().train, load_digits().test
    net = EqPropClassifier(hidden=(16,))
    for start in range(0, 1200, 300):
        rows = slice(start, start + 300)
        net.partial_fit(train.x[rows], train.y[rows], classes=range(10))
    assert net.score(test.x, test.y) > 0.6
    before = net.model_.params["input->hidden"]
    net.partial_fit(train.x[:50], train.y[:50])
    change = np.abs(net.model_.params["input->hidden"] - before).max()
    assert 0.0 < change < 0.5
    with pytest.raises(ValueError, match="label 11, which is none of the classes"):
        net.partial_fit(train.x[:2], [1, 11])
    with pytest.raises(ValueError, match="classes differ"):
        net.partial_fit(train.x[:2], train.y[:2], classes=[1, 2])
