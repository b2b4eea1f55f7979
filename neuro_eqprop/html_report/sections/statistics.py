"""Statistics of the spike trains, by Elephant where it is installed."""

from __future__ import annotations

from html import escape

from neuro_eqprop.html_report.contents import RunContents
from neuro_eqprop.html_report.html import Cell, decimal, table
from neuro_eqprop.html_report.section import Section, Shown
from neuro_eqprop.traces.spike_statistics import computed_by, spike_statistics

HEADER = ["spikes of", "layer", "phase", "rate (Hz)", "ISI CV", "Fano", "noise", "signal", "I/E"]


def show(run: RunContents) -> Shown:
    """The meaning of the columns, and a row for each trace, layer and phase."""
    rows: list[list[Cell]] = [
        [
            *(view.title, s.layer, s.phase),
            (s.mean_rate, decimal(s.mean_rate, 1)),
            *(
                (v, decimal(v, 3))
                for v in (
                    *(s.isi_cv, s.fano_factor, s.noise_correlation),
                    *(s.signal_correlation, s.balance),
                )
            ),
        ]
        for view in run.views()
        if view.trace.spikes
        for s in spike_statistics(view.trace)
    ]
    what = (
        "<p>Mean rate in hertz; coefficient of variation of the intervals between spikes (0 is "
        "regular, 1 is Poisson); Fano factor of the counts of a unit over the repeats of a "
        "stimulus; mean correlation of the counts of two units over these repeats (noise) and of "
        "their means over stimuli (signal); inhibitory over excitatory input. ISI CV and Fano "
        f"factor computed by {escape(computed_by())}.</p>"
    )
    return Shown(what + table("statistics", HEADER, rows) if rows else "")


SECTION = Section("statistics", "Spike statistics", show)
