"""The weight matrices of a report, and what is needed to tell the story of each synapse in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from neuro_eqprop.analysis.compare import has_both_rates, has_nudged_phases, hebbian_update
from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.io.trace.trace import Trace
from neuro_eqprop.report.contents import RunContents
from neuro_eqprop.report.encoding import encode
from neuro_eqprop.schedules import contrast
from neuro_eqprop.synapse_recording import COLUMNS, SynapseLog, Weights

Json = dict[str, Any]


def synapses(run: RunContents, samples: int, rows: int) -> Json:
    """Everything that the section on synapses draws; empty where no trace holds weights."""
    named = dict(run.traces)
    found = next((trace for trace in named.values() if matrices(trace)), None)
    if found is None:
        return {}
    mine = {n: t for n, t in named.items() if t.connections == found.connections}
    sample = loudest(found, samples)
    return {
        "sample": sample,
        "changes": changes(found),
        "contrast": contrast(found.schedule) if has_nudged_phases(found.schedule) else {},
        "matrices": [
            matrix(name, found, named=mine, most=rows, sample=sample) for name in matrices(found)
        ],
        "stories": {
            name: {c: told(story, trace, samples) for c, story in trace.hebbian.items()}
            for name, trace in mine.items()
            if changes(trace)
        },
    }


def changes(trace: Trace) -> bool:
    """Whether its run learned, so that a story cannot be told from the rates alone."""
    return any(weights.after is not None for weights in trace.weights.values())


def matrices(trace: Trace) -> list[str]:
    """The connections whose weights are a matrix from units to units, outputs first."""
    names = [n for n in trace.connections if n in trace.weights]
    told = [n for n in names if n in trace.hebbian or n.split("->")[1] in trace.layers_with_rates]
    return [n for n in reversed(told) if trace.weights[n].before.ndim == 2]


def loudest(trace: Trace, samples: int) -> int:
    """The sample that asks for the largest change of what leads to the output.

    Of a run that learned, for the synapses that were watched.
    """
    if changes(trace) and trace.hebbian:
        tags = [story.tag[trace.steps - 1 :: trace.steps] for story in trace.hebbian.values()]
        return int(np.argmax(np.abs(np.concatenate(tags, axis=1)).max(axis=1)[:samples]))
    if not has_nudged_phases(trace.schedule):
        return 0
    end = list(trace.layers_with_rates)[-1]
    moved = sum(
        part * trace.rate(end, phase)[:samples] for phase, part in contrast(trace.schedule).items()
    )
    return int(np.argmax(np.abs(moved).sum(axis=1)))


def matrix(name: str, trace: Trace, *, named: Mapping[str, Trace], most: int, sample: int) -> Json:
    """The weights of a connection and the changes that each trace asks for, in mean by sample."""
    held = views_of(trace.weights[name])
    asked = {
        file: hebbian_update(each, name) / len(each.index)
        for file, each in named.items()
        if has_nudged_phases(each.schedule) and has_both_rates(each, name) and not changes(each)
    }
    watched = trace.hebbian[name].synapses if name in trace.hebbian and changes(trace) else ()
    loud = next(iter(asked.values()), held.get("change", trace.weights[name].before))
    rows, columns = busiest(loud, 1, most), busiest(loud, 0, most)
    if watched:
        ends = zip((rows, columns), np.array(watched).T, strict=True)
        rows, columns = (np.union1d(known, more) for known, more in ends)
    part = np.ix_(rows, columns)
    here = np.abs(change_of(trace, name, sample) if asked else loud)[part]
    row, column = np.unravel_index(np.argmax(here), here.shape)
    if watched:
        tag = trace.hebbian[name].tag[(sample + 1) * trace.steps - 1]
        target, source = watched[int(np.argmax(np.abs(tag)))]
        row, column = np.searchsorted(rows, target), np.searchsorted(columns, source)
    return {
        "name": name,
        "source": name.partition("->")[0],
        "target": name.partition("->")[2],
        "rows": rows.tolist(),
        "columns": columns.tolist(),
        "of": list(loud.shape),
        "first": [int(row), int(column)],
        "views": {told: encode(each[part]) for told, each in held.items()},
        "watched": [list(synapse) for synapse in watched],
        "asked": {file: encode(change[part]) for file, change in asked.items()},
    }


def views_of(weights: Weights) -> dict[str, Array]:
    """The weights, or those before and after and the change, by what each is called."""
    before, after = weights.before, weights.after
    if after is None or not np.isfinite(after).all():
        return {"weights": before}
    return {"weights after": after, "weights before": before, "change": after - before}


def change_of(trace: Trace, name: str, sample: int) -> Array:
    """What one sample asks for."""
    source, target = name.split("->")
    change = np.zeros(trace.weights[name].before.shape)
    for phase, part in contrast(trace.schedule).items():
        pre = trace.rate(source, phase) if source in trace.kinds else trace.inputs
        change += part * np.outer(trace.rate(target, phase)[sample], pre[sample])
    return change


def busiest(change: Array, axis: int, most: int) -> Ints:
    """The units with the largest changes, in their order."""
    return np.sort(np.argsort(-np.abs(change).sum(axis=axis), kind="stable")[:most])


def told(story: SynapseLog, trace: Trace, samples: int) -> Json:
    """A recorded story: by sample and synapse, each of its values along the steps."""
    count = min(samples, len(trace.index))
    shape = (len(trace.index), trace.steps, len(story.synapses))
    parts = {c: getattr(story, c).reshape(shape)[:count].transpose(0, 2, 1) for c in COLUMNS}
    return {"synapses": [list(s) for s in story.synapses]} | {
        c: encode(v) for c, v in parts.items()
    }
