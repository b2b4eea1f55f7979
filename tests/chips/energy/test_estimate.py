"""Joules: terms, ranges, unknowns, boundaries, and the comparison with dense machines."""

from __future__ import annotations

from dataclasses import replace
from math import log, log2

import numpy as np
import pytest

from neuro_eqprop.chips.boundary import Boundary
from neuro_eqprop.chips.energy.dense_reference import (
    Outcome,
    arithmetic_ratio,
    compare_with_references,
    dense_references,
)
from neuro_eqprop.chips.energy.estimate import NO_LEARNING, estimate_job
from neuro_eqprop.chips.energy.estimate_workload import estimate_chip
from neuro_eqprop.chips.energy.event_counts import Event, events_per_sample
from neuro_eqprop.chips.energy.interval import Interval, add, exactly
from neuro_eqprop.chips.energy.pareto import Point, best, front
from neuro_eqprop.chips.energy.settings import EstimateSettings
from neuro_eqprop.chips.energy.terms import AllInError, ChipWork
from neuro_eqprop.chips.energy.time import Clock, Duration, duration
from neuro_eqprop.chips.placement import place
from neuro_eqprop.chips.profile import Evidence, Overhead, Profile, Tier
from neuro_eqprop.chips.profiles.load import load_profile, load_profiles
from neuro_eqprop.chips.workload import NetworkShape, PopulationShape, Workload, dense_projection
from neuro_eqprop.dynamics.schedules import Phase
from neuro_eqprop.simulators.base import tally
from neuro_eqprop.simulators.recordings import Counts, MemorySink, Record
from neuro_eqprop.simulators.reference.simulator import Reference
from neuro_eqprop.spiking.ir import (
    Population,
    Projection,
    Reset,
    Spiking,
    SpikingNetwork,
    Stimulus,
)

SAMPLES, STEPS = 4, 10


def counts(size: int, spikes: int, fan_out: int, *, host: int = 0, learned: int = 0) -> Counts:
    """A population that sent so many spikes a sample."""
    sent = spikes * SAMPLES
    return Counts(
        steps=SAMPLES * STEPS,
        spikes=sent,
        synops=sent * fan_out,
        updates_active=sent,
        updates_idle=size * SAMPLES * STEPS - sent,
        host_macs=host * SAMPLES,
        weight_updates=learned * SAMPLES,
    )


def work(*, learned: int = 0, spikes: int = 100) -> Workload:
    """128 looped hidden units and 10 outputs, fed by currents of 64 inputs."""
    hidden, output = PopulationShape("hidden", 128), PopulationShape("output", 10)
    links = (
        dense_projection(hidden, output, bits=8),
        dense_projection(output, hidden, bits=8),
        dense_projection(hidden, hidden, bits=8),
    )
    events = {
        ("hidden", "free"): counts(128, spikes, 138, host=64 * 128),
        ("output", "free"): counts(10, 20, 128),
    }
    if learned:
        events["hidden", "nudged"] = counts(128, spikes, 138, learned=learned)
        events["output", "nudged"] = counts(10, 20, 128, learned=learned)
    shapes = NetworkShape((hidden, output), links, "output")
    return Workload(shapes, events, SAMPLES, STEPS, "current", 64 * 128 + 1280)


@pytest.fixture(scope="module")
def loihi() -> Profile:
    return load_profile("loihi1")


def given(seconds: float) -> Duration:
    return Duration(exactly(seconds), "given")


def test_every_term_is_events_times_cost_or_power_times_time(loihi: Profile) -> None:
    found = estimate_chip(work(), loihi, EstimateSettings(step_seconds=1e-3)).inference
    assert found.joules is not None
    nominal = {term.name: term.joules.value for term in found.terms}
    seconds = STEPS * 1e-3
    assert nominal == pytest.approx(
        {
            "idle after boot": 29.7e-3 * seconds,
            "loaded above idle": (96.3e-3 - 29.7e-3) * seconds,
            "neuron update": (138 * STEPS - 120) * 52e-12,
            "neuron spiking": 120 * 81e-12,
            "synop": (100 * 138 + 20 * 128) * 23.6e-12,
            "message": (100 * 2 + 20) * 111e-12,
            "input": 128 * 111e-12,
            "output": 10 * 111e-12,
        }
    )
    assert found.joules.value == pytest.approx(sum(nominal.values()))
    assert found.joules.low < found.joules.value < found.joules.high
    assert found.seconds is not None
    assert found.seconds.value == pytest.approx(seconds)
    assert found.energy_delay_product is not None
    assert found.energy_delay_product == pytest.approx(found.joules.value * seconds)


