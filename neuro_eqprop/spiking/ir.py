"""The spiking network, and the definition of its time step.

Every simulator in `neuro_eqprop.backends` runs exactly this step. A sample starts from the resting
state: v is half the threshold (or `start`, for neurons that have one), all other variables are
zero, and no message is in flight. In step t, with the beta of its phase, each population computes
in this order:

Spiking population (`Spiking`), with spikes s in {0, 1}:

    arriving  a = a_one + beta a_beta                a_one sums weight @ s[t - delay] over the
                                                     projections of gain one, a_beta of gain beta
    current   u = (1 - current_decay) u + a
    drive     d = u + (bias + current + beta pull)
    voltage   v = (1 - voltage_decay) v + d
    spike     s = v >= threshold
    reset     v = v - threshold, or v = 0            where s
    limits    v = min(max(v, floor), ceiling)

Spiking population with `RateTracking`, whose spikes encode a rate x (O'Connor, Gavves & Welling
2019). lambda and eps are those of step t = 1, 2, ... of a sample, lambda' is lambda of the previous
step (1 in the first):

    current   u = (1 - lambda') u + lambda' a
    drive     d as above
    rate      y = x + eps (activation(d) - x)
    voltage   v = (1 - voltage_decay) v + (y - (1 - lambda) x) / lambda, then x = y
    spike     as above; if there is a seed, instead s = x > random(seed, sample, t, unit)

Graded population (`Graded`), which sends only changes of its state, in multiples of theta:

    sums      g_one  = g_one  + a_one
              g_beta = g_beta + a_beta
    drive     d = (g_one + beta g_beta) + (bias + current + beta pull)
    state     x = x + damping (activation(d) - x)
    message   q = theta round((x - sent) / theta)    ties to even; nothing is sent where q = 0
              sent = sent + q

Brackets give the order of additions. With weights on a dyadic grid, sums over spikes are exact in
any order. Everything else is computed unit by unit, so that spikes can be compared bit by bit. A
gain of beta uses the beta of the step in which the spike arrives.

A network that is `fixed` runs in integers. The values of a population are multiples of its unit e,
a power of two: W is the integer weight (source theta) / e, where a spiking source has theta 1.
Threshold, floor, ceiling, bias, low, high and theta are multiples of e; current and pull are
rounded to the nearest multiple, ties to even. With

    k(r) = round(4096 r)                             for a decay, a damping or a beta
    x * r = x k(r) / 4096, truncated towards zero
    wrap(x) = x + n 2^24, so that -2^23 < wrap(x) <= 2^23
    saturate(x) = min(max(x, 1 - 2^23), 2^23 - 1)

the step of a spiking population, whose v starts at 32 threshold (or 64 start), is

    a = a_one + a_beta * beta
    u = wrap(u * (1 - current_decay) + 64 a)
    d = u + 64 (bias + current + pull * beta)
    v = saturate(v * (1 - voltage_decay) + d)
    s = v >= 64 threshold
    v = v - 64 threshold, or v = 0                   where s
    v = min(max(v, 64 floor), 64 ceiling)

and the step of a graded population, whose messages q are integer multiples of theta, is

    g_one = wrap(g_one + a_one), g_beta = wrap(g_beta + a_beta)
    d = (g_one + g_beta * beta) + (bias + current + pull * beta)
    x = saturate(x + (activation(d) - x) * damping)  nearest multiple of e
    q = round((x - sent) / theta)
    sent = sent + q theta

Wraps and saturations that change a value are counted. Inputs and outputs of a run are floats, as in
floating point: d and v are returned times e / 64, d and x of a graded population times e, and
messages as q theta.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints, UnknownNameError
from neuro_eqprop.common.equality import Comparable
from neuro_eqprop.spiking.kinds import (
    DecreasingGain,
    Graded,
    Neuron,
    RateTracking,
    Reset,
    Spiking,
)
from neuro_eqprop.spiking.synapses import DenseSynapses, Synapses, as_synapses

__all__ = [
    "DecreasingGain",
    "FixedPoint",
    "Gain",
    "Graded",
    "Neuron",
    "Population",
    "Projection",
    "RateTracking",
    "Reset",
    "Spiking",
    "SpikingNetwork",
    "Stimulus",
    "expanded",
]


class Gain(Enum):
    """Factor of a projection's weights: one, or the beta of the phase."""

    ONE = "one"
    BETA = "beta"


