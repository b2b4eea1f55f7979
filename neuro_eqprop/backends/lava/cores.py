"""The processor core on which all processes of a small Lava graph run.

Lava's processes wait for one another in every step. Where a step has little to compute, waking a
process on another core costs more than the step: on one core, 200 samples of 64-32-10 take half of
the processor time and a third of the wall-clock time.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from neuro_eqprop.spiking.ir import SpikingNetwork

MOST_SYNAPSES = 2**20
"""Synapses up to which a graph stays on one core."""


@contextmanager
def one_core(network: SpikingNetwork) -> Iterator[set[int] | None]:
    """The core for a run of the network; None for a large one, which takes all cores.

    Runs side by side get different cores as long as there are some: a run holds a socket with the
    name of its core, which the system releases when the process ends for any reason.
    """
    small = sum(each.synapses.count for each in network.projections) <= MOST_SYNAPSES
    if not small or not hasattr(os, "sched_getaffinity"):
        yield None
        return
    cores = sorted(os.sched_getaffinity(0))
    first = os.getpid() % len(cores)
    chosen = cores[first]
    with socket.socket(socket.AF_UNIX) as held:
        for core in (*cores[first:], *cores[:first]):
            with suppress(OSError):
                held.bind(f"\0neuro-eqprop-{os.getuid()}-core-{core}")
                chosen = core
                break
        yield {chosen}
