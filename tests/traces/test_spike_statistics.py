"""Spike statistics against Elephant, and the energy along settling."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuro_eqprop.api.run import open_run
from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.traces import spike_statistics as module
from neuro_eqprop.traces.compare import compare
from neuro_eqprop.traces.spike_statistics import (
    compare_trains,
    count_correlation,
    fano_factors,
    interval_variation,
    lag,
    layer_statistics,
    raster,
    repeats,
    settling_energy,
    spike_distance,
    spike_statistics,
    spike_times,
    train_distance,
)
from neuro_eqprop.traces.trace import Trace

elephant = pytest.mark.skipif(find_spec("elephant") is None, reason="elephant is not installed")


@elephant
@pytest.mark.filterwarnings("ignore:The 'copy' argument")  # of Elephant itself
def test_interval_variation_and_fano_factor_are_those_of_elephant(
    episode: dict[str, Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "elephant", lambda: None)
    statistics = pytest.importorskip("elephant.statistics")
    trace = episode["spikes"]
    segments = trace.to_neo().segments
    trains: dict[str, list[Any]] = {train.name: [] for train in segments[0].spiketrains}
    for segment in segments:
        for train in segment.spiketrains:
            trains[train.name].append(train)
    theirs = [
        statistics.cv(statistics.isi(train))
        for segment in segments
        for train in segment.spiketrains
        if train.name.startswith("hidden.") and len(train) > 2
    ]
    ours = interval_variation(raster(trace, "hidden"))
    np.testing.assert_allclose(np.sort(ours), np.sort(theirs), atol=1e-9)
    counts = raster(trace, "hidden").sum(axis=1)
    active = [k for k in range(24) if counts[:, k].any()]
    theirs = [statistics.fanofactor(trains[f"hidden.{k}"]) for k in active]
    np.testing.assert_allclose(fano_factors(counts), theirs)


@elephant
def test_statistics_without_elephant_are_the_same_and_say_so(
    episode: dict[str, Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_it = spike_statistics(episode["spikes"])
    assert {each.computed_by for each in with_it} == {f"elephant {version('elephant')}"}
    monkeypatch.setattr(module, "elephant", lambda: None)
    without = spike_statistics(episode["spikes"])
    assert {each.computed_by for each in without} == {"neuro_eqprop"}
    for a, b in zip(with_it, without, strict=True):
        for name, value in a.to_json().items():
            if isinstance(value, float):
                assert value == pytest.approx(getattr(b, name), rel=1e-12), name
    assert any(each.isi_cv is not None and each.isi_cv > 0 for each in with_it)


@elephant
def test_the_distance_of_trains_is_that_of_elephant() -> None:
    neo, pq = pytest.importorskip("neo"), pytest.importorskip("quantities")
    dissimilarity = pytest.importorskip("elephant.spike_train_dissimilarity")
    rng = np.random.default_rng(0)
    p, q = (np.sort(rng.random(n)) for n in (9, 6))
    trains = [neo.SpikeTrain(times * pq.s, t_stop=1.0 * pq.s) for times in (p, q)]
    theirs = dissimilarity.van_rossum_distance(trains, time_constant=50 * pq.ms)[0, 1]
    assert train_distance(p, q, 0.05) == pytest.approx(theirs)
    assert train_distance(p, p, 0.05) == 0.0
    assert train_distance(p[:1], np.zeros(0), 0.05) == 1.0


def test_correlation_of_counts_is_the_mean_over_pairs_of_neurons(episode: dict[str, Trace]) -> None:
    trace = episode["spikes"]
    counts = raster(trace, "output")[:, :64].sum(axis=1)
    found = layer_statistics(trace, "output", "free")
    varying = counts[:, counts.std(axis=0) > 0]
    pairs = [
        np.corrcoef(varying[:, i], varying[:, j])[0, 1]
        for i in range(varying.shape[1])
        for j in range(i)
    ]
    assert found.signal_correlation == pytest.approx(np.mean(pairs))
    assert (found.noise_correlation, found.fano_factor) == (None, None)  # every stimulus once
    assert found.mean_rate == pytest.approx(counts.mean() / 0.064)


def population(rates: Array, samples: int, seed: int = 0) -> Ints:
    """Counts of Poisson neurons with these expected counts (stimuli, units), repeat by repeat."""
    return np.random.default_rng(seed).poisson(np.tile(rates, (samples, 1)))


def test_fano_factor_and_correlations_are_those_of_a_stimulus_and_not_of_tuning() -> None:
    rates = np.random.default_rng(1).uniform(2.0, 20.0, (5, 30))
    inputs = np.tile(np.arange(5.0)[:, None], (200, 1))
    stimuli = repeats(inputs)
    assert [len(rows) for rows in stimuli] == [200] * 5
    counts = population(rates, 200)
    fano = np.concatenate([fano_factors(counts[rows]) for rows in stimuli])
    assert 0.9 < fano.mean() < 1.1
    assert fano_factors(counts).mean() > 3  # over stimuli it measures tuning
    noise = [count_correlation(counts[rows]) or 0.0 for rows in stimuli]
    assert abs(np.mean(noise)) < 0.03
    shared = counts + 5 * np.random.default_rng(2).poisson(3.0, len(counts))[:, None]
    assert min(count_correlation(shared[rows]) or 0.0 for rows in stimuli) > 0.5
    still = np.tile(rates.astype(int), (3, 1))
    assert {float(fano_factors(still[rows]).max()) for rows in repeats(inputs[:15])} == {0.0}


@elephant
@pytest.mark.filterwarnings("ignore:The 'copy' argument")  # of Elephant itself
def test_noise_correlation_is_that_of_elephant() -> None:
    neo, pq = pytest.importorskip("neo"), pytest.importorskip("quantities")
    conversion = pytest.importorskip("elephant.conversion")
    coefficient = pytest.importorskip("elephant.spike_train_correlation").correlation_coefficient
    counts = population(np.array([[3.0, 5.0, 8.0]]), 40)
    trains = [
        neo.SpikeTrain(np.repeat(np.arange(40), unit) + 0.5, units=pq.s, t_stop=40.0)
        for unit in counts.T
    ]
    theirs = coefficient(conversion.BinnedSpikeTrain(trains, bin_size=1 * pq.s))
    mean = theirs[np.triu_indices(3, 1)].mean()
    assert count_correlation(counts) == pytest.approx(mean)


def test_spike_distance_and_lag_grow_with_the_shift_of_a_train() -> None:
    train = np.asarray(np.arange(0.05, 0.95, 0.1), dtype=np.float64)
    distances = [
        spike_distance(train, np.asarray(train + shift), 1.0) for shift in (0.0, 0.01, 0.03)
    ]
    assert distances[0] == 0.0 < distances[1] < distances[2] < 0.5
    assert spike_distance(np.asarray(train + 0.01), train, 1.0) == pytest.approx(distances[1])
    # A shift d of trains of interval T has d / T of an interval: S = d / T of both, averaged.
    long = np.asarray(np.arange(0.5, 199.5, 1.0), dtype=np.float64)
    assert spike_distance(long, np.asarray(long + 0.1), 200.0, 4000) == pytest.approx(0.1, abs=0.01)
    fired = np.zeros((2, 100, 3), dtype=np.int64)
    fired[:, 10:90:7] = 1
    assert lag(fired, np.roll(fired, 3, axis=1), 0.001) == pytest.approx(0.003)
    assert lag(np.roll(fired, 2, axis=1), fired, 0.001) == pytest.approx(-0.002)
    assert lag(fired, np.zeros_like(fired), 0.001) is None


def test_rates_follow_the_time_base_and_silence_has_no_statistics(
    episode: dict[str, Trace],
) -> None:
    trace = episode["spikes"]
    slow = replace(trace, origin=replace(trace.origin, step_seconds=0.01))
    for fast, ten in zip(spike_statistics(trace), spike_statistics(slow), strict=True):
        assert fast.mean_rate == pytest.approx(10 * ten.mean_rate)
        assert fast.isi_cv == ten.isi_cv
    nothing = replace(trace.spikes["hidden"], step=np.zeros(0, int), unit=np.zeros(0, int))
    silent = replace(trace, spikes={"hidden": replace(nothing, value=np.zeros(0))})
    found = layer_statistics(silent, "hidden", "free")
    assert (found.mean_rate, found.isi_cv, found.fano_factor) == (0.0, None, None)
    assert spike_statistics(episode["rate"]) == []


def test_compare_has_statistics_distances_and_a_figure(episode: dict[str, Trace]) -> None:
    found = compare(episode["spikes"], episode["graded"])
    json = found.to_json()
    assert [row["layer"] for row in json["spike_statistics"]["b"]] == ["hidden"] * 3 + [
        "output"
    ] * 3
    trains = {row["layer"]: row for row in json["trains"]}
    assert trains["hidden"]["van_rossum"] > 0.0
    same = compare_trains(episode["spikes"], episode["spikes"], "hidden", tau=0.01)
    assert (same.van_rossum, same.spike_distance, same.lag) == (0.0, 0.0, 0.0)
    assert same.pairs + same.silent == 6 * 24
    assert same.silent > 0
    assert len(spike_times(episode["spikes"], "hidden")) == 6 * 24
    axes = found.plot()
    assert axes.get_xlabel() == "rate, reference"
    with pytest.raises(ValueError, match="not in both traces"):
        compare_trains(episode["rate"], episode["spikes"], "hidden", tau=0.01)


def test_the_energy_falls_as_rates_and_spikes_settle(
    trained_run: Path, recorded: dict[str, Trace]
) -> None:
    model = open_run(trained_run).model
    rates, spikes = (settling_energy(model, recorded[kind]) for kind in ("rate", "spikes"))
    free = recorded["rate"].schedule[0].steps
    assert rates.shape == (6, recorded["rate"].steps)
    assert (np.diff(rates[:, :free], axis=1) <= 1e-9).all()  # damped rates only descend
    end = recorded["spikes"].schedule[0].steps - 1
    np.testing.assert_allclose(spikes[:, end], rates[:, free - 1], rtol=0.1)
