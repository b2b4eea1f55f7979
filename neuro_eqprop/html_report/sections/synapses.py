"""Weight matrices, and the history of the synapse selected in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.dynamics.schedules import contrast
from neuro_eqprop.html_report.commands import recorded_by
from neuro_eqprop.html_report.contents import RunContents, TraceView
from neuro_eqprop.html_report.encoding import encode
from neuro_eqprop.html_report.html import chart
from neuro_eqprop.html_report.opening import answers, output_change
from neuro_eqprop.html_report.section import Json, PageLimits, Section, Shown, asset
from neuro_eqprop.simulators.synapse_recording import COLUMNS, SynapseLog, Weights
from neuro_eqprop.traces.compare import has_both_rates, has_nudged_phases, hebbian_update
from neuro_eqprop.traces.trace import Trace

VISIBLE = 0.01
"""Smallest update of a sample that is worth showing, as a fraction of the largest one."""


def show(run: RunContents) -> Shown:
    """Controls, the matrix and the history."""
    found = groups(run)
    views = [view for group in found for view in group]
    if not views:
        return Shown("", lambda _: {"synapses": {"matrices": [], "histories": {}}})
    ticks = " (ticks are spikes)" if any(view.trace.spikes for view in views) else ""
    return Shown(
        "<p>Click a weight to see the history of its synapse in a sample: the presynaptic and "
        f"postsynaptic activity traces{ticks}, their product, the tag, which accumulates the "
        "product with opposite signs in the two nudged phases, and the weight. The tag at the end "
        "is the weight update of the sample, up to the learning rate.</p>"
        '<div class="controls"><label>weights <select id="connection"></select></label>'
        '<label>show <select id="view"></select></label>'
        '<label>from unit <input type="number" id="from" min="0" value="0"></label>'
        '<label>to unit <input type="number" id="to" min="0" value="0"></label>'
        '<label class="grow"><span id="synapse-which">sample</span><input type="range" '
        'id="synapse-sample" min="0" value="0" step="1"></label></div>'
        f'<div class="grid two history"><div>{chart("matrix", "Weights")}'
        '<p id="matrix-note" class="small"></p><ul id="history-values" aria-live="polite"></ul>'
        '<p id="history-missing" class="small" hidden>The history of this synapse was not '
        "recorded: select another one in the matrix.</p></div>"
        f"{chart('history', 'History of a synapse', tall=True)}</div>"
        f"{recorded_by([view for view in views if view.trace.weights])}",
        lambda limits: {"synapses": chart_data(found, len(run.runs), limits)},
    )


def groups(run: RunContents) -> list[list[TraceView]]:
    """Traces of the first run that share samples and connections; the first has matrices."""
    mine = [view for view in run.views() if view.run is run]
    found: list[list[TraceView]] = []
    for place in dict.fromkeys(view.place for view in mine):
        here = [view for view in mine if view.place == place]
        first = next((view for view in here if matrices(view.trace)), None)
        if first is not None:
            same = [v for v in here if v.trace.connections == first.trace.connections]
            found.append([first, *(view for view in same if view is not first)])
    return found


def chart_data(found: Sequence[Sequence[TraceView]], runs: int, limits: PageLimits) -> Json:
    """Matrices of all connections, and recorded histories by file and connection."""
    made: Json = {"matrices": [], "histories": {}}
    for number, group in enumerate(found):
        first, traces = group[0], {view.key: view.trace for view in group}
        schedule = first.trace.schedule
        sample = strongest_sample(first.trace, limits.samples)
        shared = {
            "place": first.place,
            # The samples of a training beside simulations are not those of the other charts.
            "linked": first.place < runs,
            "sample": sample,
            "learned": learned(first.trace),
            "contrast": contrast(schedule) if has_nudged_phases(schedule) else {},
        }
        made["matrices"] += [
            shared
            | matrix(name, first.trace, traces=traces, most=limits.rows, sample=sample)
            | {"key": f"{name}, training" if number else name}
            for name in matrices(first.trace)
        ]
        made["histories"] |= {
            key: {name: history(log, t, limits.samples) for name, log in t.hebbian.items()}
            for key, t in traces.items()
            if learned(t)
        }
    return made


def learned(trace: Trace) -> bool:
    """Whether the run learned, so that histories cannot be computed from the rates alone."""
    return any(weights.after is not None for weights in trace.weights.values())


def matrices(trace: Trace) -> list[str]:
    """Connections with a weight matrix and known activity, outputs first.

    Of a run that learned, those with recorded synapses come first: others have no history.
    """
    known = [
        name
        for name in reversed(trace.connections)
        if name in trace.weights
        and (name in trace.hebbian or name.split("->")[1] in trace.layers_with_rates)
        and trace.weights[name].before.ndim == 2
    ]
    return sorted(known, key=lambda name: learned(trace) and name not in trace.hebbian)


def strongest_sample(trace: Trace, samples: int) -> int:
    """The correctly classified sample with the largest update of the output.

    Of a run that learned, by its tags; of all samples if no correct one has an update that can be
    seen beside the largest one.
    """
    if learned(trace) and trace.hebbian:
        tags = [log.tag[trace.steps - 1 :: trace.steps] for log in trace.hebbian.values()]
        sizes = np.abs(np.concatenate(tags, axis=1)).max(axis=1)[:samples]
    elif has_nudged_phases(trace.schedule):
        sizes = output_change(trace, samples)
    else:
        return 0
    given = answers(trace)
    right = np.ones(len(sizes), bool) if given is None else (given == trace.label)[: len(sizes)]
    correct = np.where(right, sizes, 0.0)
    return int(np.argmax(correct if correct.max() > VISIBLE * sizes.max() else sizes))


def has_update(trace: Trace, name: str) -> bool:
    """Whether the update of a connection follows from the rates of a trace."""
    known = has_nudged_phases(trace.schedule) and has_both_rates(trace, name)
    return known and not learned(trace)


def matrix(name: str, trace: Trace, *, traces: Mapping[str, Trace], most: int, sample: int) -> Json:
    """Weights of a connection, and its mean Hebbian update per sample in each trace."""
    held = weight_views(trace.weights[name])
    updates = {
        file: hebbian_update(each, name) / len(each.index)
        for file, each in traces.items()
        if has_update(each, name)
    }
    recorded = trace.hebbian[name].synapses if name in trace.hebbian and learned(trace) else ()
    change = next(iter(updates.values()), held.get("change", trace.weights[name].before))
    rows, columns = largest(change, 1, most), largest(change, 0, most)
    if recorded:
        ends = zip((rows, columns), np.array(recorded).T, strict=True)
        rows, columns = (np.union1d(known, more) for known, more in ends)
    part = np.ix_(rows, columns)
    of_sample = hebbian_update(trace, name, sample) if has_update(trace, name) else change
    here = np.abs(of_sample)[part]
    row, column = np.unravel_index(np.argmax(here), here.shape)
    if recorded:
        tag = trace.hebbian[name].tag[(sample + 1) * trace.steps - 1]
        target, source = recorded[int(np.argmax(np.abs(tag)))]
        row, column = np.searchsorted(rows, target), np.searchsorted(columns, source)
    return {
        "name": name,
        "source": name.partition("->")[0],
        "target": name.partition("->")[2],
        "rows": rows.tolist(),
        "columns": columns.tolist(),
        "of": list(change.shape),
        "first": [int(row), int(column)],
        "views": {label: encode(each[part]) for label, each in held.items()},
        "recorded": [list(synapse) for synapse in recorded],
        "updates": {file: encode(each[part]) for file, each in updates.items()},
    }


def weight_views(weights: Weights) -> dict[str, Array]:
    """The weights; of a run that learned those before and after, and the change."""
    before, after = weights.before, weights.after
    if after is None or not np.isfinite(after).all():
        return {"weights": before}
    return {"weights after": after, "weights before": before, "change": after - before}


def largest(change: Array, axis: int, most: int) -> Ints:
    """The units with the largest changes, in ascending order."""
    return np.sort(np.argsort(-np.abs(change).sum(axis=axis), kind="stable")[:most])


def history(log: SynapseLog, trace: Trace, samples: int) -> Json:
    """Recorded history: each value over the steps, by sample and synapse."""
    count = min(samples, len(trace.index))
    shape = (len(trace.index), trace.steps, len(log.synapses))
    parts = {c: getattr(log, c).reshape(shape)[:count].transpose(0, 2, 1) for c in COLUMNS}
    return {"synapses": [list(s) for s in log.synapses]} | {c: encode(v) for c, v in parts.items()}


SECTION = Section("synapses", "Synapses", show, asset("script/synapses.js"))
