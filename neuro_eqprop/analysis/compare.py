"""Comparison of two traces of the same samples: their rates and the updates that follow from them.

The metrics are those of `neuro_eqprop.analysis.metrics`, pooled over samples and units. A side has
settled at the first step of a phase from which on the root mean square of (its rate as if the phase
had ended there - its rate at the end) stays within `SETTLED`. With c the contrast of the schedule,
the Hebbian update of a connection (Scellier & Bengio 2017) is

    dW = sum over phases and samples of c s_post s_pre^T
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from neuro_eqprop.analysis.metrics import Distance, UpdateAgreement, distance, update_agreement
from neuro_eqprop.arrays import Array
from neuro_eqprop.io.trace.lazy import read
from neuro_eqprop.io.trace.trace import Trace
from neuro_eqprop.schedules import Schedule, contrast
from neuro_eqprop.traces import TraceData

SETTLED = 0.02
"""Root mean square distance from its final value within which a rate counts as settled."""

Cells: TypeAlias = list[list[str]]


class MismatchError(ValueError):
    """Two traces that differ in samples, layers or phases; the message says in which."""


@dataclass(frozen=True, slots=True)
class LayerAgreement:
    """Agreement of a layer in a phase, and the step at which each side had settled."""

    layer: str
    phase: str
    distance: Distance
    settled_at: int
    """Of trace b."""
    settled_at_a: int

    def to_json(self) -> dict[str, Any]:
        """Fields of `compare --json`."""
        return {
            "layer": self.layer,
            "phase": self.phase,
            **without_none_reason(self.distance),
            "settled_at": self.settled_at,
            "settled_at_a": self.settled_at_a,
        }


@dataclass(frozen=True, repr=False)
class Comparison:
    """Agreement of trace b with trace a.

    Attributes
    ----------
    layers : tuple of LayerAgreement
        Per layer and phase: Pearson correlation, RMSE, p999 (99.9th percentile of the absolute
        error), worst error, and the step from which on the rate stays settled.
    pooled : tuple of (str, Distance)
        Per phase, over the units of all layers.
    connections : tuple of UpdateAgreement
        Per connection: cosine and sign agreement of the Hebbian updates; empty without nudged
        phases.
    learned : tuple of UpdateAgreement
        Per connection whose weights both runs changed, the agreement of the changes.
    notes : tuple of str
        What could not be compared, and why.

    """

    a: str
    """Name of the first trace: its file or backend."""
    b: str
    backends: tuple[str, str]
    samples: int
    layers: tuple[LayerAgreement, ...]
    pooled: tuple[tuple[str, Distance], ...]
    connections: tuple[UpdateAgreement, ...]
    learned: tuple[UpdateAgreement, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        best = "; ".join(f"{phase}: rmse {each.rmse:.4f}" for phase, each in self.pooled)
        return f"<Comparison of {self.b} with {self.a}, {self.samples} samples; {best}>"

    def to_json(self) -> dict[str, Any]:
        """JSON object of `neuro-eqprop compare --json`; `reason` and `notes` where values miss."""
        return {
            "a": self.a,
            "b": self.b,
            "backends": list(self.backends),
            "settled_within": SETTLED,
            "samples": self.samples,
            "layers": [each.to_json() for each in self.layers],
            "pooled": [{"phase": p, **without_none_reason(each)} for p, each in self.pooled],
            "connections": [without_none_reason(each) for each in self.connections],
            "learned": [without_none_reason(each) for each in self.learned],
        } | ({"notes": list(self.notes)} if self.notes else {})

    def table(self) -> str:
        """Text tables of layers and connections, with the reason where a value is missing.

        Examples
        --------
        >>> import neuro_eqprop as ne
        >>> found = ne.compare(example_rates, example_spikes)
        >>> print(found.table().splitlines()[0].strip())
        layer   phase     pearson  rmse     p999     worst    settled at  settled at (a)
        """
        parts = [aligned(cells) for cells in self._tables()]
        return "\n\n".join([*parts, *self.notes])

    def _repr_html_(self) -> str:
        tables = "".join(html_table(cells) for cells in self._tables())
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<div><strong>{escape(repr(self).strip('<>'))}</strong>{tables}{notes}</div>"

    def _tables(self) -> list[Cells]:
        header = ["layer", "phase", "pearson", "rmse", "p999", "worst", "settled at"]
        layers = [
            [
                each.layer,
                each.phase,
                shown(each.distance.pearson, each.distance.reason),
                *(f"{v:.5f}" for v in (d.rmse, d.p999, d.worst)),
                str(each.settled_at),
                str(each.settled_at_a),
            ]
            for each in self.layers
            for d in (each.distance,)
        ]
        made = [[[*header, "settled at (a)"], *layers]] if layers else []
        for title, found in (
            ("cosine of updates", self.connections),
            ("cosine of learned changes", self.learned),
        ):
            rows = [
                [c.connection, shown(c.cosine, c.reason), shown(c.sign_agreement, "", "{:.2%}")]
                for c in found
            ]
            made += [[["connection", title, "same sign"], *rows]] if rows else []
        return made


def without_none_reason(found: Distance | UpdateAgreement) -> dict[str, Any]:
    """Fields of a metric; `reason` only where there is one."""
    return {k: v for k, v in asdict(found).items() if k != "reason" or v is not None}


def shown(value: float | None, reason: str | None, form: str = "{:.5f}") -> str:
    """A number, or the reason why there is none."""
    return (reason or "") if value is None else form.format(value)


def aligned(rows: Cells) -> str:
    """Rows as lines of text with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def html_table(rows: Cells) -> str:
    """Rows as an HTML table, the first one as its header."""
    head, *body = (
        "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row)
        for tag, row in zip(["th", *["td"] * (len(rows) - 1)], rows, strict=True)
    )
    lines = "".join(f"<tr>{line}</tr>" for line in body)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def compare(a: str | Path | TraceData, b: str | Path | TraceData) -> Comparison:
    """Compare two traces of the same samples, layer by layer and phase by phase.

    Parameters
    ----------
    a, b : str, Path or Trace
        The reference and the trace to compare with it: files or recorded traces, usually of rates
        and of spikes. Their samples, layers and phases must be the same; the number of steps may
        differ.

    Returns
    -------
    Comparison
        Agreement of the rates of every layer and phase, and of the Hebbian updates of every
        connection if there are nudged phases.

    Raises
    ------
    MismatchError
        If the traces differ in samples, labels, inputs, layers or phases.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> found = ne.compare(example_rates, example_spikes)
    >>> found.layers[0].layer, found.layers[0].phase
    ('hidden', 'free')
    >>> found.connections[1].connection
    'hidden->output'
    """
    names = name_of(a, "a"), name_of(b, "b")
    return compare_traces(loaded(a), loaded(b), names)


