"""Spike-pair protocol in a simulator that learns, as in slice experiments on STDP.

A presynaptic neuron fires once, and a postsynaptic neuron for each lag fires once at that lag, in
the window of the second of two phases. Constant currents make them fire: a membrane that starts at
half the threshold reaches it in step k with the current 1 / (2 k - 1), and again only in step 3 k.
The weights are zero, so that spikes affect only the tags.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.common.equality import Comparable
from neuro_eqprop.dynamics.schedules import DT, Phase
from neuro_eqprop.simulators.learning import Learner
from neuro_eqprop.simulators.registry import load_learner
from neuro_eqprop.spiking.ir import Population, Projection, Reset, Spiking, SpikingNetwork, Stimulus
from neuro_eqprop.spiking.plasticity import LearningRule, Plastic, PlasticNetwork, TrainingSamples
from neuro_eqprop.traces.plots.spike_timing import plot_pairs
from neuro_eqprop.traces.plots.traces import Axes
from neuro_eqprop.traces.spike_timing import TAU, pair_kernel

TAIL = 12.0
"""Time constants from the last spike to the end of the phase; the error is of order exp(-24)."""
NEURON = Spiking(1.0, 0.0, 1.0, Reset.SUBTRACT, floor=-1.0, ceiling=2.0)


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class PairCurve(Comparable):
    """Tags after isolated spike pairs, by lag."""

    backend: str
    tau: float
    """Time constant of the traces in steps."""
    factor: float
    """f, the third factor of the phase in which the pairs lie: +1 or -1."""
    step_seconds: float
    lag: Ints
    """Step of the postsynaptic spike minus that of the presynaptic one."""
    tag: Array

    def __repr__(self) -> str:
        lags = f"lags {self.lag[0]}..{self.lag[-1]} steps"
        return f"PairCurve({self.backend}, {lags}, tau {self.tau:g}, factor {self.factor:g})"

    @property
    def seconds(self) -> Array:
        """Lags in seconds."""
        return self.lag.astype(np.float64) * self.step_seconds

    @property
    def kernel(self) -> Array:
        """Tags predicted by the learning rule in discrete time."""
        return self.factor * pair_kernel(self.lag, self.tau)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot the tags and the kernel of the rule; return the axes."""
        label = f"{self.backend}, f = {self.factor:+.0f}"
        return plot_pairs(self.seconds, self.tag, self.kernel, label, ax=ax)


def pair_protocol(
    on: str | Learner = "emulator",
    *,
    tau: float = TAU,
    most: int = 40,
    factor: float = 1.0,
) -> PairCurve:
    """Measure the change of a synapse's tag by one spike pair, as a function of its lag.

    Parameters
    ----------
    on : str or Learner
        A simulator that learns: "reference", "emulator", "brian2", "brian2-biology", "lava".
    tau : float
        Time constant of the activity traces in steps.
    most : int
        Longest lag in steps.
    factor : float
        Third factor of the phase with the pairs: +1 (highest beta) or -1 (lowest beta).

    Returns
    -------
    PairCurve
        Tags for lags from -most to most; `plot()` shows them with the kernel of the rule.

    Examples
    --------
    >>> curve = pair_protocol("emulator", tau=4.0, most=2)
    >>> bool(abs(curve.tag - curve.kernel).max() < 1e-9)
    True
    >>> bool(abs(curve.tag - curve.tag[::-1]).max() < 1e-9)
    True

    """
    if factor not in (1.0, -1.0):
        raise ValueError(f"factor is {factor}; the third factor of a phase is 1 or -1")
    if most < 1:
        raise ValueError(f"most is {most}; the longest lag has at least one step")
    learner = load_learner(on)
    lag: Ints = np.arange(-most, most + 1)
    steps = 2 * most + 2 + int(np.ceil(TAIL * tau))
    first = steps + 1 + most  # step of the presynaptic spike, counted from one
    betas = (0.0, 1.0) if factor > 0 else (1.0, 0.0)
    phases = ("first", "second")
    schedule = tuple(Phase(n, b, steps, steps) for n, b in zip(phases, betas, strict=True))
    populations = tuple(
        Population(name, NEURON, np.zeros(size)) for name, size in (("pre", 1), ("post", len(lag)))
    )
    silent = Projection("pre", "post", np.zeros((len(lag), 1)))
    network = SpikingNetwork(DT, populations, (silent,), "post")
    plastic = PlasticNetwork(
        network, (Plastic(silent.name, limit=1.0),), LearningRule(schedule, tau)
    )
    current = {"pre": current_for(np.array([first])), "post": current_for(first + lag)}
    no_pull = {"post": np.zeros((1, len(lag)))}
    samples = TrainingSamples(Stimulus(1, current, no_pull), np.zeros(1))
    learned = learner.learn(plastic, samples)
    seconds = float(getattr(learner, "step_seconds", DT))
    return PairCurve(learner.name, tau, factor, seconds, lag, learned.tags[silent.name][:, 0])


def current_for(step: Ints) -> Array:
    """Return the currents (1, neurons) with which each neuron first fires in its step."""
    return np.asarray(1.0 / (2.0 * step - 1.0))[None]
