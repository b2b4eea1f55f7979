"""Spike trains of NWB files and Neo blocks as a `Trace`, whoever recorded them.

Files and blocks of this package keep their samples, phases and layers. Of others, a trial of an NWB
file or a segment of a block is a sample of one free phase, as long as the shortest of them; without
trials the whole recording is one. A unit belongs to the layer that `population` names, else to the
layer `units`; its stimulus is the column or annotation `label`, or zero.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.schedules import Phase, Schedule
from neuro_eqprop.simulators.recordings import Origin, SpikeTrain
from neuro_eqprop.spiking.activity import ActivityKind
from neuro_eqprop.traces.dataframe import import_optional
from neuro_eqprop.traces.schema import TraceError
from neuro_eqprop.traces.trace import Trace

Part: TypeAlias = Any
"""An object of Neo or pynwb, which have no type hints."""
STEP, RMAX = 1e-3, 100.0
"""Seconds of a step, and the rate in hertz that stands for one, of recordings that name neither."""
LAYER = "units"
"""The layer of units without one."""
MOST = 2**31
"""Most steps of a recording."""


@dataclass(slots=True)
class Spikes:
    """Spike times by layer, unit and sample, in seconds from the start of the sample."""

    trains: dict[str, dict[int, dict[int, Array]]] = field(default_factory=dict)

    def add(self, layer: str, unit: int, sample: int, times: Array) -> None:
        """Add the spikes of a unit in a sample."""
        self.trains.setdefault(layer, {}).setdefault(unit, {})[sample] = times

    def events(self, layer: str, *, samples: int, steps: int, dt: float) -> SpikeTrain:
        """The spikes of a layer in order; spikes of one step count together."""
        units = self.trains[layer]
        parts = [np.zeros((0, 2), dtype=np.int64)]
        for unit, by_sample in units.items():
            for sample, times in by_sample.items():
                step = np.floor(times / dt + 1e-6).astype(np.int64)
                step = sample * steps + step[(step >= 0) & (step < steps)]
                parts.append(np.stack([step, np.full(len(step), unit)], axis=1))
        rows, counts = np.unique(np.concatenate(parts), axis=0, return_counts=True)
        size = 1 + max(units, default=-1)
        assert samples * steps < MOST
        return SpikeTrain(rows[:, 0], rows[:, 1], counts.astype(np.float64), size)


@dataclass(frozen=True, slots=True)
class Found:
    """What a file or block says of its samples."""

    origin: Origin
    schedule: Schedule
    kinds: Mapping[str, ActivityKind]
    label: Sequence[int]
    index: Sequence[int]
    inputs: Array

    def trace(self, spikes: Spikes) -> Trace:
        """The trace with these spikes."""
        steps = sum(phase.steps for phase in self.schedule)
        return Trace(
            origin=self.origin,
            schedule=self.schedule,
            kinds={**self.kinds, **dict.fromkeys(spikes.trains, ActivityKind.SPIKES)},
            connections=(),
            index=np.array(self.index, dtype=np.int64),
            label=np.array(self.label, dtype=np.int64),
            inputs=self.inputs,
            spikes={
                name: spikes.events(
                    name, samples=len(self.index), steps=steps, dt=self.origin.step_seconds
                )
                for name in spikes.trains
            },
            signals={},
            counts={},
        )


def foreign(name: str, labels: Sequence[Any], seconds: float, step: float) -> Found:
    """The samples of a recording of others, `seconds` long each, one for each label."""
    steps = int(seconds / step + 1e-6)
    if steps < 1 or steps * max(1, len(labels)) >= MOST:
        raise TraceError(
            f"{name}: its samples last {seconds:g} s, which are {steps} steps of {step:g} s; "
            "give another step"
        )
    _, numbers = np.unique([str(label) for label in labels], return_inverse=True)
    whole = all(isinstance(label, int | np.integer) for label in labels)
    label = [int(each) for each in (labels if whole else numbers)]
    origin = Origin(name, "", {}, 0, "", "", step, max(1.0, 1.0 / (RMAX * step)))
    return Found(
        origin,
        (Phase("free", 0.0, steps, steps),),
        {},
        label,
        range(len(label)),
        np.array(label, dtype=np.float64)[:, None],
    )


def from_neo(block: Part, *, step: float | None = None) -> Trace:
    """A trace of the spike trains of a Neo block, see `Trace.from_neo`."""
    segments = list(block.segments)
    if not segments:
        raise TraceError(f"the block {block.name!r} has no segment, and so no sample")
    trains = [(k, train) for k, each in enumerate(segments) for train in each.spiketrains]
    begins = [start_of(each) for each in segments]
    ends = [
        max([float(t.t_stop.rescale("s")) for t in each.spiketrains], default=begin)
        for each, begin in zip(segments, begins, strict=True)
    ]
    shortest = min(stop - start for start, stop in zip(begins, ends, strict=True))
    labels = [each.annotations.get("label", 0) for each in segments]
    found = foreign(str(block.name or "neo"), labels, shortest, step or STEP)
    places: dict[int, dict[str, int]] = {}
    spikes = Spikes()
    for k, train in trains:
        layer = str(train.annotations.get("population", LAYER))
        seen = places.setdefault(k, {})
        unit = int(train.annotations.get("unit", seen.get(layer, 0)))
        seen[layer] = seen.get(layer, 0) + 1
        spikes.add(layer, unit, k, np.asarray(train.rescale("s").magnitude) - begins[k])
    return found.trace(spikes)


def start_of(segment: Part) -> float:
    """When the spike trains of a segment begin, in seconds."""
    return min([float(train.t_start.rescale("s")) for train in segment.spiketrains], default=0.0)


def from_nwb(path: Path, *, step: float | None = None) -> Trace:
    """A trace of the spike trains of an NWB file, see `Trace.from_nwb`."""
    pynwb = import_optional("pynwb")
    if not path.is_file():
        raise TraceError(f"there is no file {path}")
    try:
        with pynwb.NWBHDF5IO(str(path), mode="r", load_namespaces=True) as file:
            session = file.read()
            if session.units is None or "spike_times" not in session.units.colnames:
                raise TraceError(f"{path} holds no spike times; a trace of it would be empty")
            own = our_notes(session.notes)
            return own_file(session, own) if own else other_file(session, path, step)
    except TraceError:
        raise
    except Exception as error:  # whatever pynwb raises for a damaged file
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TraceError(f"{path} is no NWB file that pynwb reads: {why}") from error


def our_notes(notes: str | None) -> Mapping[str, Any] | None:
    """What `to_nwb` wrote about its trace; None for a file of another program."""
    with suppress(ValueError, TypeError):
        found = json.loads(notes or "")
        if isinstance(found, dict) and {"dt", "samples", "origin", "phases"} <= set(found):
            return found
    return None


def own_file(session: Part, notes: Mapping[str, Any]) -> Trace:
    """The trace of a file that `to_nwb` wrote."""
    table, units = session.intervals["samples"], session.units
    kinds = {name: ActivityKind(kind) for name, kind in notes["kinds"].items()}
    if any(kind.graded for kind in kinds.values()):
        raise TraceError("graded spikes carry payloads, which are not read back; keep the .h5 file")
    origin = Origin(**{**notes["origin"], "step_seconds": notes["dt"]})
    schedule = tuple(Phase(**phase) for phase in notes["phases"])
    length, spikes = origin.step_seconds * sum(phase.steps for phase in schedule), Spikes()
    for k in range(len(units)):
        sample, layer = int(units["sample"][k]), str(units["population"][k])
        times = np.asarray(units["spike_times"][k]) - sample * length
        spikes.add(layer, int(units["unit"][k]), sample, times)
    return Found(
        origin,
        schedule,
        {name: kind for name, kind in kinds.items() if name in spikes.trains},
        [int(each) for each in table["label"].data[:]],
        notes["samples"],
        np.asarray(table["input"].data[:], dtype=np.float64),
    ).trace(spikes)


def other_file(session: Part, path: Path, step: float | None) -> Trace:
    """The trace of a file of another program."""
    units, trials = session.units, session.trials
    times = [
        np.sort(np.asarray(units["spike_times"][k], dtype=np.float64)) for k in range(len(units))
    ]
    last = max([float(each[-1]) for each in times if len(each)], default=0.0)
    starts, stops, labels = [0.0], [last + STEP], [0]
    if trials is not None and len(trials):
        starts = [float(each) for each in trials["start_time"].data[:]]
        stops = [float(each) for each in trials["stop_time"].data[:]]
        named = "label" in trials.colnames
        labels = list(trials["label"].data[:]) if named else [0] * len(starts)
    shortest = min(b - a for a, b in zip(starts, stops, strict=True))
    found = foreign(path.name, labels, shortest, step or STEP)
    layers = layer_of(units)
    spikes, places = Spikes(), dict[str, int]()
    for k, spike_times in enumerate(times):
        layer = layers(k)
        unit = places[layer] = places.get(layer, -1) + 1
        for sample, start in enumerate(starts):
            inside = slice(*np.searchsorted(spike_times, (start, start + shortest)))
            spikes.add(layer, unit, sample, spike_times[inside] - start)
    return found.trace(spikes)


def layer_of(units: Part) -> Callable[[int], str]:
    """The layer of each row of a table of units."""
    if "population" not in units.colnames:
        return lambda _: LAYER
    names: Iterable[Any] = units["population"].data[:]
    listed = [str(name) for name in names]
    return lambda row: listed[row]
