"""Learning on the chip: plastic synapses of a spiking network, and the definition of their rule.

It is the contrastive update of equilibrium propagation (Scellier & Bengio 2017), in local traces.
A sample runs through the phases of the schedule with the step of `neuro_eqprop.spiking.ir`,
followed by one more step, the commit. Every plastic projection has delay one and gain one. Let s be
what a unit sent in step t, w and m the weight and the tag of a synapse, and r_pre and r_post the
traces of its two units. Every step of a phase computes, in this order:

    neurons   the step of `neuro_eqprop.spiking.ir`; the input is gain w s[t - 1], summed in the
              order of the sources
    trace     r = keep r, then r = r + (1 - keep) where s, keep = exp(-1 / tau); values below
              2^-60 become zero                                                    (spiking)
              r = sent                                                             (graded)
    tag       m = m + (f r_pre) r_post                  in the last M steps of a phase, its window

    f = gap c, where c is the contrast of the phase (`dynamics.schedules.contrast`) and gap the
    highest beta minus the lowest: f is +1 at the highest beta, -1 at the lowest, 0 in between.

    With a rhythm, both nudged phases together are one cycle of T steps in which the nudge swings,
    beta(t) = -beta sin(2 pi t / T), and the third factor the same wave, later by the lag of traces:

    f = -s sin(2 pi t / T - lag), lag = arctan(2 pi tau / T), in all of the cycle

    s makes a product that follows beta with that lag count as in the windows of the clock.

    With a margin above zero, the nudged phases of a sample are skipped if |r - target| <= margin
    (in integers margin Q) for every output after the free phase. The commit still runs, and the
    counters of random numbers advance as if the phases had run.

    commit    all neurons are silent and keep their state, and messages in flight are dropped;
              r = keep r (spiking); then, after the last sample of a batch or of the run,
              w = min(max(loss w + eta m, -limit), limit), m = 0
              eta = share rate / (gap M n), n the number of samples since the last commit
              loss = 1 - decay rate, which is one but for learned feedback

The learning rate is that of the sample with the commit. Both traces are of the same step. A mirror,
the projection in the opposite direction, has the weights `mirrored` w^T and changes together with
w. After the commit, if samples are `fresh`, every neuron is reset to its resting state; otherwise
spiking neurons keep their state. Traces are zero before the first sample. Those of spiking units
are never reset; those of graded units are always reset, together with their sum of messages.

In integers (`IntegerArithmetic`), for a network in fixed point, with Q = 2^trace_bits - 1:

    trace     q = keep r, r = floor(q) + (p < q - floor(q)), then r + round(Q (1 - keep)) where s,
              at most Q; graded r = min(max(floor(Q sent + p), 0), Q)
    weight    W = w / scale, an integer of `bits` bits:
              W = min(max(W + floor(eta m / (scale Q^2) + p'), -2^(bits-1)), 2^(bits-1) - 1)

    p, p'     random numbers in [0, 1) from the seed (`neuro_eqprop.spiking.counter_rng.chances`):
              p = chances(0, step)[unit], with steps counted from the first sample, commits
              included, and units over all populations in order;
              p' = chances(1 + j, sample)[source, target], with j the index of the projection and
              samples counted from the first one; a projection and its mirror share p'

In the arithmetic of Lava's engine (`LoihiEngine`), for binary spikes and a batch of one, for each
projection: d(x, p) = floor(x) + (p < x - floor(x)), e = exp(-1 / 65535), `>>` rounds down, and [x]
is x clipped to 16 bits, -2^15 - 1 .. 2^15 - 1. Initial weights are even, floor(W / 2) 2.

    trace     x = d(keep x, p_x), then min(x + round(127 (1 - keep)), 127) where s
    third     y2 = f round(factor rate / first rate) in a window, else 0; y3 = 32 in the commit
    post      y1 = d(e x_post, p_y), y2 = d(e y2, p_y), y3 = d(e y3, p_y)
    tag       a = [[128 m + [x_pre y1 y2 >> 10]] - [(m y3 >> 5) 128]], where - [(m y3 >> 5) 128]
              is computed as + [(-m y3 >> 5) 128]
              new m = min(max(d(a / 128, p_w), -257), 255)
    weight    a = [128 W + [(m y3 >> 5) 2^(7 + exponent)]], with m before this step
              new W = min(max(d(a / 128, p_w), -256), 255)

    In step n = 0, 1, ..., commits included, p_x is number 2 n + 2 of default_rng(seed).random, p_y
    the same of seed + 2, and p_w number n + 1 of default_rng(2), all counted from zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import exp, isfinite
from typing import TypeAlias

import numpy as np

from neuro_eqprop.common.arrays import Array, Bits, Ints
from neuro_eqprop.dynamics.schedules import Schedule, contrast, phase_steps
from neuro_eqprop.spiking.ir import (
    Gain,
    Projection,
    SpikingNetwork,
    Stimulus,
)
from neuro_eqprop.spiking.synapses import DenseSynapses

LEAST = 2.0**-60
"""Float traces below this are set to zero, since subnormal numbers are slow to multiply."""
LEAST_LEVELS = 16
"""Fewest input levels; fewer lose more accuracy than equal input spikes gain."""
COMMIT = "commit"
"""Name of the last step of a sample, counted as one more phase."""

UNSIGNED_PAYLOAD = (
    "Lava's engine in fixed point reads payloads as unsigned bytes, so negative messages are lost; "
    "learn with code rate, or in floating point"
)


class PlasticityError(ValueError):
    """A network cannot learn with a rule; the message gives the reason and a remedy."""


@dataclass(frozen=True, slots=True)
class IntegerArithmetic:
    """Integer weights and traces, with stochastic rounding from the seed."""

    seed: int
    bits: int = 8
    trace_bits: int = 7

    def __post_init__(self) -> None:
        if not 2 <= self.bits <= 16 or not 2 <= self.trace_bits <= 16:
            raise PlasticityError(
                f"weights of {self.bits} bits and traces of {self.trace_bits} cannot learn; "
                "each has 2 to 16"
            )

    @property
    def top(self) -> int:
        """Q, the trace of a unit that fires in every step."""
        return (1 << self.trace_bits) - 1

    @property
    def range(self) -> tuple[int, int]:
        """The lowest and the highest weight."""
        return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1


@dataclass(frozen=True, slots=True)
class LoihiEngine:
    """Lava's learning engine in fixed point; factor and exponent represent the learning rate."""

    seed: int
    factor: int
    """|y2| at the learning rate `first`, at most 127."""
    exponent: int
    """A commit changes a weight by m 2^exponent."""
    first: float
    """The learning rate that `factor` represents."""

    def __post_init__(self) -> None:
        if not (1 <= self.factor <= 127 and -7 <= self.exponent <= 0 and self.first > 0):
            raise PlasticityError(
                f"Lava's engine cannot represent the learning rate {self.first}: "
                f"factor {self.factor} must be in 1..127 and exponent {self.exponent} in -7..0; "
                "use another learning rate"
            )

    @property
    def range(self) -> tuple[int, int]:
        """The lowest and the highest weight."""
        return -256, 255

    @property
    def top(self) -> int:
        """The largest trace."""
        return 127


