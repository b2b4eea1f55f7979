"""Train the pyramid on CIFAR-10 by EqProp and by backpropagation, and store what was measured.

    python sims/rate/cifar.py RUNS choose [--rates 0.002,0.005,0.01]
    python sims/rate/cifar.py RUNS train [--epochs 8] [--rules hebbian,backprop] [--seed 0]

`choose` compares learning rates on the last 5000 training images after an epoch of the first
20 000, without the test images; `train` takes `LEARNING_RATE`. An interrupted run is resumed.
Accuracies, CPU seconds and cosines with the true gradient go to `measured/real_data.json`, from
which `real_data_page.py` makes the page of the documentation.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch

import neuro_eqprop as ne
from neuro_eqprop.files.write import write_text
from neuro_eqprop.runs.run_folder import METRICS, RESUME

MEASURED = Path(__file__).parent / "measured" / "real_data.json"
LEARNING_RATE = 0.005
SHORT, HELD_OUT = 20_000, 5_000
"""Images of a trial of a learning rate: trained on, and held out."""
STUDY: dict[str, Any] = {"hidden": (32, 64, 128), "flip": True, "shift": 2}


def row_of(out: Path, data: ne.Dataset, given: dict[str, Any]) -> dict[str, Any]:
    """Train one network, or go on with it; its row."""
    began = time.process_time()
    spent = out.with_name(f"{out.name}.seconds.json")
    before = json.loads(spent.read_text()) if spent.is_file() else 0.0

    def progress(row: dict[str, Any]) -> None:
        seconds = before + time.process_time() - began
        spent.write_text(json.dumps(seconds))
        shown = ("epoch", "loss", "train_accuracy", "test_accuracy")
        print(out.name, {k: row[k] for k in shown}, f"{seconds:.0f} s", flush=True)

    begun = (out / RESUME).exists() or (out / METRICS).exists()
    model = ne.train("pyramid", data, out=out, resume=begun, progress=progress, **(STUDY | given))
    last = model.history[-1]
    return {
        **given,
        "epochs_done": len(model.history),
        "parameters": sum(value.size for value in model.params.values()),
        "test_accuracy": [row["test_accuracy"] for row in model.history],
        "train_accuracy": last["train_accuracy"],
        "loss": [row["loss"] for row in model.history],
        "worst_cosine": min((last["cosine"] or {}).values(), default=None),
        "wall_seconds_of_training": sum(row["seconds"] for row in model.history),
        "cpu_seconds": json.loads(spent.read_text()),
    }


def held_out(data: ne.Dataset) -> ne.Dataset:
    """The first training images, and the last ones in the place of the test images."""
    first, last = slice(SHORT), slice(len(data.train) - HELD_OUT, None)
    splits = data.train.take(first), data.train.take(last)
    return ne.Dataset.from_splits("cifar10 held out", *splits, data.classes, data.shape)


def store(part: str, row: dict[str, Any], key: tuple[str, ...]) -> None:
    """Put a row into the measured file, in the place of one with the same values of `key`."""
    measured = json.loads(MEASURED.read_text())
    rows = measured.setdefault(part, [])
    measured[part] = [old for old in rows if any(old[k] != row[k] for k in key)] + [row]
    write_text(MEASURED, json.dumps(measured, indent=2) + "\n")
    print(row, flush=True)


def main() -> None:
    """Train, and store the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path)
    parser.add_argument("what", choices=("choose", "train"))
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--rules", default="hebbian,backprop")
    parser.add_argument("--rates", default="0.002,0.005,0.01")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.runs.mkdir(parents=True, exist_ok=True)
    data = ne.load_data("cifar10")
    common = {"epochs": args.epochs or (1 if args.what == "choose" else 8), "seed": args.seed}
    if args.what == "choose":
        for rate in map(float, args.rates.split(",")):
            given = {"rule": "hebbian", "learning_rate": rate} | common
            row = row_of(args.runs / f"held-out-{rate}-{args.seed}", held_out(data), given)
            row["held_out_accuracy"] = row.pop("test_accuracy")[-1]
            store("cifar_held_out", row, ("learning_rate", "epochs", "seed"))
        return
    for rule in args.rules.split(","):
        given = {"rule": rule, "learning_rate": LEARNING_RATE} | common
        out = args.runs / f"cifar-{rule}-{common['epochs']}-{args.seed}"
        store("cifar", row_of(out, data, given), ("rule", "epochs", "seed"))


if __name__ == "__main__":
    main()
