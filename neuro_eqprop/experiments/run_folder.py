"""`Run`: a folder with a model, its settings and its results; nothing in it is overwritten."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuro_eqprop.checked_files.write import append_json, write_text
from neuro_eqprop.data import Dataset, Split
from neuro_eqprop.data import load as load_data
from neuro_eqprop.experiments import config
from neuro_eqprop.experiments.config import Study
from neuro_eqprop.history import History, read_history
from neuro_eqprop.html import html_table
from neuro_eqprop.io import checkpoint
from neuro_eqprop.model import Model

if TYPE_CHECKING:
    from neuro_eqprop.backends.base import Backend
    from neuro_eqprop.experiments.evaluate import Evaluation

STUDY, MODEL, METRICS, RESUME = (
    "study.toml",
    "model.safetensors",
    "metrics.jsonl",
    "resume.safetensors",
)
EVALUATIONS, TRACES, ENERGY, REPORT = "evaluations.jsonl", "traces.h5", "energy.json", "report.html"


class RunError(ValueError):
    """A run folder is invalid or cannot be used; the message says how to proceed."""


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A folder on disk that holds a model and its results; `open_run` returns one.

    Parameters
    ----------
    path : Path
        The folder.
    model : Model
        The trained or converted model in `model.safetensors`.
    study : Study
        The settings in `study.toml`.

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

    @cached_property
    def data(self) -> Dataset:
        """The data set that the settings name, loaded on first use.

        Raises
        ------
        DataError
            If it is not here.
        RunError
            If it does not fit the model.
        """
        data, network = load_data(self.study.dataset), self.model.network
        sizes = network.input.size, network.output.size
        if sizes != (data.features, data.classes):
            raise RunError(
                f"{self.path / MODEL} goes from {sizes[0]} to {sizes[1]} units, but "
                f"{self.study.dataset!r} has {data.features} features and {data.classes} classes; "
                f"{STUDY} is of another run"
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
        """The metrics of the training, a row for each epoch."""
        return self.model.history

    @property
    def evaluations(self) -> tuple[Mapping[str, Any], ...]:
        """The results in `evaluations.jsonl`, oldest first."""
        return read_history(self.path / EVALUATIONS).rows

    def evaluate(
        self,
        *,
        on: str | Backend = "rate",
        samples: int | None = None,
        **options: Any,  # noqa: ANN401
    ) -> Evaluation:
        """Evaluate the model on test samples and append the result to `evaluations.jsonl`.

        Parameters
        ----------
        on : str or Backend
            "rate", "numpy" or a simulator.
        samples : int, optional
            Use only the first test samples; all if None.
        **options
            `code`, `steps`, `bits`, `input` and `progress` as in `Model.evaluate`.

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
        found = self.model.evaluate(self.test_samples(samples), on=on, **options)
        append_json(self.path / EVALUATIONS, {"run": str(self.path), **found.to_dict()})
        return found

    def test_samples(self, count: int | None = None) -> Split:
        """The first `count` test samples, or all."""
        return first_samples(self.data, count)


def first_samples(data: Dataset, count: int | None) -> Split:
    """The first `count` test samples of a data set, or all; more than there are is an error."""
    if count is None:
        return data.test
    if count < 1:
        raise ValueError(f"{count} samples cannot be evaluated; use at least one")
    if count > len(data.test):
        raise ValueError(f"{data.name!r} has {len(data.test)} test samples, not {count}")
    return data.test.take(slice(0, count))


def claim(path: Path, *, force: bool) -> None:
    """Make an empty folder for a new run; a run that is there is removed only with `force`."""
    held = [name for name in (STUDY, MODEL, METRICS, RESUME) if (path / name).exists()]
    if held and not force:
        raise RunError(
            f"{path} already holds a run ({', '.join(held)}); choose another `out`, go on with "
            f"resume=True, or replace it with force=True"
        )
    if path.exists() and not path.is_dir():
        raise RunError(f"{path} is a file; `out` names a folder")
    path.mkdir(parents=True, exist_ok=True)
    if not held:
        return  # other files in the folder stay
    for name in (STUDY, MODEL, METRICS, RESUME, EVALUATIONS, ENERGY, REPORT):
        (path / name).unlink(missing_ok=True)
    for trace in path.glob("*.h5"):
        trace.unlink()


def check_begun(path: Path) -> None:
    """Raise RunError where there is no run to resume."""
    if not (path / STUDY).is_file():
        raise RunError(
            f"there is no run in {path} to resume; name its folder by `out`, or leave out "
            f"`resume` to begin one there"
        )


def abandon(path: Path) -> None:
    """Remove a run that diverged in its first epoch."""
    for name in (STUDY, METRICS, RESUME):
        (path / name).unlink(missing_ok=True)
    if not any(path.iterdir()):
        path.rmdir()


def open_run(path: str | Path) -> Run:
    """Open the folder of a finished run.

    Parameters
    ----------
    path : str or Path
        The folder that `train(..., out=path)` or `neuro-eqprop train --out PATH` has written.

    Returns
    -------
    Run
        Its model, settings and results; its data set is loaded on first use.

    Raises
    ------
    RunError
        If the folder holds no finished run.

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
    if path.is_file():
        raise RunError(
            f"{path} is a file and no run folder; a run is a folder such as {path.parent}"
        )
    if not path.is_dir():
        raise RunError(
            f"there is no run folder {path}; `neuro-eqprop train --out {path}` makes one"
        )
    if not (path / MODEL).exists():
        more = f"was not finished; `neuro-eqprop train --out {path} --resume` finishes it"
        state = more if (path / RESUME).exists() else "holds none"
        raise RunError(f"{path} has no {MODEL}: the run {state}")
    study = config.read(path / STUDY)
    history = read_history(path / METRICS)
    model = replace(checkpoint.load(path / MODEL), study=study, history=history)
    return Run(path, model, study)


def save_run(model: Model, out: str | Path, *, dataset: str | Path, force: bool = False) -> None:
    """Write a model as a run folder, so that every command accepts it.

    Parameters
    ----------
    model : Model
        A trained or converted model.
    out : str or Path
        The folder.
    dataset : str or Path
        Name or `.npz` file of the data set it is evaluated on.
    force : bool
        Whether to replace a run that the folder already holds.
    """
    out, sizes = Path(out), [layer.size for layer in model.network.moving[:-1]] or [1]
    name = str(Path(dataset).resolve()) if str(dataset).endswith(".npz") else str(dataset)
    study = model.study or config.adapt(Study(), {"hidden": tuple(sizes)})
    claim(out, force=force)
    write_text(out / STUDY, config.write(config.adapt(study, {"dataset": name})))
    checkpoint.save(out / MODEL, model)
    for row in model.history:
        append_json(out / METRICS, row)


def head(path: Path | None, study: Study, model: Model) -> dict[str, Any]:
    """The first fields of the results of `train` and `learn`."""
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
