"""Statistics of the spike trains, by Elephant where it is installed."""

from __future__ import annotations

from html import escape

from neuro_eqprop.html_report.contents import RunContents, TraceView
from neuro_eqprop.html_report.html import Cell, decimal, table, text_cell
from neuro_eqprop.html_report.section import Section
from neuro_eqprop.traces.spike_statistics import computed_by, spike_statistics

HEADER = ["spikes of", "layer", "phase", "rate (Hz)", "ISI CV", "Fano", "correlation", "I/E"]


def spiking(run: RunContents) -> list[TraceView]:
    """Traces with spikes."""
    return [view for view in run.views() if view.trace.spikes]


def body(run: RunContents) -> str:
    """The meaning of the columns, and a row for each trace, layer and phase."""
    rows = [row for view in spiking(run) for row in cells(view)]
    return (
        "<p>Mean rate in hertz; coefficient of variation of the intervals between spikes (0 is "
        "regular, 1 is Poisson); Fano factor of the counts of a unit over the samples; mean "
        "correlation of the counts of two units; inhibitory over excitatory input. ISI CV and Fano "
        f"factor computed by {escape(computed_by())}.</p>"
        f"{table('statistics', HEADER, rows)}"
    )


def cells(view: TraceView) -> list[list[Cell]]:
    """The rows of a trace."""
    return [
        [
            text_cell(view.title),
            text_cell(each.layer),
            text_cell(each.phase),
            (each.mean_rate, decimal(each.mean_rate, 1)),
            *(
                (value, decimal(value, 3))
                for value in (
                    each.isi_cv,
                    each.fano_factor,
                    each.count_correlation,
                    each.balance,
                )
            ),
        ]
        for each in spike_statistics(view.trace)
    ]


SECTION = Section("statistics", "Spike statistics", body, needs=lambda run: bool(spiking(run)))
