"""One process per population and projection, one sample at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from neuro_eqprop.simulators.experiment import load
from neuro_eqprop.simulators.lava.native.exact.network import ExactNetwork, ExactPlan, GivenRun
from neuro_eqprop.simulators.lava.recording import SampleFiles
from neuro_eqprop.spiking.ir import FixedPoint, SpikingNetwork


def build(folder: Path) -> Iterator[tuple[ExactNetwork, int]]:
    """The networks of the experiment in the folder, and the number of steps of all samples."""
    experiment = load(folder)
    given = GivenRun(
        experiment.stimulus,
        experiment.schedule,
        lambda name: partial(SampleFiles, experiment, folder, (name,)),
    )
    for names in connected(experiment.network):
        part = part_of(experiment.network, names)
        network = ExactNetwork(ExactPlan(part, given=given))
        yield network, experiment.stimulus.samples * experiment.steps


def connected(network: SpikingNetwork) -> list[list[str]]:
    """The populations that projections connect; Lava runs connected processes only."""
    label = {population.name: population.name for population in network.populations}
    for projection in network.projections:
        old, new = label[projection.source], label[projection.target]
        label = {name: new if mark == old else mark for name, mark in label.items()}
    marks = dict.fromkeys(label.values())
    return [[name for name in label if label[name] == mark] for mark in marks]


def part_of(network: SpikingNetwork, names: list[str]) -> SpikingNetwork:
    """The network of some populations alone."""
    fixed = network.fixed
    return replace(
        network,
        populations=tuple(network[name] for name in names),
        projections=tuple(p for p in network.projections if p.target in names),
        output=names[0],
        fixed=None if fixed is None else FixedPoint({name: fixed.units[name] for name in names}),
    )
