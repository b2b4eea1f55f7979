"""The number of cores of each population, and the time of a step on them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from neuro_eqprop.chips.energy.core_work import core_work, queue_length
from neuro_eqprop.chips.energy.estimate import estimate_use
from neuro_eqprop.chips.energy.mapping import MappingGoal
from neuro_eqprop.chips.energy.monte_carlo import Draws
from neuro_eqprop.chips.energy.settings import EstimateSettings
from neuro_eqprop.chips.energy.time import Duration, duration
from neuro_eqprop.chips.placement import Placement, PlacementStatus, place
from neuro_eqprop.chips.profile import Profile
from neuro_eqprop.chips.profiles.load import load_profile
from neuro_eqprop.chips.workload import NetworkShape, PopulationShape, Workload, dense_projection
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


def seconds(workload: Workload, placement: Placement, profile: Profile) -> Duration:
    """Seconds of one inference by the timing model."""
    return duration(
        *(workload, placement, profile, Draws(0, 1)), learning=False, clock=None, step_seconds=None
    )


@pytest.fixture(scope="module")
def loihi() -> Profile:
    return load_profile("loihi1")


def test_more_cores_shorten_the_step_and_save_idle_energy(loihi: Profile) -> None:
    found = {
        goal: estimate_use(work(), loihi, EstimateSettings(mapping=goal), learning=False)
        for goal in MappingGoal
    }
    joules = {goal: each.joules.nominal for goal, each in found.items() if each.joules}
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
    mean = seconds(work(), placement, loihi)
    steps = seconds(work(recorded), placement, loihi)
    assert steps.nominal > mean.nominal
    assert "each recorded step" in steps.description
    # Spread evenly over neurons and steps, recorded steps and the mean agree.
    even = {name: np.ones((STEPS, each.shape[1]), np.int64) for name, each in recorded.items()}
    flat = seconds(work(even), placement, loihi)
    assert flat.nominal == pytest.approx(mean.nominal, rel=0.02)


def test_the_work_of_all_cores_is_that_of_the_network(loihi: Profile) -> None:
    workload = work()
    placement = place(workload.shape, loihi, at_least={"hidden": 8})
    events = core_work(workload, placement, loihi, learning=False).events
    total = {
        key: sum(float(part[key].sum()) for part in events.values() if key in part) * STEPS
        for key in ("time.synop", "time.message_in", "time.neuron_spiking", "time.message_out")
    }
    counted = sum(workload.counts.values(), Counts())
    assert total["time.synop"] == pytest.approx(counted.synops / SAMPLES)
    assert total["time.neuron_spiking"] == pytest.approx(160 + 8)
    assert total["time.message_in"] == pytest.approx(800 * 8 + 160 + 8 * 8)
    assert total["time.message_out"] == pytest.approx(160 + 8 * 8)


def test_the_barrier_grows_with_chips(loihi: Profile) -> None:
    workload = work()
    one = place(workload.shape, loihi)
    many = replace(one, chips=16)
    short, long = (seconds(workload, p, loihi) for p in (one, many))
    assert long.nominal - short.nominal == pytest.approx(STEPS * 4 * 1.5e-6, rel=1e-3)


def test_a_message_waits_in_the_queue_of_a_busy_link() -> None:
    messages, step = np.array([0.0, 1.0, 50.0, 50.0, 100.0]), np.array([100.0] * 4 + [101.0])
    waits = queue_length(messages, 1.0, step)
    # Utilisation 0, 0.01, 0.5, 0.5 and 0.99: rho / (2 (1 - rho)), at most half of the others.
    assert waits == pytest.approx([0.0, 0.0, 0.5, 0.5, 49.5])
    assert queue_length(np.array([10.0]), 1.0, np.array([10.0])) == pytest.approx([4.5])


def test_busy_links_lengthen_a_step(loihi: Profile) -> None:
    workload, placement = work(), place(work().shape, loihi, at_least={"hidden": 40})
    found = core_work(workload, placement, loihi, learning=False)
    times = {key: q.value for key in loihi.entries if (q := loihi.known(key)) is not None}
    times = {**dict.fromkeys(loihi.entries, 0.0), **times}
    calm = found.slowest(times)
    busy = replace(found, links={key: 1e4 * n for key, n in found.links.items()}).slowest(times)
    assert busy["time.hop_ew"] > calm["time.hop_ew"] >= found.hops["time.hop_ew"]
