"""The child process of learning on Lava: builds the graph of processes and runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neuro_eqprop.files.subprocess import progress
from neuro_eqprop.simulators.lava.learning.job import LearningJob, LearningPopulation, load
from neuro_eqprop.simulators.lava.worker import run_job, synapses
from neuro_eqprop.spiking.ir import Gain, Graded


def main(folder: str) -> None:
    """Run the learning job in the folder."""
    run_job(Path(folder), lambda place: work(load(place), place))


def work(learning: LearningJob, folder: Path) -> dict[str, list[Any]]:
    """Run the job; returns the steps and overflows counted for each population."""
    alive = progress(folder)
    alive[0] += 1
    from lava.magma.core.run_conditions import RunSteps
    from lava.magma.core.run_configs import Loihi2SimCfg

    alive[0] += 1
    cells, job = build(learning, folder), learning.job
    alive[0] += 1
    numbers = "floating_pt" if job.network.fixed is None else "fixed_pt"
    cells[0].create_runtime(Loihi2SimCfg(select_tag=numbers))
    alive[0] += 1
    cells[0].run(RunSteps(num_steps=job.stimulus.samples * job.steps))
    done: dict[str, list[Any]] = {
        "counters": [int(cell.steps_run.get()[0]) for cell in cells],
        "overflows": [[int(count) for count in cell.overflows.get()] for cell in cells],
    }
    cells[0].stop()
    alive[0] += 1
    return done


def build(learning: LearningJob, folder: Path) -> list[Any]:
    """The process of each population, connected to one source and by synapses.

    A plastic projection also receives y1, y2 and y3 from its target.
    """
    from neuro_eqprop.simulators.lava.learning.processes.graded import LearningGraded
    from neuro_eqprop.simulators.lava.learning.processes.sample_source import Source
    from neuro_eqprop.simulators.lava.learning.processes.spiking import LearningSpikes
    from neuro_eqprop.simulators.lava.learning.processes.synapses import PlasticSynapses

    job, network = learning.job, learning.plastic.network
    names = [population.name for population in network.populations]
    parts = {
        name: LearningPopulation(job, index, folder, learning) for index, name in enumerate(names)
    }
    graded = {p.name: isinstance(p.neuron, Graded) for p in network.populations}
    cells = {n: (LearningGraded if graded[n] else LearningSpikes)(parts[n]) for n in names}
    source = Source(parts[names[0]])
    for cell in cells.values():
        source.control_port.connect(cell.control_port)
    for place, projection in enumerate(network.projections):
        target, part = cells[projection.target], parts[projection.source]
        learns = projection.gain is Gain.ONE and projection.name in learning.plastic.learns
        connection = PlasticSynapses(part, place=place) if learns else synapses(part, projection)
        if learns:
            target.y1.connect(connection.s_in_y1)
            target.y2.connect(connection.s_in_y2)
            target.y3.connect(connection.s_in_y3)
        cells[projection.source].s_out.connect(connection.s_in)
        connection.a_out.connect(target.a_one if projection.gain is Gain.ONE else target.a_beta)
    return [cells[name] for name in names]
