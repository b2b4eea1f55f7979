"""Figures of a trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.simulators.synapse_recording import concatenate
from neuro_eqprop.traces.synapse_history import synapse_logs_of_trace
from neuro_eqprop.traces.trace import Trace


@pytest.fixture(autouse=True)
def pyplot() -> Iterator[Any]:
    """Matplotlib without a screen."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def test_a_raster_has_a_mark_for_every_spike(episode: dict[str, Trace]) -> None:
    axes = episode["spikes"].plot_raster("hidden", sample=1)
    step, unit = np.nonzero(episode["spikes"].recording(1).spikes["hidden"])
    x, y = axes.lines[0].get_data()
    np.testing.assert_array_equal(x, step + 1)
    np.testing.assert_array_equal(y, unit)
    assert axes.get_xlabel() == "time (ms)"
    assert [text.get_text() for text in axes.texts] == ["free", "negative", "positive"]


def test_settling_draws_the_units_that_vary_most(pyplot: Any, episode: dict[str, Trace]) -> None:  # noqa: ANN401
    given = pyplot.subplots()[1]
    for kind in ("rate", "spikes", "graded"):
        axes = episode[kind].plot_settling("output", units=4)
        assert len(axes.lines) == 4
        assert axes is not given
    assert episode["rate"].plot_settling("output", ax=given) is given
    line = next(line for line in given.lines if line.get_label() == "3")
    course = episode["rate"].time_course("output")[0, :, 3]
    np.testing.assert_array_equal(line.get_ydata(), course)


def test_the_history_of_a_synapse_has_an_axes_for_each_value(episode: dict[str, Trace]) -> None:
    name, pairs = "hidden->output", ((1, 2), (3, 4))
    log = concatenate(synapse_logs_of_trace(episode["spikes"], name, pairs))
    trace = replace(episode["spikes"], hebbian={name: log})
    axes = trace.plot_synapse(name, (3, 4), sample=2)
    assert [each.get_ylabel() for each in axes] == ["pre", "post", "product", "tag", "weight"]
    np.testing.assert_array_equal(axes[3].lines[0].get_ydata(), log.tag[2 * 192 : 3 * 192, 1])
    assert len(trace.plot_synapse(name)) == 5
    with pytest.raises(ValueError, match=r"\[0, 0\] of 'hidden->output' was not recorded; "):
        trace.plot_synapse(name, (0, 0))


def test_what_was_not_recorded_cannot_be_drawn(episode: dict[str, Trace]) -> None:
    with pytest.raises(UnknownNameError, match="layer with recorded spikes 'hidden'"):
        episode["rate"].plot_raster("hidden")
    with pytest.raises(UnknownNameError, match="connection with recorded synapses"):
        episode["rate"].plot_synapse("hidden->output")
    with pytest.raises(ValueError, match="sample 6 is out of range: the trace has 6 samples"):
        episode["rate"].plot_settling("hidden", sample=6)


def test_an_interactive_figure_is_a_page_of_its_own(
    episode: dict[str, Trace], tmp_path: Path
) -> None:
    for kind in ("rate", "spikes", "graded"):
        figure = episode[kind].show(units=3)
        assert len(figure.lines) == 3
        assert "output" in repr(figure)
    one = next(
        line for line in episode["rate"].show(sample=1, units=99).lines if "3" in line["name"]
    )
    course = episode["rate"].time_course("output")[1, :, 3]
    np.testing.assert_allclose(one["y"], course, atol=1e-5)
    page = figure.save(tmp_path / "figure.html").read_text()
    assert page.count("<script") == page.count("</script") == 2
    assert 'src="' not in page
    assert "srcdoc=" in figure._repr_html_()
    with pytest.raises(UnknownNameError, match="did you mean 'hidden'"):
        episode["rate"].show("hiden")
