"""`Run`: a folder with a model, its settings and its results."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuro_eqprop.api.model import Model
from neuro_eqprop.common.arrays import ArgumentError, UnknownNameError
from neuro_eqprop.common.html import html_table
from neuro_eqprop.data import Dataset, Split, hold_out, load_data
from neuro_eqprop.files.lock import FileLock, LockedError
from neuro_eqprop.files.read import read_toml
from neuro_eqprop.files.write import append_json, remove, sweep, write_text
from neuro_eqprop.runs import checkpoint
from neuro_eqprop.simulators.registry import BACKENDS
from neuro_eqprop.spiking.codes import Code, find_code
from neuro_eqprop.training import study as config
from neuro_eqprop.training.history import History, read_history
from neuro_eqprop.training.study import Study

if TYPE_CHECKING:
    from neuro_eqprop.api.spiking_model import SpikingModel
    from neuro_eqprop.runs.evaluate import Evaluation
    from neuro_eqprop.runs.executors import Executor
    from neuro_eqprop.runs.simulate import AnnounceCallback, RecordedRun, SampleCallback
    from neuro_eqprop.simulators.base import Backend
    from neuro_eqprop.spiking.input_coding import InputCoding

STUDY, MODEL, METRICS, RESUME = (
    "study.toml",
    "model.safetensors",
    "metrics.jsonl",
    "resume.safetensors",
)
"""Files of a run: settings, model, metrics of each epoch, and the state to resume from."""
BEST = "best.safetensors"
"""Parameters of the best epoch of a training with patience, until it ends."""
EVALUATIONS, TRACES, ENERGY, REPORT = "evaluations.jsonl", "traces.h5", "energy.json", "report.html"
"""Files of a run that further commands write."""


class RunError(ValueError):
    """A run folder is invalid or cannot be used; the message says how to proceed."""


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A run folder with a model and its results, as `open_run` returns it.

    Parameters
    ----------
    path : Path
        The folder, or a NIR file.
    model : Model
        The trained or converted model in `model.safetensors`, or that of the NIR file.
    study : Study
        The settings in `study.toml`.
    spiking : SpikingModel, optional
        The spiking model of a NIR file, whose code and bits are fixed; None for a folder.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> _ = ne.train("layered", "digits", hidden=(16,), epochs=1, out="runs/example")
    >>> ne.open_run("runs/example").path.name
    'example'
    """

    path: Path
    model: Model
    study: Study
    spiking: SpikingModel | None = None

    @cached_property
    def data(self) -> Dataset:
        """The data set of the study, loaded on first use.

        Raises
        ------
        DataError
            If its files are missing.
        RunError
            If its sizes do not match the model.
        """
        data, network = load_data(self.study.dataset), self.model.network
        sizes = network.input.size, network.output.size
        if sizes != (data.features, data.classes):
            folder = self.spiking is None
            raise RunError(
                f"{self.path / MODEL if folder else self.path} goes from {sizes[0]} to {sizes[1]} "
                f"units, but {self.study.dataset!r} has {data.features} features and "
                f"{data.classes} classes; "
                + (f"{STUDY} is of another run" if folder else "name its own data set")
            )
        return data

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, {self.model!r})"

    def _repr_html_(self) -> str:
        held = ", ".join(sorted(path.name for path in self.path.iterdir()))
        rows = {"model": repr(self.model), "data": self.study.dataset, "files": held}
        return html_table(f"Run {self.path}", rows)

    @property
    def history(self) -> History:
        """Metrics of the training, one row per epoch."""
        return self.model.history

    @property
    def evaluations(self) -> tuple[Mapping[str, Any], ...]:
        """Results in `evaluations.jsonl`, oldest first."""
        return read_history(self.path / EVALUATIONS).rows

    def coding(self, code: str | Code | None, bits: int | None) -> tuple[Code, int | None]:
        """Return the spike code and the weight bits: given, of the NIR file, or the defaults."""
        given, held = None if code is None else find_code(code), self.spiking
        if held is None:
            return given or Code.RATE, bits
        if given not in {None, held.coding.code}:
            raise ArgumentError(
                f"{self.path} holds a network of code {held.code!r}, not {code!r}; leave out `code`"
            )
        if bits not in {None, held.bits}:
            number = "floating point" if held.bits is None else f"{held.bits} bits"
            raise ArgumentError(
                f"{self.path} holds a network in {number}, not {bits}; leave out `bits`"
            )
        return held.coding.code, held.bits

    def evaluate(
        self,
        *,
        on: str | Backend = "rate",
        samples: int | None = None,
        code: str | Code | None = None,
        bits: int | None = None,
        **options: Any,  # noqa: ANN401
    ) -> Evaluation:
        """Evaluate the model on test samples and append the result to `evaluations.jsonl`.

        Parameters
        ----------
        on : str or Backend
            "rate", "numpy" or a simulator.
        samples : int, optional
            Use only the first test samples; all if None.
        code : str, optional
            Spike code on a simulator; "rate" if None, or that of a NIR file.
        bits : int, optional
            Bits of the weights in fixed point; floating point if None, or as in a NIR file.
        **options
            `steps`, `input`, `progress`, `workers`, `executor` and `deadline` as in
            `Model.evaluate`.

        Returns
        -------
        Evaluation
            Accuracy and agreement.

        Examples
        --------
        >>> import neuro_eqprop as ne
        >>> _ = ne.train("layered", "digits", hidden=(16,), epochs=1, out="runs/evaluated")
        >>> run = ne.open_run("runs/evaluated")
        >>> run.evaluate(on="emulator", code="graded", samples=20).samples
        20
        >>> run.evaluations[-1]["on"]
        'emulator'
        """
        from neuro_eqprop.runs.evaluate import RATES, check_rates

        chosen, bits_held = self.coding(code, bits)
        if on in RATES:
            check_rates(on, None if self.spiking else code, bits)
            bits_held = None
        split = self.test_samples(samples)
        found = self.model.evaluate(split, on=on, code=chosen, bits=bits_held, **options)
        if self.spiking is None:
            append_json(self.path / EVALUATIONS, {"run": str(self.path), **found.to_dict()})
        return found

    def simulate(  # noqa: PLR0913 - keyword arguments, all with defaults
        self,
        *,
        on: str | Backend,
        samples: int | None = 10,
        traces: str | Path | None = None,
        phases: bool = False,
        record: Iterable[str] = (),
        code: str | Code | None = None,
        steps: int | None = None,
        bits: int | None = None,
        input: str | InputCoding = "current",  # noqa: A002
        force: bool = False,
        progress: SampleCallback | None = None,
        announce: AnnounceCallback | None = None,
        workers: int = 1,
        executor: Executor | None = None,
        deadline: float | None = None,
    ) -> RecordedRun:
        """Run test samples, as rates or as spikes on a simulator, and write a trace file.

        Parameters
        ----------
        on : str or Backend
            "rate" or a simulator.
        samples : int, optional
            Use only the first test samples; all if None.
        traces : str or Path, optional
            Trace file to write; by default `traces.h5` in the run folder, or next to a NIR file.
        phases : bool
            Whether two nudged phases (-beta, +beta) follow the free phase.
        record : iterable of str
            Further variables to record: "hidden:voltage", "hidden->output[3,17]:hebbian".
        code, bits
            As in `evaluate`.
        steps : int, optional
            Steps of each phase; the default is that of the code.
        input : str
            How data enter the spiking network: "current", "graded" or "rate".
        force : bool
            Whether to replace the trace file.
        progress : callable, optional
            Called with the number of samples done since the last call.
        announce : callable, optional
            Called with the recording plan before the first step.
        workers, executor, deadline
            As in `SpikingModel.record`.

        Returns
        -------
        RecordedRun
            The recording, with its `trace`; `to_json()` returns the fields of `simulate --json`.

        Examples
        --------
        >>> import neuro_eqprop as ne
        >>> _ = ne.train("layered", "digits", hidden=(16,), epochs=1, out="runs/simulated")
        >>> run = ne.open_run("runs/simulated")
        >>> found = run.simulate(on="emulator", samples=2, steps=20, phases=True)
        >>> found.path.name, found.trace.rate("hidden", "free").shape
        ('traces.h5', (2, 16))
        """
        from neuro_eqprop.api.spiking_model import to_spiking
        from neuro_eqprop.runs.evaluate import check_rates
        from neuro_eqprop.runs.simulate import (
            TraceOutput,
            no_announcement,
            no_progress,
            record_rates,
            record_spikes,
        )
        from neuro_eqprop.runs.workers import Shared

        if isinstance(on, str) and on != "rate" and on not in BACKENDS:
            raise UnknownNameError("backend", on, ("rate", *BACKENDS))
        chosen, held_bits = self.coding(code, bits)
        beside = self.path / TRACES if self.spiking is None else self.path.with_suffix(".h5")
        path = Path(traces or beside)
        if path.exists() and not force:
            raise RunError(f"{path} exists already; name another file or use force=True")
        split = self.test_samples(samples)
        output = TraceOutput(path, force, progress or no_progress, announce or no_announcement)
        steps = chosen.steps if steps is None else steps
        if on == "rate":
            check_rates(on, None, bits)
            return record_rates(
                self.model,
                split.x,
                split.y,
                steps=steps,
                phases=phases,
                record=record,
                part=chosen.tail,
                output=output,
            )
        return record_spikes(
            to_spiking(self.model, code=chosen, bits=held_bits, input=input),
            split.x,
            split.y,
            on=on,
            steps=steps,
            phases=phases,
            record=record,
            output=output,
            shared=Shared(workers, executor),
            deadline=deadline,
        )

    def translate(  # noqa: PLR0913 - keyword arguments, all with defaults
        self,
        out: str | Path,
        *,
        to: str = "nir",
        code: str | Code | None = None,
        bits: int | None = None,
        nudged: bool = False,
        neurons: str = "exact",
        steps: int | None = None,
        samples: int = 20,
        force: bool = False,
    ) -> dict[str, Any]:
        """Export the spiking network to a NIR file, a Lava package or a netx file.

        Parameters
        ----------
        out : str or Path
            The file to write; with `to="lava"` the folder of the package.
        to : str
            "nir" (a NIR file with the exact step semantics in its metadata), "lava" (a package
            that depends only on lava-nc) or "netx" (a file for lava-dl).
        code : str, optional
            Spike code; "rate" for NIR and "graded" for the others if None.
        bits : int, optional
            Bits of the weights in fixed point; floating point if None.
        nudged : bool
            Whether a NIR file includes the synapses of the nudge.
        neurons : str
            Processes of a Lava package: "exact", or "stock" for those of `lava.proc`.
        steps : int, optional
            Steps of a sample of Lava or netx; the default is that of the code.
        samples : int
            Test samples on which the agreement of Lava or netx with the rates is measured.
        force : bool
            Whether to replace an existing file or folder.

        Returns
        -------
        dict
            The fields of `translate --json`.

        Examples
        --------
        >>> import neuro_eqprop as ne
        >>> _ = ne.train("layered", "digits", hidden=(16,), epochs=1, out="runs/translated")
        >>> made = ne.open_run("runs/translated").translate("net.nir", code="graded", bits=8)
        >>> made["path"], made["bits"], len(made["populations"])
        ('net.nir', 8, 2)
        """
        from neuro_eqprop.runs.export import export_lava, export_netx
        from neuro_eqprop.runs.translate import translate

        if to not in FORMATS:
            raise UnknownNameError("format", to, FORMATS)
        chosen = find_code(code or ("rate" if to == "nir" else "graded"))
        if Path(out).exists() and not force:
            raise RunError(f"{out} exists already; name another file or use force=True")
        head = {"run": str(self.path), "to": to}
        if to == "nir":
            found = translate(self.model, out, code=chosen, nudged=nudged, force=force, bits=bits)
            return head | found
        x = self.data.test.take(slice(samples)).x
        if to == "netx":
            if chosen is not Code.GRADED:
                raise ArgumentError(f"a netx file holds graded messages, not code {chosen.name!r}")
            return head | export_netx(self.model, out, x, steps=steps, force=force).to_json()
        made = export_lava(
            self.model, out, x, code=chosen, bits=bits, neurons=neurons, steps=steps, force=force
        )
        return head | made.to_json()

    def summary(self) -> dict[str, Any]:
        """Return the fields of `train --json`: settings, accuracies, settling, spectral norms."""
        from neuro_eqprop.runs.train import training_result

        part = self.study.training.validation
        data = hold_out(self.data, part, self.study.seed) if part else self.data
        seconds = float(sum(row.get("seconds", 0.0) for row in self.history))
        return training_result(self.model, data, out=self.path, seconds=seconds)

    def test_samples(self, count: int | None = None) -> Split:
        """Return the first `count` test samples, or all if None."""
        return first_samples(self.data, count)


