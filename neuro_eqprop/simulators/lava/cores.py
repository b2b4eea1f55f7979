"""Pins all processes of a small Lava graph to one processor core.

Lava's processes wait for one another in every step. When a step computes little, waking a
process on another core costs more than the step: on one core, 200 samples of 64-32-10 take half the
processor time and a third of the wall-clock time.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from neuro_eqprop.spiking.ir import SpikingNetwork

MOST_SYNAPSES = 2**20
"""Largest number of synapses of a graph that runs on one core."""


@contextmanager
def one_core(network: SpikingNetwork) -> Iterator[set[int] | None]:
    """Yields the core for a run of the network; None for a large network, which uses all cores.

    Concurrent runs get different cores while free ones remain: a run binds a socket named after
    its core, which the system releases when the process ends for any reason.
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
