"""The specification of a sweep: axes, settings, evaluation and search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.common.settings import check, setting
from neuro_eqprop.files.codec import Format
from neuro_eqprop.files.read import FileFormatError
from neuro_eqprop.training.study import Study, adapt, flat_names

METHODS = {
    "grid": "every combination of the listed values",
    "random": "`trials` combinations drawn at random",
    "optuna": "`trials` combinations chosen by Optuna's TPE sampler from earlier results",
}
"""Names of the search methods, with a description for help and documentation."""
SPIKING = ("on", "code", "bits", "steps", "input", "samples")
"""Settings of the evaluation as spikes."""
PROFILE = "profile"
"""Setting with the chip of the energy estimate."""
FLOAT = "float"
"""Value of `bits` for weights in floating point."""
MOST_CELLS = 100_000

Values: TypeAlias = dict[str, Any]


class SweepError(ValueError):
    """A sweep is invalid or cannot be run; the message says how to proceed."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An axis with listed values."""

    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """An axis with the numbers from `low` to `high`, for random and Optuna search.

    It has integers if both ends are integers, and is uniform in the logarithm with `log`.
    """

    low: int | float
    high: int | float
    log: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"low is {self.low} and high is {self.high}; low must be below high")
        if self.log and not self.low > 0:
            raise ValueError(f"low is {self.low}; with log it must be above zero")

    @property
    def integer(self) -> bool:
        """Whether the axis has integers."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def at(self, part: float) -> float:
        """The value at a fraction of the range, from 0 to 1."""
        if self.log:
            value = float(self.low * (self.high / self.low) ** part)
        else:
            value = self.low + part * (self.high - self.low)
        return min(int(self.high), max(int(self.low), round(value))) if self.integer else value


Axis: TypeAlias = Choice | Range


@dataclass(frozen=True, slots=True)
class Search:
    """How the combinations are chosen.

    With Optuna, the objective is a column of the table; choose one that does not depend on the test
    samples, such as `validation_accuracy`.
    """

    method: str = setting("grid", "how combinations are chosen", choices=tuple(METHODS))
    trials: int = setting(0, "combinations of random and Optuna search", least=0)
    seed: int = setting(0, "random seed of the search", least=0)
    maximise: str = "validation_accuracy"
    minimise: str = ""
    """Column to minimise instead."""
    generation: int = setting(8, "trials that Optuna chooses before it sees their results", least=1)
    """It does not depend on the number of workers, so neither do the results."""

    def __post_init__(self) -> None:
        check(self)
        if self.method == "grid" and self.trials:
            raise ValueError("trials is for random and optuna; a grid runs every combination")
        if self.trials > MOST_CELLS:
            raise ValueError(f"trials is {self.trials}, more than {MOST_CELLS}; try fewer")
        if self.method != "grid" and not self.trials:
            raise ValueError(f"method {self.method!r} needs trials, the number of combinations")

    @property
    def objective(self) -> str:
        """The column that the search optimises."""
        return self.minimise or self.maximise


@dataclass(frozen=True, slots=True)
class Sweep:
    """Many trainings with different settings.

    Parameters
    ----------
    axes : mapping of str to Choice or Range
        What varies: settings of a study by flat name (`hidden`, `learning_rate`, `seed`, ...), of
        the evaluation as spikes (`on`, `code`, `bits`, `steps`, `input`, `samples`), and `profile`.
    settings : mapping
        Settings of every training, as in `study.toml`.
    spiking : mapping
        Settings of the evaluation as spikes, and `profile`. Without any, only rates are evaluated.
    search : Search
        How combinations are chosen.
    """

    axes: Mapping[str, Axis]
    settings: Mapping[str, Any] = field(default_factory=dict)
    spiking: Mapping[str, Any] = field(default_factory=dict)
    search: Search = field(default_factory=Search)

    def __post_init__(self) -> None:
        if not self.axes:
            raise SweepError("a sweep needs at least one axis, such as seed = [0, 1, 2]")
        for key in self.spiking:
            if key not in (*SPIKING, PROFILE):
                raise UnknownNameError("setting of the evaluation", key, (*SPIKING, PROFILE))
        if self.search.method == "grid":
            self._check_grid()

    def _check_grid(self) -> None:
        for key, axis in self.axes.items():
            if isinstance(axis, Range):
                raise SweepError(
                    f"axis {key!r} is a range, and a grid needs a list of values; or use method "
                    f"'random' or 'optuna'"
                )
        count = prod(len(axis.values) for axis in self.axes.values() if isinstance(axis, Choice))
        if count > MOST_CELLS:
            raise SweepError(
                f"the grid has {count} combinations, more than {MOST_CELLS}; list fewer values, or "
                f"use method 'random' with trials"
            )

    def stated(self, values: Mapping[str, Any]) -> Values:
        """The settings of the training that a combination of axis values states."""
        chosen = {key: value for key, value in values.items() if key not in (*SPIKING, PROFILE)}
        return flat_names(self.settings) | chosen

    def study(self, values: Mapping[str, Any]) -> Study:
        """The study of a combination, before the data complete it."""
        return adapt(Study(), self.stated(values))

    def evaluation(self, values: Mapping[str, Any]) -> Values:
        """The settings of the evaluation as spikes of a combination, with its profile."""
        chosen = {key: value for key, value in values.items() if key in (*SPIKING, PROFILE)}
        return {**self.spiking, **chosen}

    def to_json(self) -> Values:
        """The sweep as JSON values."""
        return {
            "settings": dict(self.settings),
            "axes": {key: axis_json(axis) for key, axis in self.axes.items()},
            "spiking": dict(self.spiking),
            "search": {key: getattr(self.search, key) for key in self.search.__slots__},
        }


def axis_json(axis: Axis) -> Any:  # noqa: ANN401
    """An axis as JSON values."""
    if isinstance(axis, Choice):
        return list(axis.values)
    return {"low": axis.low, "high": axis.high, "log": axis.log}


@dataclass(frozen=True, slots=True)
class SweepTables:
    """The tables of a sweep file."""

    axes: Mapping[str, tuple[Any, ...] | Range] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    spiking: Mapping[str, Any] = field(default_factory=dict)
    search: Search = field(default_factory=Search)


TABLES = tuple(each.name for each in fields(SweepTables))
FORMAT = Format(SweepTables)


def read_sweep(source: str | Path | Mapping[str, Any] | Sweep) -> Sweep:
    """A sweep from a TOML file, from a mapping with the same tables, or unchanged."""
    if isinstance(source, Sweep):
        return source
    if not isinstance(source, str | Path | Mapping):
        raise SweepError(f"a sweep is a TOML file, a mapping or a Sweep, not {source!r}")
    if isinstance(source, Mapping):
        where, tables = "sweep", FORMAT.decode(dict(source), "sweep")
    else:
        where, tables = str(source), read_file(Path(source))
    for key, values in tables.axes.items():
        if not isinstance(values, Range) and not values:
            raise FileFormatError(f"{where}: axes.{key}: the list is empty; give a value")
    axes = {
        key: values if isinstance(values, Range) else Choice(values)
        for key, values in tables.axes.items()
    }
    try:
        return Sweep(axes, dict(tables.settings), dict(tables.spiking), tables.search)
    except UnknownNameError:
        raise
    except ValueError as error:
        raise SweepError(f"{where}: {error}") from error


def read_file(path: Path) -> SweepTables:
    """The tables of a sweep file; the error of a missing one says what it holds."""
    if not path.exists():
        raise FileFormatError(
            f"{path}: there is no such file; a sweep file has a table [axes] with lists of values, "
            "such as seed = [0, 1, 2], and [settings] of every training: `neuro-eqprop sweep "
            "--help` shows one, the page 'Run a sweep, here or on a cluster' of the documentation "
            "explains it"
        )
    return FORMAT.read(path)
