"""Cases of the conformance suite, and helpers to build them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.schedules import Schedule, three_phase
from neuro_eqprop.simulators.base import Backend, Feature, Result, needed_features
from neuro_eqprop.simulators.recordings import MemorySink, Record, Recording
from neuro_eqprop.spiking.ir import (
    Gain,
    Neuron,
    Population,
    Projection,
    SpikingNetwork,
    Stimulus,
)
from neuro_eqprop.spiking.quantize import quantise
from neuro_eqprop.spiking.rounding import Rounding

EPISODE = three_phase(beta=0.5, free=12, nudged=10)


@dataclass(frozen=True, slots=True)
class Case:
    """A run for which a backend must return the results of the reference."""

    name: str
    network: SpikingNetwork
    stimulus: Stimulus
    schedule: Schedule
    record: Record

    @property
    def needs(self) -> frozenset[Feature]:
        """The features that this case needs."""
        return frozenset(needed_features(self.network, self.stimulus))


def record_everything(network: SpikingNetwork) -> Record:
    """The record of all spikes and signals of a network."""
    held = {p.name: p.neuron.variable for p in network.populations}
    return Record(frozenset(held), frozenset({*held.items(), *((name, "drive") for name in held)}))


def build(
    name: str,
    populations: Sequence[Population],
    projections: Sequence[Projection] = (),
    *,
    current: Mapping[str, Array] | None = None,
    pull: Mapping[str, Array] | None = None,
    samples: int = 2,
    schedule: Schedule = EPISODE,
) -> Case:
    """A case that records everything; the last population is the output."""
    network = SpikingNetwork(1e-3, tuple(populations), tuple(projections), populations[-1].name)
    stimulus = Stimulus(samples, current or {}, pull or {})
    return Case(name, network, stimulus, schedule, record_everything(network))


def in_fixed_point(case: Case, rounding: Rounding) -> Case:
    """The case with its network in fixed point."""
    network, _ = quantise(case.network, rounding)
    return replace(case, name=f"{case.name}, in fixed point", network=network)


def group(name: str, neuron: Neuron, *bias: float) -> Population:
    """A population with one neuron per bias."""
    return Population(name, neuron, np.array(bias))


def rows(*values: Sequence[float]) -> Array:
    """A matrix from its rows."""
    return np.array(values, dtype=float)


def link(
    source: str, target: str, weight: Array, *, delay: int = 1, gain: Gain = Gain.ONE
) -> Projection:
    """A projection."""
    return Projection(source, target, weight, delay, gain)


@dataclass(frozen=True, slots=True)
class CaseRun:
    """The result and the recordings of a case."""

    result: Result
    recordings: list[Recording]


def run_case(backend: Backend, case: Case) -> CaseRun:
    """The result and the recordings of a case on a backend."""
    sink = MemorySink()
    result = backend.run(case.network, case.stimulus, case.schedule, record=case.record, sink=sink)
    return CaseRun(result, sink.recordings)
