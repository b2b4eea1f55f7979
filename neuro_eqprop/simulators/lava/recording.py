"""Recordings of a population on Lava, kept in files with one row per sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, Bits, Shape
from neuro_eqprop.files.write import append_bytes, write_bytes
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.lava.job import Part, Tick
from neuro_eqprop.spiking.ir import Graded


@dataclass(frozen=True, slots=True)
class Layout:
    """The `.npy` file of a recorded array, its dtype and its shape."""

    path: Path
    kind: np.dtype[Any]
    shape: Shape

    def read(self) -> npt.NDArray[Any]:
        """The array, memory-mapped; raises BackendError if it is not as expected."""
        try:
            array: npt.NDArray[Any] = np.load(self.path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise BackendError(f"cannot read {self.path.name} of lava: {error}") from error
        if array.shape != self.shape or array.dtype != self.kind:
            found = f"{array.dtype} {array.shape}"
            raise BackendError(f"{self.path.name} of lava has {found}, not {self.shape}")
        return array

    def complete_rows(self) -> int:
        """Number of rows written completely."""
        try:
            held = self.path.stat().st_size - self.header_bytes
        except FileNotFoundError:
            return 0
        return max(0, held // self.row_bytes)

    def row(self, index: int) -> Array:
        """Row `index`, which must be written completely."""
        with self.path.open("rb") as file:
            file.seek(self.header_bytes + index * self.row_bytes)
            content = file.read(self.row_bytes)
        values = np.frombuffer(content, self.kind).reshape(self.shape[1:])
        return values.astype(np.float64)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self.kind.itemsize * prod(self.shape[1:])

    @property
    def header_bytes(self) -> int:
        """Bytes before the first row."""
        return len(self.header)

    @property
    def header(self) -> bytes:
        """The header of the `.npy` file."""
        file = BytesIO()
        header = {"descr": self.kind.str, "fortran_order": False, "shape": self.shape}
        np.lib.format.write_array_header_1_0(file, header)  # type: ignore[no-untyped-call]
        return file.getvalue()


def signal(variable: str) -> str:
    """The name of the table of a recorded variable."""
    return f"signal.{variable}"


def layouts(part: Part) -> dict[str, Layout]:
    """The tables of a population; each is (samples, phases or steps, units)."""
    job, population = part.job, part.population
    samples, size = job.stimulus.samples, population.size
    integer, real = np.dtype(np.int64), np.dtype(np.float64)
    payload = real if isinstance(population.neuron, Graded) else np.dtype(np.bool_)
    per_phase, per_step = (samples, len(job.schedule), size), (samples, job.steps, size)
    wanted: dict[str, tuple[np.dtype[Any], Shape]]
    wanted = {"messages": (integer, per_phase)}
    wanted |= {"firing": (real, per_phase), "drive": (real, per_phase)}
    if population.name in job.record.spikes:
        wanted["spikes"] = (payload, per_step)
    for name, variable in job.record.signals:
        if name == population.name:
            wanted[signal(variable)] = (real, per_step)
    return {
        name: Layout(part.folder / f"{part.index}.{name}.npy", kind, shape)
        for name, (kind, shape) in wanted.items()
    }


class Table:
    """Buffered rows of a table, one per sample, and the file they are appended to."""

    def __init__(self, layout: Layout, rows: int) -> None:
        self.rows = np.zeros((rows, *layout.shape[1:]), layout.kind)
        self.path = layout.path
        write_bytes(self.path, layout.header)

    def flush(self, full: int) -> None:
        """Write the first `full` rows and reset all rows to zero."""
        append_bytes(self.path, self.rows[:full].tobytes())
        self.rows[...] = 0


class StepRecorder:
    """Records one population; writes the files after every `samples` samples."""

    def __init__(self, part: Part, samples: int = 1) -> None:
        self.last = part.job.steps - 1
        self.tables = {name: Table(layout, samples) for name, layout in layouts(part).items()}
        self.sums = tuple(self.tables[name].rows for name in ("messages", "firing", "drive"))
        self.windows = np.array([[phase.window] for phase in part.job.schedule])
        self.spikes = self.tables["spikes"].rows if "spikes" in self.tables else None
        variables = [v for name, v in part.job.record.signals if name == part.population.name]
        self.signals = {variable: self.tables[signal(variable)].rows for variable in variables}

    def record(
        self,
        step: int,
        tick: Tick,
        *,
        message: Array | Bits,
        firing: Array | Bits,
        values: Mapping[str, Array],
    ) -> None:
        """Record one step; the rate is the mean of `firing`."""
        full = len(message) if message.ndim > 1 else 1
        messages, rates, drives = self.sums
        messages[:full, tick.phase] += message != 0
        if tick.counts:
            rates[:full, tick.phase] += firing
            drives[:full, tick.phase] += values["drive"]
        if self.spikes is not None:
            self.spikes[:full, step] = message
        for variable, course in self.signals.items():
            course[:full, step] = values[variable]
        if step == self.last:
            self.close(full)

    def close(self, full: int) -> None:
        """End `full` samples: divide the sums by the windows and write the rows."""
        for name in ("firing", "drive"):
            self.tables[name].rows /= self.windows
        for table in self.tables.values():
            table.flush(full)
