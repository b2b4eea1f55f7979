"""Spike codes: how the rates of a layer become spikes.

A `Code` holds its defaults, its neuron and its learning phases. Help texts, error messages and
tables are derived from it. Another package can add a code with an entry point in the group
`neuro_eqprop.codes` that names a `Code`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import ClassVar
from zlib import crc32

from neuro_eqprop.common.plugins import Registry
from neuro_eqprop.dynamics.schedules import TAIL
from neuro_eqprop.networks.activations import HARD_SIGMOID
from neuro_eqprop.networks.network import Layer
from neuro_eqprop.spiking.ir import (
    DecreasingGain,
    Graded,
    Neuron,
    RateTracking,
    Reset,
    Spiking,
)
from neuro_eqprop.spiking.phases import PhasePolicy


class LoweringError(ValueError):
    """A rate network cannot become a spiking one; the message names the layer and the reason."""


@dataclass(frozen=True)
class Code:
    """How a rate becomes spikes.

    Parameters
    ----------
    name
        Its name in `--code`.
    summary
        One line for help texts and tables.
    steps
        Default number of steps of a free phase.
    tail
        Fraction of a phase, at its end, over which rates are averaged, in (0, 1].
    neuron
        Returns the neuron of a layer; raises `LoweringError` for an unsupported activation.
    signed
        Whether a layer whose rates can be negative becomes two populations, plus and minus.
    accumulates
        Whether a neuron sums all messages since the start of the sample. If so, the input is sent
        once and may have any value; if not, it is sent in every step, as a rate in 0..1.
    learning
        The phases of learning on a chip; None if synapses have no trace of these rates.

    """

    name: str
    summary: str
    steps: int
    neuron: Callable[[Layer, Coding], Neuron]
    tail: float = TAIL
    signed: bool = False
    accumulates: bool = False
    learning: PhasePolicy | None = None

    RATE: ClassVar[Code]
    GRADED: ClassVar[Code]
    PAIRED: ClassVar[Code]
    PREDICTIVE: ClassVar[Code]
    BERNOULLI: ClassVar[Code]

    def __repr__(self) -> str:
        return f"Code({self.name!r})"


@dataclass(frozen=True, slots=True)
class Coding:
    """A code with its constants."""

    code: Code
    grid: float = 2.0**-12
    """Weights, biases and currents are multiples of this."""
    theta: float = 2.0**-6
    """Graded messages are multiples of this."""
    damping: float = 0.75
    """Step of a graded unit towards its activation, in (0, 1].

    At half this value, a unit sends 1.5 times as many messages before it settles. At 1 it sends
    fewest, but strongly coupled layers oscillate.
    """
    pace: float = 0.5
    """Step of a predictive unit towards its activation, in (0, 1]."""
    fading: float = 0.5
    """A predictive spike of step t has the gain t^-fading."""
    calming: float = 0.75
    """A unit with random spikes takes a step of size t^-calming in step t."""
    seed: int = 0
    """Seed of random spikes."""

    @property
    def tail(self) -> float:
        """Fraction of a phase, at its end, over which rates are averaged."""
        return self.code.tail

    def neuron(self, layer: Layer) -> Neuron:
        """The neuron of a layer."""
        return self.code.neuron(layer, self)

    def constants(self) -> dict[str, str | float | int]:
        """The name of the code and the constants, as JSON values."""
        return {
            each.name: getattr(self, each.name) if each.name != "code" else self.code.name
            for each in fields(self)
        }


def integrator(layer: Layer, coding: Coding) -> Spiking:
    """An integrate-and-fire neuron whose firing rate is its drive, clipped to 0..1."""
    rate, code = layer.activation, coding.code
    ranges = [(0.0, 1.0), (-1.0, 1.0)] if code.signed else [(0.0, 1.0)]
    if not rate.piecewise_linear or (rate.low, rate.high) not in ranges:
        carries = "clips to 0..1 and to -1..1" if code.signed else "0..1"
        raise LoweringError(
            f"layer {layer.name!r} has activation {rate.name!r} with range {rate.low}..{rate.high},"
            f" and spikes of code {code.name!r} carry only {HARD_SIGMOID.name} ({carries}); use "
            "code 'graded' ('paired' for hard_tanh), or train with activation and output "
            f"{HARD_SIGMOID.name}"
        )
    # With a ceiling at the threshold, a unit that fires in almost every step would lose spikes.
    return Spiking(1.0, 0.0, 1.0, Reset.SUBTRACT, floor=-1.0, ceiling=2.0)


def sigma_delta(layer: Layer, coding: Coding) -> Graded:
    """A sigma-delta unit, which sends the changes of its rate."""
    return Graded(layer.activation, coding.theta, coding.damping)


def predictive(layer: Layer, coding: Coding) -> Spiking:
    """A neuron whose spikes encode changes of its rate, with gain t^-fading (O'Connor 2019)."""
    gain, step = DecreasingGain(1.0, coding.fading), DecreasingGain(coding.pace, 0.0)
    return replace(integrator(layer, coding), follow=RateTracking(layer.activation, gain, step))


def bernoulli(layer: Layer, coding: Coding) -> Spiking:
    """A neuron that fires at random, with its rate as the probability."""
    gain, step = DecreasingGain(1.0, 0.0), DecreasingGain(1.0, coding.calming)
    tracking = RateTracking(layer.activation, gain, step, crc32(layer.name.encode(), coding.seed))
    return replace(integrator(layer, coding), follow=tracking)


RATE = Code.RATE = Code(
    "rate",
    "binary spikes of an integrator with reset by subtraction; rates in 0..1",
    steps=64,
    neuron=integrator,
    learning=PhasePolicy(64, window=0.5, free=0.5),
)
GRADED = Code.GRADED = Code(
    "graded",
    "sigma-delta: messages of the changes of a rate, silent at equilibrium; any activation",
    steps=32,
    neuron=sigma_delta,
    tail=0.25,
    accumulates=True,
    learning=PhasePolicy(16, window=0.25, free=1.0),
)
PAIRED = Code.PAIRED = Code(
    "paired",
    "as rate, with two populations for a layer whose rates lie in -1..1",
    steps=64,
    neuron=integrator,
    signed=True,
)
PREDICTIVE = Code.PREDICTIVE = Code(
    "predictive",
    "binary spikes that encode the changes of a rate in 0..1, with a gain that decreases",
    steps=32,
    neuron=predictive,
    tail=0.25,
)
BERNOULLI = Code.BERNOULLI = Code(
    "bernoulli",
    "random binary spikes, the rate being their probability: the cost of randomness",
    steps=64,
    neuron=bernoulli,
    tail=0.25,
)

CODES = Registry(
    "code",
    Code,
    {
        code.name: f"{__name__}:{code.name.upper()}"
        for code in (RATE, GRADED, PAIRED, PREDICTIVE, BERNOULLI)
    },
    "neuro_eqprop.codes",
)
"""All codes by name, including those of other packages."""


def find_code(code: str | Code) -> Code:
    """The code of that name; a `Code` is returned unchanged."""
    return code if isinstance(code, Code) else CODES.find(code)


def learning_codes() -> list[str]:
    """The names of the codes that can learn on a chip."""
    return [name for name, code in CODES.loadable().items() if code.learning is not None]
