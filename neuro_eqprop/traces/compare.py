"""Comparison of two traces of the same samples: their rates and Hebbian updates.

The metrics are those of `neuro_eqprop.traces.metrics`, pooled over samples and units. A layer has
settled at the first time of a phase, in milliseconds, after which the RMS difference between its
running rate, as if the phase had ended there, and its final rate stays within `SETTLED`. With c the
contrast of the schedule, the Hebbian update of a connection (Scellier & Bengio 2017) is

    dW = sum over phases and samples of c s_post s_pre^T

Traces with different samples, phases or layers are compared in those that they share, with a note:
rates and spikes of a network that learns, or learning and inference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from neuro_eqprop.common.arrays import Array, cosine
from neuro_eqprop.common.equality import Comparable
from neuro_eqprop.dynamics.schedules import Schedule, contrast
from neuro_eqprop.simulators.recordings import TraceData, select_samples
from neuro_eqprop.traces.lazy import loaded
from neuro_eqprop.traces.metrics import (
    ROUNDING,
    Distance,
    UpdateAgreement,
    distance,
    update_agreement,
)
from neuro_eqprop.traces.plots.statistics import plot_agreement
from neuro_eqprop.traces.plots.traces import Axes
from neuro_eqprop.traces.spike_statistics import (
    SpikeStatistics,
    TrainAgreement,
    compare_trains,
    spike_statistics,
)

SETTLED = 0.02
"""Root mean square distance from its final value within which a rate counts as settled."""

VAN_ROSSUM_STEPS = 10
"""Time constant of the van Rossum distance in steps."""
Cells: TypeAlias = list[list[str]]


class MismatchError(ValueError):
    """Two traces share no samples, layers or phases, or these do not match."""


@dataclass(frozen=True, slots=True)
class LayerAgreement:
    """Agreement of a layer in a phase, and the milliseconds after which each side had settled."""

    layer: str
    phase: str
    distance: Distance
    settled_at: float
    """Of trace b."""
    settled_at_a: float

    def to_json(self) -> dict[str, Any]:
        """Fields of `compare --json`."""
        return {
            "layer": self.layer,
            "phase": self.phase,
            **without_none_reason(self.distance),
            "settled_at": self.settled_at,
            "settled_at_a": self.settled_at_a,
        }


@dataclass(frozen=True, eq=False, slots=True)
class SampleAgreement(Comparable):
    """Agreement of the rates of all layers in one phase of one sample."""

    sample: int
    """Position of the sample in its data set."""
    phase: str
    distance: Distance


@dataclass(frozen=True, slots=True)
class SampleUpdate:
    """Agreement of the Hebbian updates of one sample."""

    sample: int
    agreement: UpdateAgreement


@dataclass(frozen=True, slots=True)
class SynapseAgreement:
    """Agreement of the recorded synapses of a connection while both runs learn."""

    connection: str
    synapses: int
    """Synapses recorded in both traces."""
    tag_cosine: float | None
    """Cosine of the tags at the end of each sample."""
    weight_rmse: float
    """RMS difference of the weights at the end of each sample."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Comparable):
    """Agreement of trace b with trace a.

    Attributes
    ----------
    layers : tuple of LayerAgreement
        Per layer and phase: Pearson correlation, RMSE, p999 (99.9th percentile of the absolute
        error), worst error, and the time from which on the rate stays settled.
    pooled : tuple of (str, Distance)
        Per phase, over the units of all layers.
    connections : tuple of UpdateAgreement
        Per connection: cosine and sign agreement of the Hebbian updates; empty without nudged
        phases.
    learned : tuple of UpdateAgreement
        Per connection whose weights both runs changed, the agreement of the changes.
    by_sample : tuple of SampleAgreement
        Per sample and phase, the agreement of the rates of all layers.
    sample_updates : tuple of SampleUpdate
        Per sample and connection, the agreement of the Hebbian updates.
    synapses : tuple of SynapseAgreement
        Per connection with synapses recorded in both traces: their tags and weights.
    spikes_a, spikes_b : tuple of SpikeStatistics
        Per layer with spikes and phase: mean rate, ISI CV, Fano factor, noise and signal
        correlation, E/I balance.
    trains : tuple of TrainAgreement
        Per layer with spikes in both traces: van Rossum and SPIKE distance of its trains, lag.
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
    by_sample: tuple[SampleAgreement, ...] = ()
    sample_updates: tuple[SampleUpdate, ...] = ()
    synapses: tuple[SynapseAgreement, ...] = ()
    spikes_a: tuple[SpikeStatistics, ...] = ()
    spikes_b: tuple[SpikeStatistics, ...] = ()
    trains: tuple[TrainAgreement, ...] = ()
    rates: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)
    """By layer, the rates of a and b in the first common phase, for `plot`."""

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the rates of b against those of a, layer by layer; return the axes."""
        pairs = list(self.rates.values())
        if not pairs:
            raise ValueError("the traces share no layer with rates to draw")
        axes = plot_agreement([p[0] for p in pairs], [p[1] for p in pairs], list(self.rates), ax=ax)
        axes.set_xlabel(f"rate, {self.backends[0]}")
        axes.set_ylabel(f"rate, {self.backends[1]}")
        return axes

    def __repr__(self) -> str:
        best = "; ".join(f"{phase}: rmse {each.rmse:.4f}" for phase, each in self.pooled)
        return f"<Comparison of {self.b} with {self.a}, {self.samples} samples; {best}>"

    def to_json(self) -> dict[str, Any]:
        """Fields of `compare --json`; `reason` and `notes` explain missing values."""
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
            "by_sample": [
                {"sample": s.sample, "phase": s.phase, **without_none_reason(s.distance)}
                for s in self.by_sample
            ],
            "sample_updates": [
                {"sample": s.sample, **without_none_reason(s.agreement)}
                for s in self.sample_updates
            ],
            "synapses": [asdict(each) for each in self.synapses],
            "spike_statistics": {
                "a": [each.to_json() for each in self.spikes_a],
                "b": [each.to_json() for each in self.spikes_b],
            },
            "trains": [each.to_json() for each in self.trains],
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
        parts = [aligned(cells) for cells in self.tables()]
        return "\n\n".join([*parts, *self.notes])

    def _repr_html_(self) -> str:
        tables = "".join(html_table(cells) for cells in self.tables())
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<div><strong>{escape(repr(self).strip('<>'))}</strong>{tables}{notes}</div>"

    def tables(self) -> list[Cells]:
        """Rows of text, each table with its header first: layers, updates, recorded synapses."""
        header = ["layer", "phase", "pearson", "rmse", "p999", "worst", "settled at"]
        layers = [
            [
                each.layer,
                each.phase,
                shown(each.distance.pearson, each.distance.reason),
                *(f"{v:.5f}" for v in (d.rmse, d.p999, d.worst)),
                f"{each.settled_at:g} ms",
                f"{each.settled_at_a:g} ms",
            ]
            for each in self.layers
            for d in (each.distance,)
        ]
        updates = (
            ("cosine of updates", self.connections),
            ("cosine of learned changes", self.learned),
        )
        made = [[[*header, "settled at (a)"], *layers]]
        made += [
            [
                ["connection", title, "same sign"],
                *(
                    [c.connection, shown(c.cosine, c.reason), shown(c.sign_agreement, "", "{:.2%}")]
                    for c in agreements
                ),
            ]
            for title, agreements in updates
        ]
        synapses = [
            [s.connection, str(s.synapses), shown(s.tag_cosine, ""), f"{s.weight_rmse:.5f}"]
            for s in self.synapses
        ]
        made.append([["connection", "synapses", "cosine of tags", "rmse of weights"], *synapses])
        return [cells for cells in made if len(cells) > 1]

    def spike_table(self) -> Cells:
        """Rows of text with the spike statistics of both traces, the header first."""
        header = ["trace", "layer", "phase", "rate, Hz", "ISI CV", "Fano", "noise", "signal", "I/E"]
        rows = [
            [side, s.layer, s.phase]
            + [
                shown(value, "-", "{:.3g}")
                for value in (
                    *(s.mean_rate, s.isi_cv, s.fano_factor),
                    *(s.noise_correlation, s.signal_correlation, s.balance),
                )
            ]
            for side, statistics in (("a", self.spikes_a), ("b", self.spikes_b))
            for s in statistics
        ]
        return [header, *rows] if rows else []

    def sample_table(self) -> Cells:
        """Rows of text with the agreement of each sample in each phase, the header first."""
        names = [agreement.connection for agreement in self.connections]
        cosines = {
            (each.sample, each.agreement.connection): each.agreement for each in self.sample_updates
        }
        header = ["sample", "phase", "pearson", "rmse", *(f"cosine {name}" for name in names)]
        rows = [
            [
                str(s.sample),
                s.phase,
                shown(s.distance.pearson, s.distance.reason),
                f"{s.distance.rmse:.5f}",
                *(
                    shown(update.cosine, update.reason)
                    for name in names
                    for update in (cosines[s.sample, name],)
                ),
            ]
            for s in self.by_sample
        ]
        return [header, *rows]


