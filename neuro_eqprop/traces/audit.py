"""A trace audited by itself: recorded products, tags and weight changes are computed again.

The definitions are those of `neuro_eqprop.simulators.synapse_recording`: the product of the
recorded activities, the tag that it integrates to in the windows, and the weights after a commit,
w = keep w + eta m, with the recorded eta and keep of the connection. Traces without them (of Lava's
engine, and of earlier versions) have one factor eta for all synapses, fitted to each commit.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.simulators.recordings import TraceData
from neuro_eqprop.simulators.synapse_recording import SynapseLog
from neuro_eqprop.traces.synapse_history import factor_of_steps


@dataclass(frozen=True, slots=True)
class Audit:
    """Largest differences of a connection's records from what they must be by definition."""

    connection: str
    synapses: int
    product: float
    """Of products from those of the recorded activities."""
    tag: float
    """Of tags from the sum of the products in the windows."""
    update: float
    """Of weights after a commit from keep w + eta m; 0 if no weight changed."""
    commits: int
    """Samples after which weights changed."""

    def to_json(self) -> dict[str, Any]:
        """Fields as JSON."""
        return asdict(self)


def audit(trace: TraceData) -> list[Audit]:
    """Audit every connection whose synapses were recorded.

    Examples
    --------
    >>> [found.connection for found in audit(example_spikes)]
    []
    """
    return [audit_connection(trace, name, log) for name, log in trace.hebbian.items()]


def audit_connection(trace: TraceData, name: str, log: SynapseLog) -> Audit:
    """Compute the records of a connection again."""
    shape = (len(trace.index), trace.steps, len(log.synapses))
    pre, post, product, tag, weight = (
        np.asarray(values, dtype=np.float64).reshape(shape)
        for values in (log.pre, log.post, log.product, log.tag, log.weight)
    )
    factor = trace.rule.get("factor")
    factor = factor_of_steps(trace.schedule) if factor is None else factor
    grown = factor[None, :, None] * product
    # A tag starts a sample at zero or, within a batch, where the last sample left it.
    start = tag[:, 0] - grown[:, 0]
    before = np.concatenate([np.zeros_like(start[:1]), tag[:-1, -1]])
    begins = np.minimum(np.abs(start), np.abs(start - before))
    steps = np.abs(np.diff(tag, axis=1) - grown[:, 1:])
    changes = weight[:, -1] - weight[:, -2] if trace.steps > 1 else np.zeros_like(start)
    commits = np.flatnonzero(changes.any(axis=1))
    if f"eta/{name}" in trace.rule:
        eta, keep = (trace.rule[f"{key}/{name}"][:, None] for key in ("eta", "keep"))
        old = weight[:, -2] if trace.steps > 1 else weight[:, -1]
        wrong = weight[:, -1] - (keep * old + eta * tag[:, -1])
        rest = [largest(wrong[k]) for k in commits]
    else:
        rest = [remainder(changes[k], tag[k, -1]) for k in commits]
    return Audit(
        name,
        len(log.synapses),
        largest(product - pre * post),
        max(largest(begins), largest(steps)),
        max(rest, default=0.0),
        len(commits),
    )


def remainder(change: Array, tag: Array) -> float:
    """The largest part of a change of weights that no multiple of the tags explains."""
    size = float(tag @ tag)
    eta = float(change @ tag) / size if size else 0.0
    return largest(change - eta * tag)


def largest(difference: Array) -> float:
    """The largest absolute value; zero without values."""
    return float(np.abs(difference).max(initial=0.0))
