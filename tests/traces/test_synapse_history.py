"""Synapse histories computed from the activity of both ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.dynamics.schedules import Phase, free_only
from neuro_eqprop.simulators.recordings import MemorySink, Record, RecordingPlan
from neuro_eqprop.simulators.synapse_recording import COLUMNS, Weights
from neuro_eqprop.spiking.activity import ActivityKind
from neuro_eqprop.traces.compare import hebbian_update
from neuro_eqprop.traces.synapse_history import (
    SynapseRecorder,
    activity,
    synapse_logs,
    synapse_logs_of_trace,
    tags,
)
from neuro_eqprop.traces.trace import Trace

PHASES = (Phase("free", 0.0, 2, 1), Phase("low", -0.5, 3, 2), Phase("high", 0.5, 2, 2))
SYNAPSES = ((1, 3), (4, 0), (9, 23))


def test_tags_gather_the_contrast_inside_the_windows() -> None:
    product = np.arange(1, 8, dtype=np.float64).reshape(1, 7, 1)
    # Contrast: 0, -1, +1; windows of 1, 2, 2 steps.
    wanted = [0.0, 0.0, 0.0, -2.0, -4.5, -4.5 + 3.0, -4.5 + 6.5]
    np.testing.assert_allclose(tags(product, PHASES)[0, :, 0], wanted)


def test_without_two_betas_nothing_is_gathered() -> None:
    assert not tags(np.ones((1, 4, 2)), free_only(steps=4, window=3)).any()


@pytest.mark.parametrize("kind", ["rate", "spikes", "graded"])
def test_activity_ends_each_phase_at_the_rate(kind: str, episode: Mapping[str, Trace]) -> None:
    trace = episode[kind]
    found = activity(trace.time_course("hidden"), trace.kinds["hidden"], trace.schedule)
    assert found.shape == (6, 192, 24)
    for phase in trace.schedule:
        end = trace.span(phase.name)[2] - 1
        np.testing.assert_allclose(found[:, end], trace.rate("hidden", phase.name), atol=1e-12)


@pytest.mark.parametrize(("kind", "near"), [("rate", 0.02), ("graded", 0.05), ("spikes", 0.2)])
def test_the_last_tag_is_the_change_that_is_asked_for(
    kind: str, near: float, episode: Mapping[str, Trace]
) -> None:
    trace = weighted(episode[kind])
    everything = [(t, s) for t in range(10) for s in range(24)]
    result = synapse_logs_of_trace(trace, "hidden->output", everything)
    total = sum(log.tag[-1] for log in result)
    wanted = hebbian_update(trace, "hidden->output").ravel()
    # Not quite: windows reach back into the settling.
    assert np.abs(total - wanted).max() < near * np.abs(wanted).max()
    assert np.corrcoef(total, wanted)[0, 1] > 0.95


def weighted(trace: Trace) -> Trace:
    weights = {
        "hidden->output": Weights(np.arange(240, dtype=np.float64).reshape(10, 24)),
        "input->hidden": Weights(np.zeros((24, 64))),
    }
    return replace(trace, weights=weights)


def plan_of(trace: Trace) -> RecordingPlan:
    sizes = {"hidden": 24, "output": 10}
    weights = {name: each.before for name, each in weighted(trace).weights.items()}
    watched = {"hidden->output": SYNAPSES, "input->hidden": ((2, 63),)}
    return RecordingPlan(
        trace.origin,
        trace.schedule,
        trace.kinds,
        sizes,
        trace.connections,
        trace.index,
        trace.label,
        trace.inputs,
        Record(hebbian=watched),
        weights,
    )


@pytest.mark.parametrize("kind", ["rate", "spikes", "graded"])
def test_sample_by_sample_it_is_the_same(kind: str, episode: Mapping[str, Trace]) -> None:
    trace, memory = weighted(episode[kind]), MemorySink()
    plan = plan_of(trace)
    for k in range(6):
        SynapseRecorder(memory, plan).sample(k, trace.recording(k))
    for name, synapses in plan.record.hebbian.items():
        for k, wanted in enumerate(synapse_logs_of_trace(trace, name, synapses)):
            found = memory.recordings[k].hebbian[name]
            assert found.synapses == tuple(synapses)
            for column in COLUMNS:
                np.testing.assert_allclose(
                    getattr(found, column), getattr(wanted, column), atol=1e-12
                )
    inputs = memory.recordings[5].hebbian["input->hidden"]
    np.testing.assert_array_equal(inputs.pre[:, 0], np.full(192, trace.inputs[5, 63]))
    held = memory.recordings[0].hebbian["hidden->output"]
    assert held.weight[7].tolist() == [27.0, 96.0, 239.0]


def test_recorded_histories_of_a_simulator_are_kept(episode: Mapping[str, Trace]) -> None:
    trace, memory = weighted(episode["spikes"]), MemorySink()
    plan = plan_of(trace)
    zeros = np.zeros((1, 192, 24)), np.zeros((1, 192, 10))
    (own,) = synapse_logs(
        *zeros, synapses=SYNAPSES, weight=np.ones((10, 24)), schedule=trace.schedule
    )
    recording = replace(trace.recording(0), hebbian={"hidden->output": own})
    SynapseRecorder(memory, plan).sample(0, recording)
    assert memory.recordings[0].hebbian["hidden->output"] is own
    assert "input->hidden" in memory.recordings[0].hebbian


def test_a_connection_without_weights_is_named(episode: Mapping[str, Trace]) -> None:
    with pytest.raises(UnknownNameError, match="connection with weights 'a->b'"):
        synapse_logs_of_trace(weighted(episode["rate"]), "a->b", SYNAPSES)
    assert episode["rate"].kinds["hidden"] is ActivityKind.RATE
