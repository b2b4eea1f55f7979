"""`learn_on_chip`: learning in the spiking domain itself, and the model that it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from neuro_eqprop.api.model import Model
from neuro_eqprop.common.arrays import check_callback, type_name
from neuro_eqprop.data import Dataset, load_data, save_npz
from neuro_eqprop.files.write import temporary_folder, write_text
from neuro_eqprop.networks.network import Network
from neuro_eqprop.runs.executors import Executor
from neuro_eqprop.runs.learn_on_chip.loop import (
    EpochCallback,
    LearningOptions,
    SampleCallback,
    learn,
    no_metrics,
    no_samples,
)
from neuro_eqprop.runs.learn_on_chip.model import OnChipNetwork
from neuro_eqprop.runs.learn_on_chip.task import prepare
from neuro_eqprop.runs.learn_on_chip.trace import TraceRequest
from neuro_eqprop.runs.on_chip_config import EPOCHS, RATES, learning_settings, write
from neuro_eqprop.runs.run_folder import STUDY, TRACES, save_model
from neuro_eqprop.runs.train import ARRAYS, data_name
from neuro_eqprop.runs.workers import Shared
from neuro_eqprop.simulators.registry import load_learner
from neuro_eqprop.traces.lazy import open_trace, read
from neuro_eqprop.training.study import CUSTOM
from neuro_eqprop.training.study import read as read_study


@dataclass(frozen=True, eq=False, repr=False)
class OnChipModel(OnChipNetwork, Model):
    """A `Model` that learned on a chip, with the facts of its learning: see `OnChipNetwork`."""

    def save(
        self, path: str | Path, *, dataset: str | Path | None = None, force: bool = False
    ) -> None:
        """Write the model as `Model.save` does; a run folder also gets the settings of [learn].

        `energy` then estimates the learning that took place, and `report` shows it.
        """
        super().save(path, dataset=dataset, force=force)
        if Path(path).is_dir():
            study = Path(path) / STUDY
            write_text(study, write(read_study(study), self.config))
            save_model(Path(path), self)  # again: with the digest of these settings


def learn_on_chip(  # noqa: PLR0913 - keyword arguments, all with defaults
    network: str | Network,
    data: str | Path | Dataset,
    *,
    on: str = "emulator",
    code: str = "graded",
    bits: int | None = None,
    epochs: int = EPOCHS,
    out: str | Path | None = None,
    force: bool = False,
    resume: bool = False,
    traces: str | Path | TraceRequest | None = None,
    record: Sequence[str] = (),
    snapshots: Sequence[int] = (),
    progress: EpochCallback | None = None,
    on_samples: SampleCallback = no_samples,
    workers: int = 1,
    executor: Executor | None = None,
    deadline: float | None = None,
    **settings: object,
) -> OnChipModel:
    """Learn in the spiking domain: both phases and the Hebbian rule run in a simulator.

    Each sample passes through a free phase and nudged phases. In the window of a phase every
    synapse adds the product of the activity traces at its two ends to its tag,

        m = m + f r_pre r_post,    f = +1 at the highest beta, -1 at the lowest,

    and a commit after the sample changes the weight, w = w + rate / (gap M) m, with gap the
    difference of these betas and M the steps of a window. That is equilibrium propagation
    (Scellier & Bengio 2017), by default with centered nudging (Laborieux et al. 2021), as a local
    rule with a third factor (compare Martin et al. 2021).

    Parameters
    ----------
    network : str or Network
        The name of a model ("layered", "looped"), or a network with dense connections.
    data : str, Path or Dataset
        The name of a data set ("digits", "mnist"), an .npz file, or the data.
    on : str
        The simulator that learns: "emulator", "reference", "brian2", "lava"; or "rate" for the
        same samples learned by the rate network, as a baseline.
    code : str
        "graded" (sigma-delta messages) or "rate" (binary spikes).
    bits : int, optional
        Bits of weights in fixed point, 2 to 16, with traces of 7 bits; floating point if None.
    epochs : int
        Passes over the training samples.
    out : str or Path, optional
        The run folder to write; None keeps the result in memory.
    force : bool
        Replace a run that `out` holds.
    resume : bool
        Continue the run that `out` holds; all settings must be the same.
    traces : str, Path or TraceRequest, optional
        The trace file to write: the first samples step by step, then the epochs.
    record : sequence of str
        What to record in the first samples beside the spikes or rates of every layer, such as
        "hidden:voltage", "hidden:current", "hidden->output:hebbian" or
        "hidden->output[3,17]:hebbian". The recording is `trace` of the result; without `traces` it
        is kept in memory.
    snapshots : sequence of int
        Record all weights after each of these numbers of learned samples; 0 is before the first.
    progress : callable, optional
        Called with the metrics of each epoch, a dict; `print` will do.
    on_samples : callable
        Called after every few samples with the number of samples done and that of all epochs.
    workers : int
        Threads that share the test samples after each epoch. Training samples run one after
        another, since each starts from the weights that the last one left.
    executor : Executor, optional
        Runs shards of the test samples, at least `workers` of them, for example on a cluster.
    deadline : float, optional
        Seconds after which learning is ended with a `DeadlineError`; the default is ten
        minutes and ten times the estimated time.
    **settings
        Settings by name: `hidden`, `activation`, `beta`, `nudging`, `batch`, `learning_rate`,
        `seed`; `steps` of a nudged phase, or `free`, `settle` and `window` one by one; and all
        other fields of `OnChipConfig`: `samples`, `tau`, `theta`, `limit`, `weight_noise`, ...

    Returns
    -------
    OnChipModel
        A `Model` with the learned parameters and the metrics of each epoch in `history`.

    Warns
    -----
    OnChipWarning
        If the update is far from that of rates, or from minus the gradient of the loss.

    Examples
    --------
    >>> model = learn_on_chip(
    ...     "layered", "digits", hidden=(16,), epochs=1, samples=200, beta=0.2, learning_rate=0.1
    ... )
    >>> model.summary
    'learned on emulator with code graded by hebbian on digits, 1 epoch'
    >>> model.history[-1]["test_accuracy"] > 0.5
    True

    """
    shared = Shared(workers, executor)
    shared.check()
    check_callback("progress", progress)
    if not isinstance(network, str | Network):
        raise TypeError(
            f"learn_on_chip takes the name of a model or a Network first, not {type_name(network)}"
        )
    loaded, path = load_data(data), None if out is None else Path(out)
    study, config = learning_settings(
        {"on": on, "code": code, "bits": bits, "epochs": epochs, **settings}
        | {"model": network if isinstance(network, str) else CUSTOM.name}
        | {"dataset": data_name(data, loaded, path)},
        len(loaded.train),
    )
    if config.on != RATES:
        load_learner(config.on)
    made = study.network(loaded) if isinstance(network, str) else network
    task = replace(prepare(study, config, loaded, made), shared=shared)
    with temporary_folder() as folder:
        request = trace_request(traces, record, snapshots, folder / TRACES)
        options = LearningOptions(
            out=path,
            force=force,
            resume=resume,
            trace=request,
            progress=progress or no_metrics,
            on_samples=on_samples,
            deadline=deadline,
        )
        model = learn(task, options)
        if request is not None:
            # A file that stays is opened; one in the temporary folder is read into memory.
            opened = read(request.path) if traces is None else open_trace(request.path)
            model = replace(model, trace=opened)
    if path is not None and study.dataset == str((path / ARRAYS).resolve()):
        save_npz(loaded, path / ARRAYS)
    return OnChipModel.of(model)


def trace_request(
    traces: str | Path | TraceRequest | None,
    record: Sequence[str],
    snapshots: Sequence[int],
    default: Path,
) -> TraceRequest | None:
    """The trace to record, in the file `default` if none is named; None if nothing is recorded."""
    if traces is None and not (record or snapshots):
        return None
    request = traces if isinstance(traces, TraceRequest) else TraceRequest(traces or default)
    return replace(
        request, record=record or request.record, snapshots=snapshots or request.snapshots
    )
