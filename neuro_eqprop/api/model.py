"""`Model`: a network with its parameters and how it was made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, Ints, Named, check_options, type_name
from neuro_eqprop.common.html import html_table
from neuro_eqprop.data import Dataset, Split, load_data
from neuro_eqprop.data.split import check_ids
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.operators import Embedding
from neuro_eqprop.training.history import History

if TYPE_CHECKING:
    from neuro_eqprop.api.spiking_model import SpikingModel
    from neuro_eqprop.dynamics.inference import Inference
    from neuro_eqprop.dynamics.to_torch import EquilibriumLayer
    from neuro_eqprop.runs.evaluate import Evaluation
    from neuro_eqprop.runs.executors import Executor
    from neuro_eqprop.simulators.base import Backend
    from neuro_eqprop.spiking.codes import Code
    from neuro_eqprop.spiking.input_coding import InputCoding
    from neuro_eqprop.traces.trace import Trace
    from neuro_eqprop.training.study import Study

TRAINED, FROM_TORCH, FROM_NIR = "trained", "converted from torch", "read from NIR"
"""The usual values of `Model.provenance`."""


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A network with its parameters and how it was made.

    `train`, `learn_on_chip`, `from_torch`, `open_run(path).model` and `Model.load` return one.

    Parameters
    ----------
    network : Network
        The layers and connections.
    params : mapping of str to array
        Weights by connection name ("input->hidden"), biases by layer name ("hidden").
    epochs : int
        The epochs it was trained for.
    study : Study, optional
        The settings it was trained with; None for a network that was converted.
    history : History
        The metrics of its training, a row for each epoch.
    provenance : str
        How it was made: "trained", "converted from torch", ...
    diverged : str, optional
        Why its training ended before the last epoch; None if it did not.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> data = ne.load_data("digits")
    >>> model = ne.train("layered", data, hidden=(16,), epochs=1, seed=0)
    >>> model
    Model(input 64, hidden 16, output 10, 1210 parameters, trained by hebbian on digits, 1 epoch)
    >>> model.params["hidden->output"].shape
    (10, 16)

    """

    network: Network
    params: Mapping[str, Array]
    epochs: int = 0
    study: Study | None = None
    history: History = field(default_factory=History)
    provenance: str = TRAINED
    diverged: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", Named("parameter", self.params))

    def __repr__(self) -> str:
        return f"Model({self.layout}, {self.parameters} parameters, {self.summary})"

    def _repr_html_(self) -> str:
        rows = {
            "layers": self.layout,
            "parameters": f"{self.parameters}",
            "made": self.summary,
            **{name: f"{self.history[-1][name]:.4f}" for name in accuracies(self.history)},
        }
        return html_table("Model", rows)

    @property
    def layout(self) -> str:
        """The layers with their shapes: "input 64, hidden 128, output 10"."""
        return self.network.layout

    @property
    def summary(self) -> str:
        """How it was made, in one phrase."""
        if not self.epochs:
            return "untrained" if self.provenance == TRAINED else self.provenance
        study, many = self.study, f"{self.epochs} epoch{'s' if self.epochs > 1 else ''}"
        how = "" if study is None else f"by {study.rule.name} on {study.dataset}, "
        return f"{self.provenance} {how}{many}"

    @property
    def parameters(self) -> int:
        """The number of weights and biases."""
        return sum(value.size for value in self.params.values())

    @property
    def damping(self) -> float:
        """The damping factor with which its rates settle."""
        return 1.0 if self.study is None else self.study.damping

    @property
    def beta(self) -> float:
        """The nudging strength of its nudged phases."""
        return 0.5 if self.study is None else self.study.rule.beta

    @property
    def seed(self) -> int:
        """The seed it was trained with."""
        return 0 if self.study is None else self.study.seed

    def samples(self, x: npt.ArrayLike) -> Array:
        """Samples as float64 rows (samples, features); ValueError if they do not fit the model."""
        try:
            rows = np.asarray(x, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"x holds no array of numbers ({error})") from error
        size = self.network.input.size
        if rows.ndim > 1:
            rows = rows.reshape(len(rows), int(np.prod(rows.shape[1:])))
        if rows.ndim != 2 or rows.shape[1] != size:
            raise ValueError(
                f"x has shape {np.shape(x)}; this model takes samples of {size} features: "
                f"(samples, {size})"
            )
        if not np.isfinite(rows).all():
            raise ValueError("x holds values that are not finite (NaN or inf); replace them first")
        vocabulary = vocabulary_of(self.network)
        if vocabulary:
            check_ids(Split(rows, np.zeros(len(rows), dtype=np.int64)), "x", vocabulary)
        return rows

    def equilibrium(self, x: npt.ArrayLike) -> Inference:
        """The free equilibrium of the rates, in float64.

        Parameters
        ----------
        x : array (samples, features)
            The samples; further axes are flattened.

        Returns
        -------
        Inference
            `state`: the rates of each layer (samples, *shape); `drive`: the pre-activation of the
            output (samples, classes); `steps` and `residual` of each sample.

        Examples
        --------
        >>> import neuro_eqprop as ne
        >>> data = ne.load_data("digits")
        >>> model = ne.train("layered", data, hidden=(16,), epochs=1)
        >>> model.equilibrium(data.test.x[:5]).state["hidden"].shape
        (5, 16)
        """
        from neuro_eqprop.dynamics.inference import infer_in_chunks
        from neuro_eqprop.networks.ops.numpy import NumpyOps

        ops = NumpyOps()
        params = {name: ops.from_numpy(value) for name, value in self.params.items()}
        rows = self.samples(x)
        return infer_in_chunks(ops, self.network, params, rows, damping=self.damping)

    def predict(self, x: npt.ArrayLike) -> Ints:
        """The class of each sample: the output unit with the largest drive at equilibrium.

        Parameters
        ----------
        x : array (samples, features)
            The samples.

        Returns
        -------
        array of int (samples,)
            Class numbers.

        Examples
        --------
        >>> import neuro_eqprop as ne
        >>> data = ne.load_data("digits")
        >>> model = ne.train("layered", data, hidden=(16,), epochs=1)
        >>> model.predict(data.test.x[:5]).shape
        (5,)
        """
        return self.equilibrium(x).classes

    def evaluate(  # noqa: PLR0913 - keyword arguments, all with defaults
        self,
        split: Split | Dataset | str | Path | tuple[npt.ArrayLike, npt.ArrayLike],
        *,
        on: str | Backend = "rate",
        code: str | Code = "rate",
        steps: int | None = None,
        bits: int | None = None,
        input: str | InputCoding = "current",  # noqa: A002
        progress: Callable[[int], None] | None = None,
        workers: int = 1,
        executor: Executor | None = None,
        deadline: float | None = None,
    ) -> Evaluation:
        """Accuracy on labelled samples, as rates or as spikes on a simulator.

        Parameters
        ----------
        split : Split, Dataset, str, Path or tuple
            Labelled samples, as `data.test` or `(x, y)`; of a data set, or of its name, the test
            samples.
        on : str or Backend
            "rate" (torch), "numpy", or a simulator: "reference", "emulator", "snntorch",
            "brian2", "lava", ...
        code : str
            Spike code: "rate", "graded", "paired", "predictive", "bernoulli".
        steps : int, optional
            Steps of the free phase of spikes; the default is that of the code.
        bits : int, optional
            Bits of the weights in fixed point; floating point if None.
        input : str
            How data enter the spiking network: "current", "graded" or "rate".
        progress : callable, optional
            Called with the number of samples done since the last call.
        workers : int
            Threads of the emulator, or processes of another simulator; see `SpikingModel.run`.
        executor : Executor, optional
            Runs shards of the samples, see `SpikingModel.run`.
        deadline : float, optional
            Seconds after which the simulation is ended with a `DeadlineError`; the default is ten
            minutes and ten times the estimated time.

        Returns
        -------
        Evaluation
            `accuracy`, agreement with the float64 rates, event counts of spikes.

        Examples
        --------
        >>> import neuro_eqprop as ne
        >>> data = ne.load_data("digits")
        >>> model = ne.train("layered", data, epochs=2, seed=0)
        >>> model.evaluate(data.test).accuracy > 0.8
        True
        >>> model.evaluate(data.test.take(slice(20)), on="emulator", code="graded").samples
        20
        """
        from neuro_eqprop.runs.evaluate import evaluate
        from neuro_eqprop.runs.workers import Shared

        return evaluate(
            self,
            self._checked(split),
            on=on,
            code=code,
            steps=steps,
            bits=bits,
            input=input,
            progress=progress,
            shared=Shared(workers, executor),
            deadline=deadline,
        )

    def _checked(
        self, given: Split | Dataset | str | Path | tuple[npt.ArrayLike, npt.ArrayLike]
    ) -> Split:
        """Labelled samples that fit the model."""
        split = as_split(given)
        if vocabulary_of(self.network) or not split.in_bytes:
            return Split(self.samples(split.stored), split.y)
        return split

    def to_spiking(
        self,
        *,
        code: str | Code = "rate",
        bits: int | None = None,
        input: str | InputCoding = "current",  # noqa: A002
    ) -> SpikingModel:
        """Lower the model to a spiking network.

        Parameters
        ----------
        code : str
            How rates become spikes: "rate" (integrate and fire), "graded" (sigma-delta), "paired",
            "predictive" or "bernoulli".
        bits : int, optional
            Bits of integer weights in fixed point, 2 to 24; floating point if None.
        input : str
            How data enter: "current" (computed on the host), "graded" (sent once) or "rate"
            (spikes).

        Returns
        -------
        SpikingModel
            A description that runs on every simulator.

        Examples
        --------
        >>> import neuro_eqprop as ne
        >>> model = ne.train("layered", "digits", hidden=(16,), epochs=1)
        >>> model.to_spiking(code="graded", bits=8)
        SpikingModel(code graded, input current, 8-bit weights, 26 neurons, 320 synapses)
        """
        from neuro_eqprop.api.spiking_model import to_spiking

        return to_spiking(self, code=code, bits=bits, input=input)

    def prune(self, fraction: float) -> Model:
        """Set the smallest weights of every connection to zero (magnitude pruning).

        Where few weights are left, the connection becomes sparse synapses. Biases stay.

        Parameters
        ----------
        fraction : float
            The fraction of the weights of each connection to remove, from 0 to below 1.

        Returns
        -------
        Model
            The pruned model, with the history of this one. `prune_curve` in
            `neuro_eqprop.runs.prune` gives accuracy and synaptic operations by fraction.

        Examples
        --------
        >>> import numpy as np
        >>> import neuro_eqprop as ne
        >>> model = ne.train("layered", "digits", hidden=(16,), epochs=1)
        >>> pruned = model.prune(0.75)
        >>> int(np.count_nonzero(pruned.params["input->hidden"])), 64 * 16 // 4
        (256, 256)
        """
        if not 0.0 <= fraction < 1.0:
            raise ValueError(f"fraction must be from 0 to below 1, not {fraction}")
        params = dict(self.params)
        for connection in self.network.connections:
            loop = connection.loops and connection.symmetric and connection.operator.matrix
            params[connection.name] = without_smallest(
                params[connection.name], fraction, symmetric=loop
            )
        return replace(self, params=params)

    def record(
        self,
        x: npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        *,
        steps: int | None = None,
        phases: bool = False,
        record: Iterable[str] = (),
        out: str | Path | None = None,
    ) -> Trace:
        """Record the rates of samples as they settle, step by step.

        Parameters
        ----------
        x : array (samples, features)
            The samples.
        y : array (samples,), optional
            Class numbers that the nudged phases nudge towards; if None, the predictions.
        steps : int, optional
            Steps of each phase, 64 if None.
        phases : bool
            Whether two nudged phases (-beta, +beta) follow the free one.
        record : iterable of str
            Signals besides the rates: "hidden:drive", "hidden->output:hebbian".
        out : str or Path, optional
            A file to write the trace to, `.h5`.

        Returns
        -------
        Trace
            The recording, in memory.

        Examples
        --------
        >>> import neuro_eqprop as ne
        >>> data = ne.load_data("digits")
        >>> model = ne.train("layered", data, hidden=(16,), epochs=1)
        >>> trace = model.record(data.test.x[:2], phases=True, steps=20)
        >>> trace.rate("hidden", "free").shape
        (2, 16)
        """
        from neuro_eqprop.runs.simulate import TraceOutput, record_rates

        output = TraceOutput(out)
        return record_rates(
            self, x, y, steps=steps, phases=phases, record=record, output=output
        ).trace

    def to_torch(self, **options: Any) -> EquilibriumLayer:  # noqa: ANN401
        """Return the model as a trainable `torch.nn.Module` whose forward pass settles.

        Parameters
        ----------
        **options
            Keyword arguments of `EquilibriumLayer`: `stop`, `damping`, `dtype`.

        Returns
        -------
        EquilibriumLayer
            Its backward pass is the implicit gradient at the equilibrium.

        Examples
        --------
        >>> import neuro_eqprop as ne
        >>> import torch
        >>> model = ne.train("layered", "digits", hidden=(16,), epochs=1)
        >>> model.to_torch()(torch.zeros(3, 64)).shape
        torch.Size([3, 10])
        """
        from neuro_eqprop.dynamics.to_torch import EquilibriumLayer

        check_options(EquilibriumLayer, options, "option of to_torch")
        return EquilibriumLayer(self.network, self.params, **{"damping": self.damping, **options})

    def save(
        self, path: str | Path, *, dataset: str | Path | None = None, force: bool = False
    ) -> None:
        """Write the model to a `.safetensors` file or to a run folder.

        Parameters
        ----------
        path : str or Path
            A file name that ends in `.safetensors`; anything else is a run folder, which all
            commands accept.
        dataset : str or Path, optional
            For a run folder: name or `.npz` file of the data; by default that of the training.
        force : bool
            Whether to replace an existing file or folder.

        Examples
        --------
        >>> import neuro_eqprop as ne
        >>> model = ne.train("layered", "digits", hidden=(16,), epochs=1)
        >>> model.save("small.safetensors")
        >>> ne.Model.load("small.safetensors").parameters
        1210
        >>> model.save("runs/saved")
        >>> ne.open_run("runs/saved").model.epochs
        1
        """
        path = Path(path)
        if path.suffix == ".safetensors":
            from neuro_eqprop.runs import checkpoint

            if path.exists() and not force:
                raise ValueError(f"{path} exists; name another file or use force=True")
            checkpoint.save(path, self)
            return
        from neuro_eqprop.runs.run_folder import save_run

        if dataset is None:
            if self.study is None:
                raise ValueError(
                    f"a run folder names its data; use save({str(path)!r}, dataset=...)"
                )
            dataset = self.study.dataset
        save_run(self, path, dataset=dataset, force=force)

    @classmethod
    def load(cls, path: str | Path) -> Model:
        """The model in a `.safetensors` file or in a run folder.

        Parameters
        ----------
        path : str or Path
            A file or folder of `save` or `train(..., out=path)`.

        Returns
        -------
        Model
            From a run folder with its settings and history; from a file without them.
        """
        path = Path(path)
        if path.is_dir():
            from neuro_eqprop.runs.run_folder import open_run

            return open_run(path).model
        from neuro_eqprop.runs import checkpoint

        return checkpoint.load(path)


