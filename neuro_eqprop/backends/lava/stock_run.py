"""A job on Lava's own neurons, inside the child process: `SigmaDelta` or `ATRLIF`.

Neurons and synapses are those of `neuro_eqprop.backends.lava.native.stock`. A source beside each
population sends its input current, a recorder notes what it receives and sends, and stock `Reset`
processes put the states back between samples.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.backends.lava.export import stock_plan
from neuro_eqprop.backends.lava.job import Job, Part
from neuro_eqprop.backends.lava.native.plan import Plan, Scale, scale_of
from neuro_eqprop.backends.subprocess import progress


def plan_of(job: Job) -> tuple[Plan, Scale]:
    """The network for stock processes; the scales leave room for the currents of all samples."""
    bits = None if job.network.fixed is None else 8
    plan = stock_plan(replace(job.network, fixed=None), {}, bits=bits, reset_interval=job.steps)
    layers = []
    for layer in plan.layers:
        current = job.stimulus.current.get(layer.name, np.zeros((1, layer.size)))
        layers.append(replace(layer, bias=np.abs(layer.bias) + np.abs(current).max(axis=0)))
    return plan, scale_of(replace(plan, layers=tuple(layers)))


def run_stock(job: Job, folder: Path, settings: object) -> dict[str, list[Any]]:
    """Run all samples; for each population the steps that its recorder counted."""
    from lava.magma.core.run_conditions import RunSteps

    from neuro_eqprop.backends.lava.worker import islands

    life, recorders = progress(folder), build(job, folder)
    counters: list[int] = [0] * len(recorders)
    for island in islands(job.network):
        first = recorders[island[0]]
        first.create_runtime(settings)
        life[0] += 1
        first.run(RunSteps(num_steps=job.stimulus.samples * job.steps))
        for index in island:
            counters[index] = int(recorders[index].steps_run.get()[0])
        first.stop()
        life[0] += 1
    return {"counters": counters, "overflows": [[0, 0]] * len(counters)}


def build(job: Job, folder: Path) -> list[Any]:
    """The graph; returns the recorder of each population."""
    from neuro_eqprop.backends.lava.native.stock import neurons, resets, synapses
    from neuro_eqprop.backends.lava.processes.stock_recorder import StockRecorder, StockSource

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
        states = [cell.sigma, cell.act, cell.residue] if plan.graded else [cell.v, cell.r, cell.i]
        resets(plan, states)
        cells[layer.name], recorders[layer.name] = cell, recorder
    for edge in plan.edges:
        joint = synapses(plan, scale, edge)
        cells[edge.source].s_out.connect(joint.s_in)
        joint.a_out.connect(cells[edge.target].a_in)
        joint.a_out.connect(recorders[edge.target].a_in)
        resets(plan, [joint.a_buff])
    return [recorders[layer.name] for layer in plan.layers]
