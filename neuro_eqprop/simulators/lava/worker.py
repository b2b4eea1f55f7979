"""The child process of a run on Lava: builds the graph of processes from a job and runs it."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Sequence
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.files.subprocess import guard, progress, report
from neuro_eqprop.files.write import write_text
from neuro_eqprop.simulators.lava.job import Form, Job, Part, load
from neuro_eqprop.spiking.fixed_point import integer_synapses
from neuro_eqprop.spiking.ir import Gain, Graded, Projection, SpikingNetwork
from neuro_eqprop.spiking.synapses import DenseSynapses

DONE = "done.json"


def main(folder: str) -> None:
    """Run the job in the folder."""
    run_job(Path(folder), lambda place: work(load(place), place))


def run_job(place: Path, work: Callable[[Path], dict[str, list[Any]]]) -> None:
    """Call `work` on the folder; write its result, or the traceback of its error, there."""
    guard(place)
    try:
        done = work(place)
        write_text(place / DONE, json.dumps(done))
    except BaseException:
        report(place, traceback.format_exc())
        raise


def work(job: Job, folder: Path) -> dict[str, list[Any]]:
    """Run the job; returns the steps and overflows counted for each population."""
    alive = progress(folder)
    alive[0] += 1
    from lava.magma.core.run_configs import Loihi2SimCfg

    alive[0] += 1
    numbers = "floating_pt" if job.network.fixed is None else "fixed_pt"
    settings = Loihi2SimCfg(select_tag=numbers)
    if job.form is Form.FUSED:
        return run_fused(job, folder, settings)
    if job.form is Form.STOCK:
        from neuro_eqprop.simulators.lava.stock_run import run_stock

        return run_stock(job, folder, settings)
    return run_graph(job, folder, settings)


def run_graph(job: Job, folder: Path, settings: object) -> dict[str, list[Any]]:
    """Run one process per population and projection, one sample at a time."""
    alive, processes = progress(folder), build(job, folder)
    alive[0] += 1
    found = run_components(
        job, folder, settings, processes, read=lambda process: process.overflows.get()
    )
    overflows = [[int(count) for count in counts] for _, counts in found]
    return {"counters": [steps for steps, _ in found], "overflows": overflows}


def run_components(
    job: Job,
    folder: Path,
    settings: object,
    processes: Sequence[Any],
    *,
    read: Callable[[Any], Any],
) -> list[tuple[int, Any]]:
    """Run each connected component; returns (steps run, `read(process)`) of each process.

    `processes` has one process for each population. `read` is called before its runtime stops.
    """
    from lava.magma.core.run_conditions import RunSteps

    alive, found = progress(folder), dict[int, tuple[int, Any]]()
    for component in connected_components(job.network):
        first = processes[component[0]]
        first.create_runtime(settings)
        alive[0] += 1
        first.run(RunSteps(num_steps=job.stimulus.samples * job.steps))
        for index in component:
            process = processes[index]
            found[index] = int(process.steps_run.get()[0]), read(process)
        first.stop()
        alive[0] += 1
    return [found[index] for index in range(len(processes))]


def run_fused(job: Job, folder: Path, settings: object) -> dict[str, list[Any]]:
    """Run the whole network as one process, batch by batch."""
    from lava.magma.core.run_conditions import RunSteps

    from neuro_eqprop.simulators.lava.processes.batched import FusedNetwork

    process = FusedNetwork(job, folder)
    process.create_runtime(settings)
    process.run(RunSteps(num_steps=ceil(job.stimulus.samples / job.batch) * job.steps))
    steps = int(process.steps_run.get()[0])
    counts = np.asarray(process.overflows.get(), dtype=np.int64).reshape(-1, 2)
    process.stop()
    return {"counters": [steps] * len(counts), "overflows": counts.tolist()}


def build(job: Job, folder: Path) -> list[Any]:
    """The process of each population, connected by one synapse process per projection.

    Synapses delay messages by one step. A longer delay adds a delay line, shared by projections
    with the same source and delay.
    """
    from neuro_eqprop.simulators.lava.native.delay import Delay
    from neuro_eqprop.simulators.lava.processes.graded import GradedPopulation
    from neuro_eqprop.simulators.lava.processes.spiking import SpikingPopulation

    names = [population.name for population in job.network.populations]
    parts = {name: Part(job, index, folder) for index, name in enumerate(names)}
    graded = {p.name: isinstance(p.neuron, Graded) for p in job.network.populations}
    cells = {n: (GradedPopulation if graded[n] else SpikingPopulation)(parts[n]) for n in names}
    delay_lines: dict[tuple[str, int], Any] = {}
    for projection in job.network.projections:
        source, extra_delay = projection.source, projection.delay - 1
        if extra_delay and (source, extra_delay) not in delay_lines:
            delay_lines[source, extra_delay] = Delay(
                job.network[source].size, extra_delay, job.steps
            )
            cells[source].s_out.connect(delay_lines[source, extra_delay].s_in)
        connection = synapses(parts[source], projection)
        (delay_lines[source, extra_delay] if extra_delay else cells[source]).s_out.connect(
            connection.s_in
        )
        target = cells[projection.target]
        connection.a_out.connect(target.a_one if projection.gain is Gain.ONE else target.a_beta)
    return [cells[name] for name in names]


def synapses(part: Part, projection: Projection) -> Any:  # noqa: ANN401
    """The synapse process of a projection; `part` is its source.

    In float64 it is Lava's `Dense` or `Sparse`. Convolutions become `Sparse`, too: it is faster
    than `Conv`, which has no transpose.
    """
    from lava.proc.dense.process import Dense
    from lava.proc.sparse.process import Sparse
    from scipy.sparse import csr_matrix

    from neuro_eqprop.simulators.lava.processes.synapses import IntegerSynapses

    if part.job.network.fixed is not None:
        return IntegerSynapses(part, synapses=integer_synapses(part.job.network, projection))
    # With message bits above zero, Dense multiplies by the message instead of selecting columns.
    bits = 8 if isinstance(part.population.neuron, Graded) else 0
    if isinstance(projection.synapses, DenseSynapses):
        return Dense(weights=projection.synapses.weight, num_message_bits=bits)
    made = projection.synapses.to_csr()
    matrix = csr_matrix((made.data, made.indices, made.indptr), shape=made.shape)
    return Sparse(weights=matrix, num_message_bits=bits)


def connected_components(network: SpikingNetwork) -> list[list[int]]:
    """Population indices of each connected component; Lava runs one component at a time."""
    names = [population.name for population in network.populations]
    label = list(range(len(names)))
    for projection in network.projections:
        old, new = (label[names.index(end)] for end in (projection.source, projection.target))
        label = [new if each == old else each for each in label]
    return [[i for i, each in enumerate(label) if each == mark] for mark in dict.fromkeys(label)]
