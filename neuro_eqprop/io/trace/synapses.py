"""Weights and watched synapses in a trace file, checked before they are believed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neuro_eqprop.synapse_recording import COLUMNS, Synapse, SynapseLog, Weights

if TYPE_CHECKING:
    from neuro_eqprop.io.trace.read import TraceReader


def read_all_weights(source: TraceReader) -> dict[str, Weights]:
    """By connection, the weights before the run and, once they are known, after it."""
    return {name: read_weights(source, name) for name in source.names("weights")}


def read_weights(source: TraceReader, name: str) -> Weights:
    """Those of one connection."""
    before = source.floats(f"weights/{name}/before", ndim=None)
    if before.ndim < 1 or not np.isfinite(before).all():
        raise source.refuse(f"the weights of {name!r} are not finite numbers")
    if "after" not in source.names(f"weights/{name}"):
        return Weights(before)
    after = source.floats(f"weights/{name}/after", ndim=None)
    if after.shape != before.shape:
        raise source.refuse(f"the weights of {name!r} have another shape after the run")
    # A run that did not come to its end leaves the room for them as it was made.
    return Weights(before, after if np.isfinite(after).all() else None)


def read_synapses(source: TraceReader, name: str) -> tuple[Synapse, ...]:
    """Which synapses of a connection are watched."""
    target, origin = (source.ints(f"hebbian/{name}/{end}") for end in ("target", "source"))
    if not len(target) == len(origin) > 0 or min(target.min(), origin.min()) < 0:
        raise source.refuse(f"the watched synapses of {name!r} are no pairs of units")
    return tuple((int(a), int(b)) for a, b in zip(target, origin, strict=True))


def history_lengths(source: TraceReader) -> list[int]:
    """Rows of every column of every story."""
    return [
        len(source.data(f"hebbian/{name}/{column}", kind="f", ndim=2))
        for name in source.names("hebbian")
        for column in COLUMNS
    ]


def read_histories(source: TraceReader, rows: slice) -> dict[str, SynapseLog]:
    """By connection, some steps of what became of the watched synapses."""
    return {name: read_history(source, name, rows) for name in source.names("hebbian")}


def read_history(source: TraceReader, name: str, rows: slice) -> SynapseLog:
    """That of one connection."""
    ends = read_synapses(source, name)
    columns = [source.floats(f"hebbian/{name}/{c}", rows, ndim=2) for c in COLUMNS]
    if any(column.shape[1] != len(ends) for column in columns):
        raise source.refuse(f"the story of {name!r} is not of its {len(ends)} watched synapses")
    return SynapseLog(ends, *columns)
