"""The memory that the emulator needs for a network, known before anything is allocated."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.emulator.packed import CACHED, TOGETHER, to_tiles
from neuro_eqprop.simulators.emulator.sparse_columns import REACH
from neuro_eqprop.spiking.ir import SpikingNetwork
from neuro_eqprop.spiking.synapses import ConvolutionSynapses, DenseSynapses, Synapses

STATE = 13 * 8 + 16 + 12
"""Bytes per unit: its variables, its input, and an entry in the list of messages."""
RESULTS = 3 * 8
"""Bytes of results per unit, sample and phase."""
INPUT = 2 * 8
"""Bytes of the current and the pull per unit and sample."""


def synapse_memory(synapses: Synapses) -> int:
    """Bytes of the tables of a projection: columns, sparse columns or a kernel."""
    if isinstance(synapses, DenseSynapses):
        return 8 * synapses.weight.size
    if isinstance(synapses, ConvolutionSynapses):
        largest = max(np.prod(synapses.pooled), np.prod(synapses.output))
        return 8 * synapses.kernel.size + 3 * 8 * int(largest)
    blocks = -(-synapses.shape[0] // REACH)
    return 12 * synapses.parameters + 4 * (blocks * synapses.shape[1] + 1)


def emulator_memory(network: SpikingNetwork, *, samples: int = 1, phases: int = 1) -> int:
    """Bytes that the emulator needs for a run, in addition to the network itself.

    Parameters
    ----------
    network : SpikingNetwork
        The network.
    samples, phases : int
        Samples of a call, and phases of each.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> from neuro_eqprop.simulators.emulator.memory import emulator_memory
    >>> network = ne.train("layered", "digits", hidden=(16,), epochs=1).to_spiking().network
    >>> emulator_memory(network, samples=100) < 1_000_000
    True
    """
    units = sum(population.size for population in network.populations)
    tables = sum(synapse_memory(projection.synapses) for projection in network.projections)
    depth = max((projection.delay for projection in network.projections), default=1)
    lanes = sum(to_tiles(population.size) for population in network.populations)
    together = min(samples, TOGETHER if tables > CACHED else 1)
    each = together * lanes * (STATE + 12 * (depth - 1))
    return tables + each + samples * units * (INPUT + phases * RESULTS)


def available_memory() -> int | None:
    """Bytes of free memory, or None if the system does not report them."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = {line.split(":")[0]: line.split()[1] for line in lines}
    return 1024 * int(found["MemAvailable"]) if "MemAvailable" in found else None


def check_memory(network: SpikingNetwork, samples: int, phases: int) -> None:
    """Raise BackendError if a run does not fit into free memory."""
    needed, free = emulator_memory(network, samples=samples, phases=phases), available_memory()
    if free is not None and needed > free:
        neurons = sum(population.size for population in network.populations)
        synapses = sum(projection.synapses.parameters for projection in network.projections)
        raise BackendError(
            f"the emulator needs {needed / 1e9:.1f} GB for {neurons} neurons with {synapses} "
            f"weights and {samples} samples, and {free / 1e9:.1f} GB are free; run fewer samples "
            "at a time, a smaller network, or a machine with more memory"
        )
