"""Constants of a chip fitted to measured runs, as a profile that extends that of the chip.

The joules of a run are a sum of terms, and every term is proportional to one constant: with x[i, k]
the joules of run i by constant k of the profile, factors f are sought such that

    sum over i of ((sum over k of x[i, k] f[k]) / joules[i] - 1)^2 / NOISE^2
    + sum over k of ((f[k] - 1) / w[k])^2

is least, f >= 0. The second sum keeps constants that the runs do not determine at the values of the
profile, with the width w of their ranges. The covariance of the factors is the inverse of the
matrix of this least-squares problem, times the variance of the residuals.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.chips.energy.estimate import Estimate, estimate_job, estimate_use
from neuro_eqprop.chips.energy.event_counts import Event
from neuro_eqprop.chips.energy.interval import exactly
from neuro_eqprop.chips.energy.settings import EstimateSettings
from neuro_eqprop.chips.energy.terms import ChipWork
from neuro_eqprop.chips.energy.time import Duration
from neuro_eqprop.chips.energy.validation import calibrate
from neuro_eqprop.chips.profile import Fit, Profile, Quantity
from neuro_eqprop.chips.profiles.load import check_extension, load_profile
from neuro_eqprop.chips.profiles.schema import check_key
from neuro_eqprop.chips.workload_file import read_workload
from neuro_eqprop.common.arrays import Array
from neuro_eqprop.files.codec import Count, Format, NonNegative, Text, decode
from neuro_eqprop.files.read import FileFormatError, read_text
from neuro_eqprop.files.write import write_text

NOISE = 0.01
"""Relative error of a measurement, against which the ranges of the constants are weighed."""
LEAST_WIDTH = 1.0
"""Least relative width that a constant has before it is fitted."""
LEAST_FACTOR = 1.1
"""Least range, as a factor to both sides, of a chip that is fitted to runs of its own."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measured run: its events, or a file of counts of its network, and its joules or watts."""

    name: Text
    joules: NonNegative = 0.0
    watts: NonNegative = 0.0
    seconds: NonNegative = 0.0
    """Duration of the run; needed with watts, and for idle power."""
    events: Mapping[str, NonNegative] = field(default_factory=dict)
    """Number of events by key of the section `energy`, as ``{"synop": 1e6}``."""
    counts: str = ""
    """A file of counts of one sample, which is placed on the chip; used instead of `events`."""
    supply: NonNegative = 0.0
    """Supply voltage in volts; 0 for that of the profile."""
    chips: Count = 1

    def __post_init__(self) -> None:
        if bool(self.joules) == bool(self.watts):
            raise ValueError("give joules or watts, and not both")
        if self.watts and not self.seconds:
            raise ValueError("watts need the seconds that they were drawn for")
        if bool(self.events) == bool(self.counts):
            raise ValueError("give events or a file of counts, and not both")
        for name in self.events:
            check_key(f"energy.{name}", "events")

    @property
    def spent(self) -> float:
        """The joules of the run."""
        return self.joules or self.watts * self.seconds


@dataclass(frozen=True, slots=True)
class MeasurementTables:
    """The content of a file of measured runs."""

    measurement: tuple[Measurement, ...]


MEASUREMENTS = Format(MeasurementTables, "neuro_eqprop.measurements/1")
TEXTS = ("name", "counts")
NUMBERS = ("joules", "watts", "seconds", "supply", "chips")


def read_measurements(path: str | Path) -> list[Measurement]:
    """Measured runs of a TOML file, with tables ``[[measurement]]``, or of a CSV file.

    A CSV file has a row for each run, with columns as the fields of `Measurement`; any other column
    is an event, as ``synop``. Empty cells are zero.
    """
    path = Path(path)
    if path.suffix != ".csv":
        return list(MEASUREMENTS.read(path).measurement)
    found = []
    for place, row in enumerate(csv.DictReader(read_text(path).splitlines())):
        where = f"{path}: row {place + 1}"
        content: dict[str, Any] = {"name": f"row {place + 1}", "events": {}}
        for name, text in row.items():
            if name is None or not (text or "").strip():
                continue
            if name in TEXTS:
                content[name] = text.strip()
                continue
            try:
                number = float(text)
            except ValueError:
                raise FileFormatError(f"{where}: {name}: {text!r} is no number") from None
            if name in NUMBERS:
                content[name] = int(number) if name == "chips" else number
            else:
                content["events"][name] = number
        found.append(decode(content, Measurement, where, error=FileFormatError))
    return found


