"""`EqPropClassifier`: equilibrium propagation as a scikit-learn classifier."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from neuro_eqprop.api.model import Model
from neuro_eqprop.common.arrays import Array
from neuro_eqprop.data import Dataset, Split
from neuro_eqprop.data.from_arrays import USUAL
from neuro_eqprop.simulators.base import Backend
from neuro_eqprop.training.defaults import derive
from neuro_eqprop.training.loop import TrainingLoop
from neuro_eqprop.training.study import Study, make_study

UNSUPPORTED = {
    "dataset": "it trains on the arguments of `fit`",
    "validation": "it trains on all samples of `fit`; hold out samples before",
    "patience": "it trains on all samples of `fit`, so there are none for early stopping",
}
"""Settings of a study that the estimator does not support, with the reason."""
NOT_SETTINGS = ("shape", "more", "verbose")
"""Parameters of the estimator that are not settings of a study."""


class EqPropClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classifier network trained by equilibrium propagation, with the scikit-learn interface.

    Most models standardize the features themselves; see the setting `normalize`.

    Parameters
    ----------
    model : str
        Architecture: "layered", "looped", "conv", "transformer", ...
    hidden : tuple of int, optional
        Number of units of each hidden layer; None for the default of the model.
    activation, output, bound, feedback, feedback_weights
        Settings of the network, as listed by `neuro-eqprop train --help`; None for what is derived
        from the model and the samples (`neuro_eqprop.training.defaults`).
    rule, nudging, beta, epochs, batch, learning_rate
        Settings of the training, likewise.
    seed : int
        Random seed of parameters and batches.
    shape : tuple of int, optional
        Shape of one sample: (channels, height, width) for images, (tokens, width) for sequences;
        None for (features,).
    more : mapping, optional
        Further settings of a study by name.
    verbose : bool
        Whether to print the accuracy of each epoch.

    Attributes
    ----------
    classes_ : array (classes,)
        Labels in sorted order.
    model_ : Model
        The trained model, with `to_spiking()`, `record(...)`, `save(...)`.
    history_ : History
        Training accuracy, loss, settling steps and time of each epoch.

    Notes
    -----
    The matrices are small: `torch.set_num_threads(1)` before `fit` is usually faster.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import neuro_eqprop as ne
    >>> x, y = load_iris(return_X_y=True)
    >>> classifier = ne.EqPropClassifier(hidden=(32,), epochs=40, batch=16, learning_rate=0.01)
    >>> net = make_pipeline(StandardScaler(), classifier)
    >>> net.fit(x, y).score(x, y) > 0.9
    True
    >>> net[-1].predict_spikes(net[0].transform(x[:3])).shape
    (3,)
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
        feedback_weights: str | None = None,
        rule: str | None = None,
        nudging: str | None = None,
        beta: float | None = None,
        epochs: int | None = None,
        batch: int | None = None,
        learning_rate: float | None = None,
        seed: int = 0,
        shape: tuple[int, ...] | None = None,
        more: Mapping[str, Any] | None = None,
        verbose: bool = False,
    ) -> None:
        self.model, self.hidden = model, hidden
        self.activation, self.output = activation, output
        self.bound, self.feedback, self.feedback_weights = bound, feedback, feedback_weights
        self.rule, self.nudging, self.beta = rule, nudging, beta
        self.epochs, self.batch, self.learning_rate = epochs, batch, learning_rate
        self.seed, self.shape, self.more, self.verbose = seed, shape, more, verbose

    def study(self, data: Dataset | None = None) -> Study:
        """Return the settings as a study.

        Parameters
        ----------
        data : Dataset, optional
            The samples from which parameters that are None are derived, as `fit` does; without
            them they have the default of the model.

        Returns
        -------
        Study
            The settings, complete.

        Raises
        ------
        ValueError
            If `more` has a setting that the estimator does not support.
        """
        given, more = self.get_params(), self.more or {}
        for key, why in UNSUPPORTED.items():
            if key in more:
                raise ValueError(f"an estimator has no setting {key!r}: {why}; leave it out")
        named = {
            key: value
            for key, value in given.items()
            if key not in NOT_SETTINGS and value is not None
        }
        stated = {**named, **more}
        return make_study(**stated) if data is None else derive(stated, data)

    def fit(self, x: Any, y: Any) -> EqPropClassifier:  # noqa: ANN401
        """Fit the network to training samples.

        Parameters
        ----------
        x : array (samples, features)
            Training samples.
        y : array (samples,)
            Class labels.

        Returns
        -------
        EqPropClassifier
            The fitted estimator.

        Warns
        -----
        UserWarning
            If the samples lie far outside -1 to 1, and the network does not standardize them.
        ConvergenceWarning
            If the free phase did not settle, so that the updates are not gradients.
        """
        x, y = validate_data(self, x, y, dtype=np.float64)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        loop = self._loop(x, y)
        while not loop.finished:
            right = f"train accuracy {loop.epoch(evaluate=False)['train_accuracy']:.4f}"
            if self.verbose:
                print(f"epoch {loop.epochs}/{loop.study.training.epochs}: {right}")
        warning = loop.diagnose(truth=False).warning
        if warning:
            warnings.warn(warning, ConvergenceWarning, stacklevel=2)
        self._keep(loop)
        return self

    def partial_fit(self, x: Any, y: Any, classes: Any = None) -> EqPropClassifier:  # noqa: ANN401
        """Train one epoch on these samples, from the parameters of the calls before.

        The optimizer starts anew with each call, with the learning rate of the first epoch.

        Parameters
        ----------
        x : array (samples, features)
            Training samples.
        y : array (samples,)
            Class labels.
        classes : array (classes,), optional
            All labels there will be; needed in the first call alone, unless `y` has them all.

        Returns
        -------
        EqPropClassifier
            The fitted estimator.

        Examples
        --------
        >>> import neuro_eqprop as ne
        >>> data = ne.load_data("digits").train
        >>> net = ne.EqPropClassifier(hidden=(16,))
        >>> for start in range(0, 1000, 250):
        ...     rows = slice(start, start + 250)
        ...     net = net.partial_fit(data.x[rows], data.y[rows], classes=range(10))
        >>> net.score(data.x[:1000], data.y[:1000]) > 0.5
        True
        """
        begun = hasattr(self, "model_")
        x, y = validate_data(self, x, y, dtype=np.float64, reset=not begun)
        check_classification_targets(y)
        if not begun:
            self.classes_ = np.unique(y if classes is None else np.asarray(classes))
        elif classes is not None and not np.array_equal(self.classes_, np.unique(classes)):
            raise ValueError("classes differ from those of the first call of partial_fit")
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(
                f"y has the label {unknown[0]}, which is none of the classes; name all of them "
                "in the first call: partial_fit(x, y, classes=...)"
            )
        loop = self._loop(x, y, self.model_ if begun else None)
        loop.epoch(evaluate=False)
        self._keep(loop)
        return self

    def _loop(self, x: Array, y: Any, start: Model | None = None) -> TrainingLoop:  # noqa: ANN401
        """The training of these samples, from the parameters of a model if one is given."""
        numbers = np.searchsorted(self.classes_, y).astype(np.int64)
        split = Split(x, numbers)
        data = Dataset.from_splits("fit", split, split, len(self.classes_), self.shape or ())
        study = self.study(data)
        if not study.training.normalize:
            warn_unscaled(x)
        if start is None:
            return TrainingLoop(study, study.network(data), data)
        return TrainingLoop(study, start.network, data, params=start.params)

    def _keep(self, loop: TrainingLoop) -> None:
        """Keep the trained model, with 64-bit parameters."""
        trained = loop.model()
        params = {name: value.astype(np.float64) for name, value in trained.params.items()}
        self.model_ = Model.of(replace(trained, params=params))
        self.history_ = self.model_.history

    def _validated(self, x: Any) -> Array:  # noqa: ANN401
        check_is_fitted(self, "model_")
        return np.asarray(validate_data(self, x, reset=False, dtype=np.float64))

    def drive(self, x: Any) -> Array:  # noqa: ANN401
        """Return the drive (pre-activation) of the output units at the free equilibrium.

        Parameters
        ----------
        x : array (samples, features)
            Samples.

        Returns
        -------
        array (samples, classes)
            Drive of each output unit, in the order of `classes_`.
        """
        rows = self._validated(x)
        return self.model_.equilibrium(rows).drive

    def decision_function(self, x: Any) -> Array:  # noqa: ANN401
        """Return the confidence scores of samples.

        Parameters
        ----------
        x : array (samples, features)
            Samples.

        Returns
        -------
        array (samples, classes) or (samples,)
            Drive of each class; with two classes, the drive of the second minus that of the first.
        """
        drive = self.drive(x)
        return drive if len(self.classes_) != 2 else drive[:, 1] - drive[:, 0]

    def predict(self, x: Any) -> Any:  # noqa: ANN401
        """Predict class labels.

        Parameters
        ----------
        x : array (samples, features)
            Samples.

        Returns
        -------
        array (samples,)
            Labels.
        """
        drive = self.drive(x)  # before `classes_` is read: it checks that the estimator is fitted
        return self.classes_[drive.argmax(axis=1)]

    def predict_proba(self, x: Any) -> Array:  # noqa: ANN401
        """Return class probabilities, the softmax of the drive.

        The network is trained for these probabilities only with the cost `cross_entropy`; with the
        squared error they rank the classes but are not calibrated.

        Parameters
        ----------
        x : array (samples, features)
            Samples.

        Returns
        -------
        array (samples, classes)
            Probabilities, in the order of `classes_`.
        """
        drive = self.drive(x)
        shifted = np.exp(drive - drive.max(axis=1, keepdims=True))
        return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))

    def predict_spikes(
        self,
        x: Any,  # noqa: ANN401
        *,
        on: str | Backend = "emulator",
        code: str = "graded",
        steps: int | None = None,
        bits: int | None = None,
    ) -> Any:  # noqa: ANN401
        """Predict class labels with the spiking network on a simulator.

        Parameters
        ----------
        x : array (samples, features)
            Samples.
        on : str or Backend
            Simulator, see `SpikingModel.run`.
        code : str
            Spike code, see `Model.to_spiking`.
        steps : int, optional
            Number of steps; None for the default of the code.
        bits : int, optional
            Bits of the weights in fixed point; None for floating point.

        Returns
        -------
        array (samples,)
            Labels.
        """
        rows = self._validated(x)
        spiking = self.model_.to_spiking(code=code, bits=bits)
        return self.classes_[spiking.run(rows, on=on, steps=steps).predictions]


def warn_unscaled(x: Array) -> None:
    """Warn if values lie far outside -1 to 1."""
    low, high = float(x.min()), float(x.max())
    if max(-low, high) > USUAL:
        warnings.warn(
            f"x lies between {low:.4g} and {high:.4g}, and networks expect about -1 to 1; scale "
            "it, for example with sklearn.preprocessing.StandardScaler",
            UserWarning,
            stacklevel=3,
        )
