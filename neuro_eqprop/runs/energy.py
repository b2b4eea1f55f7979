"""Energy estimates of runs and simulations on spiking chips."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias, overload

import numpy as np

from neuro_eqprop.chips.energy.dense_reference import dense_references
from neuro_eqprop.chips.energy.estimate import NO_LEARNING, Options, estimate_use
from neuro_eqprop.chips.energy.estimate_workload import (
    check_chips,
    check_refused,
    estimate_workload,
)
from neuro_eqprop.chips.energy.file import read_energy
from neuro_eqprop.chips.energy.mapping import MappingGoal
from neuro_eqprop.chips.energy.pareto import Point
from neuro_eqprop.chips.energy.result import (
    CountedEvents,
    CurveSettings,
    DenseTraining,
    EnergyEstimate,
    EnergyReport,
    LearningEvents,
    TrainingCost,
)
from neuro_eqprop.chips.energy.time import Clock
from neuro_eqprop.chips.placement import PlacementStatus
from neuro_eqprop.chips.profile import Device, Overhead, Profile
from neuro_eqprop.chips.profiles.load import load_profile, profile_names
from neuro_eqprop.chips.quantities import parse_amount
from neuro_eqprop.chips.workload import Workload, learning_shape, network_shape
from neuro_eqprop.chips.workload_file import read_workload
from neuro_eqprop.common.arrays import Ints, parse_enum, type_name
from neuro_eqprop.runs.evaluate import CountedRun, count_events
from neuro_eqprop.runs.learning_cost import count_learning_events, samples_to_record
from neuro_eqprop.runs.run_folder import ENERGY, RunFolder, open_folder
from neuro_eqprop.runs.simulate import SampleCallback
from neuro_eqprop.runs.simulation import Simulation
from neuro_eqprop.simulators.recordings import MemorySink, Record
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.spiking.codes import Code, LoweringError, find_code
from neuro_eqprop.spiking.input_coding import InputCoding, find_input_coding
from neuro_eqprop.spiking.lowered import lower_network
from neuro_eqprop.spiking.rounding import QuantisationError

BITS = 8
"""Default bits of a weight on a chip."""
CURVE_CODES = ("rate", "graded")
"""Codes on the curve beside the chosen one; `paired` is added if the network has no rate code."""
CURVE_DRAWS = 2001
"""Monte Carlo draws per point of the curve."""
LEARNING_EVENTS = ("steps", "spikes", "synops", "trace_updates", "tag_updates", "weight_updates")
"""Fields of `Counts` that are reported for each phase of a learning sample."""
NOTHING_LEARNED = "unknown: no weight changed in the counted samples; count more of them"
PARETO_STEPS, PARETO_BITS = (4, 8, 16, 32), (8, 4)
"""Default grid of steps and weight bits that the Pareto front is computed over."""
ACCURACY_SAMPLES = 500
"""Most test samples for the accuracy that is reported with the joules."""
DENSE_PASSES = 3
"""MACs of a dense training step, in forward passes: one forward pass, two for backprop."""

StageCallback = Callable[[str, int, int], None]
"""Called with the name of a stage, the steps done in it, and their total."""


def no_progress(stage: str, done: int, total: int) -> None:
    """No-op progress callback."""


Source: TypeAlias = str | Path | RunFolder | Simulation | Workload
"""Anything whose energy can be estimated, see `estimate_energy`."""


@dataclass(frozen=True, slots=True)
class CountSettings:
    """Settings with which the events of a run are counted, see `estimate_energy`."""

    samples: int = 32
    steps: int | None = None
    code: str | None = None
    bits: int | None = None
    input: str | None = None
    presentations: int | None = None


@dataclass(frozen=True, slots=True)
class CountedSource:
    """Events of a source, counted or given."""

    workload: Workload
    """Events of inference."""
    learning: Workload | None
    """Events of learning; None if they are unknown."""
    counted: CountedEvents
    run: RunFolder | None
    """The run that was counted; None for given counts."""


@overload
def estimate_energy(  # type: ignore[overload-overlap]  # a str is an Iterable, too
    source: Source, profiles: str | Path | Profile, **settings: object
) -> EnergyEstimate: ...
@overload
def estimate_energy(
    source: Source, profiles: Iterable[str | Path | Profile] | None = None, **settings: object
) -> EnergyReport: ...
def estimate_energy(  # type: ignore[misc]  # noqa: PLR0913
    source: Source,
    profiles: str | Path | Profile | Iterable[str | Path | Profile] | None = None,
    *,
    samples: int = 32,
    steps: int | None = None,
    code: str | Code | None = None,
    bits: int | None = None,
    input: str | InputCoding | None = None,  # noqa: A002
    presentations: int | None = None,
    batch: int | None = None,
    clock: str | Clock | None = None,
    step_seconds: float | None = None,
    overhead: str | Overhead | None = None,
    tag_bits: int | None = None,
    soft_reset: bool | None = None,
    chips: int | None = None,
    mapping: str | MappingGoal = "least-energy",
    cores: int | None = None,
    rate: str | float | None = None,
    supply: str | float | None = None,
    target: float | None = None,
    pareto: bool = False,
    pareto_steps: Sequence[int] = PARETO_STEPS,
    pareto_bits: Sequence[int] = PARETO_BITS,
    curve: Sequence[int] | None = None,
    curve_samples: int = 500,
    beside: str | Path | EnergyReport | None = None,
    explain: bool = False,
    seed: int = 0,
    progress: StageCallback = no_progress,
) -> EnergyEstimate | EnergyReport:
    """Estimate energy and time per inference, and per learning sample, on spiking chips.

    Events are counted on the emulator unless `source` already has counts. The energy is the number
    of events times their published cost, plus idle power times time, each with its range. Costs
    that are not published stay unknown and make the estimate a lower bound.

    Parameters
    ----------
    source : str, Path, Run, Simulation or Workload
        A run folder or an opened run, whose events are counted; a simulation, a workload or a file
        of counts (``.json``), whose counts are used.
    profiles : str, Path, Profile, or a list of these, optional
        Chips by name, file or object (see `load_profile`). One profile returns an
        `EnergyEstimate`, a list an `EnergyReport`. Default: all chips that ship with the package.
    samples : int
        Test samples to count inference on, and training samples to count learning on.
    steps : int, optional
        Steps of each phase; default: those of the code.
    code : str, optional
        Spike code; default: ``"rate"``, or ``"graded"`` where the network needs it.
    bits : int, optional
        Bits of a weight; events are then counted in fixed point. Default: 8 bits on the chip,
        events counted in floating point.
    input : {"rate", "graded", "current"}, optional
        Input coding. Default: spikes on the chip, ``"graded"`` for codes with graded spikes, else
        ``"rate"``. With ``"current"``, a host multiplies the input by the first weights, and its
        MACs are charged at the cost of a small microcontroller (cortex_m33).
    presentations : int, optional
        Samples presented in the whole training; default: those of the run.
    batch : int, optional
        Batch size of the dense devices; default: all that were measured.
    clock : {"model", "tick"}, optional
        Model of the time per step; default: that of the profile.
    step_seconds : float, optional
        Measured seconds per step, used instead of the model.
    overhead : {"loaded_idle", "static_and_host"}, optional
        Which power counts as idle power; default: loaded idle where it is known.
    tag_bits : int, optional
        Bits of a synapse's learning tag; default: those of the profile.
    soft_reset : bool, optional
        Whether neurons use the extra compartments of a soft reset; default: if the code needs it.
    chips : int, optional
        Number of available chips; default: the largest machine of the profile.
    mapping : {"least-energy", "fewest-cores", "balanced"}
        Goal of the placement. ``"least-energy"`` minimises the joules per sample, ``"balanced"``
        takes the fewest cores with at most twice the shortest time.
    cores : int, optional
        Use this number of cores, distributed so that the slowest is as fast as possible.
    rate : str or float, optional
        Samples per second of a chip that is always on, as 10 or ``"10Hz"``; adds average power.
    supply : str or float, optional
        Supply voltage, as 0.9 or ``"0.9V"``, for chips with a known voltage scaling.
    target : float, optional
        Test accuracy in (0, 1]; the energy of learning is that until the first epoch that reaches
        it.
    pareto : bool
        Whether to estimate accuracy, energy and latency over codes, steps and bits on all chips,
        and to mark the Pareto-optimal settings.
    pareto_steps : sequence of int
        Numbers of steps of the Pareto grid.
    pareto_bits : sequence of int
        Weight bits of the Pareto grid.
    curve : sequence of int, optional
        Numbers of steps at which accuracy and energy are estimated, for several codes.
    curve_samples : int
        Test samples per point of the curve and of the Pareto grid.
    beside : str, Path or EnergyReport, optional
        A second run with its own estimate, to compare with.
    explain : bool
        Whether to add the sources of all quantities that were used.
    seed : int
        Seed of the Monte Carlo draws over the ranges of the costs.
    progress : callable, optional
        Called with the name of a stage, the steps done and their total.

    Returns
    -------
    EnergyEstimate or EnergyReport
        One estimate for a single profile; else a report with an estimate for each.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> data = ne.load_data("digits")
    >>> model = ne.train("layered", data, hidden=(16,), epochs=1)
    >>> run = model.to_spiking(code="rate").run(data.test.x[:4], on="emulator", steps=16)
    >>> estimate = ne.estimate_energy(run, "loihi1", mapping="fewest-cores")
    >>> estimate.fits, estimate.cores
    (True, 2)
    >>> estimate.low < estimate.joules < estimate.high
    True
    """
    single = isinstance(profiles, str | Path | Profile)
    chosen, devices = choose_profiles([profiles] if single else profiles)  # type: ignore[list-item,arg-type]
    if supply is not None:
        chosen = at_supply(chosen, parse_amount(supply, "V"), named=profiles is not None)
    options = Options(
        seed=seed,
        clock=None if clock is None else parse_enum("clock", Clock, clock),
        step_seconds=step_seconds,
        overhead=None if overhead is None else parse_enum("overhead", Overhead, overhead),
        tag_bits=tag_bits,
        soft_reset=soft_reset,
        chips=chips,
        mapping=parse_enum("mapping", MappingGoal, mapping),
        cores=cores,
        rate=None if rate is None else parse_amount(rate, "Hz"),
    )
    counting = CountSettings(
        samples,
        steps,
        code.name if isinstance(code, Code) else code,
        bits,
        input.name if isinstance(input, InputCoding) else input,
        presentations,
    )
    found = count_source(source, counting, progress)
    report = estimate_workload(
        *(found.workload, chosen, devices, options),
        counted=found.counted,
        learning=found.learning,
        batch=batch,
        explain=explain,
    )
    if profiles is not None and len(chosen) == 1:
        check_refused(report)
    settings = replace(counting, code=found.counted.code, samples=curve_samples)
    if curve is not None:
        curves = CurveEstimator(run_of(found, "curve"), chosen, options, settings, progress)
        report = curves.add_curves(report, curve)
    if pareto:
        curves = CurveEstimator(run_of(found, "pareto"), chosen, options, settings, progress)
        report = curves.add_pareto(report, pareto_steps, pareto_bits)
    report = add_training(report, found, devices, target=target, seed=seed)
    if beside is not None:
        report = replace(report, beside=report.compare_run(open_report(beside)))
    report = replace(report, run=None if found.run is None else str(found.run.path))
    return report.estimates[0] if single else report


def run_of(found: CountedSource, argument: str) -> RunFolder:
    """The run of a source; `argument` is the one that needs it."""
    if found.run is None:
        raise ValueError(f"{argument} needs a run, whose events are counted for each setting")
    return found.run


def at_supply(chips: Iterable[Profile], volts: float, *, named: bool) -> list[Profile]:
    """Profiles at a supply voltage; unless `named`, only of the chips that allow this voltage."""
    chosen = list(chips)
    if not named:
        chosen = [e for e in chosen if e.scaling and e.scaling.low <= volts <= e.scaling.high]
        if not chosen:
            raise ValueError(f"no chip has a voltage scaling that is valid at {volts:g} V")
    return [each.at_supply(volts) for each in chosen]


def add_training(
    report: EnergyReport,
    found: CountedSource,
    devices: Iterable[Profile],
    *,
    target: float | None,
    seed: int,
) -> EnergyReport:
    """Add the cost of the whole training, or until a target accuracy, and that of dense devices."""
    whole = found.counted.learning.presentations
    if target is not None and found.run is None:
        raise ValueError("target needs a run, whose history has the accuracy of each epoch")
    if whole is None or not found.workload.dense_macs:
        return report
    samples, note = whole, "the whole training"
    if target is not None and found.run is not None:
        samples, note = samples_until(found.run, whole, target)
    references = dense_references(
        devices, macs=DENSE_PASSES * found.workload.dense_macs * samples, batch=None, seed=seed
    )
    dense = tuple(
        DenseTraining(e.device, e.batch, e.joules.value, e.joules.low, e.joules.high)
        for e in references
        if e.joules_per_mac is not None
    )
    estimates = tuple(
        replace(each, learning=replace(each.learning, samples=samples)) for each in report
    )
    return replace(report, estimates=estimates, training=TrainingCost(samples, note, dense, target))


def samples_until(run: RunFolder, whole: int, target: float) -> tuple[int, str]:
    """Return the training samples until the first epoch that reaches the target, and a note."""
    if not 0 < target <= 1:
        raise ValueError(f"target is {target:g}; an accuracy is above 0 and at most 1")
    rows = [row for row in run.history if row.get("test_accuracy") is not None]
    if not rows:
        raise ValueError("the history of the run has no test accuracy; leave out target")
    reached = [k for k, row in enumerate(rows) if row["test_accuracy"] >= target]
    best = max(row["test_accuracy"] for row in rows)
    if not reached:
        raise ValueError(
            f"no epoch of the run reached {target:.2%}; the best has {best:.2%}; lower the target"
        )
    epochs = max(1, len(rows))
    share = (reached[0] + 1) / epochs
    return round(share * whole), f"until {target:.2%}, epoch {reached[0] + 1} of {epochs}"


def choose_profiles(
    profiles: Iterable[str | Path | Profile] | None,
) -> tuple[list[Profile], list[Profile]]:
    """Return the chips to estimate, and the dense devices to compare them with."""
    shipped = [load_profile(name) for name in profile_names()]
    devices = [each for each in shipped if each.device is not Device.SPIKING]
    if profiles is None:
        chips = [e for e in shipped if e.device is Device.SPIKING and not e.scenario]
    elif not isinstance(profiles, Iterable):
        raise TypeError(f"profiles is {type_name(profiles)}; name a chip, or give a list of chips")
    else:
        chips = [load_profile(each) for each in profiles]
    if not chips:
        raise ValueError("profiles is empty; name a chip, or leave it out to estimate all")
    check_chips(chips)
    return chips, devices


def open_report(source: str | Path | EnergyReport) -> EnergyReport:
    """Return a report from an object, a file, or a run folder."""
    if isinstance(source, EnergyReport):
        return source
    path = Path(source)
    file = path / ENERGY if path.is_dir() or not path.suffix else path
    if not file.is_file():
        raise ValueError(f"{file} is missing; `neuro-eqprop energy {path}` makes it")
    return replace(read_energy(file), run=str(path))


def count_source(source: Source, settings: CountSettings, progress: StageCallback) -> CountedSource:
    """Return the events of a source; those of a run are counted on the emulator."""
    if isinstance(source, str | Path) and Path(source).suffix == ".json":
        workload = read_workload(Path(source))
        workload = workload if settings.bits is None else workload.with_bits(settings.bits)
        return given_counts(workload, str(source), settings)
    if isinstance(source, Workload):
        return given_counts(source, "given counts", settings)
    if isinstance(source, str | Path):
        source = open_folder(Path(source))
    if isinstance(source, RunFolder):
        return count_run(source, settings, progress)
    if isinstance(source, Simulation):
        return simulation_counts(source, settings)
    raise TypeError(
        f"source is {type_name(source)}; it must be a run folder, a Run, a Simulation (as "
        "model.to_spiking().run(x) returns), a file of counts or a Workload"
    )


def given_counts(
    workload: Workload, source: str, settings: CountSettings, code: str | None = None
) -> CountedSource:
    """Wrap events that were counted before."""
    learning = LearningEvents(reason=NO_LEARNING, presentations=settings.presentations)
    counted = summarise_counts(workload, source, settings.bits, code, learning)
    return CountedSource(workload, None, counted, None)


def simulation_counts(simulation: Simulation, settings: CountSettings) -> CountedSource:
    """Return the events of a simulation."""
    for name in ("steps", "code"):
        if getattr(settings, name) is not None:
            raise ValueError(
                f"the simulation has its own {name}; leave it out, or give a run as source"
            )
    spiking = simulation.spiking
    bits = settings.bits or spiking.bits
    workload = Workload(
        network_shape(
            simulation.network,
            bits=bits or BITS,
            off_chip=spiking.input_populations,
            driven=spiking.input is InputCoding.CURRENT,
        ),
        simulation.counts,
        simulation.samples,
        simulation.steps,
        spiking.input.name,
        simulation.dense_macs,
    )
    where = f"a simulation on {simulation.backend}"
    return given_counts(workload, where, replace(settings, bits=bits), spiking.code)


def count_run(run: RunFolder, settings: CountSettings, progress: StageCallback) -> CountedSource:
    """Count the events of inference and of learning of a run on the emulator."""
    try:
        code = settings.code or "rate"
        chosen = with_input(settings, code)
        workload = inference_workload(run, code, chosen, progress)
    except LoweringError:
        if settings.code is not None:
            raise
        code = "graded"
        chosen = with_input(settings, code)
        workload = inference_workload(run, code, chosen, progress)
    learning, summary = learning_workload(run, code, workload, settings, progress)
    counted = summarise_counts(workload, "a run on the emulator", settings.bits, code, summary)
    if settings.bits is not None:
        # Only in fixed point are the predictions those of the chip.
        exact = count_inference(
            run, code, settings.steps, replace(chosen, samples=ACCURACY_SAMPLES)
        )
        counted = replace(counted, accuracy=exact.accuracy, accuracy_samples=exact.samples)
    return CountedSource(workload, learning, counted, run)


def with_input(settings: CountSettings, code: str) -> CountSettings:
    """Fill in the input coding: graded spikes for graded codes, else rate-coded spikes."""
    if settings.input is not None:
        return settings
    graded = find_code(code).accumulates
    return replace(settings, input=(InputCoding.GRADED if graded else InputCoding.RATE).name)


def inference_workload(
    run: RunFolder, code: str, settings: CountSettings, progress: StageCallback
) -> Workload:
    """Count the events of inference on test samples."""
    advance = sample_counter("counting events", settings.samples, progress)
    counted = count_inference(run, code, settings.steps, settings, advance)
    workload = to_workload(counted, bits=settings.bits)
    return replace(workload, by_step=spikes_by_step(run, code, counted, settings))


def sample_counter(stage: str, total: int, progress: StageCallback) -> SampleCallback:
    """Return a sample callback that reports the samples done so far to `progress`."""
    done = 0

    def advance(more: int) -> None:
        nonlocal done
        done += more
        progress(stage, done, total)

    return advance


def spikes_by_step(
    run: RunFolder, code: str, counted: CountedRun, settings: CountSettings
) -> dict[str, Ints]:
    """Return whether each neuron spikes in each step of a few samples, by population.

    Arrays are 0 or 1 (samples * steps, neurons).
    """
    entry = settings.input or InputCoding.CURRENT
    spiking = lower_network(
        run.model.network, run.model.params, code=code, bits=settings.bits, input=entry
    )
    populations = spiking.network.populations
    neurons = sum(each.size for each in populations)
    samples = samples_to_record(neurons * counted.steps)
    x = run.test_samples(min(samples, counted.samples)).x
    sink = MemorySink()
    load_backend("emulator").run(
        spiking.network,
        spiking.encode(x),
        spiking.schedule(counted.steps),
        record=Record(spikes=frozenset(each.name for each in populations)),
        sink=sink,
    )
    return {
        each.name: np.concatenate([r.spikes[each.name] != 0 for r in sink.recordings]).astype(
            np.int64
        )
        for each in populations
    }


def count_inference(
    run: RunFolder,
    code: str,
    steps: int | None,
    settings: CountSettings,
    advance: SampleCallback | None = None,
) -> CountedRun:
    """Run inference on the emulator and count its events."""
    return count_events(
        run.model,
        run.test_samples(min(settings.samples, len(run.data.test))),
        steps=steps,
        code=code,
        bits=settings.bits,
        input=settings.input or InputCoding.CURRENT,
        progress=advance,
    )


def to_workload(counted: CountedRun, *, bits: int | None) -> Workload:
    """Combine counted events with the sizes of their network."""
    return Workload(
        network_shape(
            counted.network,
            bits=bits or BITS,
            off_chip=counted.outside,
            driven=counted.input_coding == InputCoding.CURRENT.name,
        ),
        counted.counts,
        counted.samples,
        counted.steps,
        counted.input_coding,
        counted.dense_macs,
    )


def learning_workload(
    run: RunFolder, code: str, inference: Workload, settings: CountSettings, progress: StageCallback
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
            code=find_code(code),
            progress=sample_counter("counting learning", settings.samples, progress),
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
    """Return the events of one learning sample by phase; steps are the most of any population."""
    phases: dict[str, dict[str, float]] = {}
    for (_, phase), counts in workload.counts.items():
        events = phases.setdefault(phase, dict.fromkeys(LEARNING_EVENTS, 0.0))
        for name in LEARNING_EVENTS:
            each = getattr(counts, name) / workload.samples
            events[name] = max(events[name], each) if name == "steps" else events[name] + each
    return phases


def summarise_counts(
    workload: Workload, source: str, bits: int | None, code: str | None, learning: LearningEvents
) -> CountedEvents:
    """Summarise the events of inference per sample, with those of learning."""
    return CountedEvents(
        source=source,
        samples=workload.samples,
        steps=workload.steps,
        code=code,
        bits=bits,
        input_coding=workload.input_coding,
        activity=workload.activity,
        spikes=workload.per_sample("spikes"),
        synops=workload.per_sample("synops"),
        host_macs=workload.per_sample("host_macs"),
        dense_macs=workload.dense_macs,
        learned=workload.learned,
        learning=learning,
    )


@dataclass(frozen=True, slots=True)
class CurveEstimator:
    """Estimates accuracy and energy of a run over spike codes, numbers of steps and weight bits."""

    run: RunFolder
    chips: Sequence[Profile]
    options: Options
    settings: CountSettings
    progress: StageCallback

    def add_curves(self, report: EnergyReport, steps: Sequence[int]) -> EnergyReport:
        """Add a curve of accuracy against energy, over codes and steps, to each chip of a report.

        Codes that the network cannot be translated to are left out, with the reason.
        """
        codes = list(dict.fromkeys([*CURVE_CODES, self.settings.code or "rate"]))
        points: dict[str, list[Point]] = {each.name: [] for each in self.chips}
        left_out: dict[str, str] = {}
        samples = done = 0
        for code in codes:
            try:
                counted = []
                for each in self.count(code, steps):
                    counted.append(each)
                    done += 1
                    self.progress("accuracy against joules", done, len(codes) * len(steps))
            except (LoweringError, QuantisationError) as error:
                left_out[code] = str(error)
                if code == "rate" and "paired" not in codes:
                    codes.append("paired")
                continue
            for each in counted:
                samples = each.samples
                for point in self.points(each, code):
                    points[point.profile].append(point)
        estimates = tuple(replace(each, curve=tuple(points[each.profile])) for each in report)
        curve = CurveSettings(samples, tuple(steps), left_out)
        return replace(report, estimates=estimates, curve=curve)

    def add_pareto(
        self, report: EnergyReport, steps: Sequence[int], widths: Sequence[int]
    ) -> EnergyReport:
        """Add accuracy, energy and latency over codes, steps and weight bits to a report."""
        points = {each.name: list(report[each.name].curve) for each in self.chips}
        left_out: dict[str, str] = {}
        samples = 0
        for bits in widths:
            part = replace(self, settings=replace(self.settings, bits=bits)).add_curves(
                report, steps
            )
            for each in part:
                points[each.profile] += each.curve
            if part.curve is not None:
                samples = part.curve.samples
                reasons = part.curve.left_out.items()
                left_out |= {f"{code}, {bits} bits": why for code, why in reasons}
        estimates = tuple(replace(each, curve=tuple(points[each.profile])) for each in report)
        curve = CurveSettings(samples, tuple(steps), left_out, pareto=True)
        return replace(report, estimates=estimates, curve=curve)

    def count(self, code: str, steps: Sequence[int]) -> Iterator[CountedRun]:
        """Yield the events for each number of steps, in one code."""
        settings = self.settings
        if settings.input is None or find_input_coding(settings.input) is not InputCoding.CURRENT:
            settings = with_input(replace(settings, input=None), code)
        for each in steps:
            yield count_inference(self.run, code, each, settings)

    def points(self, counted: CountedRun, code: str) -> Iterator[Point]:
        """Yield one point of the curve for each chip whose energy is known."""
        bits, options = self.settings.bits, replace(self.options, draws=CURVE_DRAWS)
        workload = to_workload(counted, bits=bits)
        for chip in self.chips:
            found = estimate_use(workload, chip, options, learning=False)
            if found.joules is None or found.placement is None:
                continue
            yield Point(
                code,
                counted.steps,
                counted.accuracy,
                found.joules.value,
                found.joules.low,
                found.joules.high,
                fits=found.placement.status is PlacementStatus.FITS,
                profile=chip.name,
                seconds=None if found.seconds is None else found.seconds.value,
                bits=bits,
            )