def accuracies(history: History) -> Sequence[str]:
    """The columns of a history that hold an accuracy."""
    return [name for name in history.columns if name.endswith("_accuracy")]


def vocabulary_of(network: Network) -> int:
    """The number of token ids that a network knows; 0 if its samples are numbers."""
    operators = (connection.operator for connection in network.connections)
    return next((each.vocabulary for each in operators if isinstance(each, Embedding)), 0)


def as_split(given: Split | Dataset | str | Path | tuple[npt.ArrayLike, npt.ArrayLike]) -> Split:
    """Labelled samples: a split, a pair (x, y), or the test samples of a data set or its name."""
    if isinstance(given, Split):
        return given
    if isinstance(given, tuple | list):
        if len(given) != 2:
            raise ValueError(f"labelled samples are a pair (x, y), not {len(given)} arrays")
        x, y = np.asarray(given[0]), np.asarray(given[1])
        if len(x) != len(y):
            raise ValueError(f"{len(x)} samples have {len(y)} labels; give one for each")
        return Split(x, y)
    if not isinstance(given, Dataset | str | Path):
        raise TypeError(
            f"labelled samples are a Split, a Dataset or a pair (x, y), not {type_name(given)}"
        )
    return (given if isinstance(given, Dataset) else load_data(given)).test


def without_smallest(weight: Array, fraction: float, *, symmetric: bool) -> Array:
    """The weight with its smallest entries set to zero; among equal ones the first.

    Of a symmetric matrix both entries w_ij and w_ji are set to zero.
    """
    size = np.abs(weight)
    order = np.argsort(size, axis=None, kind="stable")
    pruned, count = weight.copy(), round(fraction * weight.size)
    pruned.reshape(-1)[order[:count]] = 0.0
    return np.where((pruned != 0) & (pruned.T != 0), pruned, 0.0) if symmetric else pruned
