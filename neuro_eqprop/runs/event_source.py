"""Events that an energy estimate prices: those of the run that is shown, else counted anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from neuro_eqprop.chips.energy.estimate import NO_LEARNING
from neuro_eqprop.chips.energy.estimate_workload import BITS, ChipEvents
from neuro_eqprop.chips.energy.result import CountedEvents, LearningEvents
from neuro_eqprop.chips.workload import Workload, learning_shape, network_shape
from neuro_eqprop.chips.workload_file import read_workload
from neuro_eqprop.common.arrays import Ints, type_name
from neuro_eqprop.runs.energy_settings import EnergySettings
from neuro_eqprop.runs.learning_cost import count_learning_events, samples_to_record
from neuro_eqprop.runs.run_folder import RunFolder, open_folder
from neuro_eqprop.runs.simulation import Simulation, run_spikes
from neuro_eqprop.runs.simulation_settings import SampleCallback, SimulationSettings
from neuro_eqprop.simulators.recordings import MemorySink, Record
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.spiking.codes import LoweringError, find_code
from neuro_eqprop.spiking.input_coding import InputCoding
from neuro_eqprop.spiking.lowered import lower_network
from neuro_eqprop.spiking.rounding import QuantisationError

LEARNING_EVENTS = ("steps", "spikes", "synops", "trace_updates", "tag_updates", "weight_updates")
"""Fields of `Counts` that are reported for each phase of a learning sample."""
NOTHING_LEARNED = "unknown: no weight changed in the counted samples; count more of them"
ACCURACY_SAMPLES = 500
"""Most test samples for the accuracy that is reported with the joules."""

StageCallback = Callable[[str, int, int], None]
"""Called with the name of a stage, the steps done in it, and their total."""
Source: TypeAlias = str | Path | RunFolder | Simulation | Workload
"""Anything whose energy can be estimated, see `estimate_energy`."""


@dataclass(frozen=True, slots=True)
class EventSource:
    """Events of a source, counted or given."""

    workload: Workload
    """Events of inference."""
    counted: CountedEvents
    learning: Workload | None = None
    """Events of learning; None if they are unknown."""
    run: RunFolder | None = None
    """The run that was counted; None for given counts."""
    recount: Callable[[int], tuple[Workload, float | None]] | None = None
    """Counts inference anew with weights of so many bits; the accuracy is None if unknown."""

    def on_chip(self, bits: int, given: int | None) -> ChipEvents:
        """The events with weights of so many bits, unless bits were `given`."""
        if given is not None:
            return ChipEvents(self.workload, self.learning, given, self.counted.accuracy)
        workload, accuracy = self.workload.with_bits(bits), self.counted.accuracy
        try:
            if self.recount is not None:
                workload, accuracy = self.recount(bits)
        except (LoweringError, QuantisationError):
            # Weights that do not survive so few bits: the chip then does not take the network.
            workload, bits, accuracy = self.workload, BITS, None
        learning = None if self.learning is None else self.learning.with_bits(bits)
        return ChipEvents(workload, learning, bits, accuracy)

    def run_for(self, setting: str) -> RunFolder:
        """The run, which a setting needs."""
        if self.run is None:
            raise ValueError(f"{setting} needs a run, whose events are counted for each setting")
        return self.run


def find_events(source: Source, settings: EnergySettings, progress: StageCallback) -> EventSource:
    """The events of a source; those of a run are counted on the emulator."""
    if isinstance(source, str | Path):
        path = Path(source)
        if path.suffix != ".json":
            return count_run(open_folder(path), settings, progress)
        workload = read_workload(path)
        workload = workload if settings.bits is None else workload.with_bits(settings.bits)
        return given_events(workload, str(source), settings)
    if isinstance(source, Workload):
        return given_events(source, "given counts", settings)
    if isinstance(source, RunFolder):
        return count_run(source, settings, progress)
    if isinstance(source, Simulation):
        return events_of_simulation(source, settings)
    raise TypeError(
        f"source is {type_name(source)}; it must be a run folder, a Run, a Simulation (as "
        "model.to_spiking().run(x) returns), a file of counts or a Workload"
    )


def given_events(workload: Workload, where: str, settings: EnergySettings) -> EventSource:
    """Events of inference that were counted before."""
    learning = LearningEvents(reason=NO_LEARNING, presentations=settings.presentations)
    return EventSource(workload, summarise(workload, where, settings, learning))


def events_of_simulation(simulation: Simulation, settings: EnergySettings) -> EventSource:
    """The events of a simulation; it runs again on the emulator only for other settings."""
    spiking, where = simulation.spiking, f"a simulation on {simulation.backend}"
    own = {
        "steps": simulation.steps,
        "code": spiking.code,
        "bits": spiking.bits,
        "input": spiking.input.name,
    }
    asked = {name: getattr(settings, name) for name in own}
    asked = {name: each for name, each in asked.items() if each not in (None, own[name])}
    if asked or not simulation.counts:
        if simulation.x is None:
            name = next(iter(asked), "counts")
            raise ValueError(
                f"the simulation has its own {name} and did not keep its samples; leave {name} "
                "out, or give a run as source"
            )
        ways = {**own, **asked}
        steps = ways.pop("steps")
        again = lower_network(spiking.rate, spiking.exact, **ways)
        simulation = run_spikes(again, simulation.x, SimulationSettings(steps=steps))
        reason = ", ".join(f"{name}={each}" for name, each in asked.items()) or "it has no counts"
        where += f"; counted again on the emulator: {reason}"
    ran = simulation
    settings = replace(settings, bits=ran.spiking.bits, code=ran.spiking.code)

    def recount(bits: int) -> tuple[Workload, float | None]:
        if bits == BITS or ran.x is None:
            return workload_of(ran).with_bits(bits), None
        network = lower_network(
            *(spiking.rate, spiking.exact),
            code=ran.spiking.code,
            bits=bits,
            input=ran.spiking.input,
        )
        return workload_of(run_spikes(network, ran.x, SimulationSettings(steps=ran.steps))), None

    found = given_events(workload_of(ran), where, settings)
    return replace(found, recount=recount)


def workload_of(simulation: Simulation) -> Workload:
    """The counts of a simulation with the sizes of its network."""
    spiking = simulation.spiking
    shape = network_shape(
        simulation.network,
        bits=spiking.bits or BITS,
        off_chip=spiking.input_populations,
        driven=spiking.input is InputCoding.CURRENT,
    )
    ran = (simulation.counts, simulation.samples, simulation.steps)
    return Workload(shape, *ran, spiking.input.name, simulation.dense_macs)


def count_run(run: RunFolder, settings: EnergySettings, progress: StageCallback) -> EventSource:
    """Count the events of inference and of learning of a run on the emulator."""
    advance = stage_counter("counting events", settings.samples, progress)
    given, settings = settings.code, with_code(settings, settings.code or "rate")
    try:
        simulation = simulate_run(run, settings, advance)
    except LoweringError:
        if given is not None:
            raise
        settings = with_code(replace(settings, input=None), "graded")
        simulation = simulate_run(run, settings, advance)
    workload = replace(workload_of(simulation), by_step=spikes_by_step(simulation))
    learning, events = count_learning(run, workload, settings, progress)
    if given is None and not events.samples and settings.code != "graded":
        # Rates above one, which default activations have, are learned as graded messages.
        graded = count_learning(run, workload, with_code(settings, "graded"), progress)
        learning, events = graded if graded[1].samples else (learning, events)
    counted = summarise(workload, "a run on the emulator", settings, events)

    def recount(bits: int) -> tuple[Workload, float | None]:
        # Only in fixed point are the predictions those of the chip.
        narrow = replace(settings, bits=bits)
        exact = simulate_run(run, replace(narrow, samples=ACCURACY_SAMPLES))
        accuracy = exact.accuracy(run.test_samples(exact.samples).y)
        if bits == (settings.bits or BITS):
            return workload, accuracy
        again = simulate_run(run, narrow)
        return replace(workload_of(again), by_step=spikes_by_step(again)), accuracy

    counted = replace(counted, accuracy_samples=min(ACCURACY_SAMPLES, len(run.data.test)))
    if settings.bits is not None:
        counted = replace(counted, accuracy=recount(settings.bits)[1])
    return EventSource(workload, counted, learning, run, recount)


def with_code(settings: EnergySettings, code: str) -> EnergySettings:
    """The settings with a code and, unless one is given, its input coding: spikes on the chip."""
    graded = find_code(code).accumulates
    entry = settings.input or (InputCoding.GRADED if graded else InputCoding.RATE).name
    return replace(settings, code=code, input=entry)


def simulate_run(
    run: RunFolder, settings: EnergySettings, progress: SampleCallback | None = None
) -> Simulation:
    """Run test samples on the emulator."""
    model = run.model
    spiking = lower_network(
        *(model.network, model.params),
        code=settings.code or "rate",
        bits=settings.bits,
        input=settings.input or InputCoding.CURRENT,
    )
    x = run.test_samples(min(settings.samples, len(run.data.test))).x
    return run_spikes(spiking, x, SimulationSettings(steps=settings.steps, progress=progress))


def stage_counter(stage: str, total: int, progress: StageCallback) -> SampleCallback:
    """A sample callback that reports the samples done so far to `progress`."""
    done = 0

    def advance(more: int) -> None:
        nonlocal done
        done += more
        progress(stage, done, total)

    return advance


def spikes_by_step(simulation: Simulation) -> dict[str, Ints]:
    """Whether each neuron spikes in each step of the first samples, by population.

    Arrays are 0 or 1 (samples * steps, neurons).
    """
    if simulation.x is None:
        raise ValueError("the simulation did not keep its samples")
    populations, sink = simulation.network.populations, MemorySink()
    samples = samples_to_record(sum(each.size for each in populations) * simulation.steps)
    load_backend("emulator").run(
        simulation.network,
        simulation.spiking.encode(simulation.x[:samples]),
        simulation.schedule,
        record=Record(spikes=frozenset(each.name for each in populations)),
        sink=sink,
    )
    return {
        each.name: np.concatenate([r.spikes[each.name] != 0 for r in sink.recordings]).astype(
            np.int64
        )
        for each in populations
    }


def count_learning(
    run: RunFolder, inference: Workload, settings: EnergySettings, progress: StageCallback
) -> tuple[Workload | None, LearningEvents]:
    """Count the events of learning.

    The workload is None, and the summary has the reason, if the network or the code cannot learn
    on a chip.
    """
    try:
        found = count_learning_events(
            run,
            samples=settings.samples,
            steps=settings.steps,
            code=find_code(settings.code or "rate"),
            progress=stage_counter("counting learning", settings.samples, progress),
        )
    except ValueError as error:
        reason = f"unknown: {error}"
        return None, LearningEvents(reason=reason, presentations=settings.presentations)
    input_name = run.model.network.input.name
    workload = Workload(
        learning_shape(found.plastic, input_name=input_name, bits=settings.bits or BITS),
        found.learned.counts,
        found.samples,
        found.plastic.rule.schedule[0].steps,
        found.code.name,
        inference.dense_macs,
        learning_by_step=found.by_step,
    )
    return workload, LearningEvents(
        samples=found.samples,
        reason="" if workload.learned else NOTHING_LEARNED,
        input_coding=workload.input_coding,
        presentations=settings.presentations or found.presentations,
        note=found.note,
        phases=events_by_phase(workload),
    )


def events_by_phase(workload: Workload) -> dict[str, dict[str, float]]:
    """Events of one learning sample by phase; steps are the most of any population."""
    phases: dict[str, dict[str, float]] = {}
    for (_, phase), counts in workload.counts.items():
        events = phases.setdefault(phase, dict.fromkeys(LEARNING_EVENTS, 0.0))
        for name in LEARNING_EVENTS:
            each = getattr(counts, name) / workload.samples
            events[name] = max(events[name], each) if name == "steps" else events[name] + each
    return phases


def summarise(
    workload: Workload, where: str, settings: EnergySettings, learning: LearningEvents
) -> CountedEvents:
    """The events of inference per sample, with those of learning."""
    return CountedEvents(
        source=where,
        samples=workload.samples,
        steps=workload.steps,
        code=settings.code,
        bits=settings.bits,
        input_coding=workload.input_coding,
        activity=workload.activity,
        spikes=workload.per_sample("spikes"),
        synops=workload.per_sample("synops"),
        host_macs=workload.per_sample("host_macs"),
        dense_macs=workload.dense_macs,
        learned=workload.learned,
        learning=learning,
    )
