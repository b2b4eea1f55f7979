"""The whole network in one process, with many samples side by side."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from pathlib import Path

from neuro_eqprop.simulators.experiment import load
from neuro_eqprop.simulators.lava.native.fused.network import FusedNetwork
from neuro_eqprop.simulators.lava.recording import SampleFiles


def build(folder: Path, *, batch: int) -> Iterator[tuple[FusedNetwork, int]]:
    """The network of the experiment in the folder, and the number of steps of all batches."""
    experiment = load(folder)
    names = tuple(population.name for population in experiment.network.populations)
    files = SampleFiles(experiment, folder, names, batch)
    steps = ceil(experiment.stimulus.samples / batch) * experiment.steps
    yield FusedNetwork(experiment, files), steps
