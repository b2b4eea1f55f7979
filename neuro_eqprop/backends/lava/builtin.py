"""A job on Lava's LIF neurons, inside the child process.

    u = (1 - current_decay) u + a,  v = (1 - voltage_decay) v + u + bias,  s = v > threshold,
    v = 0 where s

There is no floor and no ceiling, a spike at the threshold does not come, and what lies above it is
lost. Between two samples the host puts the state back to rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.arrays import Array
from neuro_eqprop.backends.lava.job import Job, Part
from neuro_eqprop.backends.subprocess import progress
from neuro_eqprop.spiking.ir import Gain, Population, spiking_of


def outside(job: Job, population: Population, sample: int) -> Array:
    """The bias of a population with what the sample brings."""
    current = job.stimulus.current.get(population.name)
    return population.bias if current is None else population.bias + current[sample]


def run_stock(job: Job, folder: Path, settings: object) -> dict[str, list[Any]]:
    """Run sample after sample; for each population the steps that were booked."""
    from lava.magma.core.run_conditions import RunSteps

    from neuro_eqprop.backends.lava.worker import islands

    life, counters = progress(folder), [0] * len(job.network.populations)
    neurons, books, between = build(job, folder)
    names = [population.name for population in job.network.populations]
    for island in islands(job.network):
        here = [names[index] for index in island]
        first = neurons[here[0]]
        first.create_runtime(settings)
        for sample in range(job.stimulus.samples):
            if sample:
                rest(job, neurons, between, here=here, sample=sample)
            first.run(RunSteps(num_steps=job.steps))
            life[0] += 1
        for index in island:
            counters[index] = int(books[names[index]].steps_run.get()[0])
        first.stop()
    return {"counters": counters, "overflows": [[0, 0]] * len(counters)}


def build(job: Job, folder: Path) -> tuple[dict[str, Any], dict[str, Any], list[Any]]:
    """The neurons and their records by population, and the synapses with their target."""
    from lava.proc.dense.process import Dense
    from lava.proc.lif.process import LIF

    from neuro_eqprop.backends.lava.processes.delay import DelayLine
    from neuro_eqprop.backends.lava.processes.lif_recorder import LifRecorder

    neurons: dict[str, Any] = {}
    books: dict[str, Any] = {}
    parts: dict[str, Part] = {}
    for index, population in enumerate(job.network.populations):
        neuron, name = spiking_of(population), population.name
        parts[name] = Part(job, index, folder)
        neurons[name] = LIF(
            shape=(population.size,),
            v=np.full(population.size, neuron.threshold / 2),
            du=neuron.current_decay,
            dv=neuron.voltage_decay,
            vth=neuron.threshold,
            bias_mant=outside(job, population, 0),
        )
        books[name] = LifRecorder(parts[name], fed=bool(job.network.into(name, Gain.ONE)))
        neurons[name].s_out.connect(books[name].s_in)
    between, lines = [], dict[tuple[str, int], Any]()
    for projection in job.network.projections:
        source, late = projection.source, projection.delay - 1
        if late and (source, late) not in lines:
            lines[source, late] = DelayLine(parts[source], steps=late)
            neurons[source].s_out.connect(lines[source, late].s_in)
        dense = Dense(weights=projection.weight)
        (lines[source, late] if late else neurons[source]).s_out.connect(dense.s_in)
        dense.a_out.connect(neurons[projection.target].a_in)
        dense.a_out.connect(books[projection.target].a_in)
        between.append((projection.target, dense))
    return neurons, books, between


def rest(
    job: Job,
    neurons: Mapping[str, Any],
    between: list[Any],
    *,
    here: list[str],
    sample: int,
) -> None:
    """Put neurons and synapses back to rest, with the bias of the next sample."""
    for name in here:
        population = job.network[name]
        neurons[name].u.set(np.zeros(population.size))
        neurons[name].v.set(np.full(population.size, spiking_of(population).threshold / 2))
        neurons[name].bias_mant.set(outside(job, population, sample))
    for target, dense in between:
        if target in here:
            dense.a_buff.set(np.zeros(job.network[target].size))