Arithmetic: TypeAlias = IntegerArithmetic | LoihiEngine


@dataclass(frozen=True, slots=True)
class EpisodeStep:
    """One step of a sample."""

    phase: int
    """Row of its phase in the schedule; the commit is one phase more."""
    beta: float
    in_window: bool
    gate: float
    """The third factor f; zero outside the window."""


@dataclass(frozen=True, slots=True)
class LearningRule:
    """How a network learns: phases, traces, batch size and number format."""

    schedule: Schedule
    tau: float
    """Time constant of the trace of a spiking unit, in steps."""
    batch: int = 1
    """Samples per commit; a chip that learns online has 1."""
    fresh: bool = True
    """Whether every sample starts from the resting state."""
    numbers: Arithmetic | None = None
    """Integer arithmetic; None for floating point."""
    margin: float = 0.0
    """Samples with all outputs this close to their targets are not nudged; 0 nudges all."""
    rhythm: bool = False
    """Whether beta is one oscillation of both nudged phases, see the module."""

    def __post_init__(self) -> None:
        if not (isfinite(self.tau) and self.tau > 0):
            raise PlasticityError(f"tau must be above zero and finite, not {self.tau}")
        if self.batch < 1:
            raise PlasticityError(f"a batch of {self.batch} samples never commits; use 1 or more")
        windows = {phase.window for phase, f in zip(self.schedule, self.gates, strict=True) if f}
        if len(windows) != 1:
            raise PlasticityError(
                f"the phases to compare have different windows: {sorted(windows)}"
            )
        if any(phase.name == COMMIT for phase in self.schedule):
            raise PlasticityError(
                f"no phase may be called {COMMIT!r}, the name of the step after them"
            )
        if not 0.0 <= self.margin < 1.0:
            raise PlasticityError(f"margin must be in [0, 1), not {self.margin}")
        if self.margin and self.gates[0]:
            raise PlasticityError(
                "one-sided nudging compares the free phase of every sample; use a margin of 0, or "
                "nudging centered"
            )
        if self.rhythm and len(self.schedule) != 3:
            raise PlasticityError("a rhythm has a phase away from the target: nudge centered")
        if self.rhythm and (self.numbers is not None or self.margin):
            raise PlasticityError("a rhythm needs floating point and a margin of 0")
        if isinstance(self.numbers, LoihiEngine) and self.batch != 1:
            raise PlasticityError("Lava's engine commits after every sample: use a batch of 1")

    @property
    def gap(self) -> float:
        """The highest beta minus the lowest."""
        betas = [phase.beta for phase in self.schedule]
        return max(betas) - min(betas)

    @property
    def gates(self) -> tuple[float, ...]:
        """The third factor f of each phase."""
        parts = contrast(self.schedule)
        return tuple(float(np.sign(c)) * abs(c * self.gap) for c in parts.values())

    @property
    def window(self) -> int:
        """M, the number of steps of a phase in which tags accumulate."""
        return next(p.window for p, f in zip(self.schedule, self.gates, strict=True) if f)

    @property
    def steps(self) -> int:
        """Steps of a sample, including the commit."""
        return sum(phase.steps for phase in self.schedule) + 1

    @property
    def episode(self) -> tuple[EpisodeStep, ...]:
        """The steps of a sample; the last one is the commit."""
        gates = self.gates
        if self.rhythm:
            return self.cycle
        steps = [
            EpisodeStep(*step, gates[step.phase] if step.in_window else 0.0)
            for step in phase_steps(self.schedule)
        ]
        return (*steps, EpisodeStep(len(self.schedule), 0.0, in_window=False, gate=0.0))

    @property
    def cycle(self) -> tuple[EpisodeStep, ...]:
        """The steps of a sample whose nudged phases are one oscillation."""
        plain = phase_steps(self.schedule)
        nudged = [k for k, step in enumerate(plain) if step.phase]
        place = np.zeros(len(plain))
        place[nudged] = (np.arange(len(nudged)) + 0.5) / len(nudged)
        betas = -0.5 * self.gap * np.sin(2 * np.pi * place)
        # Products follow the nudge late, as a low-pass with the time constant of the traces does.
        phase = np.arctan(2 * np.pi * self.tau / len(nudged))
        waves = np.where(place > 0, -np.sin(2 * np.pi * place - phase), 0.0)
        size = self.gap * self.window / (0.25 * self.gap * len(nudged) * np.cos(phase))
        found = [
            EpisodeStep(step.phase, float(beta), step.in_window, float(size * wave))
            for step, beta, wave in zip(plain, betas, waves, strict=True)
        ]
        return (*found, EpisodeStep(len(self.schedule), 0.0, in_window=False, gate=0.0))

    def commits(self, samples: int) -> Bits:
        """Whether each sample of a run ends a batch or the run, so that the weights change."""
        sample = np.arange(samples)
        return np.asarray((sample % self.batch == self.batch - 1) | (sample == samples - 1))

    @property
    def top(self) -> float:
        """The trace of a unit that fires in every step."""
        return 1.0 if self.numbers is None else float(self.numbers.top)

    @property
    def input_levels(self) -> int:
        """The largest power of two that divides the length of a nudged phase; 0 if below 16.

        Spikes at a multiple of 1 / levels repeat with each phase (`training_stimulus`).
        """
        steps = self.schedule[-1].steps
        levels = steps & -steps
        return levels if levels >= LEAST_LEVELS else 0

    @property
    def keep(self) -> float:
        """Decay factor of a trace per step: exp(-1 / tau)."""
        return float(np.exp(-1.0 / self.tau))

    @property
    def impulse(self) -> int:
        """Increment of an integer trace by a spike."""
        if self.numbers is None:
            raise PlasticityError("float traces have no integer impulse")
        return round(self.numbers.top * (1.0 - self.keep))

    @property
    def unsettled(self) -> bool:
        """Whether traces still rise in the window of the free phase.

        They are then too low there, and the comparison with later phases is biased.
        """
        if self.gates[0] == 0:
            return False
        start = self.schedule[0].steps - self.schedule[0].window
        return exp(-start / self.tau) > 0.02