@dataclass(frozen=True, eq=False, slots=True)
class Population(Comparable):
    """Neurons of one kind, each with its own bias."""

    name: str
    neuron: Neuron
    bias: Array

    def __post_init__(self) -> None:
        if self.bias.ndim != 1 or not self.bias.size:
            raise ValueError(f"population {self.name!r} needs a bias for each of its neurons")
        if not np.isfinite(self.bias).all():
            raise ValueError(f"population {self.name!r} has biases that are not finite")

    @property
    def size(self) -> int:
        """The number of neurons."""
        return int(self.bias.size)


@dataclass(frozen=True, eq=False, slots=True, init=False)
class Projection(Comparable):
    """Synapses from one population to another.

    Parameters
    ----------
    source, target : str
        The names of the populations.
    synapses : Synapses or array
        See `neuro_eqprop.spiking.synapses`; a matrix has a row for each target neuron.
    delay : int
        Steps from a spike to its arrival, at least one.
    gain : Gain
        The factor of the weights.
    """

    source: str
    target: str
    synapses: Synapses
    delay: int = 1
    gain: Gain = Gain.ONE

    def __init__(
        self,
        source: str,
        target: str,
        synapses: Synapses | Array,
        delay: int = 1,
        gain: Gain = Gain.ONE,
    ) -> None:
        fields = (source, target, as_synapses(synapses), int(delay), gain)
        for name, value in zip(self.__slots__, fields, strict=True):
            object.__setattr__(self, name, value)
        if delay < 1:
            raise ValueError(f"projection {self.name!r}: a spike takes at least one step to arrive")
        if not np.isfinite(self.synapses.values).all():
            raise ValueError(f"projection {self.name!r} has weights that are not finite")

    @property
    def weight(self) -> Array:
        """The weights as a dense matrix (target neurons, source neurons)."""
        return self.synapses.dense()

    @property
    def name(self) -> str:
        """The name of the projection: source->target."""
        return f"{self.source}->{self.target}"

    @property
    def fan_out(self) -> Ints:
        """The number of synapses (nonzero weights) of each source neuron."""
        return self.synapses.fan_out()


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """Fixed-point format of a network: the value of one integer step of each population."""

    units: Mapping[str, float]

    def __post_init__(self) -> None:
        units = {name: float(unit) for name, unit in self.units.items()}
        object.__setattr__(self, "units", units)
        for name, unit in units.items():
            if not (0.0 < unit < np.inf and np.frexp(unit)[0] == 0.5):
                raise ValueError(f"the unit of {name!r} must be a power of two, not {unit}")


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class SpikingNetwork(Comparable):
    """Populations and projections with a time step of `dt` seconds; `output` is read out.

    `Model.to_spiking` returns one; every simulator can run it.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> model = ne.train("layered", "digits", hidden=(16,), epochs=1)
    >>> network = model.to_spiking(code="graded").network
    >>> [(population.name, population.size) for population in network.populations]
    [('hidden', 16), ('output', 10)]
    """

    dt: float
    populations: tuple[Population, ...]
    projections: tuple[Projection, ...]
    output: str
    fixed: FixedPoint | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "dt", float(self.dt))
        names = [population.name for population in self.populations]
        if len(set(names)) != len(names):
            raise ValueError(f"two populations share a name in {names}")
        if self.output not in names:
            raise ValueError(f"the output {self.output!r} is not one of the populations {names}")
        if not 0.0 < self.dt < np.inf:
            raise ValueError(f"dt must be above zero and finite, not {self.dt}")
        if self.fixed is not None and set(self.fixed.units) != set(names):
            raise ValueError(f"units of {sorted(self.fixed.units)} are not those of {names}")
        if self.fixed is not None and any(p.neuron.follow for p in self.populations):
            raise ValueError("tracking a rate is not defined in integers")
        for projection in self.projections:
            for end in (projection.source, projection.target):
                if end not in names:
                    raise ValueError(f"projection {projection.name!r}: no population {end!r}")
            shape = (self[projection.target].size, self[projection.source].size)
            if projection.synapses.shape != shape:
                raise ValueError(
                    f"{projection.name!r} has weights {projection.synapses.shape}, not {shape}"
                )

    def __repr__(self) -> str:
        sizes = ", ".join(f"{each.name} {each.size}" for each in self.populations)
        synapses = sum(each.synapses.count for each in self.projections)
        return f"SpikingNetwork({sizes}; {synapses} synapses, dt {self.dt:g} s)"

    def __getitem__(self, name: str) -> Population:
        for population in self.populations:
            if population.name == name:
                return population
        raise UnknownNameError("population", name, [each.name for each in self.populations])

    def into(self, target: str, gain: Gain) -> tuple[Projection, ...]:
        """The projections onto `target` with that gain."""
        return tuple(p for p in self.projections if p.target == target and p.gain is gain)

    @property
    def digest(self) -> str:
        """SHA-256 hash of the network, its weights included."""
        parts = hashlib.sha256(f"{self.dt!r} {self.output}".encode())
        for population in self.populations:
            parts.update(f"{population.name} {hashed_text(population.neuron)}".encode())
            parts.update(np.ascontiguousarray(population.bias).tobytes())
        for projection in self.projections:
            parts.update(f"{projection.name} {projection.delay} {projection.gain}".encode())
            for part in projection.synapses.hashed():
                parts.update(part)
        if self.fixed is not None:
            parts.update(f"{sorted(self.fixed.units.items())}".encode())
        return parts.hexdigest()


