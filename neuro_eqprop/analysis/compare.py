"""Two traces of the same samples: how near the rates are, and the updates that follow from them.

With a and b the rates of the two sides at the end of a phase, pooled over samples and units, and
e = b - a:

    rmse = sqrt(mean(e^2))      p999 = the 99.9th percentile of |e|      worst = max |e|
    pearson = correlation of a and b; nothing where either side is constant

A side has settled at the first step of a phase from which on the root mean square of (its rate had
the phase ended there - its rate at the end) stays within `SETTLED`. For each connection, with c
the contrast of the schedule, the update is dW = sum over phases and samples of c s_post s_pre^T:

    cosine = <dW_a, dW_b> / (|dW_a| |dW_b|)
    sign_agreement = share of equal signs where |dW_a| > `MIN_RELATIVE_UPDATE` max |dW_a|

Both are nothing where they would divide by zero. Of two runs that changed their weights, the same
for the changes that they made.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuro_eqprop.arrays import Array
from neuro_eqprop.schedules import Schedule, contrast
from neuro_eqprop.traces import TraceData

SETTLED = 0.02
"""How near its end a rate has to stay to count as settled (root mean square, rates up to one)."""
ROUNDING = 1e-9
"""An update of this size is none: samples that are answered perfectly ask for no change."""
MIN_RELATIVE_UPDATE = 1e-6
"""Updates smaller than this part of the largest are rounding, and have no sign to agree on."""


class MismatchError(ValueError):
    """Two traces that are not of the same samples, layers and phases; the message says which."""


@dataclass(frozen=True, slots=True)
class Distance:
    """How far two lists of rates lie apart."""

    pearson: float | None
    rmse: float
    p999: float
    worst: float


@dataclass(frozen=True, slots=True)
class LayerAgreement:
    """Of a layer in a phase: the distance of b from a, and the steps until each had settled."""

    layer: str
    phase: str
    distance: Distance
    settled_at: int
    settled_at_a: int


@dataclass(frozen=True, slots=True)
class UpdateAgreement:
    """Of a connection: how alike the updates are that the two sides ask for."""

    connection: str
    cosine: float | None
    sign_agreement: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What `compare` finds; without nudged phases there are no updates to compare."""

    samples: int
    layers: tuple[LayerAgreement, ...]
    pooled: tuple[tuple[str, Distance], ...]
    """By phase, over the units of all layers."""
    connections: tuple[UpdateAgreement, ...]
    learned: tuple[UpdateAgreement, ...] = ()
    """Of connections whose weights both runs changed, the changes they made."""


def compare(a: TraceData, b: TraceData) -> Comparison:
    """b against a, layer by layer and phase by phase."""
    check_comparable(a, b)
    phases = [phase.name for phase in a.schedule]
    layers: list[LayerAgreement] = []
    rates: dict[tuple[str, str], tuple[Array, Array]] = {}
    shared = [layer for layer in a.layers_with_rates if layer in b.layers_with_rates]
    learned = compare_learned(a, b)
    if not shared and not learned:
        raise MismatchError("no layer has rates, or weights that changed, in both traces")
    for layer in shared:
        for phase in phases:
            both = a.rate(layer, phase), b.rate(layer, phase)
            if both[0].shape != both[1].shape:
                sizes = f"{both[0].shape[1]} and {both[1].shape[1]} units"
                raise MismatchError(f"layer {layer!r} has {sizes} in the two traces")
            rates[layer, phase] = both
            settled = settled_at(b, layer, phase), settled_at(a, layer, phase)
            layers.append(LayerAgreement(layer, phase, distance(*both), *settled))
    pooled = tuple((p, pooled_distance([rates[n, p] for n in shared])) for p in phases if shared)
    updates = compare_updates(a, b) if has_nudged_phases(a.schedule) else ()
    return Comparison(len(a.index), tuple(layers), pooled, updates, learned)


