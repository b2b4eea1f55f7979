"""What recording costs: CPU time of the same run with and without a trace, alternating.

Seconds are those of this process and of its children, so that other work on the machine does not
count; what is compared is the least of several runs.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

import torch

from neuro_eqprop.backends.base import BackendError, load, tally
from neuro_eqprop.data import one_hot
from neuro_eqprop.files.tracefile import Writer
from neuro_eqprop.spiking.lower import Code, Coding, stimulate
from neuro_eqprop.study.evaluation import spiking
from neuro_eqprop.study.folder import Run, open_run
from neuro_eqprop.study.settings import Study
from neuro_eqprop.study.simulation import Simulation, plan_spikes, schedule_of
from neuro_eqprop.study.training import run_training
from neuro_eqprop.traces import NOTHING, Recording

REPEATS = 7
SAMPLES = {"lava": 20, "brian2": 60, "emulator": 120, "snntorch": 60}


@dataclass(frozen=True)
class Nowhere:
    """A sink that keeps nothing."""

    def sample(self, index: int, recording: Recording) -> None:
        """Drop it."""


def seconds(work: Callable[[], object]) -> float:
    """CPU time of a piece of work, children included."""
    before = used()
    work()
    return used() - before


def used() -> float:
    """CPU time so far, in finer steps than `os.times` has."""
    own, children = (getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def cost(bare: Callable[[], object], recorded: Callable[[], object]) -> tuple[float, float]:
    """The least time without and with recording, after one run of each to get ready."""
    bare()
    recorded()
    both = [(seconds(bare), seconds(recorded)) for _ in range(REPEATS)]
    return min(one for one, _ in both), min(other for _, other in both)


def simulator(run: Run, folder: Path, on: str) -> tuple[float, float]:
    """The cost on a simulator."""
    asked = Simulation(on, SAMPLES[on], 64, Code.RATE, phases=True, record=())
    schedule, coding = schedule_of(asked, run.study.beta), Coding(Code.RATE)
    network, params = spiking(run, coding, True)
    plan, work = plan_spikes(run, asked, schedule)
    target = one_hot(plan.label, run.data.classes)
    stimulus = stimulate(run.model.network, params, plan.inputs, target=target, coding=coding)

    def bare() -> None:
        result = load(on).run(network, stimulus, schedule, record=NOTHING, sink=Nowhere())
        tally(network, stimulus, schedule, result)

    def recorded() -> None:
        with Writer(folder / f"{on}.h5", plan, overwrite=True) as writer:
            work(writer, writer)

    return cost(bare, recorded)


def tell(where: str, bare: float, recorded: float) -> None:
    share = f"{100 * (recorded / bare - 1):.1f} %"
    print(f"{where}: recording costs {share} ({bare:.2f} s without, {recorded:.2f} s with)")


def attempt(run: Run, folder: Path, on: str) -> None:
    try:
        tell(on, *simulator(run, folder, on))
    except BackendError as error:
        print(f"{on}: left out: {error}")


def training(folder: Path) -> tuple[float, float]:
    def once(traces: Path | None) -> None:
        study = Study(epochs=10)
        run_training(
            study, folder / "t", force=True, resume=False, watch=lambda _: None, traces=traces
        )

    return cost(lambda: once(None), lambda: once(folder / "training.h5"))


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        study = Study(epochs=1)
        run_training(study, folder / "run", force=False, resume=False, watch=lambda _: None)
        tell("training", *training(folder))
        run = open_run(folder / "run")
        for on in sys.argv[1:] or SAMPLES:
            attempt(run, folder, on)


if __name__ == "__main__":
    main()
