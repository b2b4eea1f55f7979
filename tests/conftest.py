"""The order of the tests, which of them may be skipped, and fixtures that several files share."""

from __future__ import annotations

import gc
import os
import random
import signal
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any

# Two threads on a busy machine of two cores wait for each other: some tests took twenty times as
# long. Read by NumPy and torch when they are first imported, hence before them.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.pop("COLUMNS", None)  # workers have one, and printed tables follow it

# Two workers of pytest-xdist must not write the same file of compiled code at once: each has its
# own folder, kept for the next time.
os.environ["NUMBA_CACHE_DIR"] = (
    str(Path(__file__).parents[1] / ".pytest_cache" / "numba" / os.environ["PYTEST_XDIST_WORKER"])
    if "PYTEST_XDIST_WORKER" in os.environ
    else os.environ.get("NUMBA_CACHE_DIR", "")
)

import numpy as np
import pytest

from neuro_eqprop.chips.boundary import Boundary
from neuro_eqprop.chips.energy.estimate import Estimate
from neuro_eqprop.chips.energy.interval import Interval
from neuro_eqprop.chips.energy.result import EnergyEstimate
from neuro_eqprop.chips.energy.terms import MissingTerm, Term
from neuro_eqprop.chips.placement import Placement, PlacementStatus
from neuro_eqprop.chips.profile import Evidence
from neuro_eqprop.cli import main
from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.data import FOLDER
from neuro_eqprop.dynamics.schedules import Schedule, three_phase
from neuro_eqprop.networks.activations import HARD_SIGMOID
from neuro_eqprop.simulators.base import kinds, tally
from neuro_eqprop.simulators.lava.setup import prepare_import
from neuro_eqprop.simulators.recordings import MemorySink, Origin, Record, Recording, RecordingPlan
from neuro_eqprop.simulators.reference.simulator import Reference
from neuro_eqprop.spiking.activity import ActivityKind
from neuro_eqprop.spiking.ir import (
    Gain,
    Graded,
    Neuron,
    Population,
    Projection,
    Reset,
    Spiking,
    SpikingNetwork,
    Stimulus,
)
from neuro_eqprop.traces.lazy import read
from neuro_eqprop.traces.trace import Trace
from sims.claims.experiments.common import samples

# The modules of all simulators are a million objects; each full collection walks through them.
gc.set_threshold(50_000, 20, 50)

WORKER = os.environ.get("PYTEST_XDIST_WORKER")

NEEDS = {"lava": "lava", "brian2": "brian2", "snntorch": "snntorch", "browser": "playwright"}
"""Markers of tests that need a package."""
STRICT = bool(os.environ.get("CI"))
"""Whether a test that is skipped has failed, on every Python: CI has all packages and a browser.

Tests that need a data set which is not embedded have the marker `data`, those that need a compiler
and an emulator of Arm processors the marker `arm`, those of JAX the marker `jax`; they may be
skipped.
"""
MAY_BE_SKIPPED = ("data", "arm", "jax")


SEED = "NEURO_EQPROP_TEST_SEED"
"""Environment variable with the seed of what is drawn; if it is not set, each run has another."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run all of the tests that are drawn else")


def pytest_report_header(config: pytest.Config) -> str:
    if config.getoption("--full"):
        return "all tests run (--full)"
    return f"some tests are drawn: {SEED}={os.environ[SEED]} draws the same ones, --full runs all"


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault(SEED, str(random.randrange(10**6)))  # before the workers start
    # A shell starts what it runs in the background with interrupts ignored, and children inherit
    # that; tests that interrupt need them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "xdist_group: tests that one worker runs, in order")
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not WORKER:
        config.pluginmanager.register(ShowFailures(terminal))


ORDER = (
    "tests",
    "common",
    "files",
    "networks",
    "dynamics",
    "chips",
    "spiking",
    "data",
    "training",
    "traces",
    "html_report",
    "api",
    "lava",
    "simulators",
    "runs",
    "cli",
    "agreement",
    "claims",
    "docs",
    "browser",
)
"""Folders of tests, quick ones first, so that most failures show within two minutes.

