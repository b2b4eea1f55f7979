"""`LoweredNetwork`: a rate network as spikes, with its input coding and readout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.common.equality import Comparable
from neuro_eqprop.data.samples import sample_rows
from neuro_eqprop.dynamics.schedules import DT, Schedule, free_only, tail, three_phase
from neuro_eqprop.networks.architectures.normalized import folded, without_normalization
from neuro_eqprop.networks.network import Network, Role
from neuro_eqprop.spiking.codes import Code, Coding, find_code
from neuro_eqprop.spiking.input_coding import (
    InputCoding,
    encode_input,
    find_input_coding,
    outer,
    steps_needed,
    with_input,
)
from neuro_eqprop.spiking.ir import SpikingNetwork, Stimulus
from neuro_eqprop.spiking.lower import connection_synapses, lower, rates_of, signed_populations
from neuro_eqprop.spiking.quantize import quantise
from neuro_eqprop.spiking.rounding import Rounding, round_weight
from neuro_eqprop.spiking.scaled_rates import ScaledRates, scaled_rates

L = TypeVar("L", bound="LoweredNetwork")


@dataclass(frozen=True, eq=False, repr=False)
class LoweredNetwork(Comparable):
    """A rate network as spikes; `SpikingModel` adds what can be done with it."""

    rate: Network
    """The rate network that became spikes; its rates are in 0..1 if there is `scaled`."""
    exact: Mapping[str, Array]
    """The float64 parameters of the rate network."""
    network: SpikingNetwork
    params: Mapping[str, Array]
    """The parameters that became `network`: `exact`, or rounded if `bits` is set."""
    coding: Coding
    input: InputCoding
    bits: int | None = None
    nudged: bool = False
    scaled: ScaledRates | None = None
    """How rates that the code does not carry became those of `rate`; None if they did not."""

    def __repr__(self) -> str:
        size = f"{self.neurons} neurons, {self.synapses} synapses"
        return f"{type(self).__name__}({self.description}, {size})"

    @property
    def code(self) -> str:
        """The name of the spike code."""
        return self.coding.code.name

    @property
    def description(self) -> str:
        """The codes and the number format: "code graded, input current, 8-bit weights"."""
        bits = "" if self.bits is None else f", {self.bits}-bit weights"
        return f"code {self.code}, input {self.input.name}{bits}"

    @property
    def neurons(self) -> int:
        """The number of neurons, without those of the input."""
        outside = self.input_populations
        return sum(p.size for p in self.network.populations if p.name not in outside)

    @property
    def synapses(self) -> int:
        """The number of synapses with a nonzero weight."""
        return sum(int(p.fan_out.sum()) for p in self.network.projections)

    @property
    def input_populations(self) -> frozenset[str]:
        """The names of the populations of the input."""
        return outer(self.rate) & {p.name for p in self.network.populations}

    @property
    def steps_needed(self) -> int:
        """Least steps of a phase in which input reaches the output and feedback returns."""
        return steps_needed(self.rate, self.coding, self.input)

    def with_nudge(self: L) -> L:
        """Return the same network with the synapses of the nudge."""
        if self.nudged:
            return self
        lowered = lower_network(
            self.rate,
            self.exact,
            code=self.coding.code,
            bits=self.bits,
            input=self.input,
            nudged=True,
        )
        return replace(self, network=lowered.network, nudged=True)

    def schedule(self, steps: int | None, *, beta: float | None = None) -> Schedule:
        """A free phase of `steps` steps and, if `beta` is given, two equally long nudged ones."""
        steps = self.coding.code.steps if steps is None else steps
        part = self.coding.tail
        if beta is None:
            return free_only(steps=steps, window=tail(steps, part))
        return three_phase(beta=beta, free=steps, nudged=steps, part=part)

    @property
    def input_weights(self) -> dict[str, Array]:
        """Weights (units, features) from the input to each population."""
        rate, weights = self.rate, dict[str, Array]()
        for connection in rate.connections:
            if rate[connection.source].role is Role.INPUT:
                for name, sign in signed_populations(rate[connection.target], self.coding):
                    weight = sign * connection_synapses(rate, self.params, connection).dense()
                    weights[name] = weights[name] + weight if name in weights else weight
        return weights

    def samples(self, x: npt.ArrayLike) -> Array:
        """Samples as float64 rows (samples, features); ValueError if they do not fit the model."""
        return sample_rows(x, self.rate.input.size, self.rate.vocabulary)

    def encode(self, x: npt.ArrayLike, target: Array | None = None) -> Stimulus:
        """The stimulus of samples x (samples, features) and of targets (samples, classes)."""
        target = None if target is None else self.encode_target(target)
        return encode_input(
            self.rate,
            self.params,
            self.samples(x),
            target=target,
            coding=self.coding,
            entry=self.input,
        )

    def encode_target(self, target: Array) -> Array:
        """Targets of the output of the spiking network, from those of the rate network."""
        if self.scaled is None:
            return target
        return self.scaled.encode(self.rate.output.name, target)

    def layer_rates(self, firing: Mapping[str, Array]) -> dict[str, Array]:
        """Rates by layer in the ranges of the rate network, from rates by population."""
        rates = rates_of(self.rate, firing, self.coding)
        if self.scaled is None:
            return rates
        return {name: self.scaled.decode(name, values) for name, values in rates.items()}

    def output_drive(self, drive: Array) -> Array:
        """Drive of the output in the range of the rate network, from that of its population."""
        return drive if self.scaled is None else self.scaled.decode(self.rate.output.name, drive)

    @property
    def rate_ranges(self) -> Mapping[str, tuple[float, float]]:
        """The rates of layers that stand for firing never and in every step, if not 0 and 1."""
        return {} if self.scaled is None else self.scaled.ranges


def lower_network(
    rate: Network,
    params: Mapping[str, Array],
    *,
    code: str | Code = "rate",
    bits: int | None = None,
    input: str | InputCoding = "current",  # noqa: A002
    nudged: bool = False,
) -> LoweredNetwork:
    """A rate network as spikes, see `Model.to_spiking`; `nudged` adds the synapses of the nudge.

    In fixed point, input weights are rounded as well, even if the host multiplies by them. Rates
    that binary spikes do not carry are scaled to 0..1 (`spiking.scaled_rates`). The normalization
    of the input becomes part of weights and biases where no precision is lost.
    """
    coding, entry = Coding(find_code(code)), find_input_coding(input)
    exact = {name: value.astype(np.float64) for name, value in params.items()}
    plain = folded(rate, exact)
    if plain is not None and (bits is None or is_even(rate)):
        rate, exact = plain
    scaled = scaled_rates(rate, coding)
    if scaled is not None:
        rate, exact = scaled.network, scaled.scaled(exact)
    used = dict(exact)
    rounding = None if bits is None else Rounding(bits)
    if rounding is not None:
        for connection in rate.connections:
            weight = exact[connection.name]
            used[connection.name] = round_weight(weight, rounding, finest=coding.grid).weight
    lowered = lower(rate, used, dt=DT, coding=coding, nudged=nudged)
    network = with_input(rate, used, lowered, coding=coding, entry=entry)
    if rounding is not None:
        network = quantise(network, rounding)[0]
    return LoweredNetwork(rate, exact, network, used, coding, entry, bits, nudged, scaled)


EVEN = 16.0
"""Ratio of the deviations of two features up to which their folded weights share a fixed point."""


def is_even(rate: Network) -> bool:
    """Whether the normalization scales all features alike, so that few bits hold their weights."""
    operator = without_normalization(rate)[1]
    return operator is None or max(operator.deviation) <= EVEN * min(operator.deviation)
