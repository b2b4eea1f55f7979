"""Energy estimates of a workload on spiking chips, and their comparison with dense devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from neuro_eqprop.chips.energy.dense_reference import (
    arithmetic_ratio,
    compare_with_references,
    dense_references,
)
from neuro_eqprop.chips.energy.estimate import NO_LEARNING, REFUSED, Estimate, estimate_use
from neuro_eqprop.chips.energy.result import CountedEvents, EnergyEstimate, EnergyReport
from neuro_eqprop.chips.energy.settings import EstimateSettings
from neuro_eqprop.chips.profile import Device, Profile
from neuro_eqprop.chips.profiles.describe import entries_json
from neuro_eqprop.chips.workload import Workload

BITS = 8
"""Bits of a weight, where a chip takes as many."""
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


@dataclass(frozen=True, slots=True)
class ChipEvents:
    """The events that are priced on a chip, with weights of the bits that it takes."""

    workload: Workload
    """Of inference."""
    learning: Workload | None = None
    """Of learning, unless they are in `workload` or were not counted."""
    bits: int | None = None
    accuracy: float | None = None
    """Fraction of right predictions with these weights; None where it was not evaluated."""


def widest_bits(profile: Profile) -> int:
    """The bits of the widest weights that a chip takes, at most BITS."""
    width = profile.known("capacity.weight_bits")
    if width is None:
        return BITS
    taken = [int(each) for each in (*width.choices, width.value) if each <= BITS]
    return max(taken, default=BITS)


def estimate_workload(
    events: Callable[[Profile], ChipEvents],
    chips: Iterable[Profile],
    devices: Iterable[Profile],
    settings: EstimateSettings,
    *,
    counted: CountedEvents,
) -> EnergyReport:
    """Estimates of counted events on spiking chips, and comparisons with dense devices.

    `events` gives those of a chip; `counted` summarises them.
    """
    devices, macs = list(devices), counted.dense_macs
    references = dense_references(devices, macs=macs, batch=settings.batch) if macs else []
    settings, estimates = with_host(settings, devices), []
    ratios: dict[str, float] = {}
    for chip in chips:
        own = events(chip)
        found = estimate_chip(
            *(own.workload, chip, settings),
            learning=own.learning,
            no_learning=counted.learning.reason or NO_LEARNING,
            presentations=counted.learning.presentations,
        )
        judged = []
        if found.inference.joules is not None:
            judged = compare_with_references(own.workload, chip, found.inference, references)
        estimates.append(
            replace(found, comparisons=tuple(judged), bits=own.bits, accuracy=own.accuracy)
        )
        if macs and own.workload.activity and not ratios:
            ratios = {
                each.name: arithmetic_ratio(each, own.workload)
                for each in devices
                if each.device is Device.RATIO
            }
    return EnergyReport(tuple(estimates), counted, tuple(references), ratios)


def with_host(settings: EstimateSettings, devices: Iterable[Profile]) -> EstimateSettings:
    """The settings with the cost of the host's work."""
    hosts = (each.batches[0].joules_per_mac for each in devices if each.name == HOST)
    return replace(settings, host_mac=next(hosts, None))


def check_refused(report: EnergyReport) -> None:
    """Raise the reason why the only chip of a report was refused."""
    (only,) = report.estimates
    if only.inference.reason.startswith(REFUSED):
        raise ValueError(only.inference.reason.partition(": ")[2])
