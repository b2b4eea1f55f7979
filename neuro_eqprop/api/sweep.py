"""`sweep`: train and evaluate many combinations of settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neuro_eqprop.files.write import write_text
from neuro_eqprop.html_report import sweep_page
from neuro_eqprop.runs.executors import Executor, make_executor
from neuro_eqprop.runs.executors.dask import Tls
from neuro_eqprop.runs.sweeps.result import SweepResult
from neuro_eqprop.runs.sweeps.run import DEADLINE, Progress, no_progress, run_sweep
from neuro_eqprop.runs.sweeps.spec import Sweep, read_sweep


def sweep(  # noqa: PLR0913
    spec: str | Path | Mapping[str, Any] | Sweep,
    out: str | Path,
    *,
    executor: str | Executor = "local",
    workers: int = 1,
    scheduler: str | None = None,
    tls: Tls | None = None,
    slurm: Mapping[str, str] | None = None,
    deadline: float = DEADLINE,
    force: bool = False,
    progress: Progress = no_progress,
) -> SweepResult:
    """Train and evaluate many combinations of settings.

    A combination is a cell: a training, and with spiking settings its evaluation as spikes and,
    with a profile, its energy. Cells with equal training settings share one training. Results are
    stored as they arrive; a call with the same sweep and folder runs only missing and failed cells.
    The table does not depend on the executor or the number of workers.

    Parameters
    ----------
    spec : str, Path, mapping or Sweep
        A TOML file, or its tables: `axes` (what varies), `settings` (of every training), `spiking`
        (of the evaluation) and `search` (`method`: grid, random or optuna; `trials`; `maximise`).
    out : str or Path
        The folder of the results.
    executor : {"local", "dask", "slurm"} or Executor
        Where the cells run.
    workers : int
        Processes ("local") or jobs at the same time ("slurm").
    scheduler : str, optional
        Address of the Dask scheduler.
    tls : Tls, optional
        Certificates for Dask.
    slurm : mapping, optional
        Options of `sbatch` by long name, such as `{"partition": "short"}`.
    deadline : float
        Time limit in seconds of a training with its evaluations.
    force : bool
        Whether to discard the results of another sweep in the folder.
    progress : callable, optional
        Called as `progress(done, total, error)` when cells are done.

    Returns
    -------
    SweepResult
        The rows of the table, its files, and the best row.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> spec = {
    ...     "axes": {"learning_rate": [0.003, 0.01], "code": ["rate", "graded"]},
    ...     "settings": {"hidden": [16], "epochs": 1},
    ...     "spiking": {"samples": 20},
    ... }
    >>> found = ne.sweep(spec, "runs/codes", workers=1)
    >>> [row["code"] for row in found.rows]
    ['rate', 'graded', 'rate', 'graded']
    """
    folder = Path(out)
    runner = make_executor(
        executor,
        workers=workers,
        scheduler=scheduler,
        tls=tls,
        folder=folder / "slurm-jobs",
        options=slurm,
    )
    result = run_sweep(
        read_sweep(spec), folder, runner, deadline=deadline, force=force, progress=progress
    )
    write_text(result.page, sweep_page.render(result))
    return result
