"""Energy estimates of a workload on spiking chips, and their comparison with dense devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from neuro_eqprop.chips.energy.dense_reference import (
    Comparison,
    arithmetic_ratio,
    compare_with_references,
    dense_references,
)
from neuro_eqprop.chips.energy.estimate import NO_LEARNING, REFUSED, Estimate, Options, estimate_use
from neuro_eqprop.chips.energy.result import CountedEvents, EnergyEstimate, EnergyReport
from neuro_eqprop.chips.energy.validation import discrepancy_of
from neuro_eqprop.chips.profile import Device, Profile, Quantity
from neuro_eqprop.chips.profiles.describe import entries_json
from neuro_eqprop.chips.workload import Workload

HOST = "cortex_m33"
"""Profile of the dense device whose cost of a multiplication is used for the host."""


def check_chips(profiles: Iterable[Profile]) -> None:
    """Reject profiles that are no spiking chips, and scenarios without their factors."""
    for profile in profiles:
        if profile.missing:
            each = ", ".join(f"{profile.name}.scale.{name}" for name in profile.missing)
            raise ValueError(
                f"profile {profile.name!r} is a scenario and waits for your factor: override "
                f"{profile.name}.scale, or {each}"
            )
        if profile.device is not Device.SPIKING:
            raise ValueError(
                f"profile {profile.name!r} is no spiking chip; dense devices are always compared"
            )


def estimate_chip(
    workload: Workload,
    profile: Profile,
    options: Options,
    *,
    learning: Workload | None = None,
    no_learning: str = NO_LEARNING,
    presentations: int | None = None,
    explain: bool = False,
) -> EnergyEstimate:
    """The estimate of a workload on one chip.

    Parameters
    ----------
    workload
        Counted events of inference.
    profile
        The chip.
    options
        How the estimate is made.
    learning
        Counted events of learning; None where they are in `workload` or were not counted.
    no_learning
        Why no learning events were counted.
    presentations
        Samples of the whole training.
    explain
        Whether to add the sources of all quantities that were used.
    """
    check_chips([profile])
    inference = estimate_use(workload, profile, options, learning=False)
    learning_estimate = estimate_use(learning or workload, profile, options, learning=True)
    if learning_estimate.reason == NO_LEARNING:
        learning_estimate = replace(learning_estimate, reason=no_learning)
    learning_estimate = replace(learning_estimate, samples=presentations)
    return EnergyEstimate(
        profile.name,
        profile.title,
        inference,
        learning_estimate,
        scenario=profile.scenario,
        operating_point=profile.operating_point,
        overridden=profile.overridden,
        sources=used_sources(profile, inference, learning_estimate) if explain else (),
    )


def used_sources(profile: Profile, *estimates: Estimate) -> tuple[Mapping[str, Any], ...]:
    """The quantities of a profile that estimates used, with their sources."""
    used = {term.key for found in estimates for term in found.terms}
    if "power.idle_loaded" in used:
        used.add("power.idle_boot")
    rows = entries_json(profile)
    return tuple(row for row in rows if row["key"] in used or row["key"].startswith("time."))


def estimate_workload(
    workload: Workload,
    chips: Iterable[Profile],
    devices: Iterable[Profile],
    options: Options,
    *,
    counted: CountedEvents,
    learning: Workload | None = None,
    batch: int | None = None,
    explain: bool = False,
) -> EnergyReport:
    """Estimates of a workload on spiking chips, and comparisons with dense devices.

    Parameters
    ----------
    workload
        Counted events of inference.
    chips
        Profiles of spiking chips.
    devices
        Profiles of dense devices and arithmetic ratios.
    options
        How the estimates are made.
    counted
        Summary of the counted events.
    learning
        Counted events of learning.
    batch
        Batch size of the dense devices; None for all that were measured.
    explain
        Whether to add the sources of all quantities that were used.
    """
    chips, devices, macs = list(chips), list(devices), workload.dense_macs
    options = replace(options, host_mac=host_cost(devices))
    ways = {e.name: replace(options, discrepancy=discrepancy_of(e.name)) for e in chips}
    estimates = [
        estimate_chip(
            *(workload, each, ways[each.name]),
            learning=learning,
            no_learning=counted.learning.reason or NO_LEARNING,
            presentations=counted.learning.presentations,
            explain=explain,
        )
        for each in chips
    ]
    references = (
        dense_references(devices, macs=macs, batch=batch, seed=options.seed) if macs else []
    )
    compared = []
    for profile, each in zip(chips, estimates, strict=True):
        comparisons: list[Comparison] = []
        if each.inference.joules is not None:
            comparisons = compare_with_references(
                workload, profile, each.inference, references, ways[profile.name]
            )
        compared.append(replace(each, comparisons=tuple(comparisons)))
    ratios = {
        each.name: arithmetic_ratio(each, workload)
        for each in devices
        if each.device is Device.RATIO and macs and workload.activity
    }
    return EnergyReport(tuple(compared), counted, tuple(references), ratios, seed=options.seed)


def host_cost(devices: Iterable[Profile]) -> Quantity | None:
    """The cost of a multiplication on the host; None where it is not among the devices."""
    for each in devices:
        if each.name == HOST:
            return each.batches[0].joules_per_mac
    return None


def check_refused(report: EnergyReport) -> None:
    """Raise the reason why the only chip of a report was refused."""
    (only,) = report.estimates
    if only.inference.reason.startswith(REFUSED):
        raise ValueError(only.inference.reason.partition(": ")[2])
