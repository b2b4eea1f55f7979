"""Figures of firing and of weights."""

from __future__ import annotations

import numpy as np
import pytest

from neuro_eqprop.traces.plots.statistics import plot_energy
from neuro_eqprop.traces.trace import Trace


def test_the_psth_shows_the_mean_rate_in_hertz(episode: dict[str, Trace]) -> None:
    trace = episode["spikes"]
    axes = trace.plot_psth("hidden", bins=3)
    (stairs,) = axes.patches[:1]
    heights = np.asarray(stairs.get_data().values)
    np.testing.assert_allclose(
        heights, [1e3 * trace.time_course("hidden")[:, k : k + 64].mean() for k in (0, 64, 128)]
    )
    assert "Hz" in axes.get_ylabel()
    with pytest.raises(ValueError, match="no sample of class 77"):
        trace.plot_psth("hidden", label=77)
    with pytest.raises(ValueError, match="hidden"):
        episode["rate"].plot_psth("hidden")


def test_weights_are_drawn_as_a_matrix(episode: dict[str, Trace]) -> None:
    axes = episode["spikes"].plot_weights("hidden->output")
    (image,) = axes.get_images()
    weights = episode["spikes"].weights["hidden->output"].before
    np.testing.assert_array_equal(np.asarray(image.get_array()), weights)
    assert axes.get_xlabel() == "hidden, unit"
    with pytest.raises(ValueError, match="unknown connection with recorded weights"):
        episode["spikes"].plot_weights("a->b")


def test_the_energy_of_a_sample_is_a_line(episode: dict[str, Trace]) -> None:
    course = np.arange(6 * 192, dtype=np.float64).reshape(6, 192)
    axes = plot_energy(episode["spikes"], course, 2)
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), course[2])