`lava` stands for the tests with that marker. Lava starts several processes for each run: with two
workers its tests run one after the other, beside all that follows here; with one they come last.
"""


WITH_LAVA = ("tests/files/test_subprocess.py",)
"""Files that leave shared memory without an owner for a moment, which Lava tests would notice."""


def group(item: pytest.Item) -> str:
    """Tests that one worker runs, in order: those of a file, and all tests that run Lava."""
    file = item.nodeid.partition("::")[0]
    return "lava" if item.get_closest_marker("lava") or file in WITH_LAVA else file


def place(item: pytest.Item) -> int:
    """Position of a test's folder in ORDER; a folder that is not listed comes before `lava`."""
    parts = Path(group(item)).parts
    folder = parts[0] if len(parts) < 3 else parts[1]
    if folder == "lava" and not WORKER:
        return len(ORDER)
    return ORDER.index(folder if folder in ORDER else "lava")


def draw(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep `count` of the items of a test with the marker `drawn(count, by=...)`.

    With `by`, the name of a parameter, as many for each value of it.
    """
    groups: dict[tuple[str, str], list[pytest.Item]] = defaultdict(list)
    counts: dict[tuple[str, str], int] = {}
    for item in items:
        mark = item.get_closest_marker("drawn")
        if mark is None or not isinstance(item, pytest.Function):
            continue
        of = str(item.callspec.params[mark.kwargs["by"]]) if "by" in mark.kwargs else ""
        key = item.nodeid.partition("[")[0], of
        groups[key].append(item)
        (counts[key],) = mark.args
    dropped: set[pytest.Item] = set()
    for key, members in groups.items():
        chosen = random.Random(f"{os.environ[SEED]} {key}")
        dropped.update(chosen.sample(members, max(0, len(members) - counts[key])))
    config.hook.pytest_deselected(items=sorted(dropped, key=lambda item: item.nodeid))
    items[:] = [item for item in items if item not in dropped]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--full"):
        draw(config, items)
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group(item)))
        for mark, package in NEEDS.items():
            if item.get_closest_marker(mark) and find_spec(package) is None:
                item.add_marker(pytest.mark.skip(reason=f"{package} is not installed"))
    items.sort(key=place)


class ShowFailures:
    """Prints each failure when it happens, not only at the end."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self.terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.terminal.ensure_newline()
            self.terminal.write_line(f"FAILED {report.nodeid} ({report.when})", red=True)
            self.terminal.write_line(report.longreprtext)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if STRICT and is_skip(report) and not any(map(item.get_closest_marker, MAY_BE_SKIPPED)):
        fail_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if STRICT and report.skipped:
        fail_skipped(report)
    return report


def is_skip(report: pytest.TestReport) -> bool:
    """Whether a test did not run; one that failed as expected did."""
    return report.skipped and not hasattr(report, "wasxfail")


def fail_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Make a failure of a skipped test or file; the reason stays in its text."""
    report.outcome = "failed"
    report.longrepr = f"skipped in CI: {report.longrepr}"


@pytest.fixture(autouse=True)
def importable_lava(request: pytest.FixtureRequest) -> None:
    """Other tests of the same worker may have used multiprocessing before Lava is imported."""
    if request.node.get_closest_marker("lava"):
        prepare_import()


@pytest.fixture
def empty_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder where data sets are looked for and none is found, whatever this machine holds."""
    monkeypatch.setenv(FOLDER, str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    samples.cache_clear()
    yield tmp_path
    samples.cache_clear()


@pytest.fixture(scope="session")
def sequences_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set that holds no images: 20 sequences of 8 tokens of width 2, in two classes."""
    path = tmp_path_factory.mktemp("sequences") / "sequences.npz"
    x = np.random.default_rng(0).random((20, 8, 2))
    np.savez(path, x=x, y=np.arange(20) % 2)
    return path


RUN_COMMANDS = (
    "train --hidden 24 --epochs 2 --beta 0.25 --out {run}",
    "evaluate {run}",
    "evaluate {run} --on reference --code rate --samples 60",
    "evaluate {run} --on emulator --code graded --samples 60",
    "simulate {run} --on rate --phases --samples 6 --traces {run}/rate.h5",
    "simulate {run} --on reference --code rate --phases --samples 6 --traces {run}/traces.h5 "
    "--record output:voltage",
    "simulate {run} --on reference --code graded --phases --samples 6 --traces {run}/graded.h5 "
    "--steps 64 --record output:state",
    "energy {run} --samples 4",
)
"""Commands that make a run with all its files: a training, evaluations, traces and joules."""


@pytest.fixture(scope="session")
def trained_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder that the program itself wrote, in about two seconds.

    64-24-10 trained on the digits for two epochs, evaluated on three backends, six samples recorded
    as rates (`rate.h5`), spikes (`traces.h5`) and graded spikes (`graded.h5`), and the energy
    estimate of every chip. Tests that change files work on a copy (`make_run`).
    """
    run = tmp_path_factory.mktemp("trained") / "run"
    for command in RUN_COMMANDS:
        assert main(command.format(run=run).split()) == 0, command
    return run


FEATURES, HIDDEN, CLASSES, SAMPLES = 64, 24, 10, 6
SCHEDULE = three_phase(beta=0.25, free=64, nudged=64)
CONNECTIONS = ("input->hidden", "hidden->output")
INTEGRATE = Spiking(1.0, 0.0, 1.0, Reset.SUBTRACT, -1.0, np.inf)
DELTA = Graded(HARD_SIGMOID, 2.0**-8, 0.5)


def origin(backend: str) -> Origin:
    command = f"neuro-eqprop simulate RUN --on {backend}"
    return Origin(backend, "0" * 64, {"neuro_eqprop": "0.1.0"}, 0, "2024-01-01", command)


def settle(x: Array, y: Array, weights: tuple[Array, Array], schedule: Schedule) -> list[Recording]:
    """Jacobi sweeps with damping one half, written out here as a second opinion."""
    hidden, output = np.zeros((len(x), HIDDEN)), np.zeros((len(x), CLASSES))
    seen: list[tuple[Array, Array]] = []
    for phase in schedule:
        for _ in range(phase.steps):
            into = weights[1] @ hidden.T
            drive = (x @ weights[0].T) + output @ weights[1]
            pulled = (into.T + phase.beta * y) / (1 + phase.beta)
            hidden = (hidden + np.clip(drive, 0, 1)) / 2
            output = (output + np.clip(pulled, 0, 1)) / 2
            seen.append((hidden, output))
    both = [np.stack(each, axis=1) for each in zip(*seen, strict=True)]
    return [
        Recording({}, {("hidden", "rate"): both[0][k], ("output", "rate"): both[1][k]})
        for k in range(len(x))
    ]


def lowered(weights: tuple[Array, Array], neuron: Neuron) -> SpikingNetwork:
    forth = weights[1]
    return SpikingNetwork(
        1e-3,
        (
            Population("hidden", neuron, np.zeros(HIDDEN)),
            Population("output", neuron, np.zeros(CLASSES)),
        ),
        (
            Projection("hidden", "output", forth),
            Projection("output", "hidden", forth.T.copy()),
            Projection("output", "output", -np.eye(CLASSES), gain=Gain.BETA),
        ),
        "output",
    )


def plan(
    x: Array,
    label: Ints,
    weights: tuple[Array, Array],
    *,
    of: dict[str, ActivityKind],
    backend: str,
    record: Record,
) -> RecordingPlan:
    sizes = {"hidden": HIDDEN, "output": CLASSES}
    places = np.arange(100, 100 + len(x))
    held = dict(zip(CONNECTIONS, weights, strict=True))
    return RecordingPlan(
        origin(backend), SCHEDULE, of, sizes, CONNECTIONS, places, label, x, record, held
    )


@pytest.fixture(scope="session")
def episode() -> dict[str, Trace]:
    """The same episode as `rate`, as `spikes` and as `graded` messages."""
    rng = np.random.default_rng(0)
    x = rng.random((SAMPLES, FEATURES))
    label = rng.integers(0, CLASSES, SAMPLES)
    y = np.eye(CLASSES)[label]
    grid = 2.0**12
    weights = (
        np.rint(grid * rng.normal(0.0, 0.16, (HIDDEN, FEATURES))) / grid,
        np.rint(grid * rng.normal(0.05, 0.2, (CLASSES, HIDDEN))) / grid,
    )
    layers = ("hidden", "output")
    record = Record(signals=frozenset((name, "rate") for name in layers))
    of = dict.fromkeys(layers, ActivityKind.RATE)
    laid = plan(x, label, weights, of=of, backend="rate", record=record)
    made = {"rate": Trace.from_recordings(laid, settle(x, y, weights, SCHEDULE), {})}
    for name, neuron, extra in (("spikes", INTEGRATE, "voltage"), ("graded", DELTA, "state")):
        network = lowered(weights, neuron)
        stimulus = Stimulus(SAMPLES, {"hidden": x @ weights[0].T}, {"output": y})
        record = Record(frozenset(layers), frozenset({("output", extra)}))
        laid = plan(x, label, weights, of=kinds(network), backend="reference", record=record)
        memory = MemorySink()
        result = Reference().run(network, stimulus, SCHEDULE, record=record, sink=memory)
        counts = tally(network, stimulus, SCHEDULE, result)
        made[name] = Trace.from_recordings(laid, memory.recordings, counts)
    return made


@pytest.fixture(scope="session")
def make_run(trained_run: Path) -> Callable[[Path], Path]:
    """A function that copies `trained_run`, with its traces of rates and of binary spikes."""

    def copy(run: Path) -> Path:
        return copytree(trained_run, run, ignore=ignore_patterns("graded.h5"))

    return copy


@pytest.fixture(scope="session")
def recorded(trained_run: Path) -> dict[str, Trace]:
    """The traces of `make_run`: `rate` and `spikes`."""
    return {"rate": read(trained_run / "rate.h5"), "spikes": read(trained_run / "traces.h5")}


ChipEstimate = Callable[..., EnergyEstimate]


@pytest.fixture(scope="session")
def chip_estimate() -> ChipEstimate:
    """A function that makes the estimate of a chip with given joules, three quarters of them idle.

    Without joules, `reason` says why there are none. Other arguments are fields of the estimate.
    """

    def make(
        profile: str,
        joules: float | None,
        boundary: Boundary = Boundary.CHIP_TOTAL,
        *,
        fits: bool | None = True,
        reason: str = "",
        **others: object,
    ) -> EnergyEstimate:
        statuses = {
            True: PlacementStatus.FITS,
            False: PlacementStatus.DOES_NOT_FIT,
            None: PlacementStatus.UNKNOWN,
        }
        placement = Placement(statuses[fits], (), 1, 1, "neurons")
        found = Estimate(placement=placement, reason=reason)
        if joules is not None:
            origin = (boundary, Evidence.READ, "paper", False, "")
            parts = (("idle", "power.static", 0.75), ("synop", "energy.synop", 0.25))
            found = Estimate(
                joules=Interval(joules, joules / 2, 2 * joules, joules),
                terms=tuple(
                    Term(name, key, 1.0, Interval(*(part * joules,) * 4), *origin)
                    for name, key, part in parts
                ),
                missing=(MissingTerm("input", 3.0, "not published"),),
                boundary=boundary,
                evidence=Evidence.READ,
                placement=placement,
            )
        fields: dict[str, Any] = {"title": profile, "inference": found, "learning": found}
        return EnergyEstimate(profile, **(fields | others))

    return make
