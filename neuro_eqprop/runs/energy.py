"""`estimate_energy`: joules and seconds of runs and simulations on spiking chips."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, overload

from neuro_eqprop.chips.energy.dense_reference import dense_references
from neuro_eqprop.chips.energy.estimate import map_workload
from neuro_eqprop.chips.energy.estimate_workload import (
    ChipEvents,
    check_refused,
    estimate_workload,
    widest_bits,
)
from neuro_eqprop.chips.energy.file import read_energy
from neuro_eqprop.chips.energy.result import (
    DenseTraining,
    EnergyEstimate,
    EnergyReport,
    TrainingCost,
)
from neuro_eqprop.chips.energy.sanafe import write_sanafe
from neuro_eqprop.chips.profile import Device, Profile
from neuro_eqprop.chips.profiles.load import load_profile, profile_names
from neuro_eqprop.common.arrays import Ints, type_name
from neuro_eqprop.files.write import (
    make_folder,
    refuse_foreign,
    replace_folder,
    temporary_folder,
)
from neuro_eqprop.runs.energy_curve import add_curves
from neuro_eqprop.runs.energy_settings import EnergySettings
from neuro_eqprop.runs.event_source import (
    EventSource,
    Source,
    StageCallback,
    find_events,
    simulate_run,
    spikes_by_step,
    with_code,
    workload_of,
)
from neuro_eqprop.runs.run_folder import ENERGY, RunFolder

DENSE_PASSES = 3
"""MACs of a dense training step, in forward passes: one forward pass, two for backprop."""


def no_progress(stage: str, done: int, total: int) -> None:
    """No-op progress callback."""


@overload
def estimate_energy(
    source: Source,
    profiles: str | Path | Profile,
    *,
    progress: StageCallback = ...,
    **settings: Any,  # noqa: ANN401
) -> EnergyEstimate: ...
@overload
def estimate_energy(
    source: Source,
    profiles: Iterable[str | Path | Profile] | None = None,
    *,
    progress: StageCallback = ...,
    **settings: Any,  # noqa: ANN401
) -> EnergyReport: ...
def estimate_energy(
    source: Source,
    profiles: str | Path | Profile | Iterable[str | Path | Profile] | None = None,
    *,
    progress: StageCallback = no_progress,
    **settings: Any,
) -> EnergyEstimate | EnergyReport:
    """Estimate energy and time per inference, and per learning sample, on spiking chips.

    The energy is the number of events times their published cost, plus idle power times time, each
    with its range. Costs that are not published stay unknown and make the estimate a lower bound.
    The events are those of `source`, if it has them; else they are counted on the emulator, and
    `EnergyReport.counted` says so.

    Parameters
    ----------
    source : str, Path, Run, Simulation or Workload
        A simulation, whose own counts are used: it runs again on the emulator only if `steps`,
        `code`, `bits` or `input` are others than its own. A workload or a file of counts
        (``.json``). A run folder or an opened run, whose events are counted.
    profiles : str, Path, Profile, or a list of these, optional
        Chips by name, file or object (see `load_profile`). One profile returns an
        `EnergyEstimate`, a list an `EnergyReport`. Default: all chips that ship with the package.
    progress : callable, optional
        Called with the name of a stage, the steps done and their total.
    **settings
        The fields of `neuro_eqprop.runs.energy_settings.EnergySettings`, where each is explained.
        Of the counts: `samples`, `steps`, `code`, `bits`, `input`, `presentations`. Of the chip:
        `clock`, `step_seconds`, `overhead`, `tag_bits`, `soft_reset`, `chips`, `mapping`, `cores`,
        `allocation`, `rate`, `supply`. Of the result: `batch`, `target`, `curve`,
        `curve_samples`, `pareto`, `pareto_steps`, `pareto_bits`, `beside`, `explain`.

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
    asked = EnergySettings.of(settings)
    single = isinstance(profiles, str | Path | Profile)
    named: Any = [profiles] if single else profiles
    chips, devices = choose_profiles(named, asked.supply)
    events = find_events(source, asked, progress)
    bits = events.counted.bits if asked.bits is None else asked.bits

    @cache
    def with_weights_of(width: int) -> ChipEvents:
        return events.on_chip(width, bits)

    report = estimate_workload(
        *(lambda chip: with_weights_of(widest_bits(chip)), chips, devices, asked),
        counted=events.counted,
    )
    if profiles is not None and len(chips) == 1:
        check_refused(report)
    if asked.curve is not None or asked.pareto:
        run = events.run_for("pareto" if asked.curve is None else "curve")
        counted = replace(asked, code=events.counted.code)
        report = add_curves(report, run, chips, devices, counted, progress)
    report = add_training(report, events, devices, asked)
    if asked.beside is not None:
        report = replace(report, beside=report.compare_run(open_report(asked.beside)))
    report = replace(report, run=None if events.run is None else str(events.run.path))
    return report.estimates[0] if single else report