def check_comparable(a: TraceData, b: TraceData) -> None:
    """Refuse traces that are not of the same samples, layers and phases."""
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
    """A list that may be long, as a sentence can hold it."""
    shown = ", ".join(str(thing) for thing in things[:8])
    return shown + (f" ... ({len(things)} in all)" if len(things) > 8 else "") or "none"


def distance(a: Array, b: Array) -> Distance:
    """How far b lies from a, pooled over everything."""
    error = np.abs(b - a).ravel()
    return Distance(
        pearson(a.ravel(), b.ravel()),
        float(np.sqrt(np.mean(error**2))),
        float(np.percentile(error, 99.9)),
        float(error.max()),
    )


def pooled_distance(rates: list[tuple[Array, Array]]) -> Distance:
    """The distance over the units of several layers."""
    a, b = (np.concatenate([pair[side] for pair in rates], axis=1) for side in (0, 1))
    return distance(a, b)


def pearson(a: Array, b: Array) -> float | None:
    """The correlation of two lists; nothing where either is constant."""
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    return cosine(a - a.mean(), b - b.mean())


def cosine(a: Array, b: Array) -> float | None:
    """The cosine of the angle between two arrays; nothing where either is zero but for rounding."""
    sizes = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    if min(sizes) <= ROUNDING:
        return None
    return float(np.clip(np.vdot(a, b) / (sizes[0] * sizes[1]), -1.0, 1.0))


def settled_at(trace: TraceData, layer: str, phase: str) -> int:
    """The step of a phase, counted from one, from which on the rate stays near its end."""
    running = trace.running_rate(layer, phase)
    away = np.sqrt(np.mean((running - running[:, -1:]) ** 2, axis=(0, 2))) > SETTLED
    return int(len(away) - np.argmax(away[::-1]) + 1) if away.any() else 1


def has_nudged_phases(schedule: Schedule) -> bool:
    """Whether the phases differ in beta, so that there is something to learn from."""
    return len({phase.beta for phase in schedule}) > 1


def hebbian_update(trace: TraceData, connection: str) -> Array:
    """dW = sum over phases and samples of contrast s_post s_pre^T, a row for each target unit."""
    source, target = connection.split("->")
    total = np.zeros(())
    for phase, part in contrast(trace.schedule).items():
        if part:
            pre = trace.rate(source, phase) if source in trace.kinds else trace.inputs
            total = total + part * (trace.rate(target, phase).T @ pre)
    return total


def compare_updates(a: TraceData, b: TraceData) -> tuple[UpdateAgreement, ...]:
    """The updates of every connection whose ends both traces know."""
    return tuple(
        compare_changes(connection, hebbian_update(a, connection), hebbian_update(b, connection))
        for connection in a.connections
        if connection in b.connections
        and has_both_rates(a, connection)
        and has_both_rates(b, connection)
    )


def has_both_rates(trace: TraceData, connection: str) -> bool:
    """Whether what both ends of a connection did was recorded; the input always is."""
    source, target = connection.split("->")
    return target in trace.layers_with_rates and (
        source in trace.layers_with_rates or source not in trace.kinds
    )


def compare_learned(a: TraceData, b: TraceData) -> tuple[UpdateAgreement, ...]:
    """The changes of every connection whose weights both runs changed."""
    found: list[UpdateAgreement] = []
    for name, mine in a.weights.items():
        other = b.weights.get(name)
        if mine.after is None or other is None or other.after is None:
            continue
        if mine.before.shape != other.before.shape:
            raise MismatchError(f"{name!r} has weights of other shapes in the two traces")
        found.append(compare_changes(name, mine.after - mine.before, other.after - other.before))
    return tuple(found)


def compare_changes(connection: str, one: Array, other: Array) -> UpdateAgreement:
    """How alike two changes of the weights of a connection are."""
    loud = np.abs(one) > MIN_RELATIVE_UPDATE * np.abs(one).max(initial=0.0)
    signs = np.sign(one[loud]) == np.sign(other[loud])
    angle = cosine(one, other)
    share = float(signs.mean()) if signs.size and angle is not None else None
    return UpdateAgreement(connection, angle, share)
