"""Comparison of a backend with the reference, spike by spike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.simulators.base import Backend, Feature
from neuro_eqprop.simulators.recordings import Recording
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.simulators.testing.case import Case, CaseRun, run_case
from neuro_eqprop.simulators.testing.cases import CASES
from neuro_eqprop.simulators.testing.random_networks import draw_cases

TOLERANCE = 1e-12
"""Tolerance of signals and means, relative to max(1, |value|)."""


@dataclass(frozen=True, slots=True)
class Report:
    """The cases that a backend passed, and the reasons for those that were skipped."""

    backend: str
    passed: tuple[str, ...]
    skipped: Mapping[str, str]


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """A value that differs from the reference; differences sort by step."""

    step: int
    population: str
    unit: int
    what: str
    got: float
    want: float


def differing(got: Array | Ints, want: Array | Ints, tolerance: float) -> Ints:
    """The indices at which two arrays differ, in order; values that are not finite differ."""
    with np.errstate(invalid="ignore"):
        close = np.abs(got - want) <= tolerance * np.maximum(1.0, np.abs(want))
    return np.argwhere(~close)


def differences(got: Recording, want: Recording) -> Iterator[Difference]:
    """The first difference of each recorded array; spikes must be equal, signals close."""
    pairs = [(name, "message", got.spikes[name], want.spikes[name], 0.0) for name in want.spikes]
    pairs += [
        (name, variable, got.signals[name, variable], array, TOLERANCE)
        for (name, variable), array in want.signals.items()
    ]
    for name, what, mine, right, tolerance in pairs:
        if mine.shape != right.shape:
            raise AssertionError(f"{what} of {name!r} is {mine.shape}, not {right.shape}")
        for step, unit in differing(mine, right, tolerance)[:1]:
            values = (array[step, unit].item() for array in (mine, right))
            yield Difference(int(step), name, int(unit), what, *values)


def compare_recordings(got: list[Recording], want: list[Recording]) -> None:
    """Raise an AssertionError at the earliest step of the first sample that differs."""
    if len(got) != len(want):
        raise AssertionError(f"{len(got)} samples reached the sink, not {len(want)}")
    for sample, (mine, right) in enumerate(zip(got, want, strict=True)):
        if set(mine.spikes) != set(right.spikes) or set(mine.signals) != set(right.signals):
            raise AssertionError(
                f"recorded {sorted(mine.spikes)} and {sorted(mine.signals)}, "
                f"not {sorted(right.spikes)} and {sorted(right.signals)}"
            )
        first = min(differences(mine, right), default=None)
        if first is not None:
            raise AssertionError(
                f"sample {sample}, step {first.step}, population {first.population!r}, "
                f"unit {first.unit}: {first.what} is {first.got!r}, in the reference {first.want!r}"
            )


def compare_results(got: CaseRun, want: CaseRun, case: Case) -> None:
    """Raise an AssertionError at the first measurement that differs."""
    for what, mine, right, tolerance in (
        ("messages", got.result.messages, want.result.messages, 0.0),
        ("firing", got.result.firing, want.result.firing, TOLERANCE),
        ("drive", got.result.drive, want.result.drive, TOLERANCE),
    ):
        if set(mine) != set(right):
            raise AssertionError(f"{what} of {sorted(mine)}, not of {sorted(right)}")
        for name in right:
            if mine[name].shape != right[name].shape:
                raise AssertionError(
                    f"{what} of {name!r} is {mine[name].shape}, not {right[name].shape}"
                )
            for sample, k, unit in differing(mine[name], right[name], tolerance)[:1]:
                raise AssertionError(
                    f"sample {sample}, phase {case.schedule[k].name!r}, population {name!r}, "
                    f"unit {unit}: {what} is {mine[name][sample, k, unit].item()!r}, "
                    f"in the reference {right[name][sample, k, unit].item()!r}"
                )


def compare_overflows(got: CaseRun, want: CaseRun) -> None:
    """Raise an AssertionError if the counts of overflows differ."""
    for name in {*got.result.overflows, *want.result.overflows}:
        mine, right = got.result.overflows.get(name), want.result.overflows.get(name)
        if mine != right:
            raise AssertionError(f"population {name!r}: {mine}, in the reference {right}")


def check_case(backend: Backend, case: Case) -> None:
    """Raise an AssertionError that names the first difference from the reference."""
    digest = case.network.digest
    want = run_case(load_backend("reference"), case)
    got = run_case(backend, case)
    try:
        compare_recordings(got.recordings, want.recordings)
        compare_results(got, want, case)
        compare_overflows(got, want)
        if case.network.digest != digest:
            raise AssertionError("the run changed the network")
    except AssertionError as error:
        raise AssertionError(f"{backend.name}, case {case.name!r}: {error}") from None


def check_backend(backend: str | Backend, *, seed: int = 0, networks: int = 20) -> Report:
    """Compare a backend with the reference, spike by spike.

    The cases are the handwritten `CASES` and random networks; some run in fixed point too. A case
    that needs a feature the backend lacks is skipped, with the backend's reason.

    Parameters
    ----------
    backend : str or Backend
        A backend, or the name of one.
    seed : int
        Seed of the random networks.
    networks : int
        Number of random networks.

    Returns
    -------
    Report
        The names of the cases that passed, and the reasons for those that were skipped.

    Raises
    ------
    AssertionError
        At the first difference; the message names sample, step, population and unit.
    ValueError
        If the backend does not claim to be exact.

    Examples
    --------
    >>> from neuro_eqprop import check_backend
    >>> report = check_backend("reference", networks=2)
    >>> report.backend, len(report.passed) > 30, dict(report.skipped)
    ('reference', True, {})
    """
    backend = load_backend(backend)
    if Feature.EXACT not in backend.support:
        reason = backend.support.reasons[Feature.EXACT]
        raise ValueError(f"{backend.name} cannot be compared spike by spike: {reason}")
    passed: list[str] = []
    skipped: dict[str, str] = {}
    for case in (*CASES, *draw_cases(seed, networks)):
        lacking = [f for f in Feature if f in case.needs and f not in backend.support]
        if lacking:
            skipped[case.name] = backend.support.reasons[lacking[0]]
            continue
        check_case(backend, case)
        passed.append(case.name)
    return Report(backend.name, tuple(passed), skipped)
