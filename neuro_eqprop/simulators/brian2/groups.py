"""Brian2 neuron groups and synapses of a network in discrete steps."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from neuro_eqprop.simulators.brian2.equations import constants, step
from neuro_eqprop.simulators.brian2.setup import Handle
from neuro_eqprop.spiking.ir import (
    Gain,
    Graded,
    Population,
    Projection,
    Spiking,
    SpikingNetwork,
    Stimulus,
)
from neuro_eqprop.spiking.synapses import Synapses


def message_variable(population: Population) -> str:
    """The name of the variable with the message of a population."""
    return "q" if isinstance(population.neuron, Graded) else "fired"


def neurons(
    brian2: ModuleType,
    network: SpikingNetwork,
    population: Population,
    *,
    stimulus: Stimulus,
    tables: dict[str, Handle] | None,
    clock: Handle,
    **name: str,
) -> Handle:
    """A population in its initial state, with a copy of its neurons and a stimulus per sample.

    `tables` are those of a schedule; if None, beta is a variable of the group.
    """
    delays = [p.delay for p in network.projections if p.source == population.name]
    model, code = step(population.neuron, max(delays, default=1), scheduled=tables is not None)
    group = brian2.NeuronGroup(
        stimulus.samples * population.size,
        model,
        threshold=f"{message_variable(population)} != 0",
        reset="",
        events={} if tables is None else {"phase_end": "last_of_phase(t) > 0.5"},
        namespace={**(tables or {}), **constants(brian2, population.neuron)},
        clock=clock,
        **name,
    )
    group.run_regularly(code, when="groups", clock=clock)
    nothing = np.zeros((stimulus.samples, population.size))
    group.outside = (population.bias + stimulus.current.get(population.name, nothing)).ravel()
    group.pull = stimulus.pull.get(population.name, nothing).ravel()
    if isinstance(population.neuron, Spiking):
        group.v = population.neuron.resting_voltage
    return group


def synapses(
    brian2: ModuleType,
    projection: Projection,
    groups: dict[str, Handle],
    *,
    samples: int,
    clock: Handle,
    **name: str,
) -> Handle:
    """The synapses of a projection, once for each sample and never between samples."""
    source, target = groups[projection.source], groups[projection.target]
    arriving = "a_one" if projection.gain is Gain.ONE else "a_beta"
    late = projection.delay - 1
    sent = "" if "fired" in source.variables else f" * q{f'_{late}' if late else ''}_pre"
    paths = brian2.Synapses(
        source,
        target,
        "w : 1 (constant)",
        on_pre=f"{arriving}_post += w{sent}",
        delay=late * clock.dt,
        clock=clock,
        **name,
    )
    connect(paths, projection.synapses, samples)
    return paths


def connect(paths: Handle, synapses: Synapses, samples: int) -> None:
    """Connect the units with nonzero weights, once for each sample."""
    made = synapses.to_csr()
    used = made.data != 0
    rows, columns = made.rows()[used], made.indices[used]
    copies = np.arange(samples)[:, None]
    paths.connect(
        i=(copies * made.shape[1] + columns).ravel(), j=(copies * made.shape[0] + rows).ravel()
    )
    paths.w = np.tile(made.data[used], samples)
