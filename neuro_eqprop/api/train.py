"""`train`: a rate network, in memory or into a run folder."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from neuro_eqprop.api.callbacks import in_turn
from neuro_eqprop.api.model import Model
from neuro_eqprop.api.run import Run
from neuro_eqprop.api.trainer import Trainer
from neuro_eqprop.common.arrays import ArgumentError, check_callback
from neuro_eqprop.data import Dataset, load_data, save_npz
from neuro_eqprop.networks.network import Network
from neuro_eqprop.runs import run_folder
from neuro_eqprop.runs.simulation_settings import AnnounceCallback, no_announcement
from neuro_eqprop.runs.train import (
    ARRAYS,
    EpochCallback,
    TrainingOutput,
    TrainingWarning,
    data_name,
    train_loop,
)
from neuro_eqprop.training.distributed import started_by_torchrun
from neuro_eqprop.training.loop import BatchCallback
from neuro_eqprop.training.rules.base import Update
from neuro_eqprop.training.study import Study, read
from neuro_eqprop.training.trained import TrainedNetwork


def train(  # noqa: PLR0913 - keyword arguments, all with defaults
    network: str | Path | Network | TrainedNetwork | Study | None = None,
    data: Any = None,  # noqa: ANN401 - all that `load_data` takes
    *,
    rule: str | Update | None = None,
    out: str | Path | None = None,
    force: bool = False,
    resume: bool = False,
    traces: str | Path | None = None,
    progress: EpochCallback | Sequence[EpochCallback] | None = None,
    on_batch: BatchCallback | None = None,
    announce: AnnounceCallback | None = None,
    deadline: float | None = None,
    **settings: Any,  # noqa: ANN401
) -> Model:
    """Train a rate network by equilibrium propagation.

    Each batch settles freely and then nudged towards its targets; the difference of the two
    equilibria is the update (Scellier & Bengio 2017). Settings that are not stated are derived from
    the model and the data (`neuro_eqprop.training.defaults`); `model.study.chosen` names them.

    Parameters
    ----------
    network : str, Path, Network, Model or Study
        The name of a model ("layered", "looped", "conv", "transformer", ...); a network; a model,
        from whose parameters the training goes on; or a study: all settings, as an object or in a
        `.toml` file. None resumes the run in `out`.
    data : str, Path, Dataset or data in another form, optional
        The name of a data set ("digits", "mnist"), a `.npz` or `.csv` file, or the data, in any
        form that `load_data` takes; a study names its own.
    rule : str or callable, optional
        The name of an update rule, or a function as `Trainer` describes it.
    out : str or Path, optional
        The run folder to write; None keeps the result in memory.
    force : bool
        Whether to replace an existing run in `out`.
    resume : bool
        Whether to continue the run in `out`; all settings must be the same.
    traces : str or Path, optional
        Trace file, `.h5`, that records how a few samples settle after each epoch.
    progress : callable or sequence of callables, optional
        Called with the metrics of each epoch, a dict; for example `print`, `csv_logger("log.csv")`
        or `scalar_logger(writer)` for TensorBoard.
    on_batch : callable, optional
        Called with the fraction of an epoch since the last call, and the accuracy of the epoch so
        far.
    announce : callable, optional
        Called with the plan of the trace before the first epoch.
    deadline : float, optional
        Time limit in seconds, after which a DeadlineError is raised; `resume` continues after the
        last finished epoch. None for no limit.
    **settings
        `preset`, as in `Trainer`; settings of the study by name: `hidden`, `activation`, `epochs`,
        `batch`, `learning_rate`, `beta`, `nudging`, `seed`, `validation`, ...

    Returns
    -------
    Model
        The trained model with its settings and the metrics of each epoch in `history`.

    Warns
    -----
    TrainingWarning
        If the training diverged; the model is that of the last good epoch, and `diverged` says why.
        Doubts about an epoch are in its `warning` in the history.

    Raises
    ------
    TrainingError
        If a training that diverged, or learnt nothing, would replace a run of which
        nothing warns; `out` keeps that run.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> data = ne.load_data("digits")
    >>> model = ne.train("layered", data, hidden=(16,), epochs=2, seed=0)
    >>> model.history["test_accuracy"].shape
    (2,)
    >>> model.evaluate(data.test).accuracy > 0.5
    True

    The settings of a run, with another seed:

    >>> _ = ne.train("layered", "digits", hidden=(16,), epochs=1, out="runs/seed0")
    >>> ne.train("runs/seed0/study.toml", seed=1).study.seed
    1
    """
    for name, callback in (("on_batch", on_batch), ("announce", announce)):
        check_callback(name, callback)
    on_epoch = in_turn(progress)
    path = None if out is None else Path(out)
    if resume and path is None:
        raise ArgumentError("a run is resumed in its folder; name it by `out`")
    if network is None and resume and path is not None:
        run_folder.check_begun(path)
        network = read(path / run_folder.STUDY)
    if data is not None and not isinstance(data, str | Path):
        data = load_data(data)
        settings = {"dataset": data_name(data, data, path), **settings}
    trainer = Trainer(network, data, rule=rule, **settings)
    output = TrainingOutput(
        path,
        force,
        resume,
        None if traces is None else Path(traces),
        on_epoch,
        on_batch,
        announce or no_announcement,
        deadline,
    )
    model = train_loop(trainer, output)
    if isinstance(data, Dataset) and path is not None and started_by_torchrun().main:
        arrays = (path / ARRAYS).resolve()
        if trainer.study.dataset == str(arrays):
            save_npz(data, arrays)
    if model.diverged:
        warnings.warn(model.diverged, TrainingWarning, stacklevel=2)
    return Model.of(model)


def run_training(
    study: Study, out: Path, *, force: bool, resume: bool, on_epoch: EpochCallback | None = None
) -> dict[str, Any]:
    """Train a study into a run folder; return the fields of `train --json`."""
    model = train(study, out=out, force=force, resume=resume, progress=on_epoch)
    return Run(out, model, study).summary()
