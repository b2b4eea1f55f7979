"""The number of cores of each population, and the time of a step on them."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from neuro_eqprop.chips.energy.core_work import core_work
from neuro_eqprop.chips.energy.estimate import estimate_use
from neuro_eqprop.chips.energy.mapping import MappingGoal
from neuro_eqprop.chips.energy.sanafe import (
    ARCHITECTURE,
    NETWORK,
    SanafeError,
    sanafe_seconds,
    write_sanafe,
)
from neuro_eqprop.chips.energy.settings import EstimateSettings
from neuro_eqprop.chips.energy.time import Clock, Duration, duration
from neuro_eqprop.chips.placement import Placement, PlacementStatus, place
from neuro_eqprop.chips.profile import Profile
from neuro_eqprop.chips.profiles.load import load_profile
from neuro_eqprop.chips.workload import (
    NetworkShape,
    PopulationShape,
    ProjectionShape,
    Workload,
    dense_projection,
)
from neuro_eqprop.common.arrays import Ints
from neuro_eqprop.simulators.recordings import Counts

SAMPLES, STEPS = 2, 8


def work(by_step: dict[str, Ints] | None = None) -> Workload:
    """784 inputs as spikes, 256 hidden units and 10 outputs that feed back."""
    i, h, o = (
        PopulationShape("input", 784, off_chip=True),
        PopulationShape("hidden", 256),
        PopulationShape("output", 10),
    )
    ends = ((i, h), (h, o), (o, h))
    links = tuple(dense_projection(*pair, bits=8) for pair in ends)
    steps = SAMPLES * STEPS

    def counts(size: int, spikes: int, fan_out: int) -> Counts:
        total = spikes * SAMPLES
        return Counts(steps, total, total * fan_out, total, size * steps - total)

    counted = {
        ("input", "free"): counts(784, 800, 256),
        ("hidden", "free"): counts(256, 160, 10),
        ("output", "free"): counts(10, 8, 256),
    }
    shape = NetworkShape((i, h, o), links, "output")
    return Workload(shape, counted, SAMPLES, STEPS, "rate", 203_264, by_step or {})


def value(found: Duration) -> float:
    """The nominal seconds."""
    assert found.seconds is not None
    return found.seconds.value


def timed(workload: Workload, placement: Placement, profile: Profile) -> Duration:
    """The time of one inference by the timing model."""
    return duration(*(workload, placement, profile), learning=False)


@pytest.fixture(scope="module")
def loihi() -> Profile:
    return load_profile("loihi1")


def test_more_cores_shorten_the_step_and_save_idle_energy(loihi: Profile) -> None:
    found = {
        goal: estimate_use(work(), loihi, EstimateSettings(mapping=goal), learning=False)
        for goal in MappingGoal
    }
    joules = {goal: each.joules.value for goal, each in found.items() if each.joules}
    cores = {goal: each.placement.cores or 0 for goal, each in found.items() if each.placement}
    assert cores[MappingGoal.FEWEST_CORES] == 3
    assert cores[MappingGoal.FEWEST_CORES] < cores[MappingGoal.BALANCED]
    assert cores[MappingGoal.BALANCED] <= cores[MappingGoal.LEAST_ENERGY] <= 128
    assert joules[MappingGoal.LEAST_ENERGY] == min(joules.values())
    assert joules[MappingGoal.LEAST_ENERGY] < joules[MappingGoal.FEWEST_CORES] / 3
    for each in found.values():
        listed = {cost.mapping: cost.cores for cost in each.mappings}
        assert listed == {goal.value: number for goal, number in cores.items()}
        assert each.mapping in listed


def test_a_given_number_of_cores_is_used_and_too_few_are_refused(loihi: Profile) -> None:
    found = estimate_use(work(), loihi, EstimateSettings(cores=20), learning=False)
    assert found.placement is not None
    assert found.placement.cores == 20
    few = estimate_use(work(), loihi, EstimateSettings(cores=2), learning=False)
    assert few.placement is not None
    assert few.placement.status is PlacementStatus.DOES_NOT_FIT
    assert "at least 3 cores; 2 are given" in few.reason


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (EstimateSettings(cores=129, chips=1), "one chip has 128 cores, not 129; give fewer"),
        (EstimateSettings(cores=267), "the network can use at most 266 cores, not 267; give fewer"),
    ],
)
def test_more_cores_than_there_are_or_can_be_used_are_refused(
    loihi: Profile, settings: EstimateSettings, reason: str
) -> None:
    found = estimate_use(work(), loihi, settings, learning=False)
    assert found.reason == f"refused: {reason}"
    assert found.joules is None


def test_every_neuron_can_have_a_core_of_its_own(loihi: Profile) -> None:
    found = estimate_use(work(), loihi, EstimateSettings(cores=266), learning=False)
    assert found.placement is not None
    assert {each.neurons_per_core for each in found.placement.allocations} == {1}


def test_a_chip_with_a_tick_gains_nothing_from_more_cores() -> None:
    found = estimate_use(work(), load_profile("spinnaker1"), EstimateSettings(), learning=False)
    assert found.placement is not None
    assert found.placement.cores == place(work().shape, load_profile("spinnaker1")).cores


def test_the_slowest_core_of_each_step_is_slower_than_that_of_the_mean_step(
    loihi: Profile,
) -> None:
    rng = np.random.default_rng(0)
    recorded = {
        "input": (rng.random((STEPS, 784)) < 0.13).astype(np.int64),
        "hidden": np.zeros((STEPS, 256), dtype=np.int64),
        "output": np.zeros((STEPS, 10), dtype=np.int64),
    }
    # All spikes of the hidden layer in two of eight steps, in its first neurons.
    recorded["hidden"][::4, :40] = 1
    recorded["output"][:, 0] = 1
    placement = place(work().shape, loihi, at_least={"hidden": 8})
    mean = timed(work(), placement, loihi)
    steps = timed(work(recorded), placement, loihi)
    assert value(steps) > value(mean)
    assert "each recorded step" in steps.description
    # Spread evenly over neurons and steps, recorded steps and the mean agree.
    even = {name: np.ones((STEPS, each.shape[1]), np.int64) for name, each in recorded.items()}
    same = {name: np.ones((STEPS, 1), np.int64) for name in even}
    flat = timed(work(same), placement, loihi)
    assert value(flat) == pytest.approx(value(mean), rel=0.02)
    # Followed message by message, a step takes at least as long as its slowest core.
    followed = timed(work(even), placement, loihi)
    assert value(followed) >= 0.98 * value(flat)


def test_the_work_of_all_cores_is_that_of_the_network(loihi: Profile) -> None:
    workload = work()
    placement = place(workload.shape, loihi, at_least={"hidden": 8})
    found = core_work(workload, placement, loihi, learning=False)
    counted = sum(workload.counts.values(), Counts())
    messages = 800 * 8 + 160 + 8 * 8
    received = counted.synops / SAMPLES * 3.5e-9 + messages * 16e-9
    assert found.receive.sum() * STEPS == pytest.approx(received)
    sent = (160 + 8) * 39.7e-9 + (160 + 8 * 8) * 5.1e-9
    # Soft resets are off: each neuron has one compartment.
    idle = (266 * STEPS - 160 - 8) * 9.7e-9
    assert found.send.sum() * STEPS == pytest.approx(sent + idle)
    # Input is injected one message after the other.
    assert found.links[0] * STEPS == pytest.approx(800 * 8 * 5.1e-9)


def test_the_barrier_grows_with_chips(loihi: Profile) -> None:
    workload = work()
    one = place(workload.shape, loihi)
    many = replace(one, chips=16)
    short, long = (value(timed(workload, p, loihi)) for p in (one, many))
    assert long - short == pytest.approx(STEPS * 4 * 1.5e-6, rel=1e-3)


def test_a_core_that_feeds_one_core_after_the_other_is_held_up(loihi: Profile) -> None:
    """Rows that reach different cores take the sum over these, not the largest of them."""
    sizes, rows = (64, 256), 4
    a, b = PopulationShape("a", sizes[0]), PopulationShape("b", sizes[1])
    first = np.arange(sizes[0]) * rows // sizes[0] * (sizes[1] // rows)
    spans = np.stack([first, first + sizes[1] // rows - 1], axis=1)
    link = ProjectionShape("a", "b", 64 * 64, 16, 64, spans=spans)
    shape = NetworkShape((a, b), (link,), "b")
    fired = {"a": np.ones((2, 64), np.int64), "b": np.zeros((2, 256), np.int64)}
    counts = {
        ("a", "free"): Counts(2, 128, 128 * 64, 128, 0),
        ("b", "free"): Counts(2, 0, 0, 0, 512),
    }
    whole = Workload(shape, counts, 1, 2, "rate", 1, fired)
    placement = place(shape, loihi, at_least={"b": rows})
    work = core_work(whole, placement, loihi, learning=False)
    assert work.network is not None
    largest = work.busy.max()
    served = 16e-9 + 64 * 3.5e-9
    assert largest == pytest.approx(16 * served)
    # Each core in turn works through its messages while those of the next wait behind them.
    assert work.step_seconds()[0] > 2 * largest
    assert work.step_seconds()[0] < 1.1 * rows * largest


def test_neurons_without_bias_rest_until_a_spike_reaches_them(loihi: Profile) -> None:
    a, b = PopulationShape("a", 4), PopulationShape("b", 100, biased=False)
    shape = NetworkShape((a, b), (dense_projection(a, b, bits=8),), "b")
    spikes = np.zeros((4, 4), np.int64)
    spikes[2, 0] = 1
    fired = {"a": spikes, "b": np.zeros((4, 100), np.int64)}
    counts = {
        ("a", "free"): Counts(4, 1, 100, 1, 15),
        ("b", "free"): Counts(4, 0, 0, 0, 400),
    }
    whole = Workload(shape, counts, 1, 4, "rate", 1, fired)
    found = core_work(whole, place(shape, loihi), loihi, learning=False)
    assert found.send[:, 1] == pytest.approx([600e-9, 600e-9, 970e-9, 970e-9])


def test_busy_links_lengthen_a_step(loihi: Profile) -> None:
    workload, placement = work(), place(work().shape, loihi, at_least={"hidden": 40})
    found = core_work(workload, placement, loihi, learning=False)
    busy = replace(found, links=found.links + 1e-3)
    assert busy.step_seconds()[0] == pytest.approx(found.links[0] + 1e-3)
    assert found.step_seconds()[0] < 1e-3


def test_recorded_spikes_of_a_placed_network_are_files_of_sanafe(
    loihi: Profile, tmp_path: Path
) -> None:
    rng = np.random.default_rng(1)
    sizes = {"input": 784, "hidden": 256, "output": 10}
    recorded = {n: (rng.random((STEPS, k)) < 0.1).astype(np.int64) for n, k in sizes.items()}
    placement = place(work().shape, loihi, at_least={"hidden": 3})
    path = write_sanafe(tmp_path / "out", work(recorded), placement, loihi)
    network = (path / NETWORK).read_text()
    assert network.count(" -> ") == 784 * 256 + 2 * 256 * 10
    mapped = [line for line in network.splitlines() if "soma:" in line]
    assert len(mapped) == sum(sizes.values())
    cores = {line.partition("core: ")[2].partition(",")[0] for line in mapped}
    assert len(cores) == (placement.cores or 0) + 1  # one more for the input from outside
    spikes = [line for line in network.splitlines() if "spikes:" in line]
    assert sum(line.count("1,") + line.count("1]") for line in spikes) >= sum(
        int(each.sum()) for each in recorded.values()
    )
    assert "latency_process_spike: 3.5" in (path / ARCHITECTURE).read_text()
    with pytest.raises(SanafeError, match="those of 'input' were not recorded"):
        write_sanafe(tmp_path / "none", work(), placement, loihi)
    if find_spec("sanafe") is None:
        with pytest.raises(SanafeError, match="pip install sanafe"):
            sanafe_seconds(work(recorded), placement, loihi)
        found = estimate_use(
            work(recorded), loihi, EstimateSettings(clock=Clock.SANAFE), learning=False
        )
        assert found.reason.startswith("refused: SANA-FE is not installed")
