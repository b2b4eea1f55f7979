"""Write docs/results/numbers.md: accuracies on the digits and on MNIST, with the commands.

Run it with `.venv/bin/python sims/rate/tables.py` (about ten minutes on one core; the rows on
MNIST need NEURO_EQPROP_DATA).
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from neuro_eqprop.api.run import Run, open_run
from neuro_eqprop.api.train import run_training
from neuro_eqprop.cli.program import parser
from neuro_eqprop.cli.train import changes
from neuro_eqprop.data import find
from neuro_eqprop.files.write import write_text
from neuro_eqprop.spiking.codes import Code, LoweringError
from neuro_eqprop.training.study import Study, adapt

DEEP = "--hidden 96,96 --feedback 0.1 --epochs 40"
RELU = "--activation relu --output linear --beta 0.25 --set free_steps=6 --set nudged_steps=3"
BIG = "--dataset mnist --epochs 15 --learning-rate 0.001"
DIGITS = {
    "64-128-10": "",
    "64-128-10, looped, bound 0.95": "--model looped",
    "64-96-96-10, hard sigmoid": f"{DEEP} --set free_steps=10 --set nudged_steps=4",
    "64-96-96-10, relu, linear output": f"{DEEP} {RELU}",
}
MNIST = {
    "784-256-10, hard sigmoid": f"{BIG} --hidden 256 --batch 64 --set free_steps=8 "
    "--set nudged_steps=4",
    "784-512-10, relu, linear output": f"{BIG} --hidden 512 --batch 128 {RELU}",
}
CODES = ((Code.RATE, 32), (Code.RATE, 64), (Code.GRADED, 16), (Code.GRADED, 32))


def study(options: str, seed: int) -> Study:
    """The study that these options of `train` make."""
    words = ["train", *options.split(), "--seed", str(seed), "--out", "RUN"]
    return adapt(Study(), changes(parser(words).parse_args(words)))


def nothing(_: object) -> None:
    pass


def trained(options: str, seed: int, folder: Path) -> tuple[Run, dict[str, Any]]:
    result = run_training(study(options, seed), folder, force=True, resume=False, on_epoch=nothing)
    return open_run(folder), result


def conversions(name: str, run: Run) -> list[str]:
    rows = []
    for code, steps in CODES:
        try:
            result = run.model.evaluate(
                run.data.test, on="emulator", code=code, steps=steps
            ).to_dict()
        except LoweringError:
            continue
        rows.append(
            f"| {name} | {code.name} | {steps} | {result['samples']} | "
            f"{100 * result['rate_accuracy']:.2f} | {100 * result['accuracy']:.2f} | "
            f"{100 * result['agreement']:.2f} | {result['pearson']:.5f} | {result['p999']:.3f} | "
            f"{result['spikes_per_neuron']:.2f} |"
        )
    return rows


def main() -> None:
    torch.set_num_threads(1)
    rates, spikes = [], []
    plan = [(name, options, (0, 1, 2)) for name, options in DIGITS.items()]
    plan += [(name, options, (0,)) for name, options in MNIST.items() if find("mnist")]
    with tempfile.TemporaryDirectory() as place:
        for name, options, seeds in plan:
            found = []
            for seed in seeds:
                run, result = trained(options, seed, Path(place) / "run")
                found.append(100 * result["test_accuracy"])
                if seed == 0:
                    spikes += conversions(name, run)
            each = " ".join(f"{accuracy:.2f}" for accuracy in found)
            command = f"`neuro-eqprop train {options}`".replace(" `", "`")
            rates.append(f"| {name} | {each} | {np.mean(found):.2f} | {command} |")
            print(rates[-1], flush=True)
    write_text(Path("docs/results/numbers.md"), page(rates, spikes))


def page(rates: list[str], spikes: list[str]) -> str:
    return "\n".join(
        [
            "# Accuracies of rates and spikes",
            "",
            "Test accuracy of rate networks on the digits and MNIST, and of the same networks as",
            "spikes. Made by `.venv/bin/python sims/rate/tables.py`; do not edit. Accuracies",
            "are those of the last epoch. Some settings for the digits were chosen on",
            "held-out training samples, but",
            "the initialization, the learning rate and the default feedback were chosen with",
            "these test samples, so the accuracies on the digits are slightly optimistic. One",
            "of 360 samples is 0.28 points.",
            "",
            "## Rates: test accuracy in percent",
            "",
            "| network | seeds 0, 1, ... | mean | command (with `--out RUN --seed N`) |",
            "|---|---|---|---|",
            *rates,
            "",
            "## The same as spikes (seed 0, all test samples, on the emulator)",
            "",
            "Both sides are read from the output's drive. Agreement is the fraction of equal",
            "predictions. p999 is the 99.9th percentile of the error of a rate. Events are",
            "spikes or messages per neuron and sample; the input is a current computed on the",
            "host.",
            "",
            "| network | code | steps | samples | rates % | spikes % | agreement % | Pearson "
            "| p999 | events |",
            "|---|---|---|---|---|---|---|---|---|---|",
            *spikes,
            "",
        ]
    )


if __name__ == "__main__":
    main()