def test_what_has_no_price_is_listed_with_its_events_and_never_zero(loihi: Profile) -> None:
    found = estimate_chip(work(), loihi, EstimateSettings()).inference
    missing = {each.name: each.amount for each in found.missing}
    assert missing == {"barrier": STEPS}
    assert found.at_least
    assert "barrier" not in {term.name for term in found.terms}
    (priced,) = load_profiles(["loihi1"], ["loihi1.energy.barrier=1nJ"])
    more = estimate_chip(work(), priced, EstimateSettings()).inference
    assert found.joules is not None
    assert more.joules is not None
    assert more.joules.value - found.joules.value == pytest.approx(STEPS * 1e-9)


def test_loaded_idle_or_static_and_host_but_never_both(loihi: Profile) -> None:
    def powers(overhead: Overhead | None) -> set[str]:
        options = EstimateSettings(overhead=overhead)
        found = estimate_chip(work(), loihi, options).inference
        return {term.key for term in found.terms if term.key.startswith("power.")}

    assert powers(None) == {"power.idle_loaded"}
    assert powers(Overhead.LOADED_IDLE) == {"power.idle_loaded"}
    assert powers(Overhead.STATIC_AND_HOST) == {"power.static", "power.host"}


def test_soft_reset_doubles_the_updates(loihi: Profile) -> None:
    workload = work()
    for soft, factor in ((False, 1), (True, 2)):
        placement = place(workload.shape, loihi, soft_reset=soft)
        events = events_per_sample(workload, placement, loihi, learning=False)
        active, idle = events[Event.NEURON_ACTIVE], events[Event.NEURON_IDLE]
        assert active is not None
        assert idle is not None
        assert active + idle == factor * 138 * STEPS


def test_the_time_of_a_step_is_that_of_the_slowest_core(loihi: Profile) -> None:
    workload = work()
    placement = place(workload.shape, loihi)
    found = duration(workload, placement, loihi, learning=False)
    # The hidden core receives longer than it sends: its own spikes, and those of the output.
    synops = (100 * 128 + 20 * 128) / STEPS
    updates = 10 * 39.7e-9 + 118 * 9.7e-9
    received = synops * 3.5e-9 + (100 + 20) / STEPS * 16e-9
    assert received > updates + 2 * 100 / STEPS * 5.1e-9
    step = received + 600e-9
    assert found.seconds is not None
    assert found.seconds.value == pytest.approx(STEPS * step)
    tiled = place(workload.shape, loihi, at_least={"hidden": 64})
    wide = duration(workload, tiled, loihi, learning=False).seconds
    assert wide is not None
    # On 65 cores of 17 tiles the barrier has grown.
    assert 1.4e-6 + 140e-9 * log2(17 / 4) < wide.value / STEPS < step
    ticks = duration(workload, placement, loihi, learning=False, clock=Clock.TICK)
    assert ticks.seconds == exactly(STEPS * 1e-3)


def test_time_that_is_not_known_leaves_power_unknown() -> None:
    found = estimate_chip(work(), load_profile("spinnaker2"), EstimateSettings()).inference
    assert found.seconds is None
    assert found.energy_delay_product is None
    assert "static power" in [each.name for each in found.missing]
    assert found.boundary is Boundary.CORE_DYNAMIC


def test_every_total_is_the_sum_of_its_parts(loihi: Profile) -> None:
    found = estimate_chip(work(), loihi, EstimateSettings()).inference
    assert found.joules is not None
    assert sum(term.joules.value for term in found.terms) == pytest.approx(found.joules.value)
    assert sum(found.layers.values()) == pytest.approx(found.joules.value)
    assert found == estimate_chip(work(), loihi, EstimateSettings()).inference


def test_ranges_add_up_and_multiply_in_quadrature() -> None:
    one, other = Interval(2.0, 1.0, 4.0), Interval(3.0, 3.0, 3.0)
    assert add([one, other]) == Interval(5.0, 4.0, 7.0)
    assert one.times(other).low == pytest.approx(3.0)
    both = add([one, one])
    assert both.high - both.value == pytest.approx(2.0 * 2**0.5)
    wide = one.times(Interval(1.0, 0.5, 2.0))
    assert log(wide.high / wide.value) == pytest.approx(log(2.0) * 2**0.5)
    assert Interval(0.0, 0.0, 5.0).times(one).low == 0.0


