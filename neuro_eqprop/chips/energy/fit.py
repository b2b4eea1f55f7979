"""Constants of a chip fitted to measured runs, as a profile that extends that of the chip.

The joules of a run are a sum of terms, and every term is proportional to one constant: with x[i, k]
the joules of run i by constant k of the profile, the logarithms u of factors are sought such that

    sum over i of (log(sum over k of x[i, k] exp(u[k])) - log joules[i])^2 / NOISE^2
    + sum over k of (u[k] / w[k])^2

is least. The second sum keeps constants that the runs do not determine at the values of the
profile, with the width w of their ranges. The covariance of u is the inverse of the matrix of this
least-squares problem, with the deviation of the residuals as noise. The range of an estimate has
it too: runs that do not tell constants apart say little about other runs.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, isfinite, log
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
from neuro_eqprop.chips.quantities import parse_amount
from neuro_eqprop.chips.workload_file import read_workload
from neuro_eqprop.common.arrays import Array
from neuro_eqprop.files.codec import Count, Format, NonNegative, Text, decode
from neuro_eqprop.files.read import FileFormatError, read_text
from neuro_eqprop.files.write import refuse_existing, write_text

NOISE = 0.01
"""Relative error of a measurement, against which the ranges of the constants are weighed."""
LEAST_WIDTH = 1.0
"""Least width of the logarithm of a constant before it is fitted."""
FAR = log(30)
"""Change of the logarithm of a constant above which the units of the runs are in doubt."""
MOST = log(1e9)
"""Largest change of the logarithm of a constant."""
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
        numbers = (self.joules, self.watts, self.seconds, self.supply, *self.events.values())
        if not all(map(isfinite, numbers)):
            raise ValueError("a number is not finite")
        if not self.chips:
            raise ValueError("chips: there is at least one")
        if bool(self.joules) == bool(self.watts):
            raise ValueError("give joules or watts above zero, and not both")
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
NUMBERS = {"joules": "J", "watts": "W", "seconds": "s", "supply": "V", "chips": "count"}
"""Columns of a CSV file with a number, and its dimension; any other column is an event."""


def read_measurements(path: str | Path) -> list[Measurement]:
    """Measured runs of a TOML file, with tables ``[[measurement]]``, or of a CSV file.

    A CSV file has a row for each run, with columns as the fields of `Measurement`; any other column
    is an event, as ``synop``. Numbers are in SI units or have one, as ``65mW``. Empty cells are
    zero. Semicolons and tabs separate columns too; between semicolons, a number may have a comma.
    Lines that start with # are comments.
    """
    path = Path(path)
    if path.suffix.lower() not in (".csv", ".tsv"):
        return list(MEASUREMENTS.read(path).measurement)
    every = read_text(path).removeprefix("\ufeff").splitlines()
    lines = [line for line in every if not line.startswith("#")]
    separator = max(",;\t", key=lines[0].count) if lines else ","
    header, *rows = [*csv.reader(lines, delimiter=separator)] or [[]]
    names = [name.strip().lower() for name in header]
    check_columns(names, path)
    found = []
    for place, row in enumerate((each for each in rows if any(map(str.strip, each))), start=1):
        where = f"{path}: row {place}"
        if len(row) > len(names):
            raise FileFormatError(f"{where}: {len(row)} cells for {len(names)} columns")
        content: dict[str, Any] = {"name": f"row {place}", "events": {}}
        for name, text in zip(names, map(str.strip, row), strict=False):
            if not text:
                continue
            if name in TEXTS:
                content[name] = text
                continue
            number = number_of(text.replace(",", ".") if separator == ";" else text, name, where)
            (content if name in NUMBERS else content["events"])[name] = number
        found.append(decode(content, Measurement, where, error=FileFormatError))
    return found


def check_columns(names: Sequence[str], path: Path) -> None:
    """Raise for a column of a CSV file that is no field and no event, or that stands twice."""
    for name in names:
        if names.count(name) > 1:
            raise FileFormatError(f"{path}: column {name!r} stands twice")
        if name in (*TEXTS, *NUMBERS):
            continue
        try:
            check_key(f"energy.{name}", f"column {name!r}")
        except ValueError as error:
            fields = ", ".join((*TEXTS, *NUMBERS))
            raise FileFormatError(f"{path}: {error}; a column is an event, or {fields}") from None


def number_of(text: str, name: str, where: str) -> float:
    """The number of a cell, in SI units; it may have a unit of its column."""
    try:
        number = float(text)
    except ValueError:
        try:
            number = parse_amount(text, NUMBERS.get(name, "count"))
        except ValueError as error:
            raise FileFormatError(f"{where}: {name}: {error}") from None
    return int(number) if name == "chips" and number.is_integer() else number


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
    runs = with_own_names(runs)
    keys, table, unpriced = joules_by_constant(chip, runs, folder)
    widths = np.array([width_of(chip.entry(key)) for key in keys])
    spent = np.array([each.spent for each in runs])
    logarithms, covariance = fit_logarithms(widths, table, spent)
    left_out = {}
    for k, each in enumerate(runs):
        rest = np.arange(len(runs)) != k
        others = fit_logarithms(widths, table[rest], spent[rest])[0]
        left_out[each.name] = log(each.spent / float(table[k] @ np.exp(others)))
    fitted = fitted_profile(chip, keys, logarithms, covariance, left_out, unpriced)
    if out is not None:
        base = profile.name if isinstance(profile, Profile) else str(profile)
        write_profile(fitted, keys, base, Path(out))
    return fitted


def as_measurement(given: Measurement | Mapping[str, Any]) -> Measurement:
    """A measured run, from a mapping of its fields too."""
    if isinstance(given, Measurement):
        return given
    return decode(dict(given), Measurement, "measurement", error=ValueError)


def with_own_names(runs: Sequence[Measurement]) -> list[Measurement]:
    """The runs, with a number after a name that several of them have."""
    seen: dict[str, int] = {}
    found = []
    for each in runs:
        count = seen[each.name] = seen.get(each.name, 0) + 1
        found.append(each if count == 1 else replace(each, name=f"{each.name} ({count})"))
    return found


def joules_by_constant(
    chip: Profile, runs: Sequence[Measurement], folder: Path
) -> tuple[list[str], Array, tuple[str, ...]]:
    """The constants of the runs, the joules of each run by constant, and the costs without one."""
    rows: list[dict[str, float]] = []
    unpriced: dict[str, None] = {}
    for run in runs:
        found = estimate_run(chip.at_supply(run.supply) if run.supply else chip, run, folder)
        if not sum(term.joules.value for term in found.terms):
            raise ValueError(f"{run.name}: {found.reason or 'the profile prices nothing of it'}")
        unpriced |= dict.fromkeys(each.name for each in found.missing)
        row: dict[str, float] = {}
        for term in found.terms:
            key = "power.idle_boot" if term.name == "idle after boot" else term.key
            row[key] = row.get(key, 0.0) + term.joules.value
        rows.append(row)
    keys = sorted({key for row in rows for key in row})
    table = np.array([[row.get(key, 0.0) for key in keys] for row in rows])
    return keys, table, tuple(unpriced)


def estimate_run(chip: Profile, run: Measurement, folder: Path) -> Estimate:
    """The estimate of a measured run with the constants of the profile."""
    if run.counts:
        workload = read_workload(folder / run.counts)
        steps = run.seconds / workload.steps if run.seconds else None
        return estimate_use(workload, chip, EstimateSettings(step_seconds=steps), learning=False)
    events = {Event(name): number for name, number in run.events.items()}
    time = Duration(exactly(run.seconds) if run.seconds else None, "as measured")
    return estimate_job(ChipWork(events, time, run.chips), chip, EstimateSettings())


def fit_logarithms(widths: Array, table: Array, spent: Array) -> tuple[Array, Array]:
    """The logarithms of the factors of the constants, and their covariance."""
    from scipy.optimize import least_squares

    def misses(logarithms: Array) -> Array:
        runs = np.log(table @ np.exp(logarithms)) - np.log(spent)
        return np.concatenate([runs / NOISE, logarithms / widths])

    found = np.asarray(least_squares(misses, np.zeros(len(widths)), bounds=(-MOST, MOST)).x)
    shares = table * np.exp(found) / (table @ np.exp(found))[:, None]
    residuals = NOISE * misses(found)[: len(spent)]
    noise = max(NOISE, float(np.sqrt(np.mean(residuals**2)))) if len(spent) else NOISE
    return found, np.linalg.inv(shares.T @ shares / noise**2 + np.diag(widths**-2.0))


def width_of(cost: Any) -> float:  # noqa: ANN401
    """The width of the logarithm of a constant before it is fitted."""
    if not isinstance(cost, Quantity) or not cost.low:
        return LEAST_WIDTH
    return max(LEAST_WIDTH, log(cost.high / cost.low) / 2)


def fitted_profile(
    chip: Profile,
    keys: Sequence[str],
    logarithms: Array,
    covariance: Array,
    left_out: Mapping[str, float],
    unpriced: tuple[str, ...],
) -> Profile:
    """The chip with fitted constants, their ranges, their covariance and its calibration."""
    entries = dict(chip.entries)
    for key, logarithm, variance in zip(keys, logarithms, np.diag(covariance), strict=True):
        before = chip.known(key)
        assert before is not None
        value, spread = before.value * exp(logarithm), exp(2 * float(np.sqrt(variance)))
        entries[key] = replace(before, value=value, low=value / spread, high=value * spread)
    fit = Fit(
        tuple(keys),
        tuple(tuple(map(float, row)) for row in covariance),
        {name: round(error, 6) for name, error in left_out.items()},
        unpriced,
    )
    calibration = calibrate(list(left_out.values()), least=LEAST_FACTOR)
    changes = [f"{len(left_out)} measured runs: {', '.join(keys)} fitted"]
    changes += [
        f"{key} is {exp(each):.3g} times that of {chip.name!r}; check the units of the runs"
        for key, each in zip(keys, logarithms, strict=True)
        if abs(each) > FAR
    ]
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
    refuse_existing(out, force=True, mark=b"[fit]")
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
                **{name: float(f"{getattr(cost, name):.6g}") for name in ("value", "low", "high")},
                "unit": cost.unit,
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
    lines.append(f"unpriced = [{', '.join(map(quoted, fit.unpriced))}]")
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
