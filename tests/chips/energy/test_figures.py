from __future__ import annotations

from typing import Any

import pytest

import neuro_eqprop as ne
from neuro_eqprop.chips.energy.term_colours import colour_of


@pytest.fixture(scope="module")
def report() -> ne.EnergyReport:
    data = ne.load_data("digits")
    model = ne.train("layered", data, hidden=(8,), epochs=1)
    run = model.to_spiking(code="rate").run(data.test.x[:4], on="emulator", steps=8)
    return ne.estimate_energy(run, ["loihi1", "spinnaker1"])


def test_a_bar_for_each_term_in_its_colour(report: ne.EnergyReport) -> None:
    from matplotlib.colors import to_hex

    estimate = report["loihi1"]
    axes: Any = estimate.plot()
    widths = {
        label.get_text(): (bar.get_width(), to_hex(bar.get_facecolor()))
        for label, bar in zip(axes.get_yticklabels(), axes.patches, strict=True)
    }
    assert widths == {
        term.name: (term.joules.value, to_hex(colour_of(term.name))) for term in estimate.terms
    }
    assert axes.get_xscale() == "linear"


def test_a_dot_with_its_range_for_each_chip(report: ne.EnergyReport) -> None:
    axes: Any = report.plot()
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert sorted(names) == ["loihi1", "spinnaker1"]
    joules = [report[name].joules for name in names]
    assert joules == sorted(joules, reverse=True)  # type: ignore[type-var]
    assert [line.get_xdata()[0] for line in axes.lines[1::2]] == joules
    assert axes.get_xscale() == "log"
