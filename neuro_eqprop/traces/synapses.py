"""Validated reading of weights and synapse histories from a trace file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neuro_eqprop.simulators.synapse_recording import (
    COLUMNS,
    NO_SNAPSHOTS,
    Snapshots,
    Synapse,
    Weights,
)

if TYPE_CHECKING:
    from neuro_eqprop.traces.read import TraceReader


def read_weights(reader: TraceReader, name: str) -> Weights:
    """Weights of a connection before the run and, once they are written, after it."""
    before = reader.floats(f"weights/{name}/before", ndim=None)
    if before.ndim < 1 or not np.isfinite(before).all():
        raise reader.refuse(f"the weights of {name!r} are not finite")
    if "after" not in reader.names(f"weights/{name}"):
        return Weights(before)
    after = reader.floats(f"weights/{name}/after", ndim=None)
    if after.shape != before.shape:
        raise reader.refuse(f"the weights of {name!r} change their shape during the run")
    # A run that has not ended leaves the array at its initial NaN.
    return Weights(before, after if np.isfinite(after).all() else None)


def read_snapshots(reader: TraceReader) -> Snapshots:
    """Weights of all connections at the moments that are written."""
    names = [name for name in reader.names("snapshots") if name != "sample"]
    if not names:
        return NO_SNAPSHOTS
    sample = reader.ints("snapshots/sample")
    weights = {name: reader.floats(f"snapshots/{name}", ndim=None) for name in names}
    done = min([len(sample), *(len(each) for each in weights.values())])
    return Snapshots(sample[:done], {name: each[:done] for name, each in weights.items()})


def read_synapses(reader: TraceReader, name: str) -> tuple[Synapse, ...]:
    """Synapses of a connection whose histories are recorded."""
    target, origin = (reader.ints(f"hebbian/{name}/{end}") for end in ("target", "source"))
    if not len(target) == len(origin) > 0 or min(target.min(), origin.min()) < 0:
        raise reader.refuse(f"the recorded synapses of {name!r} are no pairs of units")
    return tuple((int(a), int(b)) for a, b in zip(target, origin, strict=True))


def history_lengths(reader: TraceReader) -> list[int]:
    """Number of rows of every column of every synapse history."""
    return [
        len(reader.data(f"hebbian/{name}/{column}", kind="f", ndim=2))
        for name in reader.names("hebbian")
        for column in COLUMNS
    ]
