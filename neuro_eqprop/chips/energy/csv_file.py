"""Energy results as a CSV file: a row for each chip and use."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from neuro_eqprop.chips.energy.result import EnergyReport
from neuro_eqprop.chips.energy.table import COLUMNS as ALL
from neuro_eqprop.chips.energy.table import use_rows
from neuro_eqprop.files.write import refuse_existing, write_text

COLUMNS = (
    *("profile", "use", "fits", "cores", "chips", "mapping", "joules", "low", "high", "nominal"),
    *("lower_bound", "boundary", "seconds", "seconds_low", "seconds_high", "frames_per_second"),
    *(
        "frames_per_joule",
        "energy_delay_product",
        "rate",
        "average_watts",
        "bits",
        "accuracy",
        "tier",
        "reason",
    ),
)


def write_csv(report: EnergyReport, path: Path) -> Path:
    """Write a report as CSV in SI units, unknown values empty; return the path."""
    refuse_existing(path, force=True, mark=",".join(COLUMNS).encode())
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows([ALL[name].value(row) for name in COLUMNS] for row in use_rows(report))
    write_text(path, text.getvalue())
    return path
