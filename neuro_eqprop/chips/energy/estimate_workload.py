"""Energy estimates of a workload on spiking chips, and their comparison with dense devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from neuro_eqprop.chips.energy.dense_reference import (
    arithmetic_ratio,
    compare_with_references,
    dense_references,
)
from neuro_eqprop.chips.energy.estimate import NO_LEARNING, REFUSED, Estimate, estimate_use
from neuro_eqprop.chips.energy.result import CountedEvents, EnergyEstimate, EnergyReport
from neuro_eqprop.chips.energy.settings import EstimateSettings
from neuro_eqprop.chips.energy.validation import discrepancy_of
from neuro_eqprop.chips.profile import Device, Profile, Quantity
from neuro_eqprop.chips.profiles.describe import entries_json
from neuro_eqprop.chips.workload import Workload

HOST = "cortex_m33"
"""Profile of the dense device whose cost of a multiplication is used for the host."""


def estimate_chip(
    workload: Workload,
    profile: Profile,
    settings: EstimateSettings,
    *,
    learning: Workload | None = None,
    no_learning: str = NO_LEARNING,
    presentations: int | None = None,
) -> EnergyEstimate:
    """The estimate of counted events of inference on one chip.

    `learning` has the events of learning, unless they are in `workload` or were not counted, for
    the reason `no_learning`; `presentations` are the samples of the whole training.
    """
    profile.check_chip()
    inference = estimate_use(workload, profile, settings, learning=False)
    learned = estimate_use(learning or workload, profile, settings, learning=True)
    reason = no_learning if learned.reason == NO_LEARNING else learned.reason
    learned = replace(learned, reason=reason, samples=presentations)
    return EnergyEstimate(
        profile.name,
        profile.title,
        inference,
        learned,
        scenario=profile.scenario,
        operating_point=profile.operating_point,
        overridden=profile.overridden,
        sources=used_sources(profile, inference, learned) if settings.explain else (),
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
    settings: EstimateSettings,
    *,
    counted: CountedEvents,
    learning: Workload | None = None,
) -> EnergyReport:
    """Estimates of counted events on spiking chips, and comparisons with dense devices.

    `counted` summarises the events; `learning` has those of learning.
    """
    devices, macs = list(devices), workload.dense_macs
    references = (
        dense_references(devices, macs=macs, batch=settings.batch, seed=settings.seed)
        if macs
        else []
    )
    estimates = []
    for chip in chips:
        own = settings_for(chip, devices, settings)
        found = estimate_chip(
            *(workload, chip, own),
            learning=learning,
            no_learning=counted.learning.reason or NO_LEARNING,
            presentations=counted.learning.presentations,
        )
        if found.inference.joules is not None:
            judged = compare_with_references(workload, chip, found.inference, references, own)
            found = replace(found, comparisons=tuple(judged))
        estimates.append(found)
    ratios = {
        each.name: arithmetic_ratio(each, workload)
        for each in devices
        if each.device is Device.RATIO and macs and workload.activity
    }
    return EnergyReport(tuple(estimates), counted, tuple(references), ratios, seed=settings.seed)


def settings_for(
    chip: Profile, devices: Iterable[Profile], settings: EstimateSettings
) -> EstimateSettings:
    """The settings with the error of the model for a chip, and the cost of the host's work."""
    hosts = (each.batches[0].joules_per_mac for each in devices if each.name == HOST)
    cost: Quantity | None = next(hosts, None)
    return replace(settings, host_mac=cost, discrepancy=discrepancy_of(chip.name))


def check_refused(report: EnergyReport) -> None:
    """Raise the reason why the only chip of a report was refused."""
    (only,) = report.estimates
    if only.inference.reason.startswith(REFUSED):
        raise ValueError(only.inference.reason.partition(": ")[2])
