"""Train the model `text` on SST-2 by EqProp and by BPTT, beside logistic regression; write rows.

    python sims/rate/sst2.py OUT.json [--rules hebbian,bptt] [--seeds 3] [--validation]

With `--validation` a twentieth of the training sentences is held out, and accuracies are those of
the held-out sentences: settings are chosen on them, never on the development sentences.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

import neuro_eqprop as ne
from neuro_eqprop.data import Dataset

HELD = 0.05


def trained(
    rule: str, seed: int, data: Dataset, held: float, settings: dict[str, str]
) -> dict[str, Any]:
    """The row of one training."""
    began = time.process_time()
    model = ne.train("text", data, rule=rule, seed=seed, validation=held, **settings)
    seconds, last = time.process_time() - began, model.history[-1]
    cosines = (last["cosine"] or {}).values()
    return {
        "model": "text",
        "rule": rule,
        "seed": seed,
        "settings": settings,
        "accuracy": last["validation_accuracy" if held else "test_accuracy"],
        "train_accuracy": last["train_accuracy"],
        "worst_cosine": min(cosines, default=None),
        "cpu_seconds": seconds,
    }


def bag_of_words(data: Dataset) -> dict[str, Any]:
    """Logistic regression on the counts of token ids."""
    began = time.process_time()

    def texts(x: np.ndarray[Any, Any]) -> list[str]:
        return [" ".join(f"t{int(t)}" for t in row if t) for row in x]

    counts = CountVectorizer(token_pattern=r"\S+")
    found = LogisticRegression(max_iter=300, C=0.5)
    found.fit(counts.fit_transform(texts(data.train.x)), data.train.y)
    score = found.score(counts.transform(texts(data.test.x)), data.test.y)
    return {
        "model": "bag of words, logistic regression",
        "accuracy": float(score),
        "cpu_seconds": time.process_time() - began,
    }


def main() -> None:
    """Train and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rules", default="hebbian,bptt")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--validation", action="store_true")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    args = parser.parse_args()
    torch.set_num_threads(1)
    data, held = ne.load_data("sst2"), HELD if args.validation else 0.0
    settings = dict(pair.split("=", 1) for pair in args.set)
    rows = [] if args.validation else [bag_of_words(data)]
    for rule in args.rules.split(","):
        for seed in range(args.seeds):
            rows.append(trained(rule, seed, data, held, settings))
            print(rows[-1], flush=True)
            args.out.write_text(json.dumps({"held_out": held, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
