"""The EqProp update against the true gradient, for weights that are not symmetric."""

from __future__ import annotations

from sims.claims.cell_builders import meanings, over_seeds, series
from sims.claims.charts import Chart
from sims.claims.claim import (
    Budget,
    Cell,
    CellResults,
    Claim,
    Verdict,
    below,
    cell_names,
    values_of,
    verdict,
)
from sims.claims.definitions.gradient_symmetric import BETAS, NUDGINGS, SIZES, at, shown
from sims.claims.statistics import student


def cells(budget: Budget) -> tuple[Cell, ...]:
    """The plain rule on a loop that is not symmetric; for comparison the corrected rules."""
    size = SIZES[budget]
    made: list[Cell] = []
    for nudging in NUDGINGS:
        arguments = {
            **{"dataset": "digits", "images": 1437, "tests": 10},
            **{"model": "nonsymmetric", "nudging": nudging, "betas": BETAS, "coupling": 0.6},
            **{"hidden": size["hidden"], "samples": size["samples"]},
        }
        made += over_seeds(f"plain rule, {nudging}", "gradient", arguments, size["seeds"])
        for rule in ("vector-field", "asymmetric"):
            corrected = {**arguments, "rule": rule}
            name = f"{rule}, {nudging}"
            made += over_seeds(name, "gradient", corrected, size["seeds"], needed=False)
    for kind in ("linear", "softmax"):
        other = {**arguments, "model": f"nonsymmetric {kind}", "nudging": "centered"}
        name = f"{kind} attention, plain rule, centered"
        made += over_seeds(name, "gradient", other, size["seeds"], needed=False)
    return tuple(made)


def verdict_from(results: CellResults) -> Verdict:
    """The cosine of the plain rule with the better nudging, at the smallest beta."""
    plain = [name for name in cell_names(results) if name.startswith("plain")]
    best = max((at(results, name, -1) for name in plain), key=lambda each: each.high)
    others = [name for name in cell_names(results) if name not in plain and "attention" not in name]
    values = ", ".join(f"{name} {at(results, name, -1).value:.5f}" for name in others)
    note = f"The plain rule has a cosine of {best.value:.3f} however small beta is."
    note += f" Other rules: {values}." if values else ""
    tokens = [name for name in cell_names(results) if "attention" in name]
    values = ", ".join(
        f"{name} {at(results, name, -1).value:.3f} ({student(memory(results, name)).value:.2f} "
        "over the memory's weights)"
        for name in tokens
    )
    note += f" Transformers whose memory is not symmetric: {values}." if values else ""
    return verdict(below(best, 0.99), best, note)


def memory(results: CellResults, name: str) -> list[float]:
    """The cosine of the weights from tokens to their memory, by seed."""
    return [values["by_parameter"]["tokens->memory"] for values in values_of(results, name)]


def chart(results: CellResults) -> tuple[Chart, ...]:
    """Cosine against beta, for each nudging."""
    made = []
    for nudging in NUDGINGS:
        lines = tuple(
            series(
                name.removesuffix(f", {nudging}"),
                BETAS,
                [at(results, name, place) for place in range(len(BETAS))],
            )
            for name in cell_names(results)
            if name.endswith(nudging)
        )
        title = f"Not symmetric, {nudging} nudging"
        made.append(
            Chart(title, "beta", "cosine with the true gradient", lines, log_x=True, threshold=0.99)
        )
    return tuple(made)


CLAIM = Claim(
    id="gradient-nonsymmetric",
    statement="For weights that are not symmetric the update of EqProp is not the true gradient.",
    source="003: cosine 0.4166 at beta 0.01",
    threshold="cosine with the true gradient below 0.99 at beta 0.001",
    method=(
        "A looped network of {hidden} tanh units with an arbitrary loop matrix and separate "
        "feedback weights from the output, all at a spectral norm of 0.6, {samples} digits, "
        "float64, settled to 1e-13, {seeds} seeds; otherwise as gradient-symmetric. Rule "
        "asymmetric corrects the nudged phases by the transposed loop, rule vector-field does "
        "not. For comparison transformers whose memory has separate feedback weights; their "
        "attention is an energy by construction, so that only the plain rule is defined for them."
    ),
    sizes=SIZES,
    cells=cells,
    verdict_from=verdict_from,
    meaning=meanings(
        "Keep weights symmetric, or use a rule that corrects for the asymmetry: the plain rule "
        "may still lower the loss, but no beta makes it a gradient.",
        "The plain rule may be used with any weights.",
    ),
    conflict=(
        "003 finds no gradient without symmetry, yet reaches 92.7 % without it and calls symmetry "
        "unnecessary. Both are possible: the update of the read-out is exact whatever the layers "
        "below, and it can learn from poor features. Only the corrected rule follows the gradient."
    ),
    chart=chart,
    shown=shown(),
)
