"""Energy results as a CSV file: a row for each chip and use."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from neuro_eqprop.chips.energy.estimate import Estimate
from neuro_eqprop.chips.energy.result import EnergyEstimate, EnergyReport
from neuro_eqprop.files.write import write_text

COLUMNS = (
    *("profile", "use", "fits", "cores", "chips", "mapping", "joules", "low", "high", "nominal"),
    *("lower_bound", "boundary", "seconds", "seconds_low", "seconds_high", "frames_per_second"),
    *("frames_per_joule", "energy_delay_product", "rate", "average_watts", "accuracy", "reason"),
)


def csv_row(chip: EnergyEstimate, use: str, found: Estimate) -> dict[str, object]:
    """The values of one chip and use; unknown ones are empty."""
    placement, joules, seconds, duty = found.placement, found.joules, found.seconds, found.duty
    return {
        "profile": chip.profile,
        "use": use,
        "fits": None if placement is None else placement.fits,
        "cores": None if placement is None else placement.cores,
        "chips": None if placement is None else placement.chips,
        "mapping": found.mapping,
        "joules": joules and joules.value,
        "low": joules and joules.low,
        "high": joules and joules.high,
        "nominal": joules and joules.nominal,
        "lower_bound": found.at_least,
        "boundary": found.boundary and found.boundary.value,
        "seconds": seconds and seconds.value,
        "seconds_low": seconds and seconds.low,
        "seconds_high": seconds and seconds.high,
        "frames_per_second": found.frames_per_second,
        "frames_per_joule": found.frames_per_joule,
        "energy_delay_product": found.energy_delay_product,
        "rate": duty and duty.rate,
        "average_watts": duty and duty.watts,
        "reason": found.reason,
    }


def write_csv(report: EnergyReport, path: Path) -> Path:
    """Write a report as CSV in SI units; return the path."""
    text = io.StringIO()
    table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    table.writeheader()
    for chip in report:
        for use in ("inference", "learning"):
            accuracy = report.counted.accuracy if use == "inference" else None
            row = csv_row(chip, use, getattr(chip, use))
            table.writerow(row | {"accuracy": accuracy})
    write_text(path, text.getvalue())
    return path
