"""What a run on Lava leaves in its folder: tables with one row per sample, written as they end."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, Bits, Ints, Shape
from neuro_eqprop.files.subprocess import progress, report
from neuro_eqprop.files.write import append_bytes
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.experiment import Experiment
from neuro_eqprop.simulators.recordings import Record
from neuro_eqprop.simulators.step_recorder import RunRecorder, Step
from neuro_eqprop.spiking.neurons import Neurons


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

    def create(self) -> None:
        """Write the file without rows."""
        append_bytes(self.path, self.header)

    def append(self, rows: npt.NDArray[Any]) -> None:
        """Write rows to the end of the file."""
        append_bytes(self.path, rows.astype(self.kind).tobytes())


def signal(variable: str) -> str:
    """The name of the table of a recorded variable."""
    return f"signal.{variable}"


def layouts(experiment: Experiment, folder: Path, name: str) -> dict[str, Layout]:
    """The tables of a population; each is (samples, phases or steps, units)."""
    population, index = experiment.network[name], index_of(experiment, name)
    samples, size = experiment.stimulus.samples, population.size
    integer, real = np.dtype(np.int64), np.dtype(np.float64)
    per_phase, per_step = (
        (samples, len(experiment.schedule), size),
        (samples, experiment.steps, size),
    )
    wanted: dict[str, tuple[np.dtype[Any], Shape]]
    wanted = {"messages": (integer, per_phase), "overflows": (integer, (samples, 2))}
    wanted |= {"firing": (real, per_phase), "drive": (real, per_phase)}
    if name in experiment.record.spikes:
        wanted["spikes"] = (real if population.neuron.graded else np.dtype(np.bool_), per_step)
    for recorded, variable in experiment.record.signals:
        if recorded == name:
            wanted[signal(variable)] = (real, per_step)
    return {
        what: Layout(folder / f"{index}.{what}.npy", kind, shape)
        for what, (kind, shape) in wanted.items()
    }


def index_of(experiment: Experiment, name: str) -> int:
    """The number of a population."""
    return [population.name for population in experiment.network.populations].index(name)


class SampleFiles:
    """Records some populations, and writes their tables when `batch` samples are done."""

    def __init__(
        self, experiment: Experiment, folder: Path, names: tuple[str, ...], batch: int = 1
    ) -> None:
        self.experiment, self.folder, self.names, self.batch = experiment, folder, names, batch
        populations = tuple(experiment.network[name] for name in names)
        self.network = replace(
            experiment.network,
            populations=populations,
            projections=(),
            output=names[0],
            fixed=None,
        )
        record = experiment.record
        self.record = Record(
            record.spikes & {*names}, frozenset(key for key in record.signals if key[0] in names)
        )
        self.tables = {name: layouts(experiment, folder, name) for name in names}
        for tables in self.tables.values():
            for table in tables.values():
                table.create()
        self.progress = progress(folder)
        self.places = [1 + index_of(experiment, name) for name in names]
        self.started = 0
        self.start()

    def start(self) -> None:
        """Start the next samples."""
        samples = min(self.batch, self.experiment.stimulus.samples - self.started)
        self.started += samples
        self.steps = RunRecorder(self.network, self.experiment.schedule, self.record, samples)

    def add_step(
        self, payload: Array | Bits, neurons: Neurons, values: Mapping[str, Array]
    ) -> None:
        """Record a step of one population, whose neurons sent `payload`."""
        self.add(lambda _: Step(payload, neurons.firing(), values), lambda _: neurons.overflows)

    def add_messages(self, name: str, more: Ints) -> None:
        """Count messages in the next step, beside those that its record shows."""
        self.steps.result.messages[name][:, self.steps.steps[self.steps.done].phase] += more

    def add(self, last: Callable[[str], Step], overflows: Callable[[str], npt.ArrayLike]) -> None:
        """Record a step of every population; `overflows` are wraps and saturations so far."""
        self.steps.add(last)
        self.progress[self.places] += self.steps.samples
        if self.steps.done == self.experiment.steps:
            self.write(overflows)
            self.start()

    def write(self, overflows: Callable[[str], npt.ArrayLike]) -> None:
        """Write the rows of the samples that are done."""
        result = self.steps.finish()
        for name, tables in self.tables.items():
            tables["messages"].append(result.messages[name])
            tables["firing"].append(result.firing[name])
            tables["drive"].append(result.drive[name])
            tables["overflows"].append(np.tile(overflows(name), (self.steps.samples, 1)))
            if name in self.steps.spikes:
                tables["spikes"].append(self.steps.spikes[name])
        for (name, variable), course in self.steps.signals.items():
            self.tables[name][signal(variable)].append(course)

    def fail(self) -> None:
        """Report the error that is handled now to the parent."""
        report(self.folder, traceback.format_exc())