def first_samples(data: Dataset, count: int | None) -> Split:
    """Return the first `count` test samples of a data set, or all if None."""
    if count is None:
        return data.test
    if count < 1:
        raise ValueError(f"{count} samples cannot be evaluated; use at least one")
    if count > len(data.test):
        raise ValueError(f"{data.name!r} has {len(data.test)} test samples, not {count}")
    return data.test.take(slice(0, count))


FORMATS = ("nir", "lava", "netx")
"""Formats of `Run.translate`."""
RUN = (STUDY, MODEL, METRICS, RESUME)
"""Files that make a folder a run folder; one is enough."""
OWN = (*RUN, BEST, EVALUATIONS, TRACES, ENERGY, REPORT)
"""Files that belong to a run; others in its folder are never moved or removed."""
BEFORE, LOCK = ".before", ".lock"
"""Folder that keeps the old run while a new one replaces it, and lock file of the writer."""


class RunWarning(UserWarning):
    """A process ended without releasing a run folder; the message says what was done."""


@contextmanager
def writing(path: Path, *, force: bool = False, resume: bool = False) -> Iterator[None]:
    """Hold a run folder for writing in a context.

    A new run needs a folder without a run, or `force`. With `force`, the files of the old run are
    kept until the context ends without an error, and restored if it fails before the new run can be
    resumed.
    """
    if path.exists() and not path.is_dir():
        raise RunError(f"{path} is a file; `out` names a folder")
    if resume:
        check_begun(path)
    else:
        refuse_run(path, force=force)
    made = not path.exists()
    path.mkdir(parents=True, exist_ok=True)
    try:
        with locked(path, quiet=resume):
            sweep(path)
            if resume:
                yield
                return
            refuse_run(path, force=force)  # another process may have written one before the lock
            set_aside(path)
            try:
                yield
            except BaseException as error:
                # A run that is interrupted in its first epoch can be resumed from its study.
                interrupted = not isinstance(error, Exception) and not (path / BEFORE).exists()
                if not interrupted and not (path / RESUME).exists():
                    put_back(path)
                raise
            remove(path / BEFORE)
    finally:
        if made and path.is_dir() and not any(path.iterdir()):
            path.rmdir()