@dataclass(frozen=True, slots=True)
class Plastic:
    """A projection that learns, and its mirror, which changes with it."""

    name: str
    limit: float
    """Largest absolute weight, in floating point."""
    mirror: str | None = None
    mirrored: float = 1.0
    """Factor of the mirror's weights."""
    share: float = 1.0
    """Fraction of the learning rate."""
    scale: float = 1.0
    """In integers, the value of one weight step: a power of two."""
    decay: float = 0.0
    """The share of a weight that it loses in a commit at a learning rate of one."""

    def __post_init__(self) -> None:
        if not self.limit > 0:
            raise PlasticityError(f"weights of {self.name!r} with limit {self.limit} cannot learn")
        if self.decay < 0:
            raise PlasticityError(f"weights of {self.name!r} decay by {self.decay}, below zero")

    @property
    def names(self) -> tuple[str, ...]:
        """The projection and its mirror."""
        return (self.name,) if self.mirror is None else (self.name, self.mirror)


@dataclass(frozen=True, slots=True)
class PlasticNetwork:
    """A spiking network with plastic synapses, whose effective weights are `gains` times w."""

    network: SpikingNetwork
    plastic: tuple[Plastic, ...]
    rule: LearningRule
    gains: Mapping[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for projection in self.network.projections:
            if projection.delay != 1:
                raise PlasticityError(
                    f"{projection.name!r} has a delay of {projection.delay}; learning needs delay 1"
                )
        for part in self.plastic:
            if np.abs(self.projection(part.name).weight).max(initial=0.0) > part.limit:
                raise PlasticityError(f"weights of {part.name!r} start beyond {part.limit:g}")
            if part.mirror is not None:
                there, back = self.projection(part.name).weight, self.projection(part.mirror).weight
                if not np.array_equal(part.mirrored * there.T, back):
                    raise PlasticityError(f"{part.mirror!r} does not mirror {part.name!r}")
        self._check_kinds()
        for name, gain in self.gains.items():
            if gain.shape != self.projection(name).weight.shape or self.network.fixed is not None:
                raise PlasticityError(
                    f"gains of {name!r} need the shape of its weights, in floating point"
                )

    def _check_kinds(self) -> None:
        numbers = self.rule.numbers
        if (numbers is None) != (self.network.fixed is None):
            raise PlasticityError("a rule in integers needs a network in fixed point")
        if numbers is not None and any(part.decay for part in self.plastic):
            raise PlasticityError(
                "weights that decay need floating point: learn without bits, or with feedback tied"
            )
        for population in self.network.populations:
            neuron = population.neuron
            if neuron.follow is not None:
                raise PlasticityError(
                    f"population {population.name!r} tracks a rate, and synapses have no trace "
                    "of it; learn with code rate or graded"
                )
            if not neuron.graded:
                continue
            if self.rule.rhythm:
                raise PlasticityError(
                    f"graded units of {population.name!r} have no traces that lag: learn a rhythm "
                    "with code rate"
                )
            if not self.rule.fresh:
                raise PlasticityError(
                    f"graded units of {population.name!r} hold sums made with the weights before a "
                    "commit; use fresh=True, or learn with code rate"
                )
            if isinstance(numbers, LoihiEngine):
                raise PlasticityError(UNSIGNED_PAYLOAD)
            rate = neuron.activation
            if numbers is not None and rate and not 0.0 <= rate.low < rate.high <= 1.0:
                raise PlasticityError(
                    f"rates of {population.name!r} can leave 0..1, the range of integer traces; "
                    "train with activation hard_sigmoid"
                )

    def projection(self, name: str) -> Projection:
        """The projection of gain one of that name."""
        for projection in self.network.projections:
            if projection.name == name and projection.gain is Gain.ONE:
                return projection
        raise KeyError(name)

    @property
    def learns(self) -> frozenset[str]:
        """The names of all projections whose weights change."""
        return frozenset(name for part in self.plastic for name in part.names)

    def part_of(self, name: str) -> Plastic:
        """The plastic part to which a projection belongs, itself or as the mirror."""
        return next(part for part in self.plastic if name in part.names)

    def weight_step(self, part: Plastic) -> float:
        """The value of a weight of one; in floating point one."""
        return 1.0 if self.rule.numbers is None else part.scale

    def limits(self, part: Plastic) -> tuple[float, float]:
        """The lowest and the highest weight, in weight steps."""
        if self.rule.numbers is None:
            return -part.limit, part.limit
        low, high = self.rule.numbers.range
        return float(low), float(high)

    def etas(self, rates: Array) -> Array:
        """The factors of tags in a commit after each sample (samples, parts), in weight steps.

        Those of the samples without a commit (`LearningRule.commits`) are not used.
        """
        done = np.arange(len(rates)) % self.rule.batch + 1
        share = np.array([part.share for part in self.plastic])
        etas = share * rates[:, None] / (self.rule.gap * self.rule.window * done)[:, None]
        if isinstance(self.rule.numbers, IntegerArithmetic):
            etas = etas / [part.scale * self.rule.numbers.top**2 for part in self.plastic]
        return np.asarray(etas)

    def keeps(self, rates: Array) -> Array:
        """The factors of weights in a commit after each sample (samples, parts)."""
        decays = np.array([part.decay for part in self.plastic])
        return np.asarray(1.0 - rates[:, None] * decays)


def with_weights(plastic: PlasticNetwork, weights: Mapping[str, Array]) -> PlasticNetwork:
    """The same network with other weights, to continue learning."""
    projections = tuple(
        replace(p, synapses=DenseSynapses(weights[p.name]))
        if p.gain is Gain.ONE and p.name in weights
        else p
        for p in plastic.network.projections
    )
    return replace(plastic, network=replace(plastic.network, projections=projections))


@dataclass(frozen=True, slots=True)
class TrainingSamples:
    """Training samples with their targets, in order, and the learning rate of each."""

    stimulus: Stimulus
    rates: Array
    first: int = 0
    """Number of samples learned before; random numbers continue from there."""

    def __post_init__(self) -> None:
        if self.rates.shape != (self.stimulus.samples,):
            raise PlasticityError(f"{self.stimulus.samples} samples need as many rates")
        if not (np.isfinite(self.rates).all() and (self.rates >= 0).all()):
            raise PlasticityError("a learning rate must be finite and not below zero")


def third_factors(engine: LoihiEngine, rates: Array) -> Ints:
    """|y2| of each sample."""
    factors = np.rint(engine.factor * rates / engine.first).astype(np.int64)
    return np.asarray(np.minimum(factors, 127))


def engine_for(rate: float, *, gap: float, window: int, scale: float, seed: int) -> LoihiEngine:
    """The engine settings closest to a learning rate, with tags as large as possible.

    A window adds up to 127^2 y2 M / 2^17 to a tag, which must not overflow.
    """
    largest = min(127, 2032 // window)
    full = 127.0**2 * window / 2**17
    wanted = rate / (gap * scale * full)
    exponent = int(np.ceil(np.log2(wanted / largest)))
    exponent = min(max(exponent, -7), 0)
    factor = int(np.rint(wanted / 2.0**exponent))
    return LoihiEngine(seed, min(max(factor, 1), largest), exponent, rate)
