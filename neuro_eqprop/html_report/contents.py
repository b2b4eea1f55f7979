"""Contents of a run folder for its report; damaged files are left out, with a note."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuro_eqprop.chips.energy.file import EnergyFileError
from neuro_eqprop.chips.energy.file import read_energy as read_energy_file
from neuro_eqprop.chips.energy.result import EnergyReport
from neuro_eqprop.files.read import json_lines
from neuro_eqprop.files.toml import FileFormatError, read_toml
from neuro_eqprop.html_report.training_snapshots import snapshots
from neuro_eqprop.html_report.values import Row
from neuro_eqprop.runs import checkpoint
from neuro_eqprop.traces.compare import Comparison, compare
from neuro_eqprop.traces.trace import Trace
from neuro_eqprop.training.trained import TRAINED, TrainedNetwork

SIMULATOR_ORDER = ("lava", "brian2", "snntorch", "reference")
"""Order of preference of simulators in the headline and in lists."""


@dataclass(frozen=True, slots=True)
class RunContents:
    """Everything in a run folder that its report shows."""

    path: Path
    study: Mapping[str, Any]
    """Settings, with tables flattened to `table.key`."""
    metrics: tuple[Row, ...]
    evaluations: tuple[Row, ...]
    energy: EnergyReport
    rates: tuple[str, Trace] | None
    """Trace of rates, with its file name."""
    spikes: Mapping[str, Trace]
    """Traces of simulators, by file name."""
    agreements: Mapping[str, Comparison]
    """Comparison of each of them with the rates, where possible."""
    notes: tuple[str, ...]
    """Files and traces that could not be used, and why."""
    training: tuple[str, Trace] | None = None
    """Snapshots of a training run, with the file name of its trace."""
    snapshots: tuple[str, ...] = ()
    """Names of the samples of `training`."""
    others: tuple[RunContents, ...] = ()
    """Runs shown beside this one."""
    model: TrainedNetwork | None = None
    """The network with its parameters, if the folder holds one that can be read."""

    @property
    def runs(self) -> tuple[RunContents, ...]:
        """The run itself and those beside it."""
        return self, *self.others

    @property
    def chip(self) -> str:
        """Simulator that the network learned on as spikes; empty if it was trained as rates."""
        on = self.study.get("learn.on")
        return str(on) if on and on != "rate" else ""

    @property
    def converted(self) -> str:
        """How the network was made if it was not trained here: "converted from torch"."""
        made = self.model.provenance if self.model is not None and not self.metrics else ""
        return "" if made == TRAINED else made

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.path.resolve().name

    @property
    def simulated(self) -> tuple[tuple[str, Trace], ...]:
        """File names and traces of simulations, rates first."""
        return *((self.rates,) if self.rates else ()), *self.spikes.items()

    @property
    def traces(self) -> tuple[tuple[str, Trace], ...]:
        """File names and traces: simulations, then the training."""
        return *self.simulated, *((self.training,) if self.training else ())

    def views(self) -> list[TraceView]:
        """Traces of all runs.

        Traces with the same `place` show the same samples. The training of a run has other samples
        than its simulations: if a run has both, its training gets a place after those of all runs.
        """
        views: list[TraceView] = []
        after = len(self.runs)
        for k, run in enumerate(self.runs):
            for name, trace in run.traces:
                learning = run.training is not None and name == run.training[0]
                apart = learning and bool(run.simulated)
                label = run.label(name, trace) + (", training" if apart else "")
                views.append(
                    TraceView(
                        after if apart else k,
                        name if run is self else str(run.path / name),
                        label + (f", {run.name}" if self.others else ""),
                        run,
                        name,
                        trace,
                        run.snapshots if learning else (),
                    )
                )
                after += apart
        return views

    def label(self, name: str, trace: Trace) -> str:
        """Simulator of a trace; with the file name if another trace has the same."""
        label = simulator_label(trace)
        same = [other for other in self.spikes.values() if simulator_label(other) == label]
        return label if len(same) <= 1 else f"{label} ({name.removesuffix('.h5')})"

    def setting(self, key: str) -> Any:  # noqa: ANN401
        """A setting by its name in any table, or None."""
        return next((v for k, v in self.study.items() if k.rpartition(".")[2] == key), None)


@dataclass(frozen=True, slots=True)
class TraceView:
    """A trace on the page."""

    place: int
    """Index of its list of samples."""
    key: str
    """File name, with the folder for a run beside the first one."""
    title: str
    run: RunContents
    name: str
    trace: Trace
    snapshots: tuple[str, ...] = ()
    """Names of the samples of a training."""

    @property
    def path(self) -> Path:
        """Path of the file."""
        return self.run.path / self.name

    @property
    def spikes(self) -> bool:
        """Whether it is of a simulator."""
        return not all_rates(self.trace)

    @property
    def sample_names(self) -> tuple[str, ...]:
        """Names of its samples."""
        return self.snapshots or tuple(f"sample {index}" for index in self.trace.index)


def all_rates(trace: Trace) -> bool:
    """Whether a trace is of a rate network."""
    return not any(kind.spikes for kind in trace.kinds.values())


def is_graded(trace: Trace) -> bool:
    """Whether a trace holds graded spikes."""
    return any(kind.graded for kind in trace.kinds.values())


def simulator_label(trace: Trace) -> str:
    """Simulator of a trace, and whether its spikes are graded."""
    return f"{trace.origin.backend}, graded" if is_graded(trace) else trace.origin.backend


def simulator_order(item: tuple[str, Trace]) -> tuple[int, bool, str]:
    """Sort key: `SIMULATOR_ORDER`, binary before graded spikes, then file names."""
    name, trace = item
    known = trace.origin.backend in SIMULATOR_ORDER
    place = SIMULATOR_ORDER.index(trace.origin.backend) if known else len(SIMULATOR_ORDER)
    return place, is_graded(trace), name


def read_contents(
    path: Path, traces: Mapping[str, Trace], notes: Sequence[str] = ()
) -> RunContents:
    """Read a run folder, given its traces by file name; notes say what is damaged or unusable."""
    found = list(notes)
    held = {name: trace for name, trace in traces.items() if len(trace.index)}
    found += [f"{name} holds no complete sample yet." for name in traces if name not in held]
    found += [f"{name} is not complete." for name, trace in held.items() if not trace.complete]
    trainings = sorted(((n, t) for n, t in held.items() if t.epochs), key=lambda item: item[0])
    simulated = {name: trace for name, trace in held.items() if not trace.epochs}
    rates = {name: trace for name, trace in simulated.items() if all_rates(trace)}
    others = [(name, trace) for name, trace in simulated.items() if name not in rates]
    spikes = dict(sorted(others, key=simulator_order))
    first = next(iter(sorted(rates.items(), key=lambda item: item[0])), None)
    agreements: dict[str, Comparison] = {}
    for name, trace in spikes.items():
        agreement = compare_with_rates(first, name, trace=trace, notes=found)
        if agreement is not None:
            agreements[name] = agreement
    training, names = (None, ()) if not trainings else snapshots(trainings[0][1])
    return RunContents(
        path,
        read_study(path / "study.toml", found),
        read_lines(path / "metrics.jsonl", found),
        read_lines(path / "evaluations.jsonl", found),
        read_energy(path / "energy.json", found),
        first,
        spikes,
        agreements,
        tuple(found),
        (trainings[0][0], training) if training is not None else None,
        names,
        model=read_model(path / "model.safetensors", found),
    )


def compare_with_rates(
    rates: tuple[str, Trace] | None, name: str, *, trace: Trace, notes: list[str]
) -> Comparison | None:
    """Comparison of a simulator's trace with the rates; None where it is not possible."""
    if rates is None:
        return None
    try:
        return compare(rates[1], trace)
    except ValueError as error:
        notes.append(f"{rates[0]} and {name} were not compared: {error}.")
        return None


