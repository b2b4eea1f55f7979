"""The simple case in scikit-learn's manner: fit, predict, score, and the same as spikes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from neuro_eqprop.arrays import Array
from neuro_eqprop.backends.registry import load_backend
from neuro_eqprop.data import Dataset, Split
from neuro_eqprop.experiments.config import Study, make_study
from neuro_eqprop.experiments.evaluate import equilibria
from neuro_eqprop.experiments.train import (
    check_device,
    dry_run,
    epochs,
    initial_snapshot,
    no_progress,
    probed,
)
from neuro_eqprop.ops.numpy import NumpyOps
from neuro_eqprop.schedules import free_only, tail
from neuro_eqprop.spiking.codes import Coding, find_code
from neuro_eqprop.spiking.lower import lower, stimulate
from neuro_eqprop.spiking.model import DT
from neuro_eqprop.traces import NOTHING, MemorySink

OF_COMMANDS = {
    "dataset": "it learns from what `fit` is given",
    "validation": "it learns from all that `fit` is given, so hold samples out before",
}
"""Settings of a study that an estimator has no use for, and why."""


class EqPropClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A network trained by equilibrium propagation; its parameters are settings of a `Study`.

    What is None is as the model's own defaults or those of a `Study` have it. `shape` is that of
    one sample where a model looks at images (channels, height, width) or tokens (tokens, width);
    `more` holds any other settings of a study. Products are small here: `torch.set_num_threads(1)`
    before `fit` is usually faster, by far on a busy machine.
    """

    def __init__(  # noqa: PLR0913
        self,
        *,
        model: str = "layered",
        hidden: tuple[int, ...] | None = None,
        activation: str | None = None,
        output: str | None = None,
        bound: float | None = None,
        feedback: float | None = None,
        rule: str | None = None,
        nudging: str | None = None,
        beta: float | None = None,
        epochs: int | None = None,
        batch: int | None = None,
        learning_rate: float | None = None,
        seed: int = 0,
        shape: tuple[int, ...] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        self.model, self.hidden = model, hidden
        self.activation, self.output = activation, output
        self.bound, self.feedback = bound, feedback
        self.rule, self.nudging, self.beta = rule, nudging, beta
        self.epochs, self.batch, self.learning_rate = epochs, batch, learning_rate
        self.seed, self.shape, self.more = seed, shape, more

    def study(self) -> Study:
        """The settings as a study."""
        given, more = self.get_params(), self.more or {}
        for key, why in OF_COMMANDS.items():
            if key in more:
                raise ValueError(f"an estimator has no setting {key!r}: {why}; leave it out")
        named = {
            key: value
            for key, value in given.items()
            if key not in ("shape", "more") and value is not None
        }
        return make_study(**{**named, **more})

    def fit(self, x: Any, y: Any) -> EqPropClassifier:  # noqa: ANN401
        """Train on samples x (samples, features) and their labels y.

        Warns if the free phase had not settled at the end, which makes updates unsound.
        """
        x, y = validate_data(self, x, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        split = Split(x, np.asarray(numbers, dtype=np.int64))
        study = self.study()
        check_device(study.training.device)
        data = Dataset.from_splits("given", split, split, len(self.classes_), self.shape or ())
        network = study.network(data)
        dry_run(study, network, data)
        at = initial_snapshot(study, network)
        for progress in epochs(study, network, data, at, no_progress):
            at = progress.snapshot
        warning = probed(study, network, data, at, truth=False).warning
        if warning:
            warnings.warn(warning, ConvergenceWarning, stacklevel=2)
        self.study_, self.network_ = study, network
        self.params_ = {name: value.astype(np.float64) for name, value in at.params.items()}
        return self

    def drive(self, x: Any) -> Array:  # noqa: ANN401
        """The drive of each output unit at equilibrium (samples, classes)."""
        x = self.checked(x)
        damping = self.study_.damping
        found = equilibria(self.network_, self.params_, x, damping=damping, ops=NumpyOps())
        return found.drive

    def checked(self, x: Any) -> Array:  # noqa: ANN401
        """Samples as they were learnt from; an error where they do not fit."""
        check_is_fitted(self, "params_")
        return np.asarray(validate_data(self, x, reset=False, dtype=np.float64))

    def decision_function(self, x: Any) -> Array:  # noqa: ANN401
        """The drive of each class; of two classes, how far the second is above the first."""
        drive = self.drive(x)
        return drive if len(self.classes_) != 2 else drive[:, 1] - drive[:, 0]

    def predict(self, x: Any) -> Any:  # noqa: ANN401
        """The label of each sample."""
        numbers = self.drive(x).argmax(axis=1)
        return self.classes_[numbers]

    def predict_spikes(self, x: Any, *, on: str, code: str, steps: int) -> Any:  # noqa: ANN401
        """The label of each sample, from spikes on a simulator."""
        x, coding = self.checked(x), Coding(find_code(code))
        network = lower(self.network_, self.params_, dt=DT, coding=coding, nudged=False)
        stimulus = stimulate(self.network_, self.params_, x, target=None, coding=coding)
        schedule = free_only(steps=steps, window=tail(steps, coding.tail))
        result = load_backend(on).run(
            network, stimulus, schedule, record=NOTHING, sink=MemorySink()
        )
        return self.classes_[result.drive[network.output][:, 0].argmax(axis=1)]
