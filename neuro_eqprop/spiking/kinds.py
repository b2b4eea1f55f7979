"""The kinds of neurons: what describes them, what they send, and their step.

A step is written once, for both arithmetics. The equations are those of `neuro_eqprop.spiking.ir`.
Arrays have units last; samples may come before them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields, replace
from enum import Enum
from math import ceil, floor, frexp, isinf
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from neuro_eqprop.common.arrays import Array, Shape
from neuro_eqprop.networks.activations import Activation
from neuro_eqprop.spiking.activity import ActivityKind
from neuro_eqprop.spiking.arithmetic import (
    FRACTION,
    ONE,
    TOP,
    FloatArithmetic,
    Numbers,
    bits_of,
    power_above,
    to_12_bits,
)
from neuro_eqprop.spiking.counter_rng import uniform

if TYPE_CHECKING:
    from typing_extensions import Self

COARSE = 2.0**-9
"""Coarsest unit of a spiking population in fixed point, relative to the threshold."""
SPIKING_UNIT, GRADED_UNIT = 2.0**-14, 2.0**-18
"""Finest units, relative to the threshold and to 1; finer ones would overflow 24 bits."""


class Reset(Enum):
    """Reset of the voltage after a spike."""

    ZERO = "zero"
    SUBTRACT = "subtract"


@dataclass(frozen=True, slots=True)
class DecreasingGain:
    """A gain that decreases with the step t = 1, 2, ... of a sample: first / t^power."""

    first: float
    power: float

    def __post_init__(self) -> None:
        plain_floats(self)
        if not (0.0 < self.first <= 1.0 and 0.0 <= self.power < np.inf):
            raise ValueError(f"{self} needs `first` in (0, 1] and a finite `power` >= 0")

    def at(self, t: int) -> float:
        """The gain at step t."""
        return float(self.first / t**self.power)


@dataclass(frozen=True, slots=True)
class RateTracking:
    """How a spiking population tracks a rate: `step` is eps, `gain` of a spike is lambda.

    With a seed, spikes are drawn at random; otherwise they are the predictive code of the rate
    (O'Connor, Gavves & Welling 2019).
    """

    activation: Activation
    gain: DecreasingGain
    step: DecreasingGain
    seed: int | None = None

    def __post_init__(self) -> None:
        if self.seed is not None:
            object.__setattr__(self, "seed", int(self.seed))


class NeuronSizes(NamedTuple):
    """What a neuron sends, and how large its values become."""

    payload: float
    """The value of a spike, or of a message of one theta."""
    quantum: float
    """What it fires or sends at: its threshold, or theta."""
    drive_of_one: float
    """The drive that a rate of one needs."""
    most_sent: float
    """Its largest output: spikes per step, or the sum of messages in thetas."""
    input_gain: float
    """In fixed point, what a constant input of one unit sums up to, in steps of the state."""
    finest_unit: float
    """The finest unit in fixed point; a finer one would overflow 24 bits."""


class Neuron(ABC):
    """A kind of neuron with its parameters."""

    __slots__ = ()
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    activity: ClassVar[ActivityKind]
    """What it sends, and how its rate is computed from that."""
    variable: ClassVar[str]
    """The recorded variable that it integrates."""
    follow: RateTracking | None
    """How it tracks a rate; None if it does not."""
    reset: Reset | None
    """How it is reset after a spike; None if it never is."""
    activation: Activation | None
    """The activation that it computes; None for a plain integrator."""

    @property
    def graded(self) -> bool:
        """Whether it sends graded messages, not binary spikes."""
        return self.activity.graded

    @property
    @abstractmethod
    def sizes(self) -> NeuronSizes:
        """What it sends and how large its values become."""

    @abstractmethod
    def coarsest_unit(self, name: str) -> float:
        """The coarsest unit in fixed point; raises ValueError if there is none."""

    @abstractmethod
    def rounded(self, unit: float) -> Self:
        """The neuron with values that are multiples of the unit, and decays of 12 bits."""

    @abstractmethod
    def at_rest(self, bias: Array, arithmetic: FloatArithmetic, name: str) -> Neurons:
        """A population of these neurons in its resting state; errors call it `name`."""


class Neurons(ABC):
    """A population with its state, in one of both arithmetics."""

    variable: ClassVar[str]

    def __init__(self, bias: Array, arithmetic: FloatArithmetic, name: str) -> None:
        self.arithmetic = arithmetic
        self.bias: Numbers = arithmetic.own(bias, f"a bias of {name!r}")
        self.rest(self.bias.shape)

    def rest(self, shape: Shape) -> None:
        """Reset to the resting state, in arrays of that shape; counts of overflows continue."""
        self.drive, self.held = self._zeros(shape), self._zeros(shape)

    def _zeros(self, shape: Shape) -> Numbers:
        return np.zeros(shape, dtype=self.arithmetic.dtype)

    def outside(self, current: Array | None, pull: Array | None, beta: float) -> Numbers:
        """bias + current + beta pull, in this order of additions."""
        total, by = self.bias, self.arithmetic
        if current is not None:
            total = total + by.rounded(current)
        if pull is not None:
            total = total + by.times(by.rounded(pull), by.part(beta))
        return total

    @abstractmethod
    def advance(self, one: Numbers, by_beta: Numbers, beta: float, outside: Numbers) -> Numbers:
        """One step; returns the message: spikes as booleans, or graded messages.

        `one` and `by_beta` are what arrives with a gain of one and of beta, `outside` is bias +
        current + beta pull. In fixed point, graded messages count thetas.
        """

    def payload(self, message: Numbers) -> Numbers:
        """A message in floating point; spikes stay booleans."""
        return message

    @abstractmethod
    def firing(self) -> Array:
        """The value whose mean over a window is the rate."""

    @property
    def firing_unit(self) -> float:
        """The value of one step of what `firing` returns."""
        return 1.0

    @property
    def shown(self) -> float:
        """The value of one step of the drive and of the recorded variable."""
        return self.arithmetic.unit

    def values(self) -> Mapping[str, Array]:
        """The variables that can be recorded."""
        return {
            "drive": np.asarray(self.drive * self.shown),
            self.variable: np.asarray(self.held * self.shown),
        }

    @property
    @abstractmethod
    def state_bits(self) -> int:
        """In fixed point, bits of the state within its limits, including the sign."""

    @property
    def overflows(self) -> Numbers:
        """Wraps and saturations so far."""
        return self.arithmetic.overflows


@dataclass(frozen=True, slots=True)
class Spiking(Neuron):
    """A leaky integrate-and-fire neuron; a decay is the fraction lost per step."""

    current_decay: float
    voltage_decay: float
    threshold: float
    reset: Reset
    floor: float
    ceiling: float
    follow: RateTracking | None = None
    start: float | None = None
    """The resting voltage, at which a sample starts; None means half the threshold."""
    activity: ClassVar[ActivityKind] = ActivityKind.SPIKES
    variable: ClassVar[str] = "voltage"

    def __post_init__(self) -> None:
        plain_floats(self)
        for decay in (self.current_decay, self.voltage_decay):
            if not 0.0 <= decay <= 1.0:
                raise ValueError(f"a decay of {decay} does not lie between 0 and 1")
        if not 0.0 < self.threshold < np.inf:
            raise ValueError(f"a threshold must be above zero and finite, not {self.threshold}")
        if not self.floor <= self.resting_voltage <= self.ceiling:
            which = "half the threshold" if self.start is None else f"{self.start:g}"
            raise ValueError(f"the resting voltage, {which}, must lie between floor and ceiling")

    @property
    def resting_voltage(self) -> float:
        """The voltage at which a sample starts."""
        return self.threshold / 2 if self.start is None else self.start

    @property
    def activation(self) -> Activation | None:  # type: ignore[override]
        """That of the rate that it tracks."""
        return None if self.follow is None else self.follow.activation

    @property
    def sizes(self) -> NeuronSizes:
        """Binary spikes; the current sums its input, with six more bits."""
        one, gain = self.threshold, FRACTION / max(self.current_decay, 1 / ONE)
        return NeuronSizes(1.0, one, one, 1.0, gain, SPIKING_UNIT * one)

    def coarsest_unit(self, name: str) -> float:
        """The power of two above a 512th of the threshold."""
        return power_above(self.threshold * COARSE)

    def rounded(self, unit: float) -> Spiking:
        """With limits that are not narrower."""

        def decay(part: float) -> float:
            return max(int(part > 0), to_12_bits(part)) / ONE  # a positive decay stays positive

        low, high = self.floor, self.ceiling
        return replace(
            self,
            current_decay=decay(self.current_decay),
            voltage_decay=decay(self.voltage_decay),
            threshold=round(self.threshold / unit) * unit,
            floor=low if isinf(low) else floor(low / unit) * unit,
            ceiling=high if isinf(high) else ceil(high / unit) * unit,
            start=None if self.start is None else round(self.start / unit) * unit,
        )

    def at_rest(self, bias: Array, arithmetic: FloatArithmetic, name: str) -> SpikingNeurons:
        """Integrators, or units that track a rate."""
        kind = SpikingNeurons if self.follow is None else TrackingNeurons
        return kind(self, bias, arithmetic, name)


class SpikingNeurons(Neurons):
    """Leaky integrators; `held` is the voltage, in the finer unit."""

    variable = Spiking.variable

    def __init__(
        self, neuron: Spiking, bias: Array, arithmetic: FloatArithmetic, name: str
    ) -> None:
        self.neuron, self.subtract = neuron, neuron.reset is Reset.SUBTRACT
        self.keep_current = arithmetic.keep(neuron.current_decay)
        self.keep_voltage = arithmetic.keep(neuron.voltage_decay)
        whole = arithmetic.own(neuron.threshold, f"the threshold of {name!r}")
        self.threshold = whole * arithmetic.fraction
        if arithmetic.fixed and not 0 < self.threshold < TOP:
            raise ValueError(f"the threshold of {name!r} is {whole} units and does not fit 17 bits")
        if neuron.start is not None:
            start = arithmetic.own(neuron.start, f"the start of {name!r}") * arithmetic.fraction
        else:
            start = self.threshold >> 1 if arithmetic.fixed else self.threshold / 2
        self.start = start
        low, high = (f"the {limit} of {name!r}" for limit in ("floor", "ceiling"))
        self.floor = arithmetic.own(neuron.floor, low) * arithmetic.fraction
        self.ceiling = arithmetic.own(neuron.ceiling, high) * arithmetic.fraction
        super().__init__(bias, arithmetic, name)

    def rest(self, shape: Shape) -> None:
        """The voltage starts at its resting value."""
        super().rest(shape)
        self.current, self.spikes = self._zeros(shape), np.zeros(shape, dtype=bool)
        self.held = self.held + self.start

    def advance(self, one: Numbers, by_beta: Numbers, beta: float, outside: Numbers) -> Numbers:
        """Integrate, fire and reset."""
        by = self.arithmetic
        arriving = one + by.times(by_beta, by.part(beta))
        self.current = by.wrap(by.times(self.current, self.keep_current) + by.fine(arriving))
        self.drive = self.current + by.fine(outside)
        self._fire(by.saturate(by.times(self.held, self.keep_voltage) + self.drive))
        return self.spikes

    def _fire(self, voltage: Numbers, spikes: Numbers | None = None) -> None:
        """Spikes, reset and limits."""
        self.spikes = np.asarray(voltage >= self.threshold) if spikes is None else spikes
        after = voltage - self.threshold if self.subtract else 0
        voltage = np.where(self.spikes, after, voltage)
        self.held = np.minimum(np.maximum(voltage, self.floor), self.ceiling)

    def firing(self) -> Array:
        """The spikes."""
        return self.spikes.astype(np.float64)

    @property
    def shown(self) -> float:
        """The finer unit."""
        return self.arithmetic.unit / self.arithmetic.fraction

    @property
    def state_bits(self) -> int:
        """Of a voltage between floor and ceiling."""
        return bits_of(self.floor, self.ceiling, self.threshold)


class TrackingNeurons(SpikingNeurons):
    """Units whose spikes encode a rate that they track; in floating point only."""

    def rest(self, shape: Shape) -> None:
        """The rate starts at zero."""
        super().rest(shape)
        self.rate, self.t = np.zeros(shape), 0

    def advance(self, one: Numbers, by_beta: Numbers, beta: float, outside: Numbers) -> Numbers:
        """Track the rate, fire and reset."""
        follow = self.neuron.follow
        assert follow is not None
        before = follow.gain.at(self.t) if self.t else 1.0
        self.t += 1
        gain, step = follow.gain.at(self.t), follow.step.at(self.t)
        self.current = (1 - before) * self.current + before * (one + beta * by_beta)
        self.drive = np.asarray(self.current + outside)
        rate = self.rate + step * (follow.activation.value(self.drive) - self.rate)
        voltage = self.keep_voltage * self.held + (rate - (1 - gain) * self.rate) / gain
        drawn = None
        if follow.seed is not None:
            drawn = rate > uniform(follow.seed, self.t, (rate.shape[0], rate.shape[1]))
        self._fire(voltage, drawn)
        self.rate = rate
        return self.spikes

    def firing(self) -> Array:
        """The rate."""
        return self.rate


@dataclass(frozen=True, slots=True)
class Graded(Neuron):
    """A sigma-delta unit: its state follows the activation, and it sends the changes."""

    activation: Activation
    theta: float
    damping: float
    activity: ClassVar[ActivityKind] = ActivityKind.GRADED
    variable: ClassVar[str] = "state"
    follow: ClassVar[None] = None  # type: ignore[misc]
    reset: ClassVar[None] = None  # type: ignore[misc]

    def __post_init__(self) -> None:
        plain_floats(self)
        if not 0.0 < self.theta < np.inf:
            raise ValueError(f"theta must be above zero and finite, not {self.theta}")
        if not 0.0 < self.damping <= 1.0:
            raise ValueError(f"a damping of {self.damping} does not lie in (0, 1]")

    @property
    def sizes(self) -> NeuronSizes:
        """Messages are changes in multiples of theta; their sums are as large as rates."""
        most = max(abs(self.activation.low), abs(self.activation.high)) / self.theta
        return NeuronSizes(self.theta, self.theta, 1.0, most, 1.0, GRADED_UNIT)

    def coarsest_unit(self, name: str) -> float:
        """A 64th of theta, which must be a power of two."""
        if frexp(self.theta)[0] != 0.5 or not GRADED_UNIT <= self.theta <= 1.0:
            raise ValueError(
                f"population {name!r} has theta {self.theta}, "
                f"which is not a power of two from {GRADED_UNIT} to 1"
            )
        return max(self.theta / FRACTION, GRADED_UNIT)

    def rounded(self, unit: float) -> Graded:
        """With a range of rates in units."""
        rate = self.activation
        ends = [end if isinf(end) else round(end / unit) * unit for end in (rate.low, rate.high)]
        rate = replace(rate, low=ends[0], high=ends[1])
        return replace(self, activation=rate, damping=max(1, to_12_bits(self.damping)) / ONE)

    def at_rest(self, bias: Array, arithmetic: FloatArithmetic, name: str) -> GradedNeurons:
        """Sigma-delta units."""
        return GradedNeurons(self, bias, arithmetic, name)


class GradedNeurons(Neurons):
    """Sigma-delta units; `held` is the state that follows the activation."""

    variable = Graded.variable

    def __init__(self, neuron: Graded, bias: Array, arithmetic: FloatArithmetic, name: str) -> None:
        self.neuron, self.damping = neuron, arithmetic.part(neuron.damping)
        self.theta = arithmetic.own(neuron.theta, f"the theta of {name!r}")
        if arithmetic.fixed and (self.theta < 1 or self.theta & (self.theta - 1)):
            raise ValueError(f"the theta of {name!r} is {neuron.theta}, not a power of two")
        rate = neuron.activation
        self.low = arithmetic.own(rate.low, f"the least rate of {name!r}")
        self.high = arithmetic.own(rate.high, f"the greatest rate of {name!r}")
        super().__init__(bias, arithmetic, name)

    def rest(self, shape: Shape) -> None:
        """All sums start at zero."""
        super().rest(shape)
        self.sum_one, self.sum_beta = self._zeros(shape), self._zeros(shape)
        self.sent = self._zeros(shape)

    def advance(self, one: Numbers, by_beta: Numbers, beta: float, outside: Numbers) -> Numbers:
        """Sum the input, move the state, and send its change."""
        by = self.arithmetic
        self.sum_one = by.wrap(self.sum_one + one)
        self.sum_beta = by.wrap(self.sum_beta + by_beta)
        self.drive = (self.sum_one + by.times(self.sum_beta, by.part(beta))) + outside
        self.held = by.saturate(self.held + by.times(self.aim() - self.held, self.damping))
        count = by.ratio(self.held - self.sent, self.theta)
        change = self.theta * count
        self.sent = self.sent + change
        return count if by.fixed else change

    def aim(self) -> Numbers:
        """The activation of the drive."""
        rate, by = self.neuron.activation, self.arithmetic
        return rate.integers(self.drive, by.unit) if by.fixed else rate.value(self.drive)

    def payload(self, message: Numbers) -> Numbers:
        """Counts of thetas times theta."""
        return np.asarray(message * self.neuron.theta) if self.arithmetic.fixed else message

    def firing(self) -> Array:
        """The sum of all messages."""
        return np.asarray(self.sent * self.firing_unit)

    @property
    def firing_unit(self) -> float:
        """The unit of the state."""
        return self.arithmetic.unit

    @property
    def state_bits(self) -> int:
        """Of a state between the lowest and the highest rate."""
        return bits_of(self.low, self.high)


def plain_floats(described: Any) -> None:  # noqa: ANN401
    """Turn the numbers of a frozen dataclass into floats, so that its text is that of Python's."""
    for field in fields(described):
        if field.type == "float":
            object.__setattr__(described, field.name, float(getattr(described, field.name)))
