"""The simple case in scikit-learn's manner: fit, predict, score, and the same as spikes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from neuro_eqprop.arrays import Array
from neuro_eqprop.backends.base import load
from neuro_eqprop.data import Dataset, Split
from neuro_eqprop.learn.readout import answer
from neuro_eqprop.learn.train import Snapshot, train
from neuro_eqprop.networks import initialise
from neuro_eqprop.ops.numpy_ops import NumpyOps
from neuro_eqprop.schedules import free_only, tail
from neuro_eqprop.spiking.lower import Code, Coding, lower, stimulate
from neuro_eqprop.study.evaluation import DT
from neuro_eqprop.study.settings import Study, adapt
from neuro_eqprop.traces import NOTHING, Memory


class EqPropClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A network trained by equilibrium propagation; its parameters are settings of a `Study`.

    `shape` is that of one sample where a model looks at images (channels, height, width) or tokens
    (tokens, width); `more` holds any other settings of a study.
    """

    def __init__(  # noqa: PLR0913
        self,
        *,
        model: str = "layered",
        hidden: tuple[int, ...] = (128,),
        activation: str = "hard_sigmoid",
        output: str = "hard_sigmoid",
        bound: float = 0.0,
        feedback: float = 1.0,
        nudging: str = "centered",
        beta: float = 0.5,
        epochs: int = 30,
        batch: int = 32,
        learning_rate: float = 0.002,
        seed: int = 0,
        shape: tuple[int, ...] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        self.model, self.hidden = model, hidden
        self.activation, self.output = activation, output
        self.bound, self.feedback = bound, feedback
        self.nudging, self.beta = nudging, beta
        self.epochs, self.batch, self.learning_rate = epochs, batch, learning_rate
        self.seed, self.shape, self.more = seed, shape, more

    def study(self) -> Study:
        """The settings as a study."""
        given = self.get_params()
        named = {f.name: given[f.name] for f in fields(Study) if f.name in given}
        return adapt(Study(), {**named, **(self.more or {})})

    def fit(self, x: Any, y: Any) -> EqPropClassifier:  # noqa: ANN401
        """Train on samples x (samples, features) and their labels y."""
        x, y = validate_data(self, x, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        split = Split(x, np.asarray(numbers, dtype=np.int64))
        study = self.study()
        data = Dataset("given", split, split, len(self.classes_))
        data = data if self.shape is None else replace(data, shape=self.shape)
        self.network_ = study.network(data)
        start = initialise(self.network_, np.random.default_rng(study.seed))
        snapshot = Snapshot(0, start)
        view = study.view(data)
        for progress in train(self.network_, split, study.recipe(), snapshot, view=view):
            snapshot = progress.snapshot
        self.params_ = {name: value.astype(np.float64) for name, value in snapshot.params.items()}
        return self

    def drive(self, x: Any) -> Array:  # noqa: ANN401
        """The drive of each output unit at equilibrium (samples, classes)."""
        x = self.checked(x)
        return answer(NumpyOps(), self.network_, self.params_, x).drive

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
        x, coding = self.checked(x), Coding(Code(code))
        network = lower(self.network_, self.params_, dt=DT, coding=coding, nudged=False)
        stimulus = stimulate(self.network_, self.params_, x, target=None, coding=coding)
        schedule = free_only(steps=steps, window=tail(steps, coding.tail))
        result = load(on).run(network, stimulus, schedule, record=NOTHING, sink=Memory())
        return self.classes_[result.drive[network.output][:, 0].argmax(axis=1)]