def test_a_calibrated_chip_has_the_range_of_its_points_and_another_an_order_of_magnitude(
    loihi: Profile,
) -> None:
    settings = EstimateSettings(step_seconds=1e-5)
    found = estimate_chip(work(), loihi, settings).inference
    assert found.joules is not None
    assert found.tier is Tier.CALIBRATED
    assert found.joules.factor == pytest.approx(loihi.calibration["energy"].factor ** 2)
    (changed,) = load_profiles(["loihi1"], ["loihi1.energy.synop=30pJ"])
    other = estimate_chip(work(), changed, settings).inference
    assert other.joules is not None
    assert other.tier is Tier.ORDER_OF_MAGNITUDE
    assert other.joules.factor == pytest.approx(10.0)


def test_a_cost_inside_another_is_not_added_again() -> None:
    truenorth = load_profile("truenorth")
    events: dict[Event, float | None] = {
        Event.SYNOP: 1e6,
        Event.HOP_EW: 1e6,
        Event.NEURON_IDLE: 1e6,
    }
    found = estimate_job(ChipWork(events, given(1.0), 1), truenorth, EstimateSettings())
    assert [term.name for term in found.terms] == [
        "static power",
        "synop",
        "neuron update",
    ]
    assert any("energy.hop_ew is included in energy.synop" in each for each in found.included)
    assert not found.missing


def all_in_only() -> Profile:
    """TrueNorth as if its all-in cost were all that is known."""
    truenorth = load_profile("truenorth")
    entries = {key: e for key, e in truenorth.entries.items() if key == "energy.synop_all_in"}
    return replace(truenorth, entries=entries)


def test_an_all_in_cost_is_used_at_its_operating_point_alone() -> None:
    profile = all_in_only()
    at = 2.684e9
    found = estimate_job(ChipWork({Event.SYNOP: at}, given(1.0), 1), profile, EstimateSettings())
    assert found.joules is not None
    assert found.joules.value == pytest.approx(26e-12 * at)
    assert len(found.terms) == 1
    with pytest.raises(AllInError, match=r"holds at 2.684e\+09 synops.*truenorth"):
        estimate_job(ChipWork({Event.SYNOP: at}, given(2.0), 1), profile, EstimateSettings())
    unknown = Duration(None, "unknown")
    with pytest.raises(AllInError, match="time of this run is unknown"):
        estimate_job(ChipWork({Event.SYNOP: at}, unknown, 1), profile, EstimateSettings())


def test_a_chip_without_any_cost_has_no_joules_and_says_so() -> None:
    akida = load_profile("akida1000")
    able = {key: e for key, e in akida.entries.items() if not key.startswith("support.")}
    side = estimate_chip(work(), replace(akida, entries=able), EstimateSettings()).inference
    assert side.joules is None
    assert side.reason.startswith("unknown")
    assert len(side.missing) > 3


def test_a_network_that_does_not_fit_is_not_priced() -> None:
    side = estimate_chip(work(), load_profile("xylo_a2"), EstimateSettings()).inference
    assert side.joules is None
    assert side.reason.startswith("does not fit: a neuron of 'hidden' has 138 input synapses")


def test_a_scenario_without_its_factors_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"override loihi2_scenario\.scale, or loihi2_scenario\.scale\.energy"
    ):
        estimate_chip(work(), load_profile("loihi2_scenario"), EstimateSettings())


def test_boards_and_clocks_multiply_power() -> None:
    board = load_profile("spinnaker1")
    found = estimate_job(ChipWork({Event.SYNOP: 1.0}, given(2.0), 5), board, EstimateSettings())
    power = next(term for term in found.terms if term.key == "power.board")
    assert power.joules.value == pytest.approx(2 * 2.671 * 2.0)
    odin = load_profile("odin")
    job = ChipWork({Event.SYNOP: 1.0}, given(1.0), 1, clock_hz=1e6)
    clock = next(
        t for t in estimate_job(job, odin, EstimateSettings()).terms if t.key == "power.clock"
    )
    assert clock.joules.value == pytest.approx(1.78e-6)


