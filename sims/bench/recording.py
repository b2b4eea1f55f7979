"""The cost of recording: CPU time of the same run with and without a trace, alternately.

Seconds are those of this process and of its children, so that other work on the machine counts
little; reported is the pair of runs whose ratio is the median of several.

    python sims/bench/recording.py                 # all, and docs/results/recording.md
    python sims/bench/recording.py brian2 lava     # these rows of it anew
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

import torch

from neuro_eqprop.api.run import Run, open_run
from neuro_eqprop.api.train import train
from neuro_eqprop.data import one_hot
from neuro_eqprop.files.write import write_text
from neuro_eqprop.runs.simulate import record_spikes
from neuro_eqprop.runs.simulation_settings import RecordingSettings, SimulationSettings
from neuro_eqprop.simulators.base import BackendError, tally
from neuro_eqprop.simulators.recordings import NOTHING, Recording
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.training.study import Study, make_study

TRAINING = "training"
EPOCHS = Study().training.epochs
SAMPLES = {"lava": 20, "brian2": 60, "emulator": 120, "snntorch": 60}
REPEATS = {TRAINING: 7, "lava": 5}
OFTEN = 15
PAGE = Path(__file__).parents[2] / "docs" / "results" / "recording.md"
HEAD = """# The cost of recording

How much CPU time a recording adds to a run. The same run is measured with and without the default
trace (the signals of every layer from which rates are computed), alternately, in one process and
its children; the table has the pair of runs with the median ratio. Digits, 64-128-10, three phases
of 64 steps; the simulator alone, without start-up. Made by `python sims/bench/recording.py`, which
replaces the rows that it is called with.

| where | work | without, s | with, s | overhead |
|---|---|---|---|---|
"""


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


def cost(
    where: str, bare: Callable[[], object], recorded: Callable[[], object]
) -> tuple[float, float]:
    """The times without and with recording, in the pair of runs whose ratio is the median."""
    bare()
    recorded()
    both = [(seconds(bare), seconds(recorded)) for _ in range(REPEATS.get(where, OFTEN))]
    return sorted(both, key=lambda pair: pair[1] / pair[0])[len(both) // 2]


def simulator(run: Run, folder: Path, on: str) -> tuple[float, float]:
    """The cost on a simulator."""
    spiking, split = run.model.to_spiking(code="rate").with_nudge(), run.test_samples(SAMPLES[on])
    network, schedule = spiking.network, spiking.schedule(64, beta=run.model.beta)
    stimulus = spiking.encode(split.x, one_hot(split.y, run.data.classes))

    def bare() -> None:
        result = load_backend(on).run(network, stimulus, schedule, record=NOTHING, sink=Nowhere())
        tally(network, stimulus, schedule, result)

    def recorded() -> None:
        recording = RecordingSettings(phases=True, out=folder / f"{on}.h5", force=True)
        settings = SimulationSettings(on=on)
        record_spikes(run.model, spiking, split.x, split.y, recording, settings)

    return cost(on, bare, recorded)


def training(folder: Path) -> tuple[float, float]:
    """The cost in training, `train --traces` against `train`."""

    def once(traces: Path | None) -> None:
        study = make_study(epochs=EPOCHS)
        train(study, out=folder / "t", force=True, traces=traces)

    return cost(TRAINING, lambda: once(None), lambda: once(folder / "training.h5"))


def row(where: str, bare: float, recorded: float) -> str:
    """A line of the page."""
    what = f"{EPOCHS} epochs" if where == TRAINING else f"{SAMPLES[where]} samples"
    share = 100 * (recorded / bare - 1)
    return f"| {where} | {what} | {bare:.2f} | {recorded:.2f} | {share:.1f} % |"


def update(made: dict[str, str]) -> None:
    """Put rows into the page, in the place of those it has."""
    held = PAGE.read_text() if PAGE.exists() else ""
    rows = {found[1]: found[0] for found in re.finditer(r"^\| (\w+) \|.*%.*$", held, re.MULTILINE)}
    rows |= made
    listed = [rows[name] for name in (TRAINING, *SAMPLES) if name in rows]
    write_text(PAGE, HEAD + "\n".join(listed) + "\n")


def main() -> None:
    """Measure what is named, or all."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        study = make_study(epochs=1)
        train(study, out=folder / "run")
        run = open_run(folder / "run")
        for where in sys.argv[1:] or (TRAINING, *SAMPLES):
            try:
                both = training(folder) if where == TRAINING else simulator(run, folder, where)
            except BackendError as error:
                print(f"{where}: left out: {error}")
                continue
            print(row(where, *both), flush=True)
            update({where: row(where, *both)})


if __name__ == "__main__":
    main()
