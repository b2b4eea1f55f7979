"""Spike timing: the change of a synapse as a function of the lags between its spikes.

With lag the step of a postsynaptic spike minus that of a presynaptic one, f the third factor of a
phase and r = keep r + (1 - keep) s the activity traces, keep = exp(-1 / tau), the rule
m = m + f r_pre r_post is a sum over pairs of spikes:

    m = sum over pairs of  keep^|lag| g(u)           u the step of the later spike of the pair
    g(u) = (1 - keep)^2 sum over v >= u of  f(v) keep^(2 (v - u))

In a long window g is f (1 - keep) / (1 + keep). The kernel is symmetric in the lag: the order of
the spikes does not matter, and the sign of the change is that of f.

The exponential STDP window sign(lag) exp(-|lag| / tau), with equal sides, is antisymmetric.
Summed over the pairs of two trains it measures r_pre dr_post/dt (Xie & Seung 2000; Bengio et al.
2015). Equilibrium propagation changes a weight by the contrast of r_pre r_post between two phases,
which is the integral of r_pre dr_post/dt where the presynaptic rate is constant (Bengio et al.
2017; EqSpike, Martin et al. 2021). So only the spikes around the step at which beta changes show it
in the window; `spike_timing` measures how well.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.common.equality import Comparable
from neuro_eqprop.dynamics.schedules import Schedule, contrast
from neuro_eqprop.simulators.recordings import TraceData
from neuro_eqprop.traces.lazy import loaded
from neuro_eqprop.traces.metrics import pearson
from neuro_eqprop.traces.plots.spike_timing import plot_spike_timing
from neuro_eqprop.traces.plots.traces import Axes
from neuro_eqprop.traces.synapse_history import factor_of_steps

TAU = 8.0
"""Time constant of the traces in steps, the default of learning on a chip."""
REACH = 5.0
"""Longest lag in time constants."""
AROUND = 3.0
"""Distance in time constants from the change of beta within which presynaptic spikes are paired."""
TRACE_TOLERANCE = 0.1
"""Largest difference of a recorded trace from one with the given tau; 7 bits round by less."""


def pair_kernel(lag: Array | Ints, tau: float) -> Array:
    """Change of the tag by one pair of spikes in a long window with f = 1; lag and tau in steps."""
    keep = float(np.exp(-1.0 / tau))
    return np.asarray((1.0 - keep) / (1.0 + keep) * keep ** np.abs(lag))


def stdp_window(lag: Array | Ints, tau: float) -> Array:
    """The exponential STDP window with equal sides; zero at lag zero."""
    return np.asarray(np.sign(lag) * np.exp(-np.abs(lag) / tau))


@dataclass(frozen=True, eq=False, slots=True)
class SpikeTiming(Comparable):
    """Changes of the synapses of a connection against the lags of their spikes.

    A change is a tag in the unit of trace files: the update of the weight at learning rate one.
    Lags are positive where the presynaptic spike comes first.
    """

    connection: str
    backend: str
    tau: float
    """Time constant of the traces in steps."""
    step_seconds: float
    samples: int
    around: int
    """Steps before and after the change of beta in which presynaptic spikes are paired."""
    lag: Ints
    """In steps, from the most negative."""
    pairs: Ints
    """Number of pairs of spikes at each lag around the change of beta."""
    change: Array
    """Mean change of the synapses that these pairs belong to, each pair counted once."""
    change_error: Array
    """Standard error over samples of `change` minus its mean over the lags."""
    potentiated: Array
    """By lag, the mean contribution of pairs in all windows to the tags of synapses that grow."""
    depressed: Array
    """The same for synapses that shrink."""
    window_pearson: float | None
    """Correlation over synapses and samples of the change with the STDP window summed over the
    pairs around the change of beta."""
    window_sign: float | None
    """Share of the total change, in absolute value, at synapses where that sum has its sign."""
    kernel_pearson: float | None
    """Correlation of the change with the symmetric kernel summed over the same pairs."""
    product_pearson: float | None
    """Correlation of the change with r_pre times the change of r_post between the phases."""

    @property
    def seconds(self) -> Array:
        """Lags in seconds."""
        return self.lag.astype(np.float64) * self.step_seconds

    @property
    def odd_share(self) -> float:
        """Share of the antisymmetric part in the sum of squares of `change` about its mean."""
        centered = self.change - self.change.mean()
        odd = (centered - centered[::-1]) / 2
        return share(odd, centered)

    @property
    def odd_share_of_pairs(self) -> float:
        """Share of the antisymmetric part in the sum of squares of `potentiated`."""
        return share((self.potentiated - self.potentiated[::-1]) / 2, self.potentiated)

    def to_json(self) -> dict[str, Any]:
        """Fields as JSON."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in asdict(self).items()
        } | {"odd_share": self.odd_share, "odd_share_of_pairs": self.odd_share_of_pairs}

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw `change` against the lag beside the exponential STDP window; return the axes."""
        window = stdp_window(self.lag, self.tau)
        # The window has no unit: only its height is scaled, so that both are visible.
        middle = float(self.change.mean())
        height = float(np.abs(self.change - middle).max())
        axes = plot_spike_timing(
            self.seconds, self.change, self.change_error, middle + height * window, ax=ax
        )
        axes.set_title(f"{self.connection}, {self.samples} samples on {self.backend}")
        return axes


def share(part: Array, whole: Array) -> float:
    """Sum of squares of a part over that of the whole; 0 where the whole is zero."""
    total = float(np.sum(whole**2))
    return float(np.sum(part**2)) / total if total else 0.0


def spike_timing(
    trace: str | Path | TraceData,
    connection: str,
    *,
    tau: float = TAU,
    most: int | None = None,
) -> SpikeTiming:
    """Measure the change of synapses against the lags of their spikes in a run that learned.

    Parameters
    ----------
    trace : Trace, str or Path
        The trace, or its file, of `learn --code rate --traces` or
        `learn_on_chip(..., code="rate", record=...)`, with the spikes of both layers; those of the
        input are recorded by "input:spikes".
    connection : str
        Its name, such as "hidden->output".
    tau : float
        Time constant of the traces in steps, as `tau` of the run.
    most : int, optional
        Longest lag in steps; five time constants unless given.

    Returns
    -------
    SpikeTiming
        The curves, and their correlations with the change of every synapse; `plot()` draws them.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> model = ne.learn_on_chip(
    ...     "layered", "digits", hidden=(16,), code="rate", samples=50, epochs=1, beta=0.2,
    ...     learning_rate=0.05, record=["hidden->output:hebbian"],
    ... )
    >>> found = ne.spike_timing(model.trace, "hidden->output")
    >>> bool(found.window_pearson > 0.9 > found.kernel_pearson)
    True

    """
    trace = loaded(trace, "spike_timing")
    source, target = ends(trace, connection)
    if not tau > 0:
        raise ValueError(f"tau is {tau}; the time constant of the traces must be above 0 steps")
    reach = round(REACH * tau) if most is None else most
    onset, direction = change_of_beta(trace.schedule)
    around = pairing_range(trace.schedule, onset, reach, tau)
    keep, factors = float(np.exp(-1.0 / tau)), factor_of_steps(trace.schedule)
    check_tau(trace, connection, keep)
    before, after = trace.time_course(source), trace.time_course(target)
    r_pre, r_post = activity_trace(before, keep), activity_trace(after, keep)
    lags: Ints = np.arange(-reach, reach + 1)
    sums = Sums(lags, direction * stdp_window(lags, tau), pair_kernel(lags, tau))
    weight_of_later = later_weights(factors, keep)
    for k in range(trace.samples):
        tag = np.einsum("ti,t,tj->ij", r_post[k], factors, r_pre[k], optimize=True)
        sums.add(before[k], after[k], tag, slice(onset - around, onset + around))
        sums.decompose(before[k], after[k], tag, weight_of_later, keep)
        sums.products.append(product_change(trace, source, target, k, direction))
    return sums.result(trace, connection, tau, around)


def ends(trace: TraceData, connection: str) -> tuple[str, str]:
    """Source and target of a connection whose spikes are in the trace."""
    source, arrow, target = connection.partition("->")
    if not arrow or any(name not in trace.kinds for name in (source, target)):
        raise ValueError(
            f"{connection!r} joins no layers of this trace; write source->target with two of "
            f"{', '.join(trace.layers)}"
        )
    for name in (source, target):
        if not trace.kinds[name].binary:
            raise ValueError(f"{name!r} has no binary spikes in this trace; learn with code rate")
        if name not in trace.spikes:
            raise ValueError(f"the spikes of {name!r} were not recorded; record {name}:spikes")
    return source, target


def change_of_beta(schedule: Schedule) -> tuple[int, float]:
    """Step at which beta changes between the compared phases, and the sign of f after it."""
    parts = contrast(schedule) if len({phase.beta for phase in schedule}) > 1 else {}
    step = 0
    for first, second in pairwise(schedule):
        step += first.steps
        if parts and parts[first.name] * parts[second.name] < 0:
            return step, float(np.sign(parts[second.name]))
    raise ValueError(
        "the trace has no two phases in a row whose contrast the rule takes; record a run that "
        "learns, or simulate with phases"
    )


def pairing_range(schedule: Schedule, onset: int, reach: int, tau: float) -> int:
    """Steps around the change of beta for which all lags lie inside the sample."""
    last = sum(phase.steps for phase in schedule)
    around = min(round(AROUND * tau), onset - reach, last - onset - reach)
    if around < 1 or reach < 1:
        raise ValueError(
            f"lags of {reach} steps do not fit into the phases: {onset} steps before the change of "
            f"beta, {last - onset} after it; use a shorter `most`, or learn with more steps"
        )
    return around


def check_tau(trace: TraceData, connection: str, keep: float) -> None:
    """Raise ValueError if recorded traces of the connection decay with another time constant."""
    if connection not in trace.hebbian:
        return
    log, source = trace.hebbian[connection], connection.partition("->")[0]
    units = [pair[1] for pair in log.synapses]
    made = activity_trace(trace.time_course(source)[:, :, units], keep)
    found = np.asarray(log.pre[:]).reshape(made.shape)
    if np.abs(made - found).max(initial=0.0) > TRACE_TOLERANCE:
        raise ValueError(
            f"the recorded traces of {connection!r} do not decay with tau {-1 / np.log(keep):g}; "
            "give the `tau` of the run"
        )


def activity_trace(course: Array, keep: float) -> Array:
    """r at every step (samples, steps, units); it decays on through the commit of each sample."""
    found, r = np.zeros(course.shape), np.zeros(course.shape[2])
    for sample, spikes in enumerate(course):
        for step, sent in enumerate(spikes):
            r = keep * r + (1.0 - keep) * sent
            found[sample, step] = r
        r = keep * r
    return found


def later_weights(factors: Array, keep: float) -> Array:
    """g(u) for every step u of the later spike: the contribution of a pair at lag zero."""
    found, held = np.zeros(len(factors)), 0.0
    for step in range(len(factors) - 1, -1, -1):
        held = factors[step] + keep**2 * held
        found[step] = held
    return np.asarray((1.0 - keep) ** 2 * found)


def product_change(
    trace: TraceData, source: str, target: str, sample: int, direction: float
) -> Array:
    """r_pre times the change of r_post from the lowest beta to the highest."""
    at = {phase.beta: phase.name for phase in trace.schedule}
    low, high = at[min(at)], at[max(at)]
    first = low if direction > 0 else high
    change = trace.rate(target, high)[sample] - trace.rate(target, low)[sample]
    return np.outer(change, trace.rate(source, first)[sample])


@dataclass(slots=True)
class Sums:
    """Values of each sample, from which `result` computes the curves."""

    lag: Ints
    window: Array
    kernel: Array
    pairs: list[Array] = field(default_factory=list)
    """Of each sample, the number of pairs at each lag."""
    weighted: list[Array] = field(default_factory=list)
    """Of each sample, the sum over these pairs of the change of their synapse."""
    tags: list[Array] = field(default_factory=list)
    by_window: list[Array] = field(default_factory=list)
    by_kernel: list[Array] = field(default_factory=list)
    products: list[Array] = field(default_factory=list)
    grown: list[Array] = field(default_factory=list)
    shrunk: list[Array] = field(default_factory=list)

    def add(self, pre: Array, post: Array, tag: Array, around: slice) -> None:
        """Pair the presynaptic spikes in `around` with postsynaptic ones at every lag."""
        sent = pre[around]
        by_window, by_kernel = np.zeros_like(tag), np.zeros_like(tag)
        pairs, weighted = np.zeros(len(self.lag)), np.zeros(len(self.lag))
        for k, lag in enumerate(self.lag):
            count = post[around.start + lag : around.stop + lag].T @ sent
            pairs[k], weighted[k] = count.sum(), (count * tag).sum()
            by_window += self.window[k] * count
            by_kernel += self.kernel[k] * count
        self.pairs.append(pairs)
        self.weighted.append(weighted)
        self.tags.append(tag)
        self.by_window.append(by_window)
        self.by_kernel.append(by_kernel)

    def decompose(self, pre: Array, post: Array, tag: Array, later: Array, keep: float) -> None:
        """Decompose the tags into contributions of pairs, by lag."""
        grows, shrinks = tag > 0, tag < 0
        grown, shrunk = np.zeros(len(self.lag)), np.zeros(len(self.lag))
        for k, lag in enumerate(self.lag):
            first, second = (pre, post) if lag >= 0 else (post, pre)
            size = abs(int(lag))
            part = (second * later[:, None])[size:].T @ first[: len(first) - size]
            part = keep**size * (part if lag >= 0 else part.T)
            grown[k] = part[grows].mean() if grows.any() else 0.0
            shrunk[k] = part[shrinks].mean() if shrinks.any() else 0.0
        self.grown.append(grown)
        self.shrunk.append(shrunk)

    def result(self, trace: TraceData, connection: str, tau: float, around: int) -> SpikeTiming:
        """The curves over all samples."""
        pairs, weighted = np.array(self.pairs), np.array(self.weighted)
        total = pairs.sum(axis=0)
        change = np.divide(weighted.sum(axis=0), total, out=np.zeros(len(total)), where=total > 0)
        # Standard error of a ratio of sums, from the residuals of each sample.
        parts = (weighted - change * pairs) / np.maximum(total, 1.0)
        parts -= parts.mean(axis=1, keepdims=True)
        error = np.sqrt((parts**2).sum(axis=0) * len(parts) / max(len(parts) - 1, 1))
        tags = np.array(self.tags).ravel()
        size, by_window = np.abs(tags), np.array(self.by_window).ravel()
        same = float(size[np.sign(by_window) == np.sign(tags)].sum())
        return SpikeTiming(
            connection,
            trace.origin.backend,
            tau,
            trace.step_seconds,
            trace.samples,
            around,
            self.lag,
            total.astype(np.int64),
            change,
            error,
            np.mean(self.grown, axis=0),
            np.mean(self.shrunk, axis=0),
            pearson(by_window, tags),
            same / float(size.sum()) if size.any() else None,
            pearson(np.array(self.by_kernel).ravel(), tags),
            pearson(np.array(self.products).ravel(), tags),
        )
