"""The EqProp update against the true gradient, for symmetric weights."""

from __future__ import annotations

from dataclasses import replace

from sims.claims.cell_builders import meanings, over_seeds
from sims.claims.charts import Chart, Series
from sims.claims.claim import (
    Budget,
    Cell,
    CellResults,
    Claim,
    Verdict,
    above,
    cell_names,
    values_of,
    verdict,
)
from sims.claims.statistics import Interval, student

MODELS = {
    "layered": "layered",
    "looped": "looped",
    "linear": "linear attention",
    "softmax": "softmax attention",
}
BETAS = [0.5, 0.22, 0.1, 0.01, 0.001]
SIZES = {
    Budget.SMALL: {"seeds": 3, "hidden": 32, "samples": 16},
    Budget.FULL: {"seeds": 5, "hidden": 64, "samples": 32},
}


NUDGINGS = ("centered", "positive")


def shown() -> dict[str, str]:
    """The columns of the table: the cosine at each beta."""
    return {f"cosine, beta {beta:g}": f"cosine[{place}]" for place, beta in enumerate(BETAS)}


def cells(budget: Budget) -> tuple[Cell, ...]:
    """Two networks and two transformers, with one-sided and centered nudging."""
    size = SIZES[budget]
    made: list[Cell] = []
    for model, label in MODELS.items():
        for nudging in NUDGINGS:
            arguments = {
                **{"dataset": "digits", "images": 1437, "tests": 10},
                **{"model": model, "nudging": nudging, "betas": BETAS, "coupling": 0.6},
                **{"hidden": size["hidden"], "samples": size["samples"]},
            }
            made += over_seeds(f"{label}, {nudging}", "gradient", arguments, size["seeds"])
    return tuple(made)


def at(results: CellResults, name: str, place: int) -> Interval:
    """The cosine at the beta `BETAS[place]`, over seeds."""
    return student([values["cosine"][place] for values in values_of(results, name)])


def verdict_from(results: CellResults) -> Verdict:
    """The smallest cosine over networks and nudgings, at the smallest beta."""
    worst = min((at(results, name, -1) for name in cell_names(results)), key=lambda each: each.low)
    largest = {name: at(results, name, BETAS.index(0.22)).value for name in cell_names(results)}
    values = ", ".join(f"{name} {value:.5f}" for name, value in largest.items())
    note = (
        f"At beta 0.001 the worst network and nudging has a cosine of {worst.value:.7f}; at beta "
        f"0.22 the cosines are {values}."
    )
    return verdict(above(worst, 0.99), worst, note)


def chart(results: CellResults) -> tuple[Chart, ...]:
    """One minus the cosine against beta, for each nudging."""
    made = []
    for nudging in NUDGINGS:
        lines = []
        for name in (n for n in cell_names(results) if n.endswith(nudging)):
            gaps = [1 - at(results, name, place).value for place in range(len(BETAS))]
            lines.append(Series(name.rsplit(",")[0], BETAS, [max(gap, 1e-16) for gap in gaps]))
        title = f"Distance from the true gradient, {nudging} nudging"
        drawn = Chart(title, "beta", "1 - cosine", tuple(lines), log_x=True, log_y=True)
        made.append(replace(drawn, threshold=0.01))
    return tuple(made)


CLAIM = Claim(
    id="gradient-symmetric",
    statement="For symmetric weights the update of EqProp is the true gradient as beta goes to 0.",
    source="003: cosine 0.9972 at beta 0.001",
    threshold="cosine with the true gradient above 0.99 at beta 0.001, for every network",
    method=(
        "A layered and a looped network of {hidden} tanh units with a linear output, and energy "
        "transformers with linear and with softmax attention (four tokens of a quarter as many "
        "units), recurrent weights at a spectral norm of 0.6, attention twice as strong as at the "
        "start of training, {samples} digits, float64, settled to 1e-13, {seeds} seeds. The "
        "reference is implicit differentiation at the free equilibrium; the cosine is over all "
        "parameters at once."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "With symmetric weights, a settled state and a small beta, EqProp can replace "
        "backpropagation as a gradient; with centered nudging beta may be large.",
        "The update is not a gradient even in the best case; check the energy and the settling.",
    ),
    chart=chart,
    shown=shown(),
)
