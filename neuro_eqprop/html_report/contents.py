"""What a report shows of a run: from its folder, or from objects that were just made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from neuro_eqprop.chips.energy.file import read_energy
from neuro_eqprop.chips.energy.result import EnergyReport
from neuro_eqprop.files.codec import read_rows
from neuro_eqprop.files.read import read_toml
from neuro_eqprop.html_report.opening import start_first
from neuro_eqprop.html_report.training_snapshots import snapshots
from neuro_eqprop.runs import checkpoint
from neuro_eqprop.runs.rows import EvaluationRow, MetricsRow
from neuro_eqprop.traces.compare import Comparison, compare
from neuro_eqprop.traces.lazy import read as read_trace
from neuro_eqprop.traces.trace import Trace
from neuro_eqprop.training.trained import TRAINED, TrainedNetwork

SIMULATOR_ORDER = ("lava", "brian2", "snntorch", "reference")
"""Order of preference of simulators in the headline and in lists."""
FILES = ("study.toml", "metrics.jsonl", "evaluations.jsonl", "energy.json", "model.safetensors")
PAGE_SAMPLES = 16
"""Most samples of a trace on a page."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunContents:
    """Everything of a run that its report shows."""

    path: Path
    """Its folder, which stands in commands."""
    study: Mapping[str, Any]
    """Settings, with tables flattened to `table.key`."""
    metrics: Sequence[MetricsRow]
    evaluations: Sequence[EvaluationRow]
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
    """The network with its parameters, if it is known."""

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
    path: Path,
    traces: Mapping[str, Trace] | None = None,
    *,
    energy: EnergyReport | None = None,
    model: TrainedNetwork | None = None,
) -> RunContents:
    """What a run folder holds; what is given by objects is not read again.

    `traces` are by file name. What is damaged or unusable is left out, with a note.
    """
    notes: list[str] = []

    def part(name: str, read: Callable[[Path], T], empty: T) -> T:
        try:
            return read(path / name) if (path / name).is_file() else empty
        except (ValueError, OSError) as error:
            notes.append(f"{name} was left out: {error}.")
            return empty

    def rows(name: str, kind: type[T]) -> list[T]:
        nothing: tuple[list[T], list[str]] = ([], [])
        found, remarks = part(name, lambda file: read_rows(file, kind), nothing)
        notes.extend(f"{remark}." for remark in remarks)
        return found

    given = dict(traces or {})
    if traces is None:
        for name in sorted(file.name for file in path.glob("*.h5")):
            trace = part(name, read_trace, None)
            given |= {} if trace is None else {name: trace}
    made = contents_of(
        path,
        given,
        study=part("study.toml", read_toml, {}),
        metrics=rows("metrics.jsonl", MetricsRow),
        evaluations=rows("evaluations.jsonl", EvaluationRow),
        energy=energy or part("energy.json", read_energy, EnergyReport(())),
        model=model or part("model.safetensors", checkpoint.load, None),
    )
    return replace(made, notes=(*notes, *made.notes))


def contents_of(
    path: Path,
    traces: Mapping[str, Trace],
    *,
    study: Mapping[str, Any],
    metrics: Sequence[MetricsRow],
    evaluations: Sequence[EvaluationRow],
    energy: EnergyReport,
    model: TrainedNetwork | None,
) -> RunContents:
    """The contents of a run from its parts; `study` holds its tables."""
    held = {name: trace for name, trace in sorted(traces.items()) if len(trace.index)}
    notes = [f"{name} holds no complete sample yet." for name in traces if name not in held]
    notes += [f"{name} is not complete." for name, trace in held.items() if not trace.complete]
    simulated = {name: trace for name, trace in held.items() if not trace.epochs}
    simulated = start_first(
        dict(sorted(simulated.items(), key=lambda item: not all_rates(item[1]))), PAGE_SAMPLES
    )
    first = next(((n, t) for n, t in simulated.items() if all_rates(t)), None)
    others = [(name, trace) for name, trace in simulated.items() if not all_rates(trace)]
    spikes = dict(sorted(others, key=simulator_order))
    agreements = {name: compared(first, name, trace, notes) for name, trace in spikes.items()}
    learned = next((item for item in held.items() if item[1].epochs), None)
    training, names = snapshots(learned[1]) if learned else (None, ())
    return RunContents(
        *(path, flatten(study, ""), metrics, evaluations, energy),
        *(first, spikes, {k: v for k, v in agreements.items() if v is not None}, tuple(notes)),
        (learned[0], training) if learned and training else None,
        names,
        model=model,
    )


def compared(
    rates: tuple[str, Trace] | None, name: str, trace: Trace, notes: list[str]
) -> Comparison | None:
    """Comparison of a simulator's trace with the rates; None, with a note, if it is impossible."""
    try:
        return compare(rates[1], trace) if rates else None
    except ValueError as error:
        notes.append(f"{rates[0] if rates else ''} and {name} were not compared: {error}.")
        return None


def from_model(
    model: TrainedNetwork,
    traces: Mapping[str, Trace],
    evaluations: Sequence[EvaluationRow],
    energy: EnergyReport,
) -> RunContents:
    """The contents of a run that has no folder; commands name it RUN."""
    study = {} if model.study is None else asdict(model.study)
    return contents_of(
        *(Path("RUN"), traces),
        study=study,
        metrics=[cast("MetricsRow", row) for row in model.history],
        evaluations=evaluations,
        energy=energy,
        model=model,
    )


def flatten(table: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """`{"a": {"name": "x", "b": 1}}` as `{"a": "x", "a.b": 1}`."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        inner = isinstance(value, Mapping)
        name = prefix.rstrip(".") if key == "name" and prefix else f"{prefix}{key}"
        flat |= flatten(value, f"{prefix}{key}.") if inner else {name: value}
    return flat
