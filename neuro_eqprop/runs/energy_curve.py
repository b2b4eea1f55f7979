"""Accuracy against joules of a run, over spike codes, numbers of steps and weight bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from neuro_eqprop.chips.energy.estimate import estimate_use
from neuro_eqprop.chips.energy.estimate_workload import with_host
from neuro_eqprop.chips.energy.pareto import Point
from neuro_eqprop.chips.energy.result import CurveSettings, EnergyReport
from neuro_eqprop.chips.placement import PlacementStatus
from neuro_eqprop.chips.profile import Profile
from neuro_eqprop.runs.energy_settings import EnergySettings
from neuro_eqprop.runs.event_source import StageCallback, simulate_run, with_code, workload_of
from neuro_eqprop.runs.run_folder import RunFolder
from neuro_eqprop.runs.simulation import Simulation
from neuro_eqprop.spiking.codes import LoweringError
from neuro_eqprop.spiking.input_coding import InputCoding
from neuro_eqprop.spiking.rounding import QuantisationError

CODES = ("rate", "graded")
"""Codes beside the chosen one; `paired` is added if the network has no rate code."""


@dataclass(slots=True)
class CurvePoints:
    """Points of accuracy against joules, by chip, and the settings without one."""

    run: RunFolder
    chips: Sequence[Profile]
    devices: Sequence[Profile]
    """Dense devices, one of which gives the cost of the host's work."""
    settings: EnergySettings
    """Of every point; its code is the one that was counted."""
    progress: StageCallback
    points: dict[str, list[Point]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    samples: int = 0

    def add(self, steps: Sequence[int], bits: int | None, label: str = "") -> None:
        """Add the points of all codes at these steps and bits.

        Codes that the network cannot be translated to are left out, with the reason.
        """
        codes = list(dict.fromkeys([*CODES, self.settings.code or "rate"]))
        done = 0
        for code in codes:
            try:
                ran = []
                for each in self.simulate(code, steps, bits):
                    ran.append(each)
                    done += 1
                    self.progress("accuracy against joules", done, len(codes) * len(steps))
            except (LoweringError, QuantisationError) as error:
                self.left_out[code + label] = str(error)
                if code == "rate" and "paired" not in codes:
                    codes.append("paired")
                continue
            for each in ran:
                self.samples = each.samples
                for point in self.points_of(each):
                    self.points.setdefault(point.profile, []).append(point)

    def simulate(self, code: str, steps: Sequence[int], bits: int | None) -> Iterator[Simulation]:
        """Run the network for each number of steps, in one code."""
        current = InputCoding.CURRENT.name
        entry = current if self.settings.input == current else None
        for number in steps:
            samples = self.settings.curve_samples
            settings = replace(self.settings, input=entry, bits=bits, steps=number, samples=samples)
            yield simulate_run(self.run, with_code(settings, code))

    def points_of(self, ran: Simulation) -> Iterator[Point]:
        """One point for each chip whose energy is known."""
        accuracy = ran.accuracy(self.run.test_samples(ran.samples).y)
        workload = workload_of(ran)
        for chip in self.chips:
            settings = with_host(self.settings, self.devices)
            found = estimate_use(workload, chip, settings, learning=False)
            if found.joules is None or found.placement is None:
                continue
            yield Point(
                *(ran.spiking.code, ran.steps, accuracy),
                *(found.joules.value, found.joules.low, found.joules.high),
                fits=found.placement.status is PlacementStatus.FITS,
                profile=chip.name,
                seconds=None if found.seconds is None else found.seconds.value,
                bits=ran.spiking.bits,
            )


def add_curves(
    report: EnergyReport,
    run: RunFolder,
    chips: Sequence[Profile],
    devices: Sequence[Profile],
    settings: EnergySettings,
    progress: StageCallback,
) -> EnergyReport:
    """Add accuracy against joules to each chip of a report: `curve`, then the `pareto` grid."""
    curve = CurvePoints(run, chips, devices, settings, progress)
    described = report.curve
    if settings.curve is not None:
        curve.add(settings.curve, settings.bits)
        described = CurveSettings(curve.samples, tuple(settings.curve), dict(curve.left_out))
    if settings.pareto:
        curve.left_out.clear()
        for bits in settings.pareto_bits:
            curve.add(settings.pareto_steps, bits, f", {bits} bits")
        steps = tuple(settings.pareto_steps)
        described = CurveSettings(curve.samples, steps, curve.left_out, pareto=True)
    estimates = tuple(
        replace(each, curve=tuple(curve.points.get(each.profile, ()))) for each in report
    )
    return replace(report, estimates=estimates, curve=described)
