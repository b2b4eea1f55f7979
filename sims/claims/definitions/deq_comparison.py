"""EqProp against implicit differentiation and phantom gradients."""

from __future__ import annotations

from sims.claims.cell_builders import LOOPED, meanings, over_seeds, sample_counts, series
from sims.claims.charts import Chart, Mark
from sims.claims.claim import (
    Budget,
    Cell,
    CellResults,
    Claim,
    Verdict,
    above,
    all_of,
    below,
    values_of,
    verdict,
)
from sims.claims.statistics import Interval, geometric, student

METHODS = ("eqprop", "implicit", "bptt", "phantom 1", "phantom 5")
SIZES = {
    Budget.SMALL: {"seeds": 3, "images": 2000, "tests": 10, "epochs": 2, "rounds": 5},
    Budget.FULL: {"seeds": 5, "images": 2000, "tests": 10, "epochs": 3, "rounds": 8},
}


def cells(budget: Budget) -> tuple[Cell, ...]:
    """The looped network after a short training."""
    size = SIZES[budget]
    arguments = {**sample_counts(size, "mnist"), "rounds": size["rounds"], "tails": [1, 5]}
    arguments["study"] = {**LOOPED, "cost": "squared", "epochs": size["epochs"], "bound": 0.8}
    return over_seeds("looped", "deq", arguments, size["seeds"])


def angle(results: CellResults, method: str) -> Interval:
    """The cosine of a method with the true gradient."""
    return student([values[method]["cosine"] for values in values_of(results, "looped")])


def cost(results: CellResults, method: str) -> Interval:
    """CPU time of a method over that of implicit differentiation."""
    found = values_of(results, "looped")
    return geometric(
        [values[method]["seconds"] / values["implicit"]["seconds"] for values in found]
    )


def verdict_from(results: CellResults) -> Verdict:
    """The cosine of EqProp with the true gradient, and its cost."""
    cosine, ratio = angle(results, "eqprop"), cost(results, "eqprop")
    summary = ", ".join(
        f"{method} {angle(results, method).value:.4f} at {cost(results, method).value:.2f}"
        for method in METHODS
    )
    note = f"Cosine with the true gradient, and CPU time over implicit's: {summary}."
    return verdict(all_of([above(cosine, 0.99), below(ratio, 1.0)]), cosine, note)


def chart(results: CellResults) -> tuple[Chart, ...]:
    """The cosines and the costs."""
    shown = [method.replace(" ", "\n") for method in METHODS]
    angles = (series("cosine", shown, [angle(results, method) for method in METHODS]),)
    costs = (series("time", shown, [cost(results, method) for method in METHODS]),)
    title, ratio = "Agreement with the true gradient", "CPU time over that of implicit"
    return (
        Chart(title, "", "cosine", angles, Mark.POINTS, threshold=0.99),
        Chart(ratio, "", "ratio", costs, Mark.BAR, threshold=1.0),
    )


CLAIM = Claim(
    id="deq-comparison",
    statement="EqProp gives the gradient of implicit differentiation, at no more cost.",
    source="002, without figures",
    threshold="cosine with the true gradient above 0.99, and CPU time below implicit's",
    method=(
        "The looped network (128 tanh units, bound 0.8, squared error) after {epochs} epochs on "
        "{images} MNIST images; one batch of 64, float32, 12 free and twice 5 nudged sweeps at "
        "beta 0.22 against 12 steps of the state and 12 of the adjoint, BPTT through 12, and "
        "phantom gradients through 1 and 5 damped steps. The reference is implicit differentiation "
        "in float64 at 1e-13. {rounds} interleaved rounds, {seeds} seeds."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "EqProp gives as good a gradient as implicit differentiation, without autograd.",
        "Where autograd is available, implicit differentiation or BPTT costs less; the advantage "
        "of EqProp is that its updates are local.",
    ),
    chart=chart,
    shown={
        f"{method}, {what}": f"{method}.{what}"
        for what in ("cosine", "seconds")
        for method in METHODS
    },
)