def fit_profile(
    profile: str | Path | Profile,
    measurements: str | Path | Iterable[Measurement | Mapping[str, Any]],
    *,
    out: str | Path | None = None,
) -> Profile:
    """Fit the constants of a chip to measured runs.

    Parameters
    ----------
    profile : str, Path or Profile
        The chip, by the name or the file of its profile.
    measurements : str, Path, or a list
        A TOML or CSV file of measured runs (see `read_measurements`), or the runs themselves, as
        `Measurement` or as mappings with the same fields.
    out : str or Path, optional
        A TOML file to write: a profile that extends that of the chip.

    Returns
    -------
    Profile
        The chip with fitted constants and their ranges; `Profile.fit` has their covariance and the
        error of each run when it is left out. With four runs or more it is calibrated.

    Examples
    --------
    >>> import neuro_eqprop as ne
    >>> runs = [
    ...     {"name": str(n), "watts": 0.05 + 3e-12 * n, "seconds": 1.0, "events": {"synop": n}}
    ...     for n in (1e9, 2e9, 5e9, 1e10)
    ... ]
    >>> chip = ne.fit_profile("truenorth", runs)
    >>> round(chip.known("energy.synop").value * 1e12, 1)
    3.0
    """
    chip = load_profile(profile)
    if isinstance(measurements, str | Path):
        folder, runs = Path(measurements).parent, read_measurements(measurements)
    else:
        folder, runs = Path(), [as_measurement(each) for each in measurements]
    if not runs:
        raise ValueError("there are no measurements to fit to")
    keys, table = joules_by_constant(chip, runs, folder)
    spent = np.array([each.spent for each in runs])
    factors, covariance = fit_factors(chip, keys, table, spent)
    left_out = {}
    for k, each in enumerate(runs):
        rest = np.arange(len(runs)) != k
        others = fit_factors(chip, keys, table[rest], spent[rest])[0] if len(runs) > 1 else factors
        left_out[each.name] = log(each.spent / max(float(table[k] @ others), 1e-300))
    fitted = fitted_profile(chip, keys, factors, covariance, left_out)
    if out is not None:
        base = profile.name if isinstance(profile, Profile) else str(profile)
        write_profile(fitted, keys, base, Path(out))
    return fitted


def as_measurement(given: Measurement | Mapping[str, Any]) -> Measurement:
    """A measured run, from a mapping of its fields too."""
    if isinstance(given, Measurement):
        return given
    return decode(dict(given), Measurement, "measurement", error=ValueError)


def joules_by_constant(
    chip: Profile, runs: Sequence[Measurement], folder: Path
) -> tuple[list[str], Array]:
    """The constants that the runs depend on, and the joules of each run by each of them."""
    rows: list[dict[str, float]] = []
    for run in runs:
        found = estimate_run(chip.at_supply(run.supply) if run.supply else chip, run, folder)
        if not found.terms:
            raise ValueError(f"{run.name}: {found.reason or 'the profile prices nothing of it'}")
        row: dict[str, float] = {}
        for term in found.terms:
            key = "power.idle_boot" if term.name == "idle after boot" else term.key
            row[key] = row.get(key, 0.0) + term.joules.value
        rows.append(row)
    keys = sorted({key for row in rows for key in row})
    return keys, np.array([[row.get(key, 0.0) for key in keys] for row in rows])


def estimate_run(chip: Profile, run: Measurement, folder: Path) -> Estimate:
    """The estimate of a measured run with the constants of the profile."""
    if run.counts:
        workload = read_workload(folder / run.counts)
        steps = run.seconds / workload.steps if run.seconds else None
        return estimate_use(workload, chip, EstimateSettings(step_seconds=steps), learning=False)
    events = {Event(name): number for name, number in run.events.items()}
    time = Duration(exactly(run.seconds) if run.seconds else None, "as measured")
    return estimate_job(ChipWork(events, time, run.chips), chip, EstimateSettings())


