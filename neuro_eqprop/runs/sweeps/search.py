"""The combinations of a sweep: a grid, random draws, or the choices of Optuna.

A search is a generator of lists of combinations that can run side by side. It receives their
results, in the same order, by `send`. The size of a list never depends on the number of workers,
so neither do the combinations.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from neuro_eqprop.runs.sweeps.spec import Axis, Choice, Range, Sweep, SweepError, Values

Rows: TypeAlias = Sequence[Mapping[str, Any]]
Combinations: TypeAlias = Generator[list[Values], Rows, None]


def combinations(sweep: Sweep) -> Combinations:
    """The combinations of a sweep, in lists that can run side by side."""
    search = {"grid": grid, "random": draws, "optuna": optuna_search}[sweep.search.method]
    return search(sweep)


def grid(sweep: Sweep) -> Combinations:
    """Every combination; the last axis varies fastest."""
    lists = [axis.values for axis in sweep.axes.values() if isinstance(axis, Choice)]
    yield [dict(zip(sweep.axes, values, strict=True)) for values in product(*lists)]


def draws(sweep: Sweep) -> Combinations:
    """Random combinations; the first n do not depend on the number of trials."""
    rng = np.random.default_rng(sweep.search.seed)
    yield [
        {key: drawn(axis, rng.random()) for key, axis in sweep.axes.items()}
        for _ in range(sweep.search.trials)
    ]


def drawn(axis: Axis, part: float) -> Any:  # noqa: ANN401
    """The value of an axis for a uniform random number in [0, 1)."""
    if isinstance(axis, Range):
        return axis.at(part)
    return axis.values[min(int(part * len(axis.values)), len(axis.values) - 1)]


def optuna_search(sweep: Sweep) -> Combinations:
    """Combinations chosen by the TPE sampler of Optuna (Akiba et al. 2019) from earlier results."""
    try:
        import optuna
    except ImportError as error:
        raise SweepError(
            "method 'optuna' needs the package optuna; install it with "
            "`pip install neuro_eqprop[sweep]`, or use method 'random'"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    settings = sweep.search
    study = optuna.create_study(
        direction="minimize" if settings.minimise else "maximize",
        sampler=optuna.samplers.TPESampler(seed=settings.seed),
    )
    space = {key: distribution(axis) for key, axis in sweep.axes.items()}
    for begin in range(0, settings.trials, settings.generation):
        size = min(settings.generation, settings.trials - begin)
        asked = [study.ask(space) for _ in range(size)]
        rows = yield [
            {key: chosen(axis, trial.params[key]) for key, axis in sweep.axes.items()}
            for trial in asked
        ]
        for trial, row in zip(asked, rows, strict=True):
            value = row.get(settings.objective)
            if row["error"] or value is None:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                study.tell(trial, float(value))


def distribution(axis: Axis) -> Any:  # noqa: ANN401
    """The Optuna distribution of an axis; listed values are categories, as JSON."""
    import optuna

    if isinstance(axis, Choice):
        return optuna.distributions.CategoricalDistribution([json.dumps(v) for v in axis.values])
    if axis.integer:
        return optuna.distributions.IntDistribution(int(axis.low), int(axis.high), log=axis.log)
    return optuna.distributions.FloatDistribution(axis.low, axis.high, log=axis.log)


def chosen(axis: Axis, value: Any) -> Any:  # noqa: ANN401
    """The value of an axis for a parameter value of Optuna."""
    return json.loads(value) if isinstance(axis, Choice) else value