@contextmanager
def locked(path: Path, *, quiet: bool = False) -> Iterator[None]:
    """Hold the lock of a run folder in a context.

    A stale lock of an ended process is taken over with a warning, unless `quiet`: a resumed run is
    expected to have one.
    """
    lock = FileLock(path / LOCK)
    try:
        with lock:
            if lock.stale is not None and not quiet:
                warnings.warn(
                    f"{path} was left by {lock.stale}, which has ended; its lock is taken over",
                    RunWarning,
                    stacklevel=5,
                )
            yield
    except LockedError as error:
        raise RunError(
            f"{path} is being written by {error.owner or 'another process'}; wait until it has "
            f"ended, or choose another `out`"
        ) from None


def refuse_run(path: Path, *, force: bool) -> None:
    """Raise RunError if a folder holds a run, unless `force`."""
    held = [name for name in RUN if (path / name).exists()]
    if held and not force:
        raise RunError(
            f"{path} already holds a run ({', '.join(held)}); choose another `out`, go on with "
            f"resume=True, or replace it with force=True"
        )


def set_aside(path: Path) -> None:
    """Move the files of a run to the folder `BEFORE`.

    If that holds a run already, and the newer one has no model, the newer one is removed instead.
    """
    kept = path / BEFORE
    if not any((path / name).exists() for name in RUN):
        return
    if kept.exists() and not (path / MODEL).exists():
        # The newer run did not finish; the kept one is worth more.
        for name in OWN:
            remove(path / name)
        return
    remove(kept)
    kept.mkdir()
    for name in [name for name in OWN if (path / name).exists()]:
        (path / name).replace(kept / name)