def loaded(source: str | Path | TraceData) -> TraceData:
    """Trace in memory."""
    if isinstance(source, (str, Path)):
        return read(source)
    return source.load() if isinstance(source, Trace) else source


def name_of(source: str | Path | TraceData, side: str) -> str:
    """Name of a trace in tables: its path, or its side and backend."""
    if isinstance(source, (str, Path)):
        return str(source)
    return str(getattr(source, "path", f"{side} ({source.origin.backend})"))


def compare_traces(a: TraceData, b: TraceData, names: tuple[str, str]) -> Comparison:
    """Compare two traces in memory."""
    check_comparable(a, b)
    layers: list[LayerAgreement] = []
    rates: dict[tuple[str, str], tuple[Array, Array]] = {}
    shared = [layer for layer in a.layers_with_rates if layer in b.layers_with_rates]
    learned = compare_learned(a, b)
    if not shared and not learned:
        raise MismatchError("no layer has rates, or weights that changed, in both traces")
    for layer in shared:
        for phase in a.phases:
            both = a.rate(layer, phase), b.rate(layer, phase)
            if both[0].shape != both[1].shape:
                sizes = f"{both[0].shape[1]} and {both[1].shape[1]} units"
                raise MismatchError(f"layer {layer!r} has {sizes} in the two traces")
            rates[layer, phase] = both
            settled = settled_at(b, layer, phase), settled_at(a, layer, phase)
            layers.append(LayerAgreement(layer, phase, distance(*both), *settled))
    pooled = [(p, pooled_distance([rates[n, p] for n in shared])) for p in a.phases if shared]
    nudged = has_nudged_phases(a.schedule)
    return Comparison(
        *names,
        (a.origin.backend, b.origin.backend),
        len(a.index),
        tuple(layers),
        tuple(pooled),
        compare_updates(a, b) if nudged else (),
        learned,
        tuple(notes_on(a, b, shared, nudged=nudged, learned=bool(learned))),
    )


