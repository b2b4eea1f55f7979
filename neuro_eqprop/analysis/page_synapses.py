"""The weight matrices of a report, and what is needed to tell the story of each synapse in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from neuro_eqprop.analysis.compare import learns, update
from neuro_eqprop.analysis.page_data import Run
from neuro_eqprop.analysis.page_pack import pack
from neuro_eqprop.arrays import Array, Ints
from neuro_eqprop.schedules import contrast
from neuro_eqprop.synapses import COLUMNS, Story, Synapse
from neuro_eqprop.traces import Trace

Json = dict[str, Any]


def synapses(run: Run, samples: int, rows: int) -> Json:
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
        "contrast": contrast(found.schedule) if learns(found.schedule) else {},
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
    told = [n for n in names if n in trace.hebbian or n.split("->")[1] in trace.readable]
    return [n for n in reversed(told) if trace.weights[n].before.ndim == 2]


def loudest(trace: Trace, samples: int) -> int:
    """The sample that asks for the largest change of what leads to the output.

    Of a run that learned the last one.
    """
    if changes(trace):
        return min(samples, len(trace.index)) - 1
    if not learns(trace.schedule):
        return 0
    end = list(trace.readable)[-1]
    moved = sum(
        part * trace.rate(end, phase)[:samples] for phase, part in contrast(trace.schedule).items()
    )
    return int(np.argmax(np.abs(moved).sum(axis=1)))


def matrix(name: str, trace: Trace, *, named: Mapping[str, Trace], most: int, sample: int) -> Json:
    """The weights of a connection and the changes that each trace asks for, in mean by sample."""
    weight = trace.weights[name].before
    after = trace.weights[name].after
    asked = {
        file: update(each, name) / len(each.index)
        for file, each in named.items()
        if learns(each.schedule) and can(each, name) and not changes(each)
    }
    views = {"weights": weight}
    if after is not None and np.isfinite(after).all():
        views = {"weights after": after, "weights before": weight, "change": after - weight}
    watched = trace.hebbian[name].synapses if name in trace.hebbian and changes(trace) else ()
    loud = next(iter(asked.values()), views.get("change", weight))
    rows, columns = busiest(loud, 1, most), busiest(loud, 0, most)
    if watched:
        ends = zip((rows, columns), np.array(watched).T, strict=True)
        rows, columns = (np.union1d(known, more) for known, more in ends)
    part = np.ix_(rows, columns)
    here = change_of(trace, name, sample) if asked else loud
    first = strongest(here, watched or [(r, c) for r in rows for c in columns])
    source, target = name.split("->")
    return {
        "name": name,
        "source": source,
        "target": target,
        "rows": rows.tolist(),
        "columns": columns.tolist(),
        "of": list(weight.shape),
        "first": [
            int(np.searchsorted(k, at)) for k, at in zip((rows, columns), first, strict=True)
        ],
        "views": {told: pack(each[part]) for told, each in views.items()},
        "watched": [list(synapse) for synapse in watched],
        "asked": {file: pack(change[part]) for file, change in asked.items()},
    }


def strongest(change: Array, synapses: Sequence[Synapse]) -> Synapse:
    """That with the largest change among some synapses."""
    sizes = np.abs(change[tuple(np.array(synapses).T)])
    return synapses[int(np.argmax(sizes))]


def change_of(trace: Trace, name: str, sample: int) -> Array:
    """What one sample asks for."""
    source, target = name.split("->")
    change = np.zeros(trace.weights[name].before.shape)
    for phase, part in contrast(trace.schedule).items():
        pre = trace.rate(source, phase) if source in trace.kinds else trace.inputs
        change += part * np.outer(trace.rate(target, phase)[sample], pre[sample])
    return change


def can(trace: Trace, name: str) -> bool:
    """Whether what both ends did was recorded."""
    source, target = name.split("->")
    return target in trace.readable and (source in trace.readable or source not in trace.kinds)


def busiest(change: Array, axis: int, most: int) -> Ints:
    """The units with the largest changes, in their order."""
    return np.sort(np.argsort(-np.abs(change).sum(axis=axis), kind="stable")[:most])


def told(story: Story, trace: Trace, samples: int) -> Json:
    """A recorded story: by sample and synapse, each of its values along the steps."""
    count = min(samples, len(trace.index))
    shape = (len(trace.index), trace.steps, len(story.synapses))
    parts = {c: getattr(story, c).reshape(shape)[:count].transpose(0, 2, 1) for c in COLUMNS}
    return {"synapses": [list(s) for s in story.synapses]} | {c: pack(v) for c, v in parts.items()}