def expanded(network: SpikingNetwork) -> SpikingNetwork:
    """The same network with all projections as dense matrices, for comparisons."""
    projections = tuple(
        replace(each, synapses=DenseSynapses(each.weight)) for each in network.projections
    )
    return replace(network, projections=projections)


FIRST_NAMES = {"RateTracking(": "Follow(", "DecreasingGain": "Falling"}
"""Class names of version 0.1, which the digests in existing files are hashes of."""


def hashed_text(neuron: Neuron) -> str:
    """The text of a neuron that is hashed in the digest."""
    text = repr(neuron).replace(", start=None", "")
    for name, first in FIRST_NAMES.items():
        text = text.replace(name, first)
    return text


@dataclass(frozen=True, eq=False, slots=True)
class Stimulus(Comparable):
    """Input of each sample: arrays (samples, neurons) by population; absent means zero.

    `host_macs` is the number of multiplications per sample that the host needs for `current`.
    """

    samples: int
    current: Mapping[str, Array]
    pull: Mapping[str, Array]
    host_macs: int = 0

    def __post_init__(self) -> None:
        for name, array in (*self.current.items(), *self.pull.items()):
            if array.ndim != 2 or array.shape[0] != self.samples:
                raise ValueError(f"stimulus of {name!r} is {array.shape}, not {self.samples} rows")
            if not np.isfinite(array).all():
                raise ValueError(f"stimulus of {name!r} holds values that are not finite")

    def check(self, network: SpikingNetwork) -> None:
        """Raise an error if the stimulus does not fit the network."""
        for name, array in (*self.current.items(), *self.pull.items()):
            if array.shape[1] != network[name].size:
                raise ValueError(f"stimulus of {name!r} has {array.shape[1]} columns")

    def take(self, start: int, stop: int) -> Stimulus:
        """The samples from `start` up to `stop`."""
        current = {name: array[start:stop] for name, array in self.current.items()}
        pull = {name: array[start:stop] for name, array in self.pull.items()}
        return Stimulus(len(range(self.samples)[start:stop]), current, pull, self.host_macs)