def put_back(path: Path) -> None:
    """Remove the files of a failed run, and restore those that it was to replace."""
    for name in RUN:
        remove(path / name)
    kept = path / BEFORE
    if kept.is_dir():
        for each in kept.iterdir():
            each.replace(path / each.name)
        kept.rmdir()


def check_begun(path: Path) -> None:
    """Raise RunError if a folder has no run to resume."""
    if not (path / STUDY).is_file():
        raise RunError(
            f"there is no run in {path} to resume; name its folder by `out`, or leave out "
            f"`resume` to begin one there"
        )


def study_digest(path: Path) -> str:
    """Return the SHA-256 of a study's settings, without the data set, whose path may change."""
    content = {key: value for key, value in read_toml(path).items() if key != "dataset"}
    return sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def save_model(path: Path, model: Model) -> None:
    """Write the model of a run with the digest of its study, and remove its resume state."""
    checkpoint.save(path / MODEL, model, study=study_digest(path / STUDY))
    (path / RESUME).unlink(missing_ok=True)
    remove(path / BEFORE)


def open_run(path: str | Path, *, dataset: str | Path | None = None) -> Run:
    """Open the folder of a finished run, or a NIR file.

    Parameters
    ----------
    path : str or Path
        A folder written by `train(..., out=path)` or `neuro-eqprop train --out PATH`, or a NIR file
        of `neuro-eqprop translate`.
    dataset : str or Path, optional
        Data set to evaluate a NIR file on; a run folder has its own.

    Returns
    -------
    Run
        Model, settings and results; the data set is loaded on first use.

    Raises
    ------
    RunError
        If the folder has no finished run.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> _ = ne.train("layered", "digits", hidden=(16,), epochs=1, out="runs/small")
    >>> run = ne.open_run("runs/small")
    >>> run.model
    Model(input 64, hidden 16, output 10, 1210 parameters, trained by hebbian on digits, 1 epoch)
    >>> len(run.history)
    1
    """
    path = Path(path)
    if path.suffix == ".nir" and not path.is_dir():
        return open_nir(path, dataset)
    if dataset is not None:
        raise ArgumentError(f"`dataset` goes with a NET.nir; the run {path} names its own")
    if path.is_file():
        known = (path.parent / STUDY).is_file()
        which = f"such as {path.parent}" if known else "that `neuro-eqprop train --out` makes"
        raise RunError(f"{path} is a file, not a run folder; a run is a folder {which}")
    if not path.is_dir():
        raise RunError(
            f"there is no run folder {path}; `neuro-eqprop train --out {path}` makes one"
        )
    if not (path / MODEL).exists():
        more = f"was not finished; `neuro-eqprop train --out {path} --resume` finishes it"
        state = more if (path / RESUME).exists() else "holds none"
        raise RunError(f"{path} has no {MODEL}: the run {state}")
    study = config.read(path / STUDY)
    stored = checkpoint.stored_study(path / MODEL)
    if stored is not None and stored != study_digest(path / STUDY):
        raise RunError(
            f"{path / STUDY} does not hold the settings that {MODEL} was trained with; restore it "
            f"from a copy, or train anew"
        )
    history = read_history(path / METRICS)
    model = replace(checkpoint.load(path / MODEL), study=study, history=history)
    return Run(path, model, study)


