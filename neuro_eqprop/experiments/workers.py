"""Runs of a simulator over several workers: threads of compiled code, or processes.

Samples are independent and results come back in their order, so that they have the same bytes
whatever the number of workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from neuro_eqprop.backends.base import Backend, Result, Threaded
from neuro_eqprop.backends.registry import BACKENDS, load_backend
from neuro_eqprop.schedules import Schedule
from neuro_eqprop.spiking.ir import SpikingNetwork, Stimulus, follow_of
from neuro_eqprop.traces import NOTHING, MemorySink

CHUNK = 120
"""Samples per call of a simulator that is not in the registry."""


def check_workers(workers: int) -> None:
    """Raise ValueError for a number of workers below one."""
    if workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers}")


def shard_size(backend: Backend, network: SpikingNetwork, samples: int, workers: int) -> int:
    """Samples per call: those of the backend, or fewer, so that every worker gets some.

    Random spikes are drawn from the place of a sample in its call: calls then stay as they are.
    """
    size = BACKENDS[backend.name].chunk if backend.name in BACKENDS else CHUNK
    follows = [follow_of(population.neuron) for population in network.populations]
    if any(follow is not None and follow.seed is not None for follow in follows):
        return size
    return size if isinstance(backend, Threaded) else min(size, -(-samples // workers))


def run_shard(
    backend: Backend, network: SpikingNetwork, *, schedule: Schedule, stimulus: Stimulus
) -> Result:
    """One call of a simulator, without recording."""
    return backend.run(network, stimulus, schedule, record=NOTHING, sink=MemorySink())


def run_named(name: str, network: SpikingNetwork, schedule: Schedule, stimulus: Stimulus) -> Result:
    """The same in a worker process."""
    return run_shard(load_backend(name), network, schedule=schedule, stimulus=stimulus)


def run_shards(
    backend: Backend,
    network: SpikingNetwork,
    schedule: Schedule,
    stimuli: Iterable[Stimulus],
    *,
    workers: int,
) -> Iterator[Result]:
    """The result of each stimulus, in order: threads of the emulator, processes of all others."""
    if isinstance(backend, Threaded) or workers == 1:
        one = backend.with_threads(workers) if isinstance(backend, Threaded) else backend
        for stimulus in stimuli:
            yield run_shard(one, network, schedule=schedule, stimulus=stimulus)
        return
    if backend.name not in BACKENDS:
        raise ValueError(
            f"backend {backend.name!r} is not registered, so that workers cannot load it by name; "
            "use workers=1"
        )
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(partial(run_named, backend.name, network, schedule), stimuli)
