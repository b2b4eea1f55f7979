"""Train the pyramid on CIFAR-10 by EqProp and by backpropagation, and write their rows.

    python sims/rate/cifar.py RUNS [--epochs 8] [--rules hebbian,backprop] [--seed 0]

A run that was interrupted is resumed. `RUNS/cifar.json` has the accuracies, the CPU seconds of
training and the cosines of the last update with the true gradient; `sims/rate/real_data_page.py`
makes the table of the documentation from it.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch

import neuro_eqprop as ne
from neuro_eqprop.experiments.run_folder import METRICS, RESUME

STUDY: dict[str, Any] = {
    "hidden": (32, 64, 128),
    "learning_rate": 0.005,
    "flip": True,
    "shift": 2,
}


def row_of(rule: str, epochs: int, seed: int, folder: Path) -> dict[str, Any]:
    """Train one network, or go on with it; its row."""
    out, began = folder / f"cifar-{rule}-{epochs}-{seed}", time.process_time()
    data = ne.load_data("cifar10")
    spent = folder / f"{out.name}.seconds.json"
    before = json.loads(spent.read_text()) if spent.is_file() else 0.0

    def progress(row: dict[str, Any]) -> None:
        spent.write_text(json.dumps(before + time.process_time() - began))
        kept = {k: row[k] for k in ("epoch", "loss", "train_accuracy", "test_accuracy")}
        print(rule, kept, f"{before + time.process_time() - began:.0f} s", flush=True)

    begun = (out / RESUME).exists() or (out / METRICS).exists()
    model = ne.train(
        "pyramid",
        data,
        out=out,
        resume=begun,
        progress=progress,
        rule=rule,
        epochs=epochs,
        seed=seed,
        **STUDY,
    )
    last = model.history[-1]
    cosines = (last["cosine"] or {}).values()
    return {
        "rule": rule,
        "epochs": epochs,
        "seed": seed,
        "parameters": sum(value.size for value in model.params.values()),
        "test_accuracy": last["test_accuracy"],
        "train_accuracy": last["train_accuracy"],
        "loss": last["loss"],
        "worst_cosine": min(cosines, default=None),
        "wall_seconds_of_training": sum(row["seconds"] for row in model.history),
        "cpu_seconds": json.loads(spent.read_text()),
        "note": data.note,
    }


def main() -> None:
    """Train and write the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--rules", default="hebbian,backprop")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.runs.mkdir(parents=True, exist_ok=True)
    path = args.runs / "cifar.json"
    for rule in args.rules.split(","):
        row = row_of(rule, args.epochs, args.seed, args.runs)
        rows = json.loads(path.read_text()) if path.is_file() else []
        path.write_text(json.dumps([*rows, row], indent=2) + "\n")
        print(row, flush=True)


if __name__ == "__main__":
    main()