def export_sanafe(
    run: RunFolder, out: Path, settings: EnergySettings, *, predicted: Ints, force: bool
) -> dict[str, Any]:
    """Write the spikes of test samples on a mapped chip as files of SANA-FE.

    The chip is Loihi 1, whose constants SANA-FE has fitted. `predicted` are the classes that the
    rates predict, which the spikes are compared with.
    """
    refuse_foreign(out, force=force)
    settings = with_code(settings, settings.code or "rate")
    ran = simulate_run(run, settings)
    workload = replace(workload_of(ran), by_step=spikes_by_step(ran))
    chip = load_profile("loihi1")
    placement, _ = map_workload(workload, chip, settings, learning=False)
    with temporary_folder(within=make_folder(out.parent)) as temporary:
        replace_folder(write_sanafe(temporary / "sanafe", workload, placement, chip), out)
    return {
        "path": str(out),
        "code": ran.spiking.code,
        "neurons": "replayed",
        "agreement": ran.accuracy(predicted),
        "samples": ran.samples,
        "cores": placement.cores,
        "load": "sanafe.load_arch, then sanafe.load_net",
        "warning": None,
    }


def choose_profiles(
    profiles: Iterable[str | Path | Profile] | None, volts: float | None
) -> tuple[list[Profile], list[Profile]]:
    """The chips to estimate, at a supply voltage if given, and the devices to compare them with.

    If no profiles are named, only the chips that allow this voltage are estimated.
    """
    shipped = [load_profile(name) for name in profile_names()]
    devices = [each for each in shipped if each.device is not Device.SPIKING]
    if profiles is None:
        chips = [e for e in shipped if e.device is Device.SPIKING and not e.scenario]
        if volts is not None:
            chips = [e for e in chips if e.scaling and e.scaling.low <= volts <= e.scaling.high]
            if not chips:
                raise ValueError(f"no chip has a voltage scaling that is valid at {volts:g} V")
    elif not isinstance(profiles, Iterable):
        raise TypeError(f"profiles is {type_name(profiles)}; name a chip, or give a list of chips")
    else:
        chips = [load_profile(each) for each in profiles]
    if not chips:
        raise ValueError("profiles is empty; name a chip, or leave it out to estimate all")
    for each in chips:
        each.check_chip()
    return chips if volts is None else [each.at_supply(volts) for each in chips], devices


def add_training(
    report: EnergyReport, events: EventSource, devices: Iterable[Profile], settings: EnergySettings
) -> EnergyReport:
    """Add the cost of the whole training, or until a target accuracy, and that of dense devices."""
    whole, target = events.counted.learning.presentations, settings.target
    if target is not None and events.run is None:
        raise ValueError("target needs a run, whose history has the accuracy of each epoch")
    if whole is None or not events.workload.dense_macs:
        return report
    samples, note = whole, "the whole training"
    if target is not None and events.run is not None:
        samples, note = samples_until(events.run, whole, target)
    macs = DENSE_PASSES * events.workload.dense_macs * samples
    dense = tuple(
        DenseTraining(e.device, e.batch, e.joules.value, e.joules.low, e.joules.high)
        for e in dense_references(devices, macs=macs, batch=None)
        if e.joules_per_mac is not None
    )
    estimates = tuple(
        replace(each, learning=replace(each.learning, samples=samples)) for each in report
    )
    return replace(report, estimates=estimates, training=TrainingCost(samples, note, dense, target))


def samples_until(run: RunFolder, whole: int, target: float) -> tuple[int, str]:
    """The training samples until the first epoch that reaches the target, and a note."""
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


def open_report(source: str | Path | EnergyReport) -> EnergyReport:
    """A report from an object, a file, or a run folder."""
    if isinstance(source, EnergyReport):
        return source
    path = Path(source)
    file = path / ENERGY if path.is_dir() or not path.suffix else path
    if not file.is_file():
        raise ValueError(f"{file} is missing; `neuro-eqprop energy {path}` makes it")
    return replace(read_energy(file), run=str(path))