def notes_on(
    a: TraceData, b: TraceData, shared: Sequence[str], *, nudged: bool, learned: bool
) -> list[str]:
    """Why layers or updates are missing from a comparison."""
    missing = [layer for layer in a.layers if layer not in shared]
    notes = [f"not recorded in both traces: {', '.join(missing)}"] if missing else []
    if not nudged and not learned:
        notes.append("no Hebbian updates: the traces have no nudged phases (record with phases)")
    elif nudged:
        apart = [c for c in a.connections if c not in b.connections or not both_ends(a, b, c)]
        notes += [f"no Hebbian updates of {', '.join(apart)}: an end is unknown"] if apart else []
    return notes


def check_comparable(a: TraceData, b: TraceData) -> None:
    """Raise `MismatchError` unless samples, layers and phases are the same."""
    pairs = {
        "layers": (sorted(a.kinds), sorted(b.kinds)),
        "phases": (
            [(phase.name, phase.beta) for phase in a.schedule],
            [(phase.name, phase.beta) for phase in b.schedule],
        ),
        "samples": (a.index.tolist(), b.index.tolist()),
        "labels": (a.label.tolist(), b.label.tolist()),
    }
    for what, (one, other) in pairs.items():
        if one != other:
            raise MismatchError(
                f"the traces have different {what}: {shorten(one)} and {shorten(other)}"
            )
    if a.inputs.shape != b.inputs.shape or not np.array_equal(a.inputs, b.inputs):
        raise MismatchError("the traces have the same samples by number, but not the same inputs")
    if not len(a.index):
        raise MismatchError("the traces hold no samples")


def shorten(things: list[object] | list[str] | list[int]) -> str:
    """The first items of a list as text, and how many there are."""
    text = ", ".join(str(thing) for thing in things[:8])
    return text + (f" ... ({len(things)} in all)" if len(things) > 8 else "") or "none"


def pooled_distance(rates: list[tuple[Array, Array]]) -> Distance:
    """Distance over the units of several layers."""
    a, b = (np.concatenate([pair[side] for pair in rates], axis=1) for side in (0, 1))
    return distance(a, b)


def settled_at(trace: TraceData, layer: str, phase: str) -> int:
    """First step of a phase, counted from one, from which on the rate stays settled."""
    running = trace.running_rate(layer, phase)
    away = np.sqrt(np.mean((running - running[:, -1:]) ** 2, axis=(0, 2))) > SETTLED
    return int(len(away) - np.argmax(away[::-1]) + 1) if away.any() else 1


def has_nudged_phases(schedule: Schedule) -> bool:
    """Whether the phases differ in beta, so that there is a contrast to learn from."""
    return len({phase.beta for phase in schedule}) > 1


def hebbian_update(trace: TraceData, connection: str) -> Array:
    """dW = sum over phases and samples of contrast s_post s_pre^T (target units, source units)."""
    source, target = connection.split("->")
    total = np.zeros(())
    for phase, part in contrast(trace.schedule).items():
        if part:
            pre = trace.rate(source, phase) if source in trace.kinds else trace.inputs
            total = total + part * (trace.rate(target, phase).T @ pre)
    return total


def compare_updates(a: TraceData, b: TraceData) -> tuple[UpdateAgreement, ...]:
    """Agreement of the Hebbian updates of every connection with recorded ends in both traces."""
    return tuple(
        update_agreement(name, hebbian_update(a, name), hebbian_update(b, name))
        for name in a.connections
        if name in b.connections and both_ends(a, b, name)
    )


def both_ends(a: TraceData, b: TraceData, connection: str) -> bool:
    """Whether both traces hold the rates of both ends of a connection."""
    return has_both_rates(a, connection) and has_both_rates(b, connection)


def has_both_rates(trace: TraceData, connection: str) -> bool:
    """Whether the rates of both ends of a connection are known; the input always is."""
    source, target = connection.split("->")
    known = trace.layers_with_rates
    return target in known and (source in known or source not in trace.kinds)


def compare_learned(a: TraceData, b: TraceData) -> tuple[UpdateAgreement, ...]:
    """Agreement of the weight changes of every connection that both runs changed."""
    found: list[UpdateAgreement] = []
    for name, mine in a.weights.items():
        other = b.weights.get(name)
        if mine.after is None or other is None or other.after is None:
            continue
        if mine.before.shape != other.before.shape:
            raise MismatchError(f"{name!r} has weights of other shapes in the two traces")
        changes = mine.after - mine.before, other.after - other.before
        found.append(update_agreement(name, *changes))
    return tuple(found)
