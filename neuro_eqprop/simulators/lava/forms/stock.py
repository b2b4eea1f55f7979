"""Lava's own neurons: `SigmaDelta` for graded messages, `ATRLIF` for binary spikes.

Lava's `Reset` processes set their states to zero between samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from neuro_eqprop.simulators.experiment import Experiment, load
from neuro_eqprop.simulators.lava.export import stock_plan
from neuro_eqprop.simulators.lava.forms.exact import connected
from neuro_eqprop.simulators.lava.native.plan import StockPlan, StockScale, scale_of
from neuro_eqprop.simulators.lava.native.stock.recorded import RecordedStock
from neuro_eqprop.simulators.lava.recording import SampleFiles


def build(folder: Path) -> Iterator[tuple[RecordedStock, int]]:
    """The networks of the experiment in the folder, and the number of steps of all samples."""
    experiment = load(folder)
    plan, scale = plan_of(experiment)
    for names in connected(experiment.network):
        files = {name: SampleFiles(experiment, folder, (name,)) for name in names}
        part = replace(
            plan,
            layers=tuple(plan[name] for name in names),
            edges=tuple(edge for edge in plan.edges if edge.target in names),
        )
        network = RecordedStock(part, scale, experiment.stimulus, files)
        yield network, experiment.stimulus.samples * experiment.steps


def plan_of(experiment: Experiment) -> tuple[StockPlan, StockScale]:
    """The network for stock processes, and scales that fit the currents of all samples."""
    network, stimulus = experiment.network, experiment.stimulus
    bits = None if network.fixed is None else 8
    floating = replace(network, fixed=None)
    plan = stock_plan(floating, {}, bits=bits, reset_interval=experiment.steps)
    layers = []
    for layer in plan.layers:
        current = stimulus.current.get(layer.name, np.zeros((1, layer.size)))
        layers.append(replace(layer, bias=np.abs(layer.bias) + np.abs(current).max(axis=0)))
    return plan, scale_of(replace(plan, layers=tuple(layers)))
