"""A job on Lava's own neurons, `SigmaDelta` or `ATRLIF`, inside the child process.

Neurons and synapses are those of `neuro_eqprop.simulators.lava.native.stock`. Each population has a
source, which sends its input current, and a recorder of its input and output. Lava's `Reset`
processes set the states to zero between samples.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.simulators.lava.export import stock_plan
from neuro_eqprop.simulators.lava.job import Job, Part
from neuro_eqprop.simulators.lava.native.plan import Plan, Scale, scale_of


def plan_of(job: Job) -> tuple[Plan, Scale]:
    """The network for stock processes, and scales that fit the currents of all samples."""
    bits = None if job.network.fixed is None else 8
    plan = stock_plan(replace(job.network, fixed=None), {}, bits=bits, reset_interval=job.steps)
    layers = []
    for layer in plan.layers:
        current = job.stimulus.current.get(layer.name, np.zeros((1, layer.size)))
        layers.append(replace(layer, bias=np.abs(layer.bias) + np.abs(current).max(axis=0)))
    return plan, scale_of(replace(plan, layers=tuple(layers)))


def run_stock(job: Job, folder: Path, settings: object) -> dict[str, list[Any]]:
    """Run all samples; returns the steps that the recorder of each population counted."""
    from neuro_eqprop.simulators.lava.worker import run_components

    # Stock neurons do not count overflows.
    found = run_components(job, folder, settings, build(job, folder), read=lambda _: [0, 0])
    return {"counters": [steps for steps, _ in found], "overflows": [none for _, none in found]}


def build(job: Job, folder: Path) -> list[Any]:
    """The recorder of each population, connected to its neurons, source and synapses."""
    from neuro_eqprop.simulators.lava.native.stock import (
        neurons,
        resets,
        states_of,
        synapses,
    )
    from neuro_eqprop.simulators.lava.processes.stock_recorder import StockRecorder, StockSource

    plan, scale = plan_of(job)
    cells, recorders = dict[str, Any](), dict[str, Any]()
    for index, layer in enumerate(plan.layers):
        part, cell = Part(job, index, folder), neurons(plan, scale, layer)
        recorder = StockRecorder(part, plan=plan, scale=scale)
        cell.s_out.connect(recorder.s_in)
        if layer.name in job.stimulus.current:
            source = StockSource(part, plan=plan, scale=scale)
            source.s_out.connect(cell.a_in)
            source.s_out.connect(recorder.a_in)
        resets(plan, states_of(plan, cell))
        cells[layer.name], recorders[layer.name] = cell, recorder
    for edge in plan.edges:
        connection = synapses(plan, scale, edge)
        cells[edge.source].s_out.connect(connection.s_in)
        connection.a_out.connect(cells[edge.target].a_in)
        connection.a_out.connect(recorders[edge.target].a_in)
        resets(plan, [connection.a_buff])
    return [recorders[layer.name] for layer in plan.layers]
