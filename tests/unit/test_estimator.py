"""The estimator in scikit-learn's manner."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

from neuro_eqprop.data import digits
from neuro_eqprop.study.estimator import EqPropClassifier
from neuro_eqprop.study.settings import Study

SMALL = EqPropClassifier(hidden=(32,), epochs=6)


@pytest.fixture(scope="module")
def fitted() -> EqPropClassifier:
    data = digits()
    made: EqPropClassifier = clone(SMALL)
    return made.fit(data.train.x, np.array(list("abcdefghij"))[data.train.y])


def test_it_learns_labels_of_any_kind(fitted: EqPropClassifier) -> None:
    data = digits()
    names = np.array(list("abcdefghij"))[data.test.y]
    assert fitted.score(data.test.x, names) > 0.9
    assert set(fitted.predict(data.test.x)) == set("abcdefghij")
    assert fitted.decision_function(data.test.x).shape == (360, 10)


def test_spikes_answer_as_the_rates_do(fitted: EqPropClassifier) -> None:
    x = digits().test.x[:60]
    spikes = fitted.predict_spikes(x, on="reference", code="rate", steps=128)
    assert (spikes == fitted.predict(x)).mean() >= 0.95


def test_its_parameters_are_those_of_a_study() -> None:
    made = EqPropClassifier(hidden=(7, 5), activation="relu", output="linear", feedback=0.1, seed=3)
    expected = Study(hidden=(7, 5), activation="relu", output="linear", feedback=0.1, seed=3)
    assert made.study() == expected
    assert EqPropClassifier().study() == Study()


def test_it_takes_part_in_cross_validation() -> None:
    data = digits()
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


def test_a_model_over_images_is_told_their_shape() -> None:
    data = digits()
    made = EqPropClassifier(
        model="conv", hidden=(4,), epochs=1, shape=(1, 8, 8), more={"kernel": 3}
    )
    assert made.study().kernel == 3
    fitted = made.fit(data.train.x[:100], data.train.y[:100])
    assert fitted.network_["conv1"].shape == (4, 6, 6)
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