def test_costs_of_another_operating_point_are_marked(loihi: Profile) -> None:
    found = estimate_chip(work(), loihi, EstimateSettings()).inference
    assert {term.operating_point for term in found.terms} == {""}
    other = EstimateSettings(overhead=Overhead.STATIC_AND_HOST)
    found = estimate_chip(work(), loihi, other).inference
    points = {term.name: term.operating_point for term in found.terms}
    assert points["static power"] == "supply not stated"
    assert points["synop"] == ""


def test_the_weakest_evidence_labels_the_estimate(loihi: Profile) -> None:
    found = estimate_chip(work(), loihi, EstimateSettings()).inference
    assert found.evidence is Evidence.QUOTED
    (mine,) = load_profiles(["loihi1"], ["loihi1.energy.synop=30pJ"])
    changed = estimate_chip(work(), mine, EstimateSettings()).inference
    assert changed.evidence is Evidence.GIVEN


def test_learning_that_was_not_counted_is_unknown_and_not_zero(loihi: Profile) -> None:
    side = estimate_chip(work(), loihi, EstimateSettings()).learning
    assert side.joules is None
    assert side.reason == NO_LEARNING


def test_learning_counts_all_phases_and_its_updates(loihi: Profile) -> None:
    made = estimate_chip(work(learned=1000), loihi, EstimateSettings(step_seconds=1e-5))
    free, both = made.inference, made.learning
    terms = {term.name: term.amount for term in both.terms}
    assert terms["weight update"] == 2000
    assert terms["synop"] == 2 * next(t.amount for t in free.terms if t.name == "synop")
    assert "weight update" not in {term.name for term in free.terms}
    assert made.learning.placement is not None
    assert made.learning.placement.cores is not None
    assert made.cores is not None
    assert made.learning.placement.cores >= made.cores


def test_subtotals_grow_with_the_boundary(loihi: Profile) -> None:
    found = estimate_chip(work(), loihi, EstimateSettings()).inference
    core, chip, total = (
        found.within[b].value
        for b in (Boundary.CORE_DYNAMIC, Boundary.CHIP_DYNAMIC, Boundary.CHIP_TOTAL)
    )
    assert core < chip < total
    assert found.boundary is Boundary.CHIP_TOTAL
    assert found.joules is not None
    assert total == found.joules.value


def test_a_run_without_events_is_refused() -> None:
    workload = work()
    with pytest.raises(ValueError, match="no events were counted"):
        replace(workload, counts={("hidden", "free"): Counts(steps=10)})
    with pytest.raises(ValueError, match="hold no events"):
        replace(workload, samples=0)
    with pytest.raises(ValueError, match="'other'"):
        replace(workload, counts={("other", "free"): counts(1, 1, 1)})


def test_a_silent_network_still_costs_its_updates_and_its_time(loihi: Profile) -> None:
    silent = work().scaled(0.0)
    assert silent.activity == 0.0
    found = estimate_chip(silent, loihi, EstimateSettings()).inference
    assert {term.name for term in found.terms} == {
        "idle after boot",
        "loaded above idle",
        "neuron update",
        "input",
        "output",
    }


def test_dense_references_state_their_batch() -> None:
    devices = [load_profile("gpu_k4000"), load_profile("mac45nm"), load_profile("loihi1")]
    found = dense_references(devices, macs=1000, batch=None)
    assert [each.batch for each in found] == [1, 8, 64]
    assert found[0].joules.value == pytest.approx(172e-6)
    assert found[0].joules.value / found[2].joules.value == pytest.approx(172 / 4.2, rel=0.01)
    with pytest.raises(ValueError, match="measured at a batch of 5, only at 1, 8, 64"):
        dense_references(devices, macs=1000, batch=5)


def test_arithmetic_is_a_ratio() -> None:
    synops = 100 * 138 + 20 * 128
    expected = 9472 * 4.6 / (synops * 0.9 + 8192 * 4.6)
    assert arithmetic_ratio(load_profile("mac45nm"), work()) == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"no energy\.mac"):
        arithmetic_ratio(load_profile("loihi1"), work())