def open_nir(path: Path, dataset: str | Path | None) -> Run:
    """Open a NIR file as a run without a folder."""
    from neuro_eqprop.runs.translate import from_nir

    if dataset is None:
        raise ArgumentError(f"{path} names no data set to evaluate it on; add `dataset`")
    spiking = from_nir(path)
    study = config.adapt(spiking.model.study or Study(), {"dataset": str(dataset)})
    return Run(path, replace(spiking.model, study=study), study, spiking)


def save_run(model: Model, out: str | Path, *, dataset: str | Path, force: bool = False) -> None:
    """Save a model as a run folder, which all commands accept.

    Parameters
    ----------
    model : Model
        A trained or converted model.
    out : str or Path
        Run folder to write.
    dataset : str or Path
        Name or `.npz` file of the data set to evaluate it on.
    force : bool
        Whether to replace an existing run in the folder.
    """
    out, sizes = Path(out), [layer.size for layer in model.network.moving[:-1]] or [1]
    name = str(Path(dataset).resolve()) if str(dataset).endswith(".npz") else str(dataset)
    study = model.study or config.adapt(Study(), {"hidden": tuple(sizes)})
    with writing(out, force=force):
        write_text(out / STUDY, config.write(config.adapt(study, {"dataset": name})))
        for row in model.history:
            append_json(out / METRICS, row)
        save_model(out, model)


def head(path: Path | None, study: Study, model: Model) -> dict[str, Any]:
    """Return the fields that the results of `train` and `learn` share."""
    return {
        "run": None if path is None else str(path),
        "dataset": study.dataset,
        "model": study.model.name,
        "rule": study.rule.name,
        "nudging": study.rule.nudging,
        "beta": study.rule.beta,
        "seed": study.seed,
        "epochs": model.epochs,
        "parameters": model.parameters,
    }
