"""Feedback that is tied to the forward weights, random, or learned: accuracy and alignment.

`python sims/learn/feedback.py` measures the rows below on the digits and writes
docs/results/feedback.md. Rows are kept in sims/learn/measured/feedback.json: a row that is there is
not measured again. `--kept` measures nothing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch

import neuro_eqprop as ne
from neuro_eqprop.networks.feedback import alignment

HERE = Path(__file__).parent
STORE = HERE / "measured" / "feedback.json"
PAGE = HERE.parents[1] / "docs" / "results" / "feedback.md"
KINDS, SEEDS = ("tied", "random", "learned"), (0, 1, 2)
ONCE = ("biology", "MNIST")
"""Where one seed is measured."""
BATCH: dict[str, Any] = {"hidden": (64,), "batch": 20, "learning_rate": 0.5}
WHERE: dict[str, dict[str, Any]] = {
    "rates, `train`": {"hidden": (64,)},
    "rates, `train --preset chip`": {"hidden": (64,), "preset": "chip"},
    "MNIST, 128 hidden units, rates, `train --epochs 12`": {
        "data": "mnist",
        "hidden": (128,),
        "epochs": 12,
    },
    "emulator, code graded, 5 epochs": {"hidden": (64,), "on": "emulator", "epochs": 5},
    "biology, 600 samples x 2": {
        **BATCH,
        "on": "biology",
        "code": "rate",
        "samples": 600,
        "epochs": 2,
    },
}
"""What is learned where; the settings of `train` or, with `on`, of `learn_on_chip`."""


def measure(settings: dict[str, Any], kind: str, seed: int) -> dict[str, float | None]:
    """Test accuracy, and the cosine of the feedback with the transposed weights."""
    given = {**settings, "seed": seed, "feedback_weights": kind}
    data = ne.load_data(given.pop("data", "digits"))
    if "on" in settings:
        learned = ne.learn_on_chip("layered", data, **given)
        accuracy, made = learned.history[-1]["test_accuracy"], learned
    else:
        trained = ne.train("layered", data, **given)
        accuracy, made = trained.evaluate(data.test).accuracy, trained
    cosines = alignment(made.network, made.params)
    return {"accuracy": accuracy, "cosine": next(iter(cosines.values()), None)}


def rows(*, kept: bool) -> dict[str, dict[str, float | None]]:
    """All rows, those that are stored and those measured now."""
    stored: dict[str, Any] = json.loads(STORE.read_text()) if STORE.exists() else {}
    for where, settings in WHERE.items():
        for seed in () if kept else SEEDS[: 1 if where.startswith(ONCE) else None]:
            for kind in KINDS:
                key = f"{where} | {kind} | seed {seed}"
                if key not in stored:
                    stored[key] = measure(settings, kind, seed)
                    STORE.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")
                    print(key, stored[key], flush=True)
    return stored


def listed(found: list[float | None], form: str) -> str:
    """Numbers of the seeds in their order."""
    known = [form.format(value) for value in found if value is not None]
    return ", ".join(known) or "-"


def main() -> None:
    """Measure what is missing, and write the page."""
    torch.set_num_threads(1)
    stored = rows(kept="--kept" in sys.argv)
    lines = ["| learned | feedback | test accuracy, % | cosine with the transpose |"]
    lines.append("| --- | --- | --- | --- |")
    for where in WHERE:
        for kind in KINDS:
            keys = [f"{where} | {kind} | seed {seed}" for seed in SEEDS]
            found = [stored[key] for key in keys if key in stored]
            if found:
                accuracy = listed([100 * (row["accuracy"] or 0.0) for row in found], "{:.2f}")
                cosines = listed([row["cosine"] for row in found], "{:.3f}")
                lines.append(f"| {where} | {kind} | {accuracy} | {cosines} |")
    parts = [
        "# Feedback without weight transport",
        "Equilibrium propagation sends the output's error back through the transposed forward "
        "weights: each synapse would have to know the strength of another one. With "
        "`--feedback-weights learned` (`train` and `learn`) the feedback has weights of its own. "
        "They start at random and learn by the same product of the rates at their two ends, in "
        "which both directions agree. A decay of both (`feedback_decay`) lets the difference of "
        "their initial values fade (Kolen & Pollack 1994; Akrout et al. 2019), so that the "
        "feedback becomes the transpose without any synapse reading another one. With `random` "
        "it keeps its initial values, as a baseline (feedback alignment, Lillicrap et al. 2016).",
        "Digits, 64 hidden units, the defaults of each command otherwise; seeds 0, 1, 2 in this "
        "order, one seed on MNIST and in biology (batches of 20 at a rate of 0.5 there). Made by "
        "`python sims/learn/feedback.py`.",
        "\n".join(lines),
        "Over whole trainings learned feedback is within half a point of tied feedback, as a mean "
        "of the seeds; random feedback loses up to two points. A short training leaves it too few "
        "commits: the 60 of biology here align it to 0.92 only at their end, and it has learned "
        "hardly better than random feedback. The decay is a share of the "
        "weights in each update, falls with the learning rate, and adds up to `feedback_decay` at "
        "a constant one; short trainings with few commits align less. Weights in integers do not "
        "decay: there, and in Brian2's and Lava's own rules, learned feedback is refused.",
    ]
    PAGE.write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
