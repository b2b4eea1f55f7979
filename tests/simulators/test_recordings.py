"""What was recorded, of rates and of spikes alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.dynamics.schedules import Phase
from neuro_eqprop.simulators.recordings import (
    LAYOUT_BYTES,
    Counts,
    MemorySink,
    Origin,
    Record,
    Recording,
    RecordingPlan,
    SpikeTrain,
    parse_record,
)
from neuro_eqprop.spiking.activity import ActivityKind
from neuro_eqprop.traces.trace import Trace

ORIGIN = Origin("reference", "0", {}, 0, "", "")
PHASES = (Phase("free", 0.0, 4, 3), Phase("nudged", 0.5, 2, 2))


def tiny(kind: ActivityKind, value: float = 1.0) -> Trace:
    """Two samples of six steps, one unit that speaks at steps 1, 3 and 5 of the second sample."""
    train = SpikeTrain(np.array([7, 9, 11]), np.zeros(3, int), np.full(3, value), 1)
    return Trace(
        ORIGIN,
        PHASES,
        {"p": kind},
        (),
        np.arange(2),
        np.zeros(2, int),
        np.zeros((2, 1)),
        {"p": train},
        {},
        {},
    )


def test_span_says_where_phase_and_window_lie() -> None:
    assert tiny(ActivityKind.SPIKES).span("free") == (0, 1, 4)
    assert tiny(ActivityKind.SPIKES).span("nudged") == (4, 4, 6)
    with pytest.raises(UnknownNameError, match="phase"):
        tiny(ActivityKind.SPIKES).span("absent")


def test_rate_of_spikes_is_their_mean_over_the_window() -> None:
    trace = tiny(ActivityKind.SPIKES)
    assert trace.rate("p", "free").tolist() == [[0.0], [2 / 3]]
    assert trace.rate("p", "nudged").tolist() == [[0.0], [1 / 2]]


def test_rate_of_messages_is_the_mean_of_their_sum() -> None:
    trace = tiny(ActivityKind.GRADED, value=0.25)
    assert trace.time_course("p")[1, :, 0].tolist() == [0.0, 0.25, 0.25, 0.5, 0.5, 0.75]
    assert trace.rate("p", "free")[1, 0] == pytest.approx((0.25 + 0.25 + 0.5) / 3)


def test_rate_of_a_signal_is_its_last_value() -> None:
    values = np.arange(12, dtype=np.float64)[:, None]
    trace = replace(tiny(ActivityKind.RATE), signals={("p", "rate"): values}, spikes={})
    assert trace.rate("p", "free").tolist() == [[3.0], [9.0]]
    assert trace.running_rate("p", "nudged")[:, :, 0].tolist() == [[4.0, 5.0], [10.0, 11.0]]


@given(steps=st.integers(1, 40), window=st.integers(1, 40), seed=st.integers(0, 99))
def test_running_rate_ends_in_the_rate(steps: int, window: int, seed: int) -> None:
    phases = (Phase("free", 0.0, 3, 1), Phase("nudged", 1.0, steps, min(window, steps)))
    raster = np.random.default_rng(seed).integers(0, 2, (steps + 3, 2))
    step, unit = np.nonzero(raster)
    train = SpikeTrain(step, unit, np.ones(len(step)), 2)
    trace = replace(
        tiny(ActivityKind.SPIKES),
        schedule=phases,
        spikes={"p": train},
        index=np.zeros(1, int),
        label=np.zeros(1, int),
        inputs=np.zeros((1, 1)),
    )
    running = trace.running_rate("p", "nudged")
    np.testing.assert_allclose(running[:, -1], trace.rate("p", "nudged"), rtol=1e-12)
    assert running[0, 0].tolist() == raster[3].tolist()


@pytest.mark.parametrize("kind", [ActivityKind.RATE, ActivityKind.SPIKES])
def test_what_was_not_recorded_is_named(kind: ActivityKind) -> None:
    trace = replace(tiny(kind), spikes={})
    with pytest.raises(ValueError, match="'p' w"):
        trace.time_course("p")


def test_gather_keeps_what_the_simulator_sent(episode: dict[str, Trace]) -> None:
    trace = episode["spikes"]
    assert set(trace.time_course("hidden").ravel()) == {0.0, 1.0}
    sent = sum(trace.counts["hidden", phase.name].spikes for phase in trace.schedule)
    assert sent == len(trace.spikes["hidden"].step) > 0


def test_recording_gives_back_a_sample(episode: dict[str, Trace]) -> None:
    trace = episode["graded"]
    sent = np.stack([trace.recording(k).spikes["output"] for k in range(len(trace.index))])
    np.testing.assert_array_equal(np.cumsum(sent, axis=1), trace.time_course("output"))
    state = trace.recording(2).signals["output", "state"]
    np.testing.assert_allclose(state, trace.time_course("output")[2], atol=2.0**-9)


def test_memory_refuses_samples_out_of_order() -> None:
    with pytest.raises(ValueError, match="sample 1 arrived where 0 was expected"):
        MemorySink().sample(1, Recording({}, {}))


def test_counts_add_up() -> None:
    assert Counts(1, 2, 3, 4, 5, 6) + Counts(steps=1) == Counts(2, 2, 3, 4, 5, 6)


def test_choose_adds_to_what_rates_are_read_from() -> None:
    kinds = {"hidden": ActivityKind.SPIKES, "out": ActivityKind.RATE}
    assert parse_record([], kinds) == Record(frozenset({"hidden"}), frozenset({("out", "rate")}))
    more = parse_record(["hidden:voltage", "hidden:spikes"], kinds)
    assert more.signals == {("out", "rate"), ("hidden", "voltage")}


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("hiddn:voltage", "known: hidden"),
        ("hidden:state", "known: spikes, voltage|known: voltage"),
        ("hidden", "population:variable"),
    ],
)
def test_choose_names_what_is_known(word: str, message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        parse_record([word], {"hidden": ActivityKind.SPIKES})


def plan(**changed: object) -> RecordingPlan:
    good = RecordingPlan(
        ORIGIN,
        PHASES,
        {"p": ActivityKind.SPIKES},
        {"p": 5},
        (),
        np.arange(2),
        np.zeros(2, int),
        np.zeros((2, 3)),
        Record(frozenset({"p"}), frozenset({("p", "voltage")})),
    )
    return replace(good, **changed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("sizes", {}, "differ"),
        ("schedule", (), "needs phases"),
        ("schedule", (PHASES[0], PHASES[0]), "its own name"),
        ("label", np.zeros(1, int), "every sample"),
        ("inputs", np.zeros(2), "every sample"),
        ("record", Record(frozenset({"q"})), "unknown population to record 'q'"),
    ],
)
def test_plan_refuses(field: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan(**{field: value})


def test_the_current_is_another_name_for_the_drive() -> None:
    kinds = {"hidden": ActivityKind.SPIKES}
    assert parse_record(["hidden:current"], kinds) == parse_record(["hidden:drive"], kinds)


def test_plan_has_an_upper_bound_on_its_bytes() -> None:
    result = plan()
    fixed = LAYOUT_BYTES + result.inputs.nbytes + 8 * result.steps
    assert result.most_bytes == fixed + 2 * 6 * 5 * (8 + 4 + 2 + 1)


def test_gather_runs_steps_on_over_samples() -> None:
    sent = np.zeros((6, 5))
    sent[2, 4] = 1.0
    one = Recording({"p": sent}, {("p", "voltage"): np.ones((6, 5))})
    trace = Trace.from_recordings(plan(), [one, one], {})
    assert trace.spikes["p"].step.tolist() == [2, 8]
    assert trace.signals["p", "voltage"].shape == (12, 5)
