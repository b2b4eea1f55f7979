"""The step of `neuro_eqprop.spiking.ir` as a graph of Lava processes, run in a child process."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from types import MappingProxyType
from typing import Any

import numpy as np

import neuro_eqprop
from neuro_eqprop.common.arrays import Ints
from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.files import subprocess
from neuro_eqprop.files.isolated import DIE_WITH_PARENT
from neuro_eqprop.files.write import temporary_folder
from neuro_eqprop.simulators.base import (
    BackendError,
    Overflow,
    Result,
    Support,
    check_record,
    nothing,
)
from neuro_eqprop.simulators.experiment import Experiment, save
from neuro_eqprop.simulators.lava import BACKEND
from neuro_eqprop.simulators.lava.cores import one_core
from neuro_eqprop.simulators.lava.recording import layouts, signal
from neuro_eqprop.simulators.recordings import Record, Recording, Sink
from neuro_eqprop.simulators.registry import check_run
from neuro_eqprop.spiking.ir import SpikingNetwork, Stimulus

VARIABLE, DEADLINE = BACKEND.python_variable, BACKEND.deadline or 60.0
INSTALL_HINT = f"`{BACKEND.install}` installs it on Python 3.10 to 3.13"

# Loads neuro_eqprop by file. With its parent folder on sys.path, a Python of another version would
# also import the packages beside it, which were built for this version.
START = f"""{DIE_WITH_PARENT}
sys.path[:] = [place for place in sys.path if place]
import importlib, importlib.util
root, form, folder, options, hint = sys.argv[1:]
if importlib.util.find_spec("lava") is None:
    sys.exit("the Python %s has no Lava. %s" % (sys.executable, hint))
spec = importlib.util.spec_from_file_location("neuro_eqprop", root + "/__init__.py")
sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules[spec.name])
importlib.import_module("neuro_eqprop.simulators.lava.worker").main(form, folder, options)
"""
FORMS = "neuro_eqprop.simulators.lava.forms"
"""The modules that build a network in the child process."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True, slots=True)
class LavaRun:
    """The result of a run on Lava, and the number of steps each population ran."""

    result: Result
    steps: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Lava:
    """One Lava process per population and projection, in float64 or in 24-bit integers.

    Samples run one at a time. `deadline` is the longest time without a step, in seconds.
    """

    deadline: float = DEADLINE
    name: str = BACKEND.name
    support: Support = BACKEND.support

    def __post_init__(self) -> None:
        if not self.deadline > 0:
            raise ValueError(f"a deadline must be above zero, not {self.deadline}")

    def run(
        self,
        network: SpikingNetwork,
        stimulus: Stimulus,
        schedule: Schedule,
        *,
        record: Record,
        sink: Sink,
    ) -> Result:
        """Run all samples through the schedule."""
        check_run(self, network, stimulus)
        experiment = Experiment(network, stimulus, schedule, record)
        return measure(experiment, sink, deadline=self.deadline).result


def measure(
    experiment: Experiment,
    sink: Sink,
    *,
    deadline: float,
    form: str = f"{FORMS}.exact",
    options: Mapping[str, Any] = MappingProxyType({}),
) -> LavaRun:
    """Run the experiment on Lava in a temporary folder; recordings go to the sink.

    `form` is the module whose `build` makes the network in the child process, with `options`.
    """
    if not experiment.schedule:
        raise BackendError("lava: the schedule is empty; give it at least one phase")
    check_record(experiment.network, experiment.record)
    if not experiment.stimulus.samples:
        none = nothing(experiment.network, experiment.schedule)
        return LavaRun(none, dict.fromkeys(none.messages, 0))
    with temporary_folder() as folder:
        save(experiment, folder)
        stream = SampleStream(experiment, folder, sink)
        network = experiment.network
        run_child(network, folder, form, options, deadline=deadline, on_poll=stream.poll)
        return read(experiment, folder, stream)


