"""What a run folder holds, read for its report; what is damaged is left out and told."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuro_eqprop.analysis.compare import Comparison, compare
from neuro_eqprop.io.energy_file import EnergyRecord, Row, read_bills
from neuro_eqprop.io.trace.trace import Trace
from neuro_eqprop.report.training_snapshots import snapshots
from neuro_eqprop.traces import ActivityKind

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


SIMULATOR_ORDER = ("lava", "brian2", "snntorch", "reference")
"""Which simulator speaks for the spikes in the headline and comes first, if several do."""


@dataclass(frozen=True, slots=True)
class RunContents:
    """A run folder as its report sees it."""

    path: Path
    study: Mapping[str, Any]
    """The settings, tables flattened to `table.key`."""
    metrics: tuple[Row, ...]
    evaluations: tuple[Row, ...]
    bills: EnergyRecord
    rates: tuple[str, Trace] | None
    """The trace of rates, with the name of its file."""
    spikes: Mapping[str, Trace]
    """The traces of simulators, by the names of their files."""
    agreements: Mapping[str, Comparison]
    """Of each of them with the rates, where they can be compared."""
    notes: tuple[str, ...]
    """What was found but could not be used, and why."""
    moments: tuple[str, ...] = ()
    """What the samples of a trace of learning are called: when in the course of it they were."""
    others: tuple[RunContents, ...] = ()
    """Runs that are shown beside it."""

    @property
    def runs(self) -> tuple[RunContents, ...]:
        """Itself and those beside it."""
        return self, *self.others

    @property
    def chip(self) -> str:
        """The simulator that it learned on as spikes; empty if it was trained as rates."""
        on = self.study.get("learn.on")
        return str(on) if on and on != "rate" else ""

    @property
    def name(self) -> str:
        """What the folder is called."""
        return self.path.resolve().name

    @property
    def traces(self) -> tuple[tuple[str, Trace], ...]:
        """The names of the files and the traces in them, rates first."""
        return *((self.rates,) if self.rates else ()), *self.spikes.items()

    def views(self) -> list[TraceView]:
        """The traces of all runs."""
        return [
            TraceView(
                k,
                name if run is self else str(run.path / name),
                run.title(name) + (f", {run.name}" if self.others else ""),
                run,
                name,
                trace,
            )
            for k, run in enumerate(self.runs)
            for name, trace in run.traces
        ]

    def title(self, name: str) -> str:
        """What ran the trace in that file, of rates or of spikes."""
        return (
            self.simulator(name) if name in self.spikes else dict(self.traces)[name].origin.backend
        )

    def setting(self, key: str) -> Any:  # noqa: ANN401
        """The setting of that name in whichever table, or None."""
        return next((v for k, v in self.study.items() if k.rpartition(".")[2] == key), None)

    def simulator(self, name: str) -> str:
        """What ran the trace in that file, how it speaks, and the file if that leaves a doubt."""
        told = simulator_label(self.spikes[name])
        same = [other for other, trace in self.spikes.items() if simulator_label(trace) == told]
        return told if len(same) == 1 else f"{told} ({name.removesuffix('.h5')})"


@dataclass(frozen=True, slots=True)
class TraceView:
    """A trace as a report of several runs shows it."""

    place: int
    """Of its run among those shown."""
    key: str
    """The name of its file, with the folder if it is of a run beside the first one."""
    title: str
    run: RunContents
    name: str
    trace: Trace

    @property
    def path(self) -> Path:
        """Where the file lies."""
        return self.run.path / self.name

    @property
    def spikes(self) -> bool:
        """Whether it is of a simulator."""
        return self.name in self.run.spikes


def simulator_label(trace: Trace) -> str:
    """The simulator of a trace, and that it speaks in graded messages if not by plain spikes."""
    graded = any(kind is ActivityKind.GRADED for kind in trace.kinds.values())
    return f"{trace.origin.backend}, graded" if graded else trace.origin.backend


def simulator_order(item: tuple[str, Trace]) -> tuple[int, bool, str]:
    """The order of simulators: favourites first, plain spikes before messages, then by name."""
    name, trace = item
    known = trace.origin.backend in SIMULATOR_ORDER
    place = SIMULATOR_ORDER.index(trace.origin.backend) if known else len(SIMULATOR_ORDER)
    return place, any(kind is ActivityKind.GRADED for kind in trace.kinds.values()), name


def read_contents(
    path: Path, traces: Mapping[str, Trace], notes: Sequence[str] = ()
) -> RunContents:
    """Everything a run folder holds; its traces come already read, by the names of their files."""
    told = list(notes)
    held = {name: trace for name, trace in traces.items() if len(trace.index)}
    told += [f"{name} holds no whole sample yet." for name in traces if name not in held]
    told += [f"{name} is not complete." for name, trace in held.items() if not trace.complete]
    training = {name: trace for name, trace in held.items() if trace.epochs}
    held = {name: trace for name, trace in held.items() if name not in training}
    moments: tuple[str, ...] = ()
    if not held and training:
        # Other samples than those of a training would stand beside them, so it is shown alone.
        name, trace = sorted(training.items())[0]
        trace, moments = snapshots(trace)
        held = {name: trace}
    rates = {n: t for n, t in held.items() if all(k is ActivityKind.RATE for k in t.kinds.values())}
    others = [(name, trace) for name, trace in held.items() if name not in rates]
    spikes = dict(sorted(others, key=simulator_order))
    first = next(iter(sorted(rates.items())), None)
    agreements: dict[str, Comparison] = {}
    for name, trace in spikes.items():
        found = compare_with_rates(first, name, trace=trace, notes=told)
        if found is not None:
            agreements[name] = found
    return RunContents(
        path,
        read_study(path / "study.toml", told),
        read_lines(path / "metrics.jsonl", told),
        read_lines(path / "evaluations.jsonl", told),
        read_energy(path / "energy.json", told),
        first,
        spikes,
        agreements,
        tuple(told),
        moments,
    )


def compare_with_rates(
    rates: tuple[str, Trace] | None, name: str, *, trace: Trace, notes: list[str]
) -> Comparison | None:
    """How a simulator's trace agrees with the rates; nothing where they cannot be compared."""
    if rates is None:
        return None
    try:
        return compare(rates[1], trace)
    except ValueError as error:
        notes.append(f"{rates[0]} and {name} were not compared: {error}.")
        return None


def read_study(path: Path, notes: list[str]) -> dict[str, Any]:
    """The settings of a run, flat."""
    if not path.is_file():
        return {}
    try:
        return flatten(tomllib.loads(path.read_text(encoding="utf-8")), "")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        notes.append(f"{path.name} could not be read: {error}.")
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
    """The JSON objects of a file, one a line; a cut line is left out and told."""
    if not path.is_file():
        return ()
    rows: list[Row] = []
    for place, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines()):
        row = parse_json(line)
        if isinstance(row, dict):
            rows.append(row)
        elif line.strip():
            notes.append(f"Line {place + 1} of {path.name} is no JSON object and was left out.")
    return tuple(rows)


def parse_json(text: str) -> Any:  # noqa: ANN401
    """The JSON value in a text, or None."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def read_energy(path: Path, notes: list[str]) -> EnergyRecord:
    """The energy estimates of a run."""
    if not path.is_file():
        return EnergyRecord()
    held = parse_json(path.read_text(encoding="utf-8", errors="replace"))
    if not isinstance(held, dict) or not isinstance(held.get("profiles"), list):
        notes.append(f"{path.name} holds no list of profiles and was left out.")
        return EnergyRecord()
    return read_bills(held)