def read_model(path: Path, notes: list[str]) -> TrainedNetwork | None:
    """The model of a run; None where there is none or it cannot be read."""
    if not path.is_file():
        return None
    try:
        return checkpoint.load(path)
    except (ValueError, OSError) as error:
        notes.append(f"{path.name} was left out: {error}.")
        return None


def read_study(path: Path, notes: list[str]) -> dict[str, Any]:
    """Settings of a run, flat."""
    if not path.is_file():
        return {}
    try:
        return flatten(read_toml(path).content, "")
    except FileFormatError as error:
        notes.append(f"{path.name} could not be read: {error.__cause__ or error}.")
        return {}


def flatten(table: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """`{"a": {"name": "x", "b": 1}}` as `{"a": "x", "a.b": 1}`."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        inner = isinstance(value, Mapping)
        name = prefix.rstrip(".") if key == "name" and prefix else f"{prefix}{key}"
        flat |= flatten(value, f"{prefix}{key}.") if inner else {name: value}
    return flat


def read_lines(path: Path, notes: list[str]) -> tuple[Row, ...]:
    """JSON objects of a file, one per line; an incomplete line is left out, with a note."""
    if not path.is_file():
        return ()
    rows: list[Row] = []
    try:
        for line in json_lines(path):
            if line.row is not None:
                rows.append(line.row)
            else:
                notes.append(
                    f"Line {line.number} of {path.name} is no JSON object and was left out."
                )
    except FileFormatError as error:
        notes.append(f"{path.name} was left out: {error}.")
    return tuple(rows)


def read_energy(path: Path, notes: list[str]) -> EnergyReport:
    """Energy estimates of a run; an empty report where there are none."""
    if not path.is_file():
        return EnergyReport(())
    try:
        return read_energy_file(path)
    except EnergyFileError as error:
        notes.append(f"{path.name} was left out: {error}.")
        return EnergyReport(())
