"""How samples run on a simulator, and what a recording holds: each option declared once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import check_callback
from neuro_eqprop.runs.executors import Executor
from neuro_eqprop.runs.workers import Shared
from neuro_eqprop.simulators.base import Backend
from neuro_eqprop.simulators.recordings import RecordingPlan, check_requests

Scalar = TypeVar("Scalar", bound=np.generic)
SampleCallback = Callable[[int], None]
"""Called with the number of samples done since the last call."""
AnnounceCallback = Callable[[RecordingPlan], None]
"""Called with the recording plan before the first step."""


def no_progress(_: int) -> None:
    """Report no samples."""


def no_announcement(_: RecordingPlan) -> None:
    """Announce no plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSettings:
    """How samples run on a simulator.

    `SpikingModel.run`, `SpikingModel.record`, `Model.evaluate`, `Run.evaluate` and `Run.record`
    take its fields as keyword arguments.

    Parameters
    ----------
    on : str or Backend
        A simulator: "reference", "emulator", "snntorch", "brian2", "lava", ...; evaluations and
        recordings also take "rate", evaluations "numpy".
    steps : int, optional
        Steps of a phase; the default is that of the code.
    progress : callable, optional
        Called with the number of samples done since the last call.
    workers : int
        Threads of the emulator, or processes of another simulator, that share the samples.
    executor : Executor, optional
        Runs shards of the samples, at least `workers` of them.
    deadline : float, optional
        Seconds after which the simulation is ended with a `DeadlineError`; the default is ten
        minutes and ten times the estimated time.
    """

    on: str | Backend = "emulator"
    steps: int | None = None
    progress: SampleCallback | None = None
    workers: int = 1
    executor: Executor | None = None
    deadline: float | None = None

    def check(self) -> None:
        """Raise ValueError for wrong workers, executors and callbacks."""
        self.shared.check()
        check_callback("progress", self.progress)

    @property
    def shared(self) -> Shared:
        """Workers or executor that share the samples."""
        return Shared(self.workers, self.executor)

    def report(self, samples: int) -> None:
        """Call `progress`, if there is one."""
        (self.progress or no_progress)(samples)


ON_EMULATOR = SimulationSettings()
"""One thread of the emulator, with the steps of the code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingSettings:
    """What a recording holds, and where it is kept.

    Parameters
    ----------
    phases : bool
        Whether two nudged phases (-beta, +beta) follow the free one.
    record : iterable of str
        Signals besides rates and spikes: "hidden:voltage", "hidden->output[3,17]:hebbian".
    out : str or Path, optional
        Trace file, `.h5`; None keeps the recording in memory.
    force : bool
        Whether to replace the trace file.
    announce : callable
        Called with the recording plan before the first step.
    repeats : int
        How often the samples are shown, each time with other random numbers. The first `samples`
        rows of the trace are the first repeat, and so on.
    """

    phases: bool = False
    record: Iterable[str] = ()
    out: str | Path | None = None
    force: bool = False
    announce: AnnounceCallback = no_announcement
    repeats: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "record", check_requests(self.record))

    def repeated(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Values of the samples (samples, ...), once for every repeat."""
        if self.repeats < 1:
            raise ValueError(f"repeats is {self.repeats}; show the samples once or more")
        return np.concatenate([values] * self.repeats)


FREE_IN_MEMORY = RecordingSettings()
"""The free phase, kept in memory."""
