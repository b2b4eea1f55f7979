"""Lava against the reference, spike by spike, and what is left when a run of it goes wrong."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from time import monotonic, sleep

import numpy as np
import pytest

import neuro_eqprop
from neuro_eqprop.common.arrays import Array, UnknownNameError
from neuro_eqprop.dynamics.schedules import Phase, Schedule, free_only, three_phase
from neuro_eqprop.files import subprocess as child
from neuro_eqprop.networks.activations import HARD_SIGMOID, RELU, TANH
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.experiment import Experiment
from neuro_eqprop.simulators.lava.simulator import VARIABLE, Lava, interpreter, measure
from neuro_eqprop.simulators.recordings import NOTHING, MemorySink, Record
from neuro_eqprop.simulators.reference.simulator import Reference
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.simulators.testing import CASES
from neuro_eqprop.simulators.testing.case import Case
from neuro_eqprop.simulators.testing.random_networks import draw_whole_case
from neuro_eqprop.spiking.ir import (
    Gain,
    Graded,
    Population,
    Projection,
    Reset,
    Spiking,
    SpikingNetwork,
    Stimulus,
)

pytestmark = pytest.mark.lava

SUBTRACT = Spiking(1.0, 0.0, 1.0, Reset.SUBTRACT, -1.0, 2.0)
ZERO = Spiking(0.25, 0.125, 1.0, Reset.ZERO, -np.inf, np.inf)
CLIPPED = Graded(HARD_SIGMOID, 1 / 64, 0.5)
RECTIFIED = Graded(RELU, 1 / 32, 0.25)
CURVED = Graded(TANH, 1 / 128, 1.0)
LONG = free_only(steps=30_000, window=1)
MARK = "NEURO_EQPROP_TEST_MARK"


@dataclass(frozen=True)
class Room:
    """Where the runs of a test put their temporary folders, and the mark their processes carry."""

    path: Path
    mark: str

    def processes(self) -> dict[int, int]:
        """The processes that carry the mark, each with its parent."""
        found = {}
        for place in Path("/proc").glob("[0-9]*"):
            try:
                marked = f"{MARK}={self.mark}".encode() in (place / "environ").read_bytes()
                fields = (place / "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue
            if marked and fields[0] != b"Z":
                found[int(place.name)] = int(fields[1])
        return found

    def forks(self) -> list[int]:
        """The processes that Lava started, in the order of their start."""
        parents = self.processes()
        return sorted(pid for pid, parent in parents.items() if parent in parents)

    def steps(self) -> int:
        """The steps that every population of the current run has done."""
        for path in self.path.glob(f"*/{child.PROGRESS}"):
            with suppress(FileNotFoundError):
                return int(min(np.fromfile(path, dtype=np.int64)[1:], default=0))
        return 0

    def disturb(self, action: Callable[[], None]) -> Thread:
        """Do something to the run when it is well under way."""

        def wait() -> None:
            if until(lambda: self.steps() > 20):
                action()

        thread = Thread(target=wait)
        thread.start()
        return thread


def until(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    since = monotonic()
    while not condition() and monotonic() - since < seconds:
        sleep(0.02)
    return condition()


def unowned() -> set[str]:
    """Segments of shared memory that no process uses."""
    segments = {path.name for path in Path("/dev/shm").glob("psm_*")}
    for maps in Path("/proc").glob("[0-9]*/maps") if segments else ():
        try:
            text = maps.read_text()
        except OSError:
            continue
        segments -= {name for name in segments if name in text}
    return segments


@pytest.fixture(autouse=True)
def room(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Room]:
    """Every test fails that leaves a process, a file or a segment of shared memory behind."""
    tmp_path_factory.getbasetemp()
    before = unowned()
    path = Path(tempfile.mkdtemp(prefix="room-", dir="/tmp"))
    room = Room(path, path.name)
    monkeypatch.setenv(MARK, room.mark)
    monkeypatch.setenv("TMPDIR", str(path))
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    yield room
    assert room.processes() == {}
    assert list(path.iterdir()) == []
    # Others may be about to use a segment that they have just made: only one that stays is left.
    found = unowned() - before
    assert until(lambda: not found & unowned())
    path.rmdir()


def grid(rng: np.random.Generator, scale: float, *shape: int) -> Array:
    return np.asarray(np.rint(rng.normal(0.0, scale, shape) * 2**12) / 2**12)


def draw(seed: int, neurons: tuple[Spiking | Graded, ...]) -> Experiment:
    """A recurrent network in which everything is connected with everything, twice by chance."""
    rng = np.random.default_rng(seed)
    populations = tuple(
        Population(f"p{i}", neuron, grid(rng, 0.3, int(rng.integers(1, 9))))
        for i, neuron in enumerate(neurons)
    )
    projections = tuple(
        Projection(
            source.name,
            target.name,
            grid(rng, 0.5, target.size, source.size),
            int(rng.integers(1, 4)),
            gain,
        )
        for source in populations
        for target in populations
        for gain in Gain
        if rng.random() < 0.7
    )
    samples = 2
    stimulus = Stimulus(
        samples,
        {p.name: grid(rng, 0.5, samples, p.size) for p in populations[:-1]},
        {populations[-1].name: grid(rng, 1.0, samples, populations[-1].size)},
    )
    schedule = three_phase(beta=0.5, free=12, nudged=9)
    network = SpikingNetwork(1e-3, populations, projections, populations[-1].name)
    return Experiment(network, stimulus, schedule, everything(network))


def everything(network: SpikingNetwork) -> Record:
    held = {
        p.name: "state" if isinstance(p.neuron, Graded) else "voltage" for p in network.populations
    }
    return Record(frozenset(held), frozenset({*held.items(), *((name, "drive") for name in held)}))


def agree(job: Experiment) -> int:
    """Compare with the reference, bit by bit; how many messages were sent."""
    seen, right = MemorySink(), MemorySink()
    outcome = measure(job, seen, deadline=60.0)
    want = Reference().run(job.network, job.stimulus, job.schedule, record=job.record, sink=right)
    got, total = outcome.result, job.stimulus.samples * job.steps
    assert got.overflows == want.overflows
    assert outcome.steps == {p.name: total for p in job.network.populations}
    for name in want.messages:
        np.testing.assert_array_equal(got.messages[name], want.messages[name])
        np.testing.assert_array_equal(got.firing[name], want.firing[name])
        np.testing.assert_array_equal(got.drive[name], want.drive[name])
        assert got.messages[name].dtype == np.int64
    assert len(seen.recordings) == job.stimulus.samples
    for mine, other in zip(seen.recordings, right.recordings, strict=True):
        assert set(mine.spikes) == set(other.spikes)
        assert set(mine.signals) == set(other.signals)
        for name, spikes in other.spikes.items():
            np.testing.assert_array_equal(mine.spikes[name], spikes)
        for key, values in other.signals.items():
            np.testing.assert_array_equal(mine.signals[key], values)
    return sum(int(sent.sum()) for sent in got.messages.values())


@pytest.mark.parametrize(
    "neurons",
    [
        (SUBTRACT, SUBTRACT),
        (ZERO, SUBTRACT, ZERO),
        (CLIPPED, CLIPPED),
        (CURVED, RECTIFIED),
        (SUBTRACT, CLIPPED),
    ],
    ids=["subtract", "zero", "graded", "tanh and relu", "mixed"],
)
def test_a_random_recurrent_network_does_what_it_does_in_the_reference(
    neurons: tuple[Spiking | Graded, ...],
) -> None:
    assert agree(draw(len(neurons), neurons)) > 50


@pytest.mark.parametrize(
    "case",
    [draw_whole_case(6, 3), *(case for case in CASES if case.name.startswith("overflow"))],
    ids=lambda case: case.name,
)
def test_in_fixed_point_everything_is_equal_bit_for_bit(case: Case) -> None:
    """Spikes, messages, voltages, states and drives, and what did not fit 24 bits."""
    job = Experiment(case.network, case.stimulus, case.schedule, case.record)
    assert agree(job) > 50


def lone(neuron: Spiking | Graded, *, schedule: Schedule, samples: int) -> Experiment:
    network = SpikingNetwork(1e-3, (Population("a", neuron, np.array([0.75])),), (), "a")
    return Experiment(network, Stimulus(samples, {}, {}), schedule, everything(network))


def test_one_neuron_without_a_projection() -> None:
    assert agree(lone(SUBTRACT, schedule=free_only(steps=8, window=3), samples=1)) == 6


def test_phases_of_one_step_and_nothing_carried_from_sample_to_sample() -> None:
    population = Population("a", SUBTRACT, np.array([0.5]))
    loops = tuple(Projection("a", "a", np.array([[0.25]]), delay) for delay in (1, 2, 5))
    network = SpikingNetwork(1e-3, (population,), loops, "a")
    schedule = (Phase("free", 0.0, 1, 1), Phase("nudged", 0.5, 1, 1))
    job = Experiment(
        network, Stimulus(3, {}, {"a": np.ones((3, 1))}), schedule, everything(network)
    )
    assert agree(job) == 6


def test_populations_that_nothing_joins_all_run() -> None:
    populations = tuple(Population(name, SUBTRACT, np.full(2, 0.375)) for name in "abcd")
    projections = (
        Projection("c", "a", np.full((2, 2), 0.25)),
        Projection("b", "b", np.zeros((2, 2))),
    )
    network = SpikingNetwork(1e-3, populations, projections, "d")
    job = Experiment(
        network, Stimulus(2, {}, {}), free_only(steps=6, window=6), everything(network)
    )
    assert agree(job) > 0


def test_no_samples_come_to_nothing() -> None:
    job = lone(SUBTRACT, schedule=free_only(steps=8, window=3), samples=0)
    result = Lava().run(job.network, job.stimulus, job.schedule, record=NOTHING, sink=MemorySink())
    assert result.messages["a"].shape == result.firing["a"].shape == (0, 1, 1)


def test_the_backend_is_found_by_its_name_and_prints_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    job = lone(CLIPPED, schedule=free_only(steps=3, window=1), samples=1)
    backend = load_backend("lava")
    assert backend.name == "lava"
    result = backend.run(job.network, job.stimulus, job.schedule, record=NOTHING, sink=MemorySink())
    assert result.messages["a"].item() == 3
    assert capfd.readouterr() == ("", "")


def test_what_cannot_be_recorded_is_refused() -> None:
    job = lone(SUBTRACT, schedule=LONG, samples=1)
    for record in (
        Record(spikes=frozenset({"b"})),
        Record(signals=frozenset({("b", "drive")})),
        Record(signals=frozenset({("a", "state")})),
        Record(signals=frozenset({("a", "spikes")})),
    ):
        with pytest.raises(UnknownNameError):
            measure(Experiment(job.network, job.stimulus, LONG, record), MemorySink(), deadline=60)
    with pytest.raises(BackendError, match="the schedule is empty"):
        measure(Experiment(job.network, job.stimulus, (), NOTHING), MemorySink(), deadline=60)
    with pytest.raises(ValueError, match="deadline"):
        Lava(deadline=0.0)


def long() -> Experiment:
    """A run that ends by itself only if nothing is done to it."""
    job = draw(0, (SUBTRACT, CLIPPED))
    return Experiment(job.network, job.stimulus, LONG, NOTHING)


def test_interrupted_processes_are_reported_within_seconds(room: Room) -> None:
    started = monotonic()

    def interrupt() -> None:
        for pid in room.forks():
            os.kill(pid, signal.SIGINT)

    thread = room.disturb(interrupt)
    # Raised inside a step it comes home as what it is; between two steps the process just dies.
    ends = "KeyboardInterrupt|one of its processes died|RuntimeError: .* ended with code 1"
    message = rf"failed after \d+ steps: ({ends})"
    with pytest.raises(BackendError, match=message):
        measure(long(), MemorySink(), deadline=60.0)
    thread.join()
    assert monotonic() - started < 50


def test_a_model_that_raises_is_reported_with_its_step_and_traceback(room: Room) -> None:
    """A full disk is what makes it raise."""
    network = SpikingNetwork(1e-3, (Population("a", SUBTRACT, np.full(400, 0.3)),), (), "a")
    record = Record(signals=frozenset({("a", "voltage")}))
    job = Experiment(network, Stimulus(100, {}, {}), free_only(steps=10, window=1), record)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
    try:
        message = r"after \d+ steps: OSError: .*File too large"
        with pytest.raises(BackendError, match=message) as caught:
            measure(job, MemorySink(), deadline=60.0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "in run_spk" in str(caught.value.__cause__)


@pytest.mark.slow
def test_a_run_that_hangs_is_ended_at_the_deadline(room: Room) -> None:
    def stop() -> None:
        for pid in room.forks():
            os.kill(pid, signal.SIGSTOP)

    thread = room.disturb(stop)
    with pytest.raises(BackendError, match=r"no progress for 6 s; .* a longer deadline"):
        measure(long(), MemorySink(), deadline=6.0)
    thread.join()


def test_a_process_that_is_killed_is_noticed_before_the_deadline(room: Room) -> None:
    started = monotonic()
    thread = room.disturb(lambda: os.kill(room.forks()[-1], signal.SIGKILL))
    with pytest.raises(BackendError, match=r"one of its processes died|was ended by signal 9"):
        measure(long(), MemorySink(), deadline=60.0)
    thread.join()
    assert monotonic() - started < 50


def test_an_interrupted_run_leaves_nothing(room: Room) -> None:
    thread = room.disturb(lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        measure(long(), MemorySink(), deadline=60.0)
    thread.join()


def test_a_sink_that_refuses_leaves_nothing() -> None:
    class Full:
        def sample(self, index: int, recording: object) -> None:
            raise OSError("no room")

    job = lone(SUBTRACT, schedule=free_only(steps=3, window=1), samples=1)
    with pytest.raises(OSError, match="no room"):
        measure(job, Full(), deadline=60.0)


SCRIPT = """
import sys
import numpy as np
import neuro_eqprop
from neuro_eqprop.simulators.lava.simulator import Lava
from neuro_eqprop.dynamics.schedules import free_only
from neuro_eqprop.spiking.ir import Population, Projection, Reset, Spiking, SpikingNetwork, Stimulus
from neuro_eqprop.simulators.recordings import NOTHING, MemorySink
neuron = Spiking(1.0, 0.0, 1.0, Reset.SUBTRACT, -1.0, 2.0)
loop = Projection("a", "a", np.array([[0.25, -0.5], [0.75, 0.125]]))
network = SpikingNetwork(1e-3, (Population("a", neuron, np.array([0.5, 0.375])),), (loop,), "a")
steps = int(sys.argv[1])
schedule = free_only(steps=steps, window=steps)
result = Lava().run(network, Stimulus(1, {}, {}), schedule, record=NOTHING, sink=MemorySink())
print(neuro_eqprop.__file__, *result.messages["a"].ravel())
"""


def script_messages() -> list[str]:
    loop = Projection("a", "a", np.array([[0.25, -0.5], [0.75, 0.125]]))
    populations = (Population("a", SUBTRACT, np.array([0.5, 0.375])),)
    network = SpikingNetwork(1e-3, populations, (loop,), "a")
    schedule = free_only(steps=40, window=40)
    empty = Stimulus(1, {}, {})
    result = Reference().run(network, empty, schedule, record=NOTHING, sink=MemorySink())
    return [str(count) for count in result.messages["a"].ravel()]


def test_a_script_without_a_main_guard_runs_once(tmp_path: Path) -> None:
    script = tmp_path / "study.py"
    script.write_text(SCRIPT)
    run = subprocess.run(
        [sys.executable, str(script), "40"], capture_output=True, text=True, check=True
    )
    assert run.stdout.split()[1:] == script_messages()
    assert not run.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["study.py"]


def test_a_session_without_a_file_runs_too() -> None:
    run = subprocess.run(
        [sys.executable, "-", "40"], input=SCRIPT, capture_output=True, text=True, check=True
    )
    assert run.stdout.split()[1:] == script_messages()
    assert not run.stderr


def test_the_reference_has_no_part_in_a_run_on_lava(tmp_path: Path) -> None:
    source = Path(neuro_eqprop.__file__).parent
    copy = tmp_path / "neuro_eqprop"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "simulators" / "reference" / "simulator.py").write_text(
        "raise RuntimeError('it was imported')\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, "40"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == [str(copy / "__init__.py"), *script_messages()]


def test_a_run_does_not_outlive_a_script_that_is_killed(room: Room) -> None:
    with subprocess.Popen([sys.executable, "-c", SCRIPT, "30000"]) as parent:
        started = until(lambda: room.steps() > 20)
        parent.kill()
    assert started
    assert until(lambda: not room.processes())
    assert until(lambda: not list(room.path.iterdir()))


def stand_in(tmp_path: Path, options: str) -> str:
    """A Python of another name."""
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\ntouch {tmp_path}/used\nexec {sys.executable} {options} "$@"\n')
    path.chmod(0o755)
    return str(path)


def test_another_python_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, stand_in(tmp_path, ""))
    assert agree(lone(SUBTRACT, schedule=free_only(steps=4, window=1), samples=1)) == 3
    assert (tmp_path / "used").exists()


def test_a_python_without_lava_is_named_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, stand_in(tmp_path, "-S"))
    with pytest.raises(BackendError, match=r"has no Lava\. `neuro-eqprop lava install`"):
        agree(lone(SUBTRACT, schedule=free_only(steps=4, window=1), samples=1))


def test_a_python_that_is_not_there_is_refused() -> None:
    with pytest.raises(
        BackendError, match=r"'/no/python', which cannot be run\. `neuro-eqprop lava install`"
    ):
        interpreter({VARIABLE: "/no/python"})
    assert interpreter({}) == sys.executable
