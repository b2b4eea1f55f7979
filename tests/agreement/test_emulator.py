"""The emulator against the reference: not near, equal."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from neuro_eqprop.common.arrays import Array, UnknownNameError
from neuro_eqprop.dynamics.schedules import free_only, three_phase
from neuro_eqprop.networks.activations import LINEAR, TANH, tanh
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.emulator import packed, simulator
from neuro_eqprop.simulators.emulator.kernels import emulate
from neuro_eqprop.simulators.emulator.simulator import Emulator
from neuro_eqprop.simulators.recordings import NOTHING, MemorySink, Record
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.simulators.testing import CASES, check_backend
from neuro_eqprop.simulators.testing.case import Case, CaseRun, record_everything, run_case
from neuro_eqprop.simulators.testing.random_networks import attempt_case, draw_case, draw_cases
from neuro_eqprop.spiking.ir import (
    Graded,
    Population,
    Projection,
    Reset,
    Spiking,
    SpikingNetwork,
    Stimulus,
)
from neuro_eqprop.spiking.quantize import quantise
from neuro_eqprop.spiking.rounding import Rounding

INTEGRATOR = Spiking(1.0, 0.0, 1.0, Reset.SUBTRACT, floor=-1.0, ceiling=1.0)
LOGGED = Record(frozenset({"a", "b"}), frozenset({("a", "voltage"), ("b", "drive")}))


def same(got: CaseRun, want: CaseRun) -> None:
    """Refuse any difference, even in the last bit."""
    for field in ("messages", "firing", "drive"):
        mine, right = getattr(got.result, field), getattr(want.result, field)
        assert set(mine) == set(right)
        for name in right:
            assert mine[name].dtype == right[name].dtype
            np.testing.assert_array_equal(mine[name], right[name], strict=True)
    for here, there in zip(got.recordings, want.recordings, strict=True):
        assert set(here.spikes) == set(there.spikes)
        assert set(here.signals) == set(there.signals)
        for name, array in there.spikes.items():
            np.testing.assert_array_equal(here.spikes[name], array, strict=True)
        for key, array in there.signals.items():
            np.testing.assert_array_equal(here.signals[key], array, strict=True)


def pair(rng: np.random.Generator, weight: Array | None = None) -> SpikingNetwork:
    """Twelve neurons and five, each group heard by the other."""
    grid = 2.0**-12
    forth = np.rint(rng.normal(0, 0.4, (5, 12)) / grid) * grid if weight is None else weight
    populations = (
        Population("a", INTEGRATOR, np.linspace(0.0, 0.75, 12)),
        Population("b", INTEGRATOR, np.linspace(-0.25, 0.5, 5)),
    )
    back = np.ascontiguousarray(forth.T)
    links = (Projection("a", "b", forth), Projection("b", "a", back, delay=3))
    return SpikingNetwork(1e-3, populations, links, "b")


def ran(
    backend: Emulator | None, network: SpikingNetwork, *, record: Record = NOTHING, samples: int = 3
) -> CaseRun:
    """A short run; on the reference if no backend is given."""
    current = {"a": np.linspace(-0.5, 0.5, 12 * samples).reshape(samples, 12)}
    sink = MemorySink()
    on = backend or load_backend("reference")
    stimulus = Stimulus(samples, current, {})
    result = on.run(network, stimulus, free_only(steps=20, window=8), record=record, sink=sink)
    return CaseRun(result, sink.recordings)


def test_it_passes_the_whole_suite() -> None:
    report = check_backend(load_backend("emulator"), seed=1, networks=40)
    assert not report.skipped
    assert len(report.passed) == len(CASES) + len(list(draw_cases(1, 40)))
    assert len(report.passed) >= len(CASES) + 40


@pytest.mark.parametrize("number", range(12))
def test_all_bits_are_those_of_the_reference(number: int) -> None:
    case = draw_case(2, number)
    same(run_case(load_backend("emulator"), case), run_case(load_backend("reference"), case))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(60))
def test_a_thousand_steps_of_a_random_recurrent_network(number: int) -> None:
    drawn = attempt_case(3, number, attempt=0)
    case = replace(drawn, schedule=three_phase(beta=0.25, free=400, nudged=300))
    want = run_case(load_backend("reference"), case)
    assert all(array.any() for array in want.result.messages.values())
    same(run_case(load_backend("emulator"), case), want)


def test_tanh_has_the_bits_of_the_one_in_activations() -> None:
    rng = np.random.default_rng(0)
    small = 10.0 ** rng.uniform(-320, 2, 20_000) * rng.choice([-1.0, 1.0], 20_000)
    steps = np.log(2.0) * np.arange(-60, 61) / 4
    edges = [0.0, -0.0, 5e-324, -5e-324, 20.0, -20.0, np.nextafter(20, 30), 1e300, -1e300]
    around = np.concatenate([np.nextafter(steps, -99), steps, np.nextafter(steps, 99)])
    values = np.concatenate([rng.normal(0, 3, 200_000), small, around, edges])
    neuron = Graded(TANH, theta=2.0**-6, damping=1.0)
    network = SpikingNetwork(1e-3, (Population("a", neuron, values),), (), "a")
    sink = MemorySink()
    record = Record(frozenset(), frozenset({("a", "state")}))
    once = free_only(steps=1, window=1)
    Emulator().run(network, Stimulus(1, {}, {}), once, record=record, sink=sink)
    np.testing.assert_array_equal(sink.recordings[0].signals["a", "state"][0], tanh(values))


@pytest.mark.parametrize("theta", [1 / 64, 0.01, 0.3, 2.0**-200])
@pytest.mark.parametrize("damping", [1.0, 0.3])
def test_messages_of_any_size(theta: float, damping: float) -> None:
    neuron = Graded(LINEAR, theta, damping)
    bias = np.random.default_rng(0).normal(0, 1, 50)
    population = Population("a", neuron, bias)
    loop = Projection("a", "a", np.eye(50) / 4, delay=2)
    network = SpikingNetwork(1e-3, (population,), (loop,), "a")
    case = Case("", network, Stimulus(1, {}, {}), three_phase(beta=0.3, free=9, nudged=7), NOTHING)
    case = replace(case, record=record_everything(network))
    same(run_case(load_backend("emulator"), case), run_case(load_backend("reference"), case))


@pytest.mark.parametrize("part", [0.0, 0.05, 0.5, 1.0])
def test_weights_of_which_few_or_many_are_there(part: float) -> None:
    rng = np.random.default_rng(1)
    weight = np.rint(rng.normal(0, 0.4, (5, 12)) * 4096) / 4096
    weight[rng.random(weight.shape) >= part] = 0.0
    weight[:, 3] = 0.0
    network = pair(rng, weight)
    same(ran(Emulator(), network, record=LOGGED), ran(None, network, record=LOGGED))


def test_sparse_weights_take_the_room_of_what_is_there() -> None:
    weight = np.zeros((5, 12))
    weight[2, 7] = 0.5
    tables = packed.tabulate(pair(np.random.default_rng(0), weight))
    assert tables.packed.words.size == 2
    assert not tables.packed.weights.size


def dtypes(network: SpikingNetwork, current: Array) -> list[str]:
    """Types of the state, the sums and the weights in which a network ran, which must agree."""
    used = []

    def noted(*arguments: Any) -> None:  # noqa: ANN401
        flat, _, space, *_ = arguments
        used.append([array.dtype.name for array in (space.state, space.one, flat.weights)])
        emulate(*arguments)

    stimulus, once = Stimulus(3, {"a": current}, {}), free_only(steps=20, window=8)
    with patch.object(simulator, "emulate", noted):
        sink = MemorySink()
        got = Emulator().run(network, stimulus, once, record=LOGGED, sink=sink)
    right = MemorySink()
    want = load_backend("reference").run(network, stimulus, once, record=LOGGED, sink=right)
    same(CaseRun(got, sink.recordings), CaseRun(want, right.recordings))
    return list(used[-1])


def test_formats_are_as_short_as_they_are_exact() -> None:
    def drawn(weight: Array | None = None) -> SpikingNetwork:
        """Biases are multiples of 1/64."""
        network = pair(np.random.default_rng(0), weight)
        rounded = [replace(p, bias=np.rint(64 * p.bias) / 64) for p in network.populations]
        return replace(network, populations=tuple(rounded))

    network, current = drawn(), np.linspace(-0.5, 0.5, 36).reshape(3, 12)
    on_grid = np.rint(current * 4096) / 4096
    short, whole, long = ["float32"] * 3, ["float64", "int32", "int16"], ["float64"] * 3
    assert dtypes(network, on_grid) == short
    assert dtypes(network, current) == whole  # currents that are on no grid
    assert dtypes(network, 1e6 + on_grid) == whole  # too large for 24 bits
    leaky = tuple(
        replace(p, neuron=replace(INTEGRATOR, voltage_decay=0.1)) for p in network.populations
    )
    assert dtypes(replace(network, populations=leaky), on_grid) == whole
    fine = drawn(np.full((5, 12), 2.0**-20 + 0.5))
    assert dtypes(fine, on_grid) == long  # weights of 20 bits
    large = drawn(np.full((5, 12), 2.0**40))
    assert dtypes(large, on_grid) == whole  # 16 bits of a coarse grid


def test_the_tables_of_a_network_are_kept_until_it_changes() -> None:
    backend, network = Emulator(), pair(np.random.default_rng(0))
    ran(backend, network)
    (first,) = backend.known
    ran(backend, network)
    assert backend.known[0] is first
    network.projections[0].weight[:] *= -1
    same(ran(backend, network), ran(None, network))
    network.populations[1].bias[:] += 0.5
    same(ran(backend, network), ran(None, network))
    assert len(backend.known) == 1


def test_large_runs_are_done_in_parts() -> None:
    network = pair(np.random.default_rng(0))
    whole = ran(Emulator(), network, record=LOGGED, samples=7)
    for word, size in (("ROOM", 40 * 20 * 2), ("WORK", 17 * 20 * 3), ("WORK", 1), ("ROOM", 1)):
        with patch.object(simulator, word, size):
            same(ran(Emulator(), network, record=LOGGED, samples=7), whole)


def test_recordings_are_not_written_over() -> None:
    network = pair(np.random.default_rng(0))
    with patch.object(simulator, "ROOM", 1):
        first = ran(Emulator(), network, record=LOGGED).recordings
    assert all(array.base is None for array in first[0].spikes.values())


def test_no_samples_give_empty_results() -> None:
    network = pair(np.random.default_rng(0))
    run = ran(Emulator(), network, samples=0)
    assert run.result.firing["a"].shape == (0, 1, 12)
    assert not run.recordings


@pytest.mark.parametrize(
    ("record", "match"),
    [
        (Record(frozenset({"c"}), frozenset()), "unknown population to record 'c'"),
        (Record(frozenset(), frozenset({("a", "state")})), "unknown variable of 'a' 'state'"),
    ],
)
def test_what_cannot_be_recorded_is_refused(record: Record, match: str) -> None:
    with pytest.raises(UnknownNameError, match=match):
        ran(Emulator(), pair(np.random.default_rng(0)), record=record)


def test_a_stimulus_that_does_not_fit_is_refused() -> None:
    network = pair(np.random.default_rng(0))
    stimulus = Stimulus(1, {"a": np.zeros((1, 5))}, {})
    once = free_only(steps=1, window=1)
    with pytest.raises(ValueError, match="'a' has 5 columns"):
        Emulator().run(network, stimulus, once, record=NOTHING, sink=MemorySink())


def test_all_networks_share_few_compiled_functions() -> None:
    """Compiling takes seconds: once a number format, kinds of neurons, and with convolutions."""
    before = set(emulate.signatures)  # type: ignore[attr-defined]
    for number in range(4):
        case = draw_case(4, number)
        run_case(load_backend("emulator"), case)
        network, _ = quantise(case.network, Rounding(8))
        run_case(load_backend("emulator"), replace(case, network=network))
    ran(Emulator(), pair(np.random.default_rng(0)))
    signatures = emulate.signatures  # type: ignore[attr-defined]
    assert len(signatures) >= 2
    assert len(set(signatures) - before) <= 3 * 3 * 2
    given = [each for one in signatures for part in one for each in getattr(part, "types", [part])]
    arrays = [each for each in given if hasattr(each, "dtype")]
    assert arrays
    assert all(each.mutable for each in arrays)


HITS = """
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.simulators.testing import CASES
from neuro_eqprop.simulators.testing.case import run_case
run_case(load_backend("emulator"), CASES[0])
from neuro_eqprop.simulators.emulator.kernels import emulate
print(sum(emulate.stats.cache_hits.values()), sum(emulate.stats.cache_misses.values()))
"""


def test_the_machine_code_is_found_again_by_the_next_process() -> None:
    run_case(load_backend("emulator"), CASES[0])
    done = subprocess.run([sys.executable, "-c", HITS], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "0"]


def test_a_run_that_does_not_fit_is_refused_with_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    from neuro_eqprop.simulators.emulator import memory

    network = pair(np.random.default_rng(0))
    needed = memory.emulator_memory(network, samples=3)
    monkeypatch.setattr(memory, "available_memory", lambda: needed - 1)
    stimulus, once = Stimulus(3, {}, {}), free_only(steps=1, window=1)
    with pytest.raises(BackendError, match=r"needs 0\.0 GB .* 3 samples, and 0\.0 GB are free"):
        Emulator().run(network, stimulus, once, record=NOTHING, sink=MemorySink())
    monkeypatch.setattr(memory, "available_memory", lambda: needed)
    Emulator().run(network, stimulus, once, record=NOTHING, sink=MemorySink())
