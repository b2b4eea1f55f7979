"""Run a simulator on shards of samples, in threads or as tasks of an executor.

Samples are independent and results are returned in order, so they are bitwise equal for any
executor and number of workers.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from io import BytesIO
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.files import deadlines
from neuro_eqprop.files.arrays import npz_bytes
from neuro_eqprop.runs.executors import Executor, Task, TaskResult, make_executor
from neuro_eqprop.runs.executors.choose import check_workers
from neuro_eqprop.simulators.base import Backend, BackendError, Overflow, Result, Threaded
from neuro_eqprop.simulators.experiment import (
    Experiment,
    describe_experiment,
    rebuild_experiment,
)
from neuro_eqprop.simulators.recordings import NOTHING, MemorySink, Record, Recording, Sink
from neuro_eqprop.simulators.registry import BACKENDS, load_backend
from neuro_eqprop.spiking.ir import SpikingNetwork, Stimulus

CHUNK = 120
"""Samples per call of a simulator that is not in the registry."""
DEADLINE = 86_400.0
"""Time limit in seconds for a shard of a simulation without a deadline."""


class Shared(NamedTuple):
    """Number of workers, and the executor that runs the shards; None for this machine."""

    workers: int = 1
    executor: Executor | None = None

    def check(self) -> None:
        """Raise ValueError for an invalid number of workers or executor."""
        check_workers(self.workers, local=self.executor is None)
        if isinstance(self.executor, str):
            raise ValueError(
                f"`executor` is the name {self.executor!r}; give an executor, as "
                f"neuro_eqprop.runs.executors.make_executor({self.executor!r})"
            )

    def in_process(self, backend: Backend) -> bool:
        """Return whether the shards run in this process."""
        return self.executor is None and (self.workers == 1 or isinstance(backend, Threaded))

    def here(self, backend: Backend) -> Shared:
        """Return the same threads, without processes and executor."""
        return Shared(self.workers) if isinstance(backend, Threaded) else ALONE

    def threaded(self, backend: Backend) -> Backend:
        """Return the backend with a thread per worker, if it supports threads."""
        return backend.with_threads(self.workers) if isinstance(backend, Threaded) else backend


ALONE = Shared()
"""One worker in this process."""


class DroppedSink:
    """A sink for runs that record nothing."""

    def sample(self, index: int, recording: Recording) -> None:
        """Drop the recording, which is empty."""


DROPPED = DroppedSink()


def has_random_spikes(network: SpikingNetwork) -> bool:
    """Return whether spikes are random; they then depend on the index of a sample in its shard."""
    follows = [population.neuron.follow for population in network.populations]
    return any(follow is not None and follow.seed is not None for follow in follows)


def shard_size(backend: Backend, network: SpikingNetwork, samples: int, shared: Shared) -> int:
    """Return the samples per shard: the chunk of the backend, or fewer to occupy all workers.

    With random spikes it does not depend on the workers, so that results do not.
    """
    size = BACKENDS[backend.name].chunk if backend.name in BACKENDS else CHUNK
    if has_random_spikes(network) or shared.in_process(backend):
        return size
    return min(size, -(-samples // shared.workers))


@dataclass(frozen=True, slots=True)
class ShiftedSink:
    """Passes recordings on, numbered from the first sample of a shard."""

    sink: Sink
    first: int

    def sample(self, index: int, recording: Recording) -> None:
        """Pass the recording on."""
        self.sink.sample(self.first + index, recording)


def run_shards(
    backend: Backend,
    network: SpikingNetwork,
    schedule: Schedule,
    stimuli: Iterable[Stimulus],
    *,
    shared: Shared,
    record: Record = NOTHING,
    sink: Sink = DROPPED,
) -> Iterator[tuple[Stimulus, Result]]:
    """Yield each stimulus with its result, in order; the recordings go to the sink."""
    first = 0
    if shared.in_process(backend):
        one = shared.threaded(backend)
        for stimulus in stimuli:
            shifted = ShiftedSink(sink, first)
            yield stimulus, one.run(network, stimulus, schedule, record=record, sink=shifted)
            first += stimulus.samples
        return
    if backend.name not in BACKENDS or load_backend(backend.name) != backend:
        raise ValueError(
            f"workers load a backend by its name, and this {backend.name!r} is not the registered "
            "one with its default settings; use workers=1"
        )
    parts, tasks = [], []
    for stimulus in stimuli:
        described, arrays = describe_experiment(Experiment(network, stimulus, schedule, record))
        arguments = {"backend": backend.name, "described": described, "keys": list(arrays)}
        arguments["arrays"] = to_text(list(arrays.values()))
        tasks.append(Task("neuro_eqprop.runs.workers:run_shard", arguments))
        parts.append(stimulus)
    executor = shared.executor or make_executor("local", workers=shared.workers)
    for stimulus, values in zip(parts, in_order(executor, tasks), strict=True):
        result, recordings = unpack(values)
        for k, recording in enumerate(recordings):
            sink.sample(first + k, recording)
        first += stimulus.samples
        yield stimulus, result


def in_order(executor: Executor, tasks: Sequence[Task]) -> Iterator[dict[str, Any]]:
    """Yield the values of the tasks in their order; raise BackendError if one failed."""
    place, waiting, following = {id(task): k for k, task in enumerate(tasks)}, {}, 0
    for done in with_second_try(executor, tasks):
        if done.error is not None:
            tried = " twice" if done.crashed else ""
            raise BackendError(f"a shard of the samples failed{tried}: {done.error}")
        waiting[place[id(done.task)]] = done.values
        while following in waiting:
            yield waiting.pop(following)
            following += 1


def with_second_try(executor: Executor, tasks: Sequence[Task]) -> Iterator[TaskResult]:
    """The results of the tasks; those whose process was killed run again, once, after the others.

    A machine that is short of memory kills one process, and the results of the others stay.
    """
    crashed = []
    for done in executor.run(tasks, deadline=time_left()):
        deadlines.check()
        if done.crashed:
            crashed.append(done.task)
        else:
            yield done
    for done in executor.run(crashed, deadline=time_left()) if crashed else ():
        deadlines.check()
        yield done


def time_left() -> float:
    """Seconds that a shard may take."""
    return min(max(deadlines.current().until - monotonic(), 0.01), DEADLINE)


def run_shard(
    backend: str, described: dict[str, Any], keys: list[str], arrays: str
) -> dict[str, Any]:
    """Run one shard as the task of an executor; arguments and result are JSON values."""
    given = rebuild_experiment(described, dict(zip(keys, from_text(arrays), strict=True)))
    sink = MemorySink()
    result = load_backend(backend).run(
        given.network, given.stimulus, given.schedule, record=given.record, sink=sink
    )
    parts: list[tuple[list[Any], npt.NDArray[Any]]] = [
        ([kind, name], array)
        for kind in ("messages", "firing", "drive")
        for name, array in getattr(result, kind).items()
    ]
    for k, recording in enumerate(sink.recordings):
        parts += [(["spikes", k, name], array) for name, array in recording.spikes.items()]
        parts += [(["signals", k, *key], array) for key, array in recording.signals.items()]
    return {
        "keys": [key for key, _ in parts],
        "arrays": to_text([array for _, array in parts]),
        "overflows": {name: list(astuple(each)) for name, each in result.overflows.items()},
        "copies": dict(result.copies),
        "receivers": dict(result.receivers),
        "recordings": len(sink.recordings),
    }


def unpack(values: dict[str, Any]) -> tuple[Result, list[Recording]]:
    """Decode the result and the recordings of `run_shard`."""
    kinds: dict[str, dict[str, npt.NDArray[Any]]] = {"messages": {}, "firing": {}, "drive": {}}
    spikes: list[dict[str, npt.NDArray[Any]]] = [{} for _ in range(values["recordings"])]
    signals: list[dict[tuple[str, str], npt.NDArray[Any]]] = [{} for _ in spikes]
    for (kind, *key), array in zip(values["keys"], from_text(values["arrays"]), strict=True):
        if kind == "spikes":
            spikes[key[0]][key[1]] = array
        elif kind == "signals":
            signals[key[0]][key[1], key[2]] = array
        else:
            kinds[kind][key[0]] = array
    overflows = {name: Overflow(*each) for name, each in values["overflows"].items()}
    result = Result(
        **kinds, overflows=overflows, copies=values["copies"], receivers=values["receivers"]
    )
    return result, [Recording(*each) for each in zip(spikes, signals, strict=True)]


def to_text(arrays: Sequence[npt.NDArray[Any]]) -> str:
    """Encode arrays losslessly as text for JSON."""
    return b64encode(npz_bytes(arrays)).decode("ascii")


def from_text(text: str) -> list[npt.NDArray[Any]]:
    """Decode the arrays of `to_text`."""
    with np.load(BytesIO(b64decode(text)), allow_pickle=False) as file:
        return [file[name] for name in file.files]
