"""Changes of synapses against the lags of their spikes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.dynamics.schedules import Phase, three_phase, two_phase
from neuro_eqprop.traces.spike_timing import (
    Sums,
    activity_trace,
    change_of_beta,
    later_weights,
    pair_kernel,
    stdp_window,
)
from neuro_eqprop.traces.synapse_history import factor_of_steps
from neuro_eqprop.traces.trace import Trace

TAU = 8.0
KEEP = float(np.exp(-1.0 / TAU))


@pytest.fixture(scope="module")
def learned() -> Trace:
    """A run that learns the digits with binary spikes, its first 50 samples."""
    model = ne.learn_on_chip(
        "layered",
        "digits",
        hidden=(16,),
        code="rate",
        epochs=1,
        samples=50,
        beta=0.2,
        learning_rate=0.05,
        record=["input:spikes", "hidden->output:hebbian", "input->hidden:hebbian"],
    )
    assert model.trace is not None
    return model.trace.load()


@pytest.mark.parametrize("connection", ["input->hidden", "hidden->output"])
def test_tags_made_from_spikes_are_those_of_the_simulator(learned: Trace, connection: str) -> None:
    source, target = connection.split("->")
    log, steps = learned.hebbian[connection], learned.steps
    recorded = log.tag.reshape(learned.samples, steps, -1)[:, -1]
    r_pre, r_post = (activity_trace(learned.time_course(n), KEEP) for n in (source, target))
    tags = np.einsum("sti,t,stj->sij", r_post, factor_of_steps(learned.schedule), r_pre)
    made = np.stack([tags[:, row, column] for row, column in log.synapses], axis=1)
    assert np.abs(recorded).max() > 0.01
    np.testing.assert_allclose(made, recorded, atol=1e-12)


def test_a_tag_is_the_sum_over_pairs_of_the_symmetric_kernel(learned: Trace) -> None:
    pre, post = learned.time_course("hidden")[0], learned.time_course("output")[0]
    factors = factor_of_steps(learned.schedule)
    later = later_weights(factors, KEEP)
    tag = np.zeros((post.shape[1], pre.shape[1]))
    for i, j in np.ndindex(tag.shape):
        for t in np.flatnonzero(pre[:, j]):
            for u in np.flatnonzero(post[:, i]):
                tag[i, j] += KEEP ** abs(u - t) * later[max(t, u)]
    r_pre, r_post = (activity_trace(x[None], KEEP)[0] for x in (pre, post))
    np.testing.assert_allclose(tag, np.einsum("ti,t,tj->ij", r_post, factors, r_pre), atol=1e-12)
    lags = np.arange(-learned.steps + 1, learned.steps)
    sums = Sums(lags, stdp_window(lags, TAU), pair_kernel(lags, TAU))
    sums.decompose(pre, post, tag, later, KEEP)
    assert sums.grown[0].sum() == pytest.approx(tag[tag > 0].mean())
    assert sums.shrunk[0].sum() == pytest.approx(tag[tag < 0].mean())


def test_the_stdp_window_predicts_the_change_and_the_symmetric_kernel_does_not(
    learned: Trace,
) -> None:
    found = ne.spike_timing(learned, "hidden->output", tau=TAU)
    assert found.window_pearson is not None
    assert found.kernel_pearson is not None
    assert found.window_pearson > 0.9
    assert (found.window_sign or 0.0) > 0.9
    assert abs(found.kernel_pearson) < 0.5
    right, left = found.change[found.lag > 0], found.change[found.lag < 0]
    assert right.mean() > 0.0 > left.mean()
    assert found.odd_share > 0.9
    assert found.odd_share_of_pairs < 0.1  # pairs themselves act without regard to their order
    axes = found.plot()
    assert axes.get_xlabel() == "post spike after pre spike (ms)"
    np.testing.assert_array_equal(axes.lines[2].get_ydata(), found.change)
    assert found.to_json()["samples"] == 50


def test_shuffled_spikes_show_no_timing(learned: Trace) -> None:
    """The curve can fail: with output spikes of another sample it is flat."""
    train = learned.spikes["output"]
    moved = (train.step + 7 * learned.steps) % (learned.samples * learned.steps)
    order = np.argsort(moved, kind="stable")
    other = replace(train, step=moved[order], unit=train.unit[order])
    pairs = ne.spike_timing(learned, "hidden->output", tau=TAU)
    shifted = replace(learned, spikes={**learned.spikes, "output": other}, hebbian={})
    r_pre = activity_trace(learned.time_course("hidden"), KEEP)
    r_post = activity_trace(learned.time_course("output"), KEEP)
    tags = np.einsum("sti,t,stj->sij", r_post, factor_of_steps(learned.schedule), r_pre)
    onset, _ = change_of_beta(learned.schedule)
    sums = Sums(pairs.lag, stdp_window(pairs.lag, TAU), pair_kernel(pairs.lag, TAU))
    for k, tag in enumerate(tags):
        window = slice(onset - pairs.around, onset + pairs.around)
        sums.add(shifted.time_course("hidden")[k], shifted.time_course("output")[k], tag, window)
    found = np.corrcoef(np.ravel(sums.by_window), tags.ravel())[0, 1]
    assert abs(found) < 0.5 * float(pairs.window_pearson or 0.0)


def test_the_change_of_beta_lies_between_the_phases_that_are_compared() -> None:
    assert change_of_beta(three_phase(beta=0.5, free=8, nudged=6)) == (14, 1.0)
    assert change_of_beta(two_phase(beta=0.5, free=8, nudged=6)) == (8, 1.0)
    assert change_of_beta(two_phase(beta=-0.5, free=8, nudged=6)) == (8, -1.0)
    with pytest.raises(ValueError, match="no two phases in a row"):
        change_of_beta((Phase("free", 0.0, 8, 4),))


def test_traces_without_the_needed_spikes_are_refused(learned: Trace) -> None:
    with pytest.raises(ValueError, match="joins no layers of this trace"):
        ne.spike_timing(learned, "hidden->there")
    without = replace(learned, spikes={"hidden": learned.spikes["hidden"]})
    with pytest.raises(ValueError, match="record input:spikes"):
        ne.spike_timing(without, "input->hidden")
    with pytest.raises(ValueError, match="give the `tau` of the run"):
        ne.spike_timing(learned, "hidden->output", tau=2.0)
    with pytest.raises(ValueError, match="lags of 90 steps do not fit"):
        ne.spike_timing(learned, "hidden->output", most=90)
