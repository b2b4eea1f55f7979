"""Learn the digits in spikes with one and with two hidden layers, and write the table.

    python sims/learn/two_hidden.py choose | measure

`choose` compares settings of two hidden layers on the last fifth of the training samples (seeds 0
and 1); `measure` learns with the chosen one from all training samples and shows the accuracy on the
test samples, with seeds 0, 1 and 2, beside one hidden layer.
"""

from __future__ import annotations

import sys
import warnings
from itertools import product
from typing import Any

import neuro_eqprop as ne

ONE: dict[str, Any] = {"hidden": (128,), "epochs": 10, "batch": 8, "learning_rate": 0.3}
TWO: dict[str, Any] = {"hidden": (128, 64), "epochs": 10, "batch": 8}
CHOSEN: dict[str, Any] = {"learning_rate": 0.3, "feedback": 0.3, "steps": 32, "bias": 0.0}


def learned(data: ne.Dataset, seed: int, settings: dict[str, Any]) -> float:
    """The accuracy on the test samples, in spikes, after the last epoch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ne.learn_on_chip("layered", data, code="graded", seed=seed, **settings)
    return float(model.history[-1]["test_accuracy"])


def choose(data: ne.Dataset) -> None:
    """Show the accuracy of each setting on training samples that are held out."""
    train = data.train
    kept = len(train) * 4 // 5
    held = ne.Dataset(train.x[:kept], train.y[:kept], train.x[kept:], train.y[kept:])
    for rate, feedback, bias in product((0.15, 0.3), (0.3, 0.5), (0.0, 0.1)):
        tried = {"learning_rate": rate, "feedback": feedback, "steps": 32, "bias": bias}
        found = [learned(held, seed, TWO | tried) for seed in (0, 1)]
        print(f"{sum(found) / 2:.4f}", found, tried, flush=True)


def measure(data: ne.Dataset) -> None:
    """Show a row for one hidden layer and one for two."""
    print("| hidden layers | test %, seeds 0, 1, 2 | mean | settings |\n|---|---|---|---|")
    for name, settings in (("128", ONE), ("128, 64", TWO | CHOSEN)):
        found = [100 * learned(data, seed, settings) for seed in range(3)]
        row = " ".join(f"{each:.2f}" for each in found)
        options = ", ".join(f"{key}={value}" for key, value in settings.items() if key != "hidden")
        print(f"| {name} | {row} | {sum(found) / 3:.2f} | {options} |", flush=True)


if __name__ == "__main__":
    {"choose": choose, "measure": measure}[sys.argv[1]](ne.load_data("digits"))
