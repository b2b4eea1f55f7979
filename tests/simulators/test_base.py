"""Finding a backend by its name, and counting events."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.simulators.base import EVERYTHING, Feature, Support, check_record, kinds, tally
from neuro_eqprop.simulators.biology.dale import merge_pairs, pair_stimulus, paired
from neuro_eqprop.simulators.recordings import NOTHING, Counts, Record
from neuro_eqprop.simulators.registry import BACKENDS, load_backend
from neuro_eqprop.simulators.testing import draw_case
from neuro_eqprop.simulators.testing.case import Case, CaseRun, run_case
from neuro_eqprop.spiking.activity import ActivityKind


def test_an_unknown_backend_lists_the_known_ones_closest_first() -> None:
    with pytest.raises(UnknownNameError) as unknown:
        load_backend("brain2")
    message = str(unknown.value)
    assert message.startswith("unknown backend 'brain2'; known: brian2, ")
    assert all(name in message for name in BACKENDS)
    with pytest.raises(UnknownNameError, match="known: snntorch, "):
        load_backend("snn_torch")


@pytest.mark.parametrize("name", ["reference", "emulator", "brian2", "snntorch", "lava"])
def test_a_known_backend_is_loaded(name: str) -> None:
    backend = load_backend(name)
    assert backend.name == name
    assert (backend.support is EVERYTHING) == (name in ("reference", "emulator"))
    assert (Feature.FIXED_POINT in backend.support) == (name in ("reference", "emulator", "lava"))


@pytest.mark.parametrize(
    "name",
    [
        "reference",
        pytest.param("brian2", marks=pytest.mark.brian2),
        pytest.param("snntorch", marks=pytest.mark.snntorch),
    ],
)
def test_no_samples_come_to_nothing(name: str) -> None:
    case = draw_case(0, 0)
    empty = replace(case, stimulus=case.stimulus.take(0, 0))
    result = run_case(load_backend(name), empty).result
    for population in case.network.populations:
        assert result.messages[population.name].shape == (0, 3, population.size)
        assert result.firing[population.name].shape == (0, 3, population.size)


def test_support_holds_what_has_no_reason_against_it() -> None:
    support = Support({Feature.DELAY: "messages arrive at once"})
    assert Feature.DELAY not in support
    assert Feature.GRADED in support
    assert all(feature in EVERYTHING for feature in Feature)


def test_spikes_are_no_signal_and_other_names_are_refused() -> None:
    network = draw_case(0, 0).network
    name = network.populations[0].name
    signals = set(kinds(network)[name].variables) - {"spikes"}
    check_record(network, Record(frozenset({name}), frozenset((name, each) for each in signals)))
    for record in (
        Record(frozenset({"none"})),
        Record(signals=frozenset({("none", "drive")})),
        Record(signals=frozenset({(name, "spikes")})),
    ):
        with pytest.raises(UnknownNameError):
            check_record(network, record)


def test_kinds_say_how_a_rate_is_read() -> None:
    mixed = draw_case(0, 3)
    assert "mixed" in mixed.name
    assert set(kinds(mixed.network).values()) == {ActivityKind.SPIKES, ActivityKind.GRADED}
    assert set(kinds(draw_case(0, 0).network).values()) == {ActivityKind.SPIKES}


def phases(case: Case) -> list[tuple[str, int]]:
    """Of each step of a sample, the name of its phase and its number."""
    names = [phase.name for phase in case.schedule for _ in range(phase.steps)]
    return [(name, step) for step, name in enumerate(names)]


def by_hand(case: Case, run: CaseRun, population: str, phase: str) -> Counts:
    """One event after the other, one synapse after the other."""
    steps = spikes = synops = idle = 0
    for recording in run.recordings:
        for step in (step for name, step in phases(case) if name == phase):
            steps += 1
            for unit in range(case.network[population].size):
                if recording.spikes[population][step, unit] == 0:
                    idle += 1
                    continue
                spikes += 1
                for projection in case.network.projections:
                    if projection.source == population:
                        for target in range(projection.weight.shape[0]):
                            synops += projection.weight[target, unit] != 0
    fed = population in case.stimulus.current and phase == case.schedule[0].name
    macs = case.stimulus.host_macs * case.stimulus.samples if fed else 0
    return Counts(steps, spikes, synops, spikes, idle, macs)


@pytest.mark.parametrize("number", range(4))
def test_tally_equals_a_count_by_hand(number: int) -> None:
    case = draw_case(11, number)
    run = run_case(load_backend("reference"), case)
    counts = tally(case.network, case.stimulus, case.schedule, run.result)
    names = [population.name for population in case.network.populations]
    assert set(counts) == set(product(names, [phase.name for phase in case.schedule]))
    for population, phase in counts:
        assert counts[population, phase] == by_hand(case, run, population, phase)
    assert sum(each.synops for each in counts.values()) > 0


def test_work_of_the_host_is_booked_once() -> None:
    case = draw_case(0, 0)
    stimulus = replace(case.stimulus, host_macs=5)
    run = run_case(load_backend("reference"), case)
    counts = tally(case.network, stimulus, case.schedule, run.result)
    booked = {key: each.host_macs for key, each in counts.items() if each.host_macs}
    (fed,) = stimulus.current
    assert booked == {(fed, "free"): 5 * stimulus.samples}


def test_counts_add_up() -> None:
    total = sum((Counts(1, 2, 3, 4, 5, 6), Counts(10, 20, 30, 40, 50, 60)), Counts())
    assert total == Counts(11, 22, 33, 44, 55, 66)


def test_work_of_the_host_is_booked_once_for_several_populations() -> None:
    case = draw_case(0, 0)
    current = {p.name: np.zeros((2, p.size)) for p in case.network.populations}
    stimulus = replace(case.stimulus, current=current, host_macs=5)
    run = run_case(load_backend("reference"), case)
    counts = tally(case.network, stimulus, case.schedule, run.result)
    assert sum(each.host_macs for each in counts.values()) == 10


def test_pairs_that_obey_dales_law_are_counted_as_the_neurons_they_are() -> None:
    case = draw_case(0, 0)
    assert Feature.GRADED not in case.needs
    network, stimulus = paired(case.network), pair_stimulus(case.stimulus)
    twice = replace(case, network=network, stimulus=stimulus, record=NOTHING)
    result = run_case(load_backend("reference"), twice).result
    want = tally(network, stimulus, case.schedule, result)
    assert tally(case.network, case.stimulus, case.schedule, merge_pairs(result)) == want
