"""The child process: builds a graph of Lava processes from a job and runs it."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.backends.lava.job import Form, Job, Part, load
from neuro_eqprop.backends.subprocess import guard, progress, report
from neuro_eqprop.spiking.fixed_point import integer_synapses
from neuro_eqprop.spiking.ir import Gain, Graded, Projection, SpikingNetwork
from neuro_eqprop.spiking.synapses import DenseSynapses

DONE = "done.json"


def main(folder: str) -> None:
    """Run the job in the folder."""
    run_job(Path(folder), lambda place: work(load(place), place))


def run_job(place: Path, work: Callable[[Path], dict[str, list[Any]]]) -> None:
    """Do the work on a folder; write its results, or its error, there."""
    guard(place)
    try:
        done = work(place)
        draft = place / f"{DONE}.draft"
        draft.write_text(json.dumps(done))
        draft.replace(place / DONE)
    except BaseException:
        report(place, traceback.format_exc())
        raise


def work(job: Job, folder: Path) -> dict[str, list[Any]]:
    """Run the job; return the steps and overflows that the process of each population counted."""
    life = progress(folder)
    life[0] += 1
    from lava.magma.core.run_configs import Loihi2SimCfg

    life[0] += 1
    numbers = "floating_pt" if job.network.fixed is None else "fixed_pt"
    settings = Loihi2SimCfg(select_tag=numbers)
    if job.form is Form.FUSED:
        return run_fused(job, folder, settings)
    if job.form is Form.STOCK:
        from neuro_eqprop.backends.lava.stock_run import run_stock

        return run_stock(job, folder, settings)
    return run_graph(job, folder, settings)


def run_graph(job: Job, folder: Path, settings: object) -> dict[str, list[Any]]:
    """One process for each population and projection, one sample after the other."""
    from lava.magma.core.run_conditions import RunSteps

    life, processes = progress(folder), build(job, folder)
    counters: list[Any] = [0] * len(processes)
    overflows: list[Any] = [[0, 0]] * len(processes)
    life[0] += 1
    for island in islands(job.network):
        first = processes[island[0]]
        first.create_runtime(settings)
        life[0] += 1
        first.run(RunSteps(num_steps=job.stimulus.samples * job.steps))
        for index in island:
            counters[index] = int(processes[index].steps_run.get()[0])
            overflows[index] = [int(count) for count in processes[index].overflows.get()]
        first.stop()
        life[0] += 1
    return {"counters": counters, "overflows": overflows}


def run_fused(job: Job, folder: Path, settings: object) -> dict[str, list[Any]]:
    """One process for everything, batch after batch."""
    from lava.magma.core.run_conditions import RunSteps

    from neuro_eqprop.backends.lava.processes.batched import FusedNetwork

    whole = FusedNetwork(job, folder)
    whole.create_runtime(settings)
    whole.run(RunSteps(num_steps=ceil(job.stimulus.samples / job.batch) * job.steps))
    steps = int(whole.steps_run.get()[0])
    counts = np.asarray(whole.overflows.get(), dtype=np.int64).reshape(-1, 2)
    whole.stop()
    return {"counters": [steps] * len(counts), "overflows": counts.tolist()}


def build(job: Job, folder: Path) -> list[Any]:
    """A process for each population, connected through a process of synapses per projection.

    Synapses take one step; a longer delay adds a delay line, which projections of the same source
    and delay share.
    """
    from neuro_eqprop.backends.lava.native.delay import Delay
    from neuro_eqprop.backends.lava.processes.graded import GradedPopulation
    from neuro_eqprop.backends.lava.processes.spiking import SpikingPopulation

    names = [population.name for population in job.network.populations]
    parts = {name: Part(job, index, folder) for index, name in enumerate(names)}
    graded = {p.name: isinstance(p.neuron, Graded) for p in job.network.populations}
    cells = {n: (GradedPopulation if graded[n] else SpikingPopulation)(parts[n]) for n in names}
    lines: dict[tuple[str, int], Any] = {}
    for projection in job.network.projections:
        source, late = projection.source, projection.delay - 1
        if late and (source, late) not in lines:
            lines[source, late] = Delay(job.network[source].size, late, job.steps)
            cells[source].s_out.connect(lines[source, late].s_in)
        between = synapses(parts[source], projection)
        (lines[source, late] if late else cells[source]).s_out.connect(between.s_in)
        target = cells[projection.target]
        between.a_out.connect(target.a_one if projection.gain is Gain.ONE else target.a_beta)
    return [cells[name] for name in names]


def synapses(part: Part, projection: Projection) -> Any:  # noqa: ANN401
    """The process of a projection whose source is the part: Lava's own, if in float64.

    Convolutions become `Sparse`, too: it is faster than `Conv`, which has no transpose.
    """
    from lava.proc.dense.process import Dense
    from lava.proc.sparse.process import Sparse
    from scipy.sparse import csr_matrix

    from neuro_eqprop.backends.lava.processes.synapses import IntegerSynapses

    if part.job.network.fixed is not None:
        return IntegerSynapses(part, synapses=integer_synapses(part.job.network, projection))
    # Any number of message bits above zero means that Dense multiplies instead of selecting.
    bits = 8 if isinstance(part.population.neuron, Graded) else 0
    if isinstance(projection.synapses, DenseSynapses):
        return Dense(weights=projection.synapses.weight, num_message_bits=bits)
    made = projection.synapses.to_csr()
    matrix = csr_matrix((made.data, made.indices, made.indptr), shape=made.shape)
    return Sparse(weights=matrix, num_message_bits=bits)


def islands(network: SpikingNetwork) -> list[list[int]]:
    """Indices of the populations by connected component; Lava runs one component at a time."""
    names = [population.name for population in network.populations]
    label = list(range(len(names)))
    for projection in network.projections:
        old, new = (label[names.index(end)] for end in (projection.source, projection.target))
        label = [new if each == old else each for each in label]
    return [[i for i, each in enumerate(label) if each == mark] for mark in dict.fromkeys(label)]