def run_child(
    network: SpikingNetwork,
    folder: Path,
    form: str,
    options: Mapping[str, Any],
    *,
    deadline: float,
    on_poll: subprocess.PollCallback = subprocess.idle,
) -> None:
    """Run what is saved in the folder; errors in the child become a BackendError."""
    python = interpreter(os.environ)
    root = str(Path(neuro_eqprop.__file__).parent)
    subprocess.create_progress(folder, 1 + len(network.populations))
    command = [python, "-I", "-W", "ignore", "-c", START, str(os.getpid())]
    command += [root, form, str(folder), json.dumps(dict(options)), INSTALL_HINT]
    try:
        with one_core(network) as cores:
            subprocess.run(
                command,
                folder,
                deadline=deadline,
                environment=ONE_THREAD,
                on_poll=on_poll,
                cores=cores,
            )
    except subprocess.ChildError as error:
        done = int(steps_done(folder).min())
        reason = str(error).partition("\n")[0]
        if isinstance(error, subprocess.SilenceError):
            reason += "; if the machine is that slow, give Lava a longer deadline"
        raise BackendError(f"lava failed after {done} steps: {reason}") from error


def interpreter(environ: Mapping[str, str]) -> str:
    """Path of the Python with Lava: the one that `environ` names, or this one."""
    if os.name != "posix":
        raise BackendError(
            "lava: supervising its processes needs POSIX, which Windows lacks; use Linux"
        )
    named = environ.get(VARIABLE)
    if named is not None:
        found = which(named)
        if found is None:
            raise BackendError(
                f"lava: {VARIABLE} names {named!r}, which cannot be run. {INSTALL_HINT}"
            )
        return found
    if find_spec("lava") is None:
        raise BackendError(f"lava: the package lava-nc is not installed here. {INSTALL_HINT}")
    return sys.executable


def steps_done(folder: Path) -> Ints:
    """The number of steps that each population has done, over all samples."""
    return np.fromfile(folder / subprocess.PROGRESS, dtype=np.int64)[1:]


def check_steps(experiment: Experiment, folder: Path) -> dict[str, int]:
    """The steps of each population; raises BackendError if one did not run every step."""
    names = [population.name for population in experiment.network.populations]
    steps = dict(zip(names, steps_done(folder).tolist(), strict=True))
    expected = experiment.stimulus.samples * experiment.steps
    for name, count in steps.items():
        if count != expected:
            raise BackendError(f"lava ran {count} of {expected} steps of population {name!r}")
    return steps


class SampleStream:
    """Sends recordings to the sink, sample by sample, as soon as all processes wrote them."""

    def __init__(self, experiment: Experiment, folder: Path, sink: Sink) -> None:
        self.sink, self.sent, record = sink, 0, experiment.record
        tables = {
            p.name: layouts(experiment, folder, p.name) for p in experiment.network.populations
        }
        self.spikes = {name: tables[name]["spikes"] for name in record.spikes}
        self.signals = {(n, v): tables[n][signal(v)] for n, v in record.signals}

    def poll(self) -> None:
        """Send the samples written since the last call."""
        tables = [*self.spikes.values(), *self.signals.values()]
        if tables:
            self.send(min(table.complete_rows() for table in tables))

    def send(self, stop: int) -> None:
        """Send the samples before `stop` that were not sent yet."""
        for sample in range(self.sent, stop):
            spikes = {n: table.row(sample) for n, table in self.spikes.items()}
            signals = {key: table.row(sample) for key, table in self.signals.items()}
            self.sink.sample(sample, Recording(spikes, signals))
            self.sent = sample + 1


def read(experiment: Experiment, folder: Path, stream: SampleStream) -> LavaRun:
    """The results in the files of the processes; sends the remaining recordings."""
    steps = check_steps(experiment, folder)
    tables = {
        name: {what: layout.read() for what, layout in layouts(experiment, folder, name).items()}
        for name in steps
    }
    stream.send(experiment.stimulus.samples)
    messages, firing, drive = (
        {name: np.array(table[what]) for name, table in tables.items()}
        for what in ("messages", "firing", "drive")
    )
    counts = {name: Overflow(*table["overflows"][-1].tolist()) for name, table in tables.items()}
    overflows = {} if experiment.network.fixed is None else counts
    return LavaRun(Result(messages, firing, drive, overflows), steps)