def without_none_reason(found: Distance | UpdateAgreement) -> dict[str, Any]:
    """Fields of a metric; `reason` only where there is one."""
    return {k: v for k, v in asdict(found).items() if k != "reason" or v is not None}


def shown(value: float | None, reason: str | None, form: str = "{:.5f}") -> str:
    """A formatted number, or the reason why it is missing."""
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
        and of spikes, of inference or of learning. They are compared in the samples, layers and
        phases that they share; the number of steps may differ.

    Returns
    -------
    Comparison
        Agreement of the rates of every layer and phase, and of the Hebbian updates of every
        connection if there are nudged phases.

    Raises
    ------
    MismatchError
        If the traces share no samples with equal inputs, no layers or no phases.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> found = ne.compare(example_rates, example_spikes)
    >>> found.layers[0].layer, found.layers[0].phase
    ('hidden', 'free')
    >>> found.connections[1].connection
    'hidden->output'
    """
    first, second = loaded(a, "compare"), loaded(b, "compare")
    return compare_traces(first, second, (name_of(a, "a"), name_of(b, "b")))


def name_of(source: str | Path | TraceData, side: str) -> str:
    """Name of a trace in tables: its path, or its side and backend."""
    if isinstance(source, (str, Path)):
        return str(source)
    return str(getattr(source, "path", f"{side} ({source.origin.backend})"))


def compare_traces(a: TraceData, b: TraceData, names: tuple[str, str]) -> Comparison:
    """Compare two traces in memory."""
    learned, differing = compare_learned(a, b), list[str]()
    a, b = common_samples(a, b, differing)
    phases = common_phases(a, b, differing)
    layers: list[LayerAgreement] = []
    rates: dict[tuple[str, str], tuple[Array, Array]] = {}
    shared = [layer for layer in a.layers_with_rates if layer in b.layers_with_rates]
    if not shared and not learned:
        layers_of = f"{shorten(a.layers_with_rates)} and {shorten(b.layers_with_rates)}"
        raise MismatchError(
            "no layer has rates, or weights that changed, in both traces; "
            f"layers with rates: {layers_of}"
        )
    for layer in shared:
        for phase in phases:
            both = a.rate(layer, phase), b.rate(layer, phase)
            if both[0].shape != both[1].shape:
                sizes = f"{both[0].shape[1]} and {both[1].shape[1]} units"
                raise MismatchError(f"layer {layer!r} has {sizes} in the two traces")
            rates[layer, phase] = both
            settled = settled_at(b, layer, phase), settled_at(a, layer, phase)
            layers.append(LayerAgreement(layer, phase, distance(*both), *settled))
    pooled = [(p, pooled_distance([rates[n, p] for n in shared])) for p in phases if shared]
    nudged = has_nudged_phases(a.schedule) and len(phases) == len(a.schedule) == len(b.schedule)
    return Comparison(
        *names,
        (a.origin.backend, b.origin.backend),
        len(a.index),
        tuple(layers),
        tuple(pooled),
        compare_updates(a, b) if nudged else (),
        learned,
        (*differing, *notes_on(a, b, shared, nudged=nudged, learned=bool(learned))),
        tuple(
            SampleAgreement(
                int(index),
                phase,
                pooled_distance([(x[k : k + 1], y[k : k + 1]) for x, y in parts]),
            )
            for k, index in enumerate(a.index)
            for phase in phases
            for parts in ([rates[layer, phase] for layer in shared],)
            if parts
        ),
        tuple(
            SampleUpdate(int(index), each)
            for k, index in enumerate(a.index)
            for each in (compare_updates(a, b, k) if nudged else ())
        ),
        compare_synapses(a, b) if nudged else (),
        tuple(spike_statistics(a)),
        tuple(spike_statistics(b)),
        tuple(
            compare_trains(a, b, layer, tau=VAN_ROSSUM_STEPS * a.step_seconds)
            for layer in a.spikes
            if layer in b.spikes and layer in shared and a.step_seconds == b.step_seconds
        ),
        {layer: rates[layer, phases[0]] for layer in shared},
    )


def notes_on(
    a: TraceData, b: TraceData, shared: Sequence[str], *, nudged: bool, learned: bool
) -> list[str]:
    """Why layers or updates are missing from a comparison."""
    either = {*a.layers_with_rates, *b.layers_with_rates}
    missing = [layer for layer in dict.fromkeys((*a.layers, *b.layers)) if layer in either]
    missing = [layer for layer in missing if layer not in shared]
    notes = [f"not recorded in both traces: {', '.join(missing)}"] if missing else []
    if not nudged and not learned:
        notes.append("no Hebbian updates: the traces have no nudged phases (record with phases)")
    elif nudged:
        apart = [c for c in a.connections if c not in b.connections or not both_ends(a, b, c)]
        notes += [f"no Hebbian updates of {', '.join(apart)}: an end is unknown"] if apart else []
    return notes


def common_samples(a: TraceData, b: TraceData, notes: list[str]) -> tuple[TraceData, TraceData]:
    """Both traces in the samples that they share; a sample has the same number and input."""
    if not len(a.index) or not len(b.index):
        raise MismatchError("the traces hold no samples")
    same = np.array_equal(a.index, b.index)
    places = [(k, k) for k in range(len(a.index))] if same else shared_places(a, b)
    if not places:
        numbers = f"{shorten(a.index.tolist())} and {shorten(b.index.tolist())}"
        raise MismatchError(f"the traces have different samples: {numbers}")
    if not same:
        notes.append(f"{len(places)} samples are in both traces, and compared")
    a, b = (select_samples(trace, [p[k] for p in places]) for k, trace in enumerate((a, b)))
    if not np.array_equal(a.label, b.label):
        labels = f"{shorten(a.label.tolist())} and {shorten(b.label.tolist())}"
        raise MismatchError(f"the traces have different labels: {labels}")
    if a.inputs.shape != b.inputs.shape or not np.array_equal(a.inputs, b.inputs):
        raise MismatchError("the traces have the same samples by number, but not the same inputs")
    return a, b


def shared_places(a: TraceData, b: TraceData) -> list[tuple[int, int]]:
    """Positions in both traces of the samples with the same number and the same input."""
    if a.inputs.shape[1] != b.inputs.shape[1]:
        return []
    there = {int(number): k for k, number in reversed(list(enumerate(b.index)))}
    return [
        (k, there[int(number)])
        for k, number in enumerate(a.index)
        if int(number) in there and np.array_equal(a.inputs[k], b.inputs[there[int(number)]])
    ]


def common_phases(a: TraceData, b: TraceData, notes: list[str]) -> list[str]:
    """Names of the phases that both traces have with the same beta."""
    one, other = ([(phase.name, phase.beta) for phase in t.schedule] for t in (a, b))
    found = [name for name, beta in one if (name, beta) in other]
    if not found:
        phases = f"{shorten(one)} and {shorten(other)}"
        raise MismatchError(f"the traces have different phases: {phases}")
    if one != other:
        notes.append(f"phases in both traces, and compared: {', '.join(found)}")
    return found


def shorten(things: Sequence[object]) -> str:
    """The first items of a list as text, and how many there are."""
    text = ", ".join(str(thing) for thing in things[:8])
    return text + (f" ... ({len(things)} in all)" if len(things) > 8 else "") or "none"


def pooled_distance(rates: list[tuple[Array, Array]]) -> Distance:
    """Distance over the units of several layers."""
    a, b = (np.concatenate([pair[side] for pair in rates], axis=1) for side in (0, 1))
    return distance(a, b)


def settled_at(trace: TraceData, layer: str, phase: str) -> float:
    """Milliseconds from the start of a phase to the end of the step from which on it is settled."""
    running = trace.running_rate(layer, phase)
    away = np.sqrt(np.mean((running - running[:, -1:]) ** 2, axis=(0, 2))) > SETTLED
    step = int(len(away) - np.argmax(away[::-1]) + 1) if away.any() else 1
    return float(f"{step * trace.step_seconds * 1e3:.9g}")


def has_nudged_phases(schedule: Schedule) -> bool:
    """Whether the phases differ in beta, so that a contrast is defined."""
    return len({phase.beta for phase in schedule}) > 1


def hebbian_update(trace: TraceData, connection: str, sample: int | None = None) -> Array:
    """dW = sum over phases and samples of contrast s_post s_pre^T (target units, source units).

    `sample` restricts it to one sample, by its position.
    """
    source, target = connection.split("->")
    total = np.zeros(())
    rows = slice(None) if sample is None else slice(sample, sample + 1)
    for phase, part in contrast(trace.schedule).items():
        if part:
            pre = trace.inputs if is_input(trace, connection) else trace.rate(source, phase)
            total = total + part * (trace.rate(target, phase)[rows].T @ pre[rows])
    return total


def is_input(trace: TraceData, connection: str) -> bool:
    """Whether the source of a connection is the input, which every trace holds."""
    source = connection.split("->", maxsplit=1)[0]
    if source in trace.layers_with_rates:
        return False
    if source not in trace.kinds:
        return True
    fed = any(name.endswith(f"->{source}") for name in trace.connections)
    held = trace.weights.get(connection)
    return not fed and held is not None and held.before.shape[1:] == trace.inputs.shape[1:]


def compare_updates(
    a: TraceData, b: TraceData, sample: int | None = None
) -> tuple[UpdateAgreement, ...]:
    """Agreement of the Hebbian updates of every connection with recorded ends in both traces."""
    return tuple(
        update_agreement(name, hebbian_update(a, name, sample), hebbian_update(b, name, sample))
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
    return target in known and (source in known or is_input(trace, connection))


def compare_synapses(a: TraceData, b: TraceData) -> tuple[SynapseAgreement, ...]:
    """Agreement of tags and weights at the end of each sample, of synapses in both traces."""
    found = []
    for name, mine in a.hebbian.items():
        other = b.hebbian.get(name)
        pairs = [pair for pair in mine.synapses if other is not None and pair in other.synapses]
        if other is None or not pairs:
            continue
        ends = [
            (log, [log.synapses.index(pair) for pair in pairs], slice(t.steps - 1, None, t.steps))
            for log, t in ((mine, a), (other, b))
        ]
        tags = [np.asarray(log.tag)[rows][:, columns] for log, columns, rows in ends]
        weights = [np.asarray(log.weight)[rows][:, columns] for log, columns, rows in ends]
        error = float(np.sqrt(np.mean((weights[1] - weights[0]) ** 2)))
        found.append(SynapseAgreement(name, len(pairs), cosine(*tags, floor=ROUNDING), error))
    return tuple(found)


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