def fit_factors(
    chip: Profile, keys: Sequence[str], table: Array, spent: Array
) -> tuple[Array, Array]:
    """The factors of the constants and their covariance."""
    from scipy.optimize import nnls

    widths = np.array([width_of(chip.entry(key)) for key in keys])
    rows = np.concatenate([table / spent[:, None] / NOISE, np.diag(1 / widths)])
    wanted = np.concatenate([np.ones(len(spent)) / NOISE, 1 / widths])
    factors = np.asarray(nnls(rows, wanted)[0])
    residuals = table @ factors / spent - 1
    noise = max(NOISE, float(np.sqrt(np.mean(residuals**2)))) / NOISE
    return factors, np.linalg.inv(rows.T @ rows) * noise**2


def width_of(cost: Any) -> float:  # noqa: ANN401
    """The relative width of a constant before it is fitted."""
    if not isinstance(cost, Quantity) or not cost.low:
        return 1.0
    return max(LEAST_WIDTH, log(cost.high / cost.low) / 2)


def fitted_profile(
    chip: Profile,
    keys: Sequence[str],
    factors: Array,
    covariance: Array,
    left_out: Mapping[str, float],
) -> Profile:
    """The chip with fitted constants, their ranges, their covariance and its calibration."""
    entries, values = dict(chip.entries), []
    for key, factor, variance in zip(keys, factors, np.diag(covariance), strict=True):
        before = chip.known(key)
        assert before is not None
        value = before.value * max(float(factor), 1e-6)
        spread = exp(2 * float(np.sqrt(variance)) / max(float(factor), 1e-6))
        spread = min(spread, 1e3)
        entries[key] = replace(before, value=value, low=value / spread, high=value * spread)
        values.append(before.value)
    scale = np.outer(values, values)
    fit = Fit(
        tuple(keys),
        tuple(tuple(float(c) for c in row) for row in covariance * scale),
        {name: round(error, 6) for name, error in left_out.items()},
    )
    calibration = calibrate(list(left_out.values()), least=LEAST_FACTOR)
    changes = (f"{len(left_out)} measured runs: {', '.join(keys)} fitted",)
    return replace(
        chip,
        entries=entries,
        overridden=(*chip.overridden, *changes),
        calibration={} if calibration is None else {"energy": calibration},
        fit=fit,
    )


def write_profile(fitted: Profile, keys: Sequence[str], base: str, out: Path) -> None:
    """Write the fitted constants as a profile that extends the chip's."""
    check_extension(base, out)
    fit = fitted.fit
    assert fit is not None
    lines = [
        f"# {fitted.title}, fitted to {len(fit.left_out)} measured runs.",
        'schema = "neuro_eqprop.profile/1"',
        f"extends = {quoted(base)}",
        f"name = {quoted(out.stem)}",
        f"title = {quoted(f'{fitted.title}, fitted')}",
        "",
        "[sources.measured]",
        f"ref = {quoted(f'{len(fit.left_out)} measured runs of this chip')}",
    ]
    for section in ("energy", "power"):
        own = [key for key in keys if key.startswith(f"{section}.")]
        lines += ["", f"[{section}]"] if own else []
        for key in own:
            cost = fitted.known(key)
            assert cost is not None
            fields = {
                **{"value": cost.value, "low": cost.low, "high": cost.high, "unit": cost.unit},
                **{"kind": cost.kind.value, "basis": "measured", "evidence": "given"},
                **({"boundary": cost.boundary.value} if cost.boundary else {}),
                **{"src": "measured", "where": "least squares", "workloads": len(fit.left_out)},
            }
            lines.append(f"{key.partition('.')[2]} = {inline(fields)}")
    calibration = fitted.calibration.get("energy")
    if calibration is not None:
        lines += ["", "[calibration.energy]"]
        for name in ("points", "factor", "inside", "least"):
            lines.append(f"{name} = {getattr(calibration, name)!r}")
    lines += ["", "[fit]", f"keys = [{', '.join(quoted(key) for key in fit.keys)}]"]
    rows = (f"  [{', '.join(repr(each) for each in row)}]," for row in fit.covariance)
    lines += ["covariance = [", *rows, "]"]
    lines.append(f"left_out = {inline(fit.left_out)}")
    write_text(out, "\n".join(lines) + "\n")


def quoted(text: str) -> str:
    """A text as a TOML string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def inline(fields: Mapping[str, Any]) -> str:
    """An inline table of TOML."""
    parts = (
        f"{name if name.isidentifier() else quoted(name)} = "
        f"{quoted(value) if isinstance(value, str) else repr(value)}"
        for name, value in fields.items()
    )
    return f"{{ {', '.join(parts)} }}"