def test_spikes_lose_or_win_inside_the_same_boundary(loihi: Profile) -> None:
    workload, options = work(), EstimateSettings(step_seconds=1e-6)
    found = estimate_chip(workload, loihi, options).inference
    cpu = dense_references([load_profile("cpu_e5_2630")], macs=workload.dense_macs, batch=None)
    host = workload.per_sample("host_macs")
    assert host == 8192
    at_one = compare_with_references(workload, loihi, found, cpu)[0]
    assert at_one.outcome is Outcome.WINS
    assert at_one.boundary is Boundary.CHIP_DYNAMIC
    own = found.within[Boundary.CHIP_DYNAMIC].value
    assert cpu[0].joules_per_mac is not None
    assert at_one.spiking == pytest.approx(own + host * cpu[0].joules_per_mac.value)
    slow = replace(options, step_seconds=1e-3)
    late = estimate_chip(workload, loihi, slow).inference
    lost = compare_with_references(workload, loihi, late, cpu)[0]
    assert lost.outcome is Outcome.LOSES
    assert "even without a single spike" in lost.sentence


def test_the_activity_at_which_spikes_stop_winning_is_where_the_joules_are_equal(
    loihi: Profile,
) -> None:
    workload, options = work(), EstimateSettings(step_seconds=1e-6)
    found = estimate_chip(workload, loihi, options).inference
    device = dense_references([load_profile("cpu_e5_2630")], macs=workload.dense_macs, batch=64)[0]
    (judged,) = compare_with_references(workload, loihi, found, [device])
    assert judged.stops_at is not None
    there = workload.scaled(judged.stops_at / workload.activity)
    again = estimate_chip(there, loihi, options).inference
    assert device.joules_per_mac is not None
    spent = again.within[Boundary.CHIP_DYNAMIC].value + 8192 * device.joules_per_mac.value
    assert spent == pytest.approx(device.joules.value, rel=0.02)


def test_across_boundaries_only_a_loss_is_reported(loihi: Profile) -> None:
    workload = work()
    gpu = dense_references([load_profile("gpu_k4000")], macs=workload.dense_macs, batch=64)[0]
    fast, slow = (
        EstimateSettings(step_seconds=1e-9),
        EstimateSettings(step_seconds=1e-3),
    )
    for options, outcome in ((fast, Outcome.REFUSED), (slow, Outcome.LOSES)):
        found = estimate_chip(workload, loihi, options).inference
        (judged,) = compare_with_references(workload, loihi, found, [gpu])
        assert judged.outcome is outcome
        assert judged.stops_at is None


def test_the_best_trade_is_the_cheapest_that_gives_up_little() -> None:
    points = [
        Point("rate", 16, 0.95, 1.0, 0.9, 1.1),
        Point("rate", 32, 0.975, 2.0, 1.9, 2.1),
        Point("rate", 64, 0.979, 4.0, 3.9, 4.1),
        Point("graded", 32, 0.97, 3.0, 2.9, 3.1),
    ]
    assert best(points).steps == 32
    assert [p.steps for p in front(points)] == [16, 32, 64]
    assert all(p.code == "rate" for p in front(points))
    with pytest.raises(ValueError, match="points is empty"):
        best([])


def test_synops_are_nonzero_weights_met_by_nonzero_messages() -> None:
    # NeuroBench's rule for effective accumulates, counted here step by step from the raster.
    generator = np.random.default_rng(0)
    neuron = Spiking(1.0, 0.0, 1.0, Reset.SUBTRACT, -1.0, 2.0)
    shape = {"a": 7, "b": 5}
    weights = {}
    for target, source in (("b", "a"), ("a", "b"), ("a", "a")):
        weight = generator.normal(size=(shape[target], shape[source]))
        weights[source, target] = np.where(generator.random(weight.shape) < 0.4, 0.0, weight)
    network = SpikingNetwork(
        1e-3,
        tuple(Population(n, neuron, generator.random(size) * 0.4) for n, size in shape.items()),
        tuple(Projection(s, t, weight) for (s, t), weight in weights.items()),
        "b",
    )
    stimulus = Stimulus(3, {}, {})
    schedule = (Phase("free", 0.0, 30, 10),)
    memory = MemorySink()
    result = Reference().run(
        network, stimulus, schedule, record=Record(frozenset(shape)), sink=memory
    )
    counted = tally(network, stimulus, schedule, result)
    for name in shape:
        operations = 0
        for recording in memory.recordings:
            for message in recording.spikes[name]:
                for (source, _), weight in weights.items():
                    if source == name:
                        operations += int(np.count_nonzero(weight[:, message != 0]))
        assert operations > 0
        assert counted[name, "free"].synops == operations
