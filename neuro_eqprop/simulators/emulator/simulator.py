"""The step of `neuro_eqprop.spiking.ir`, event-driven and compiled, fast enough for test sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from math import inf
from typing import TypeVar

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.files import deadlines
from neuro_eqprop.simulators.base import (
    Overflow,
    Result,
    Support,
    check_record,
)
from neuro_eqprop.simulators.emulator import BACKEND
from neuro_eqprop.simulators.emulator.kernels import (
    BY_BETA,
    CHANNELS,
    DELAY,
    HEIGHT_IN,
    HEIGHT_OUT,
    LANES,
    OUTPUTS,
    ROWS,
    START,
    STOP,
    WIDTH_IN,
    WIDTH_OUT,
    SampleArrays,
    Workspace,
    emulate,
)
from neuro_eqprop.simulators.emulator.memory import check_memory
from neuro_eqprop.simulators.emulator.packed import CurveCalls, Tables, aligned, is_other, tabulate
from neuro_eqprop.simulators.recordings import Record, Recording, Sink
from neuro_eqprop.simulators.registry import check_run
from neuro_eqprop.spiking.ir import SpikingNetwork, Stimulus

WORK = 2**22
"""Unit-steps per call of compiled code: about a second, so that Ctrl-C works."""
ROOM = 2**23
"""Recorded values held in memory at a time."""
EMPTY = Recording({}, {})
Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """Columns recorded at each step: (start, stop) by population and variable.

    `columns` has a row for each population: the first columns of spikes, of voltage or state,
    and of drive, or -1 where not recorded; it has no rows if nothing is recorded.
    """

    places: dict[tuple[str, str], tuple[int, int]]
    columns: Ints
    width: int

    def recording(self, values: Array, tables: Tables) -> Recording:
        """One sample, from its values (steps, columns)."""
        shown = {key: values[:, a:z] * tables.size(*key) for key, (a, z) in self.places.items()}
        return Recording(
            {name: array for (name, variable), array in shown.items() if variable == "spikes"},
            {key: array for key, array in shown.items() if key[1] != "spikes"},
        )


NO_RECORD = RecordLayout({}, np.zeros((0, 3), dtype=np.int64), 0)


def plan_layout(network: SpikingNetwork, record: Record) -> RecordLayout:
    """The columns of a record; raises UnknownNameError for variables that do not exist."""
    if not (record.spikes or record.signals):
        return NO_RECORD
    check_record(network, record)
    wanted = {*((name, "spikes") for name in record.spikes), *record.signals}
    places: dict[tuple[str, str], tuple[int, int]] = {}
    columns, width = -np.ones((len(network.populations), 3), dtype=np.int64), 0
    for row, population in enumerate(network.populations):
        for column, variable in enumerate(population.neuron.activity.variables):
            if (population.name, variable) in wanted:
                columns[row, column] = width
                places[population.name, variable] = (width, width + population.size)
                width += population.size
    return RecordLayout(places, columns, width)


@dataclass(frozen=True, slots=True)
class Emulator:
    """Emulator backend: samples one by one in compiled code, in float64 or 24-bit integers.

    The first run on a machine compiles for some seconds; the code is then cached on disk.
    """

    name: str = BACKEND.name
    support: Support = BACKEND.support
    threads: int = 1
    """Number of threads that samples are divided among; the result does not depend on it."""
    known: list[Tables] = field(default_factory=list, init=False, repr=False, compare=False)
    """Cache of the tables of the last network, since samples are often run one by one."""

    def with_threads(self, threads: int) -> Emulator:
        """The same emulator with that many threads."""
        return replace(self, threads=threads)

    def tables(self, network: SpikingNetwork) -> Tables:
        """The tables of a network, rebuilt if it is not the last one or has changed."""
        if not (self.known and self.known[0].built_from(network)):
            self.known[:] = [tabulate(network)]
        return self.known[0]

    def run(
        self,
        network: SpikingNetwork,
        stimulus: Stimulus,
        schedule: Schedule,
        *,
        record: Record,
        sink: Sink,
    ) -> Result:
        """Run all samples through the schedule."""
        check_run(self, network, stimulus)
        check_memory(network, stimulus.samples, len(schedule))
        tables, log = self.tables(network), plan_layout(network, record)
        limit = deadlines.current()  # threads of a pool do not see it
        shape = (stimulus.samples, len(schedule), tables.units)
        messages, firing, drive = np.empty(shape, dtype=np.int64), np.empty(shape), np.empty(shape)
        overflows = (
            np.zeros((len(tables.populations), 2), dtype=np.int64) if network.fixed else None
        )
        steps = sum(phase.steps for phase in schedule)
        at_once = max(tables.together, WORK // (steps * tables.units + 1))
        at_once = min(
            at_once, ROOM // (steps * log.width + 1), -(-stimulus.samples // self.threads)
        )
        at_once = max(1, at_once)

        def run_part(start: int) -> tuple[Array, Ints | None]:
            stop = min(start + at_once, stimulus.samples)
            part = stimulus if at_once >= stimulus.samples else stimulus.take(start, stop)
            values = np.zeros((part.samples if log.width else 0, steps, log.width))
            own = None if overflows is None else np.zeros_like(overflows)
            into = (messages[start:stop], firing[start:stop], drive[start:stop], own, values)
            run_samples(tables, part, schedule, first=start, log=log, into=into, halt=limit.flag)
            deadlines.check(limit)
            return values, own

        starts = range(0, stimulus.samples, at_once)
        parts = in_threads(run_part, starts, self.threads)
        for start, (values, own) in zip(starts, parts, strict=True):
            if overflows is not None and own is not None:
                overflows += own
            for k in range(min(at_once, stimulus.samples - start)):
                sink.sample(start + k, log.recording(values[k], tables) if log.width else EMPTY)
        return Result(
            tables.split(messages),
            tables.to_float(firing, "sent"),
            tables.to_float(drive, "drive"),
            {} if overflows is None else overflows_by_population(tables, overflows),
        )


def in_threads(
    function: Callable[[int], Part], starts: Sequence[int], threads: int
) -> Iterator[Part]:
    """function(start) for each start, in order, `threads` of them at a time."""
    if threads == 1:
        yield from map(function, starts)
        return
    with ThreadPoolExecutor(threads) as pool:
        for first in range(0, len(starts), threads):  # a group at a time bounds the memory
            yield from pool.map(function, starts[first : first + threads])


def overflows_by_population(tables: Tables, counts: Ints) -> dict[str, Overflow]:
    """Overflows by population; in fixed point each population is a separate block."""
    rows = zip(tables.place, counts.tolist(), strict=True)
    return {name: Overflow(wraps, saturations) for name, (wraps, saturations) in rows}


def run_samples(
    tables: Tables,
    stimulus: Stimulus,
    schedule: Schedule,
    *,
    first: int,
    log: RecordLayout,
    into: tuple[Ints, Array, Array, Ints | None, Array],
    halt: Ints,
) -> None:
    """Run samples in compiled code; `first` is the index of the first one.

    Writes messages, firing, drive, overflows and recorded values to `into`. Returns early once
    `halt` is not zero.
    """
    given = np.empty((stimulus.samples, tables.units))
    pull = np.zeros((stimulus.samples, tables.units if stimulus.pull else 0))
    for population in tables.network.populations:
        name, (a, z) = population.name, tables.place[population.name]
        current = tables.to_units(name, stimulus.current.get(name))
        np.add(tables.numbers[name].bias, current, out=given[:, a:z])
        if name in stimulus.pull:
            pull[:, a:z] = tables.to_units(name, stimulus.pull[name])
    phases = [(phase.steps, phase.window) for phase in schedule]
    lengths = np.array(phases, dtype=np.int64).reshape(-1, 2)
    betas = np.array([tables.beta(phase.beta) for phase in schedule], dtype=np.float64)
    messages, firing, drives, overflows, values = into
    refused = np.zeros(1, dtype=np.int64)
    results = (messages, firing, drives, log.columns, values, halt, 0.0, inf, refused)
    samples = SampleArrays(first, lengths, betas, given, pull, tables.starts(), *results)
    courses = tables.courses(int(lengths[:, 0].sum()))
    images = tables.packed.images if len(tables.packed.images) else None
    kinds = [population.neuron.graded for population in tables.network.populations]
    parts = (None if all(kinds) else True, True if any(kinds) else None)
    given_range = tables.exact.given(schedule) if tables.exact and not betas.any() else None
    curves = CurveCalls(tables)
    for exact in (given_range, None):
        samples = samples._replace(grid=exact[0] if exact else 0.0, most=exact[1] if exact else inf)
        space = workspace(tables, min(tables.together, stimulus.samples), short=exact is not None)
        flat = tables.flat(curves.addresses, short=exact is not None)
        emulate(flat, samples, space, images, *parts, courses, overflows)
        if not samples.refused[0]:
            break
        samples.refused[0] = 0
    curves.check()


def workspace(tables: Tables, samples: int, *, short: bool) -> Workspace:
    """The state of samples that step side by side; allocated here, since that compiles slowly."""
    packed, lanes = tables.packed, tables.lanes
    projections, images = packed.projections, packed.images
    depth = max([1, *projections[:, DELAY].tolist()])
    sides = [[CHANNELS, HEIGHT_IN, WIDTH_IN], [OUTPUTS, HEIGHT_OUT, WIDTH_OUT]]
    pixels = int(images[:, sides].prod(axis=2).max(initial=0))
    state = np.float32 if short else np.float64
    few = short and tables.together == 1
    sums = np.float32 if few else packed.sums
    gated, listed = bool(projections[:, BY_BETA].any()), depth * samples * lanes
    sizes = tables.populations[:, STOP] - tables.populations[:, START]
    other = any(is_other(p.neuron.activation) for p in tables.network.populations)
    return Workspace(
        aligned(samples * lanes, sums),
        aligned(samples * lanes if gated else 0, sums),
        aligned(samples * lanes * ROWS, state),
        np.zeros(listed, dtype=np.uint32),
        np.ones(listed if packed.graded or pixels else 0),
        np.zeros((depth, samples, len(sizes)), dtype=np.int64),
        np.zeros(samples * lanes // LANES, dtype=np.uint8),
        np.zeros(2 * int(sizes.max()) if other else 0),
        np.zeros((2, pixels)),
        np.zeros(int(sizes.max()) if pixels else 0, dtype=np.uint64),
    )
