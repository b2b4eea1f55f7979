"""Whether settling descends the energy into one basin for each sample."""

from __future__ import annotations

from dataclasses import replace

from sims.claims.cell_builders import LOOPED, meanings, over_seeds, sample_counts
from sims.claims.charts import Chart, Mark, Series
from sims.claims.claim import (
    Budget,
    Cell,
    CellResults,
    Claim,
    Verdict,
    above,
    all_of,
    column,
    values_by_seed,
    verdict,
)
from sims.claims.statistics import student, wilson

SIZES = {
    Budget.SMALL: {
        **{"seeds": 3, "images": 1437, "tests": 360, "epochs": 4},
        **{"samples": 40, "starts": 5, "sweeps": 20, "points": 15},
    },
    Budget.FULL: {
        **{"seeds": 5, "images": 1437, "tests": 360, "epochs": 6},
        **{"samples": 60, "starts": 10, "sweeps": 20, "points": 21},
    },
}


def cells(budget: Budget) -> tuple[Cell, ...]:
    """The looped network on the digits."""
    size = SIZES[budget]
    arguments = {
        **sample_counts(size, "digits"),
        **{k: size[k] for k in ("samples", "starts", "sweeps")},
    }
    arguments |= {"points": size["points"]}
    arguments["study"] = {**LOOPED, "batch": 32, "epochs": size["epochs"]}
    return over_seeds("looped", "landscape", arguments, size["seeds"])


def verdict_from(results: CellResults) -> Verdict:
    """Share of starts with the same equilibrium, and of trajectories on which the energy falls."""
    alike, pairs, rising, trajectories = (
        column(results, "looped", key) for key in ("alike", "pairs", "rising", "ways")
    )
    basin = student([a / p for a, p in zip(alike, pairs, strict=True)])
    if basin.low == basin.high:  # no variance between seeds: use the interval over samples
        basin = wilson(round(sum(alike)), round(sum(pairs)))
    down = wilson(round(sum(trajectories) - sum(rising)), round(sum(trajectories)))
    note = (
        f"{100 * basin.value:.1f} % of the random starts reach the equilibrium of the start at "
        f"zero; the energy never rises along {100 * down.value:.1f} % of the trajectories."
    )
    found = verdict(all_of([above(basin, 0.99), above(down, 0.99)]), basin, note)
    return replace(found, seeds=len(alike))


def chart(results: CellResults) -> tuple[Chart, ...]:
    """The energy on a plane through an equilibrium, and while settling."""
    plane = values_by_seed(results, "looped")[0]["plane"]
    rows = tuple(
        Series(str(b), plane["span"], row)
        for b, row in zip(plane["span"], plane["height"], strict=True)
    )
    title = "Energy above an equilibrium, on two directions"
    basin = Chart(title, "first direction", "second direction", rows, Mark.HEAT)
    curves = values_by_seed(results, "looped")[0]["curves"]
    low = min(min(curve) for curve in curves)
    falls = tuple(
        Series(
            "from zero" if k == 0 else f"from a random state, {k}",
            [float(step) for step in range(len(curve) - 1)],
            [energy - low for energy in curve[:-1]],
        )
        for k, curve in enumerate(curves)
    )
    title = "Energy above the lowest while settling, mean"
    return basin, Chart(title, "sweeps", "energy", falls, log_y=True)


CLAIM = Claim(
    id="landscape",
    statement="Settling descends the energy, into one basin for each sample.",
    source="002: pictures of landscape, basins and trajectories wanted",
    threshold=(
        "more than 99 % of the starts reach the same equilibrium, and the energy never rises along "
        "more than 99 % of the trajectories"
    ),
    method=(
        "The looped network (128 tanh units, bound 0.95) after {epochs} epochs on {images} digits; "
        "{samples} test samples, from zero and from {starts} states drawn over the range of the "
        "rates, {sweeps} sweeps recorded and then settled to 1e-8; two equilibria are the same if "
        "no rate differs by more than 1e-3; {seeds} seeds."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "With a spectral bound the start does not matter, and the energy can serve as a check.",
        "There are several basins, or the energy rises: start every phase from the same state, and "
        "lower the bound if predictions must not depend on the start.",
    ),
    chart=chart,
)
