"""`Model`: a network with its parameters, and what can be done with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy.typing as npt

from neuro_eqprop.api.spiking_model import SpikingModel
from neuro_eqprop.common.arrays import check_options
from neuro_eqprop.common.html import html_table
from neuro_eqprop.data.samples import LabelledSamples
from neuro_eqprop.runs import checkpoint
from neuro_eqprop.runs.evaluate import Evaluation, evaluate
from neuro_eqprop.runs.executors import Executor
from neuro_eqprop.runs.run_folder import open_folder, save_run
from neuro_eqprop.runs.simulate import record_rates
from neuro_eqprop.runs.simulation_settings import RecordingSettings, SimulationSettings
from neuro_eqprop.simulators.base import Backend
from neuro_eqprop.spiking.codes import Code
from neuro_eqprop.spiking.input_coding import InputCoding
from neuro_eqprop.spiking.lowered import lower_network
from neuro_eqprop.traces.trace import Trace
from neuro_eqprop.training.trained import TrainedNetwork, prune

if TYPE_CHECKING:
    from neuro_eqprop.dynamics.to_torch import EquilibriumLayer

M = TypeVar("M", bound="Model")


@dataclass(frozen=True, eq=False, repr=False)
class Model(TrainedNetwork):
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

    @classmethod
    def of(cls: type[M], trained: TrainedNetwork) -> M:
        """The network as a model."""
        return cls(**{f.name: getattr(trained, f.name) for f in fields(cls)})

    def _repr_html_(self) -> str:
        rows = {
            "layers": self.layout,
            "parameters": f"{self.parameters}",
            "made": self.summary,
            **{
                name: f"{self.history[-1][name]:.4f}"
                for name in self.history.columns
                if name.endswith("_accuracy")
            },
        }
        return html_table("Model", rows)

    def evaluate(  # noqa: PLR0913 - the coding, and the fields of SimulationSettings
        self,
        split: LabelledSamples,
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

        `on`, `steps`, `progress`, `workers`, `executor` and `deadline` are the fields of
        `neuro_eqprop.runs.simulation_settings.SimulationSettings`.

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
        settings = SimulationSettings(
            on=on,
            steps=steps,
            progress=progress,
            workers=workers,
            executor=executor,
            deadline=deadline,
        )
        return evaluate(self, self.labelled(split), settings, code=code, bits=bits, input=input)

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
        >>> model.to_spiking(code="graded", bits=8).neurons
        26
        """
        lowered = lower_network(self.network, self.params, code=code, bits=bits, input=input)
        return SpikingModel.of(self, lowered)

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
            The pruned model, with the history of this one.

        Examples
        --------
        >>> import numpy as np
        >>> import neuro_eqprop as ne
        >>> model = ne.train("layered", "digits", hidden=(16,), epochs=1)
        >>> pruned = model.prune(0.75)
        >>> int(np.count_nonzero(pruned.params["input->hidden"])), 64 * 16 // 4
        (256, 256)
        """
        return prune(self, fraction)

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
        recording = RecordingSettings(phases=phases, record=record, out=out)
        return record_rates(self, x, y, recording, steps=steps).trace

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
            if path.exists() and not force:
                raise ValueError(f"{path} exists; name another file or use force=True")
            checkpoint.save(path, self)
            return
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
            return Model.of(open_folder(path).model)
        return Model.of(checkpoint.load(path))
