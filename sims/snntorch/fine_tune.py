"""Fine-tuning of spiking networks with 8-bit weights in torch: writes docs/results/fine-tuning.md.

    python sims/snntorch/fine_tune.py

A network trained by equilibrium propagation becomes a torch module with `to_snntorch`, is trained
for one epoch with surrogate gradients and weights rounded to 8 bits, and comes back as a `Model`
with `from_snntorch`. The test accuracy is that of the module before and after, and that of the
returned model on the emulator, which has to give the same predictions.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import nn

import neuro_eqprop as ne
from neuro_eqprop.common.arrays import Ints
from neuro_eqprop.data import Dataset, Split
from neuro_eqprop.simulators.snntorch.native import SpikingModule

PAGE = Path(__file__).parents[2] / "docs" / "results" / "fine-tuning.md"
BITS, BATCH, RATE, SCALE = 8, 64, 1e-4, 8.0
"""SCALE multiplies the drives, which lie near 0..1, into logits. Learning rate and loss were chosen
on a fifth of the training samples, held out."""
EPOCHS = 10
"""Epochs by equilibrium propagation."""
SEEDS = (0, 1, 2)
STEPS = {"graded": 32, "rate": 64}


def predict(module: SpikingModule, split: Split, steps: int) -> Ints:
    """Classes of all samples."""
    with torch.no_grad():
        return np.asarray(module(torch.tensor(split.x), steps=steps).logits.argmax(dim=1))


def fine_tune(module: SpikingModule, train: Split, steps: int, seed: int) -> None:
    """One epoch of Adam on the cross-entropy of the mean drive of the output."""
    optimizer = torch.optim.Adam(module.parameters(), RATE)
    order = np.random.default_rng(seed).permutation(len(train))
    batches = np.array_split(order, len(order) // BATCH)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, len(batches))
    for rows in batches:
        logits = SCALE * module(torch.tensor(train.x[rows]), steps=steps).logits
        loss = nn.functional.cross_entropy(logits, torch.tensor(train.y[rows]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()


def row(code: str, seed: int, data: Dataset) -> str:
    """A line of the table."""
    steps = STEPS[code]
    model = ne.train("layered", data, hidden=(128,), epochs=EPOCHS, seed=seed)
    module = model.to_spiking(code=code, bits=BITS).to_snntorch()
    before = float((predict(module, data.test, steps) == data.test.y).mean())
    fine_tune(module, data.train, steps, seed)
    classes = predict(module, data.test, steps)
    after = float((classes == data.test.y).mean())
    back = ne.from_snntorch(module)
    found = back.to_spiking(code=code, bits=BITS).run(data.test.x, steps=steps)
    agreement = float((found.predictions == classes).mean())
    return (
        f"| {code} | {seed} | {100 * model.evaluate(data.test).accuracy:.2f} "
        f"| {100 * before:.2f} | {100 * after:.2f} | {100 * found.accuracy(data.test.y):.2f} "
        f"| {100 * agreement:.2f} | {100 * back.evaluate(data.test).accuracy:.2f} |"
    )


def page(rows: list[str]) -> str:
    """The page."""
    return f"""# Fine-tuning with 8-bit weights

What one epoch of surrogate gradients adds to a network trained by equilibrium propagation.
Written by `python sims/snntorch/fine_tune.py`. A digits network 64-128-10, trained for {EPOCHS}
epochs by equilibrium propagation, becomes a torch module (`to_snntorch`) with weights of {BITS}
bits and is trained for one more epoch through time with a surrogate gradient (Adam, learning rate
{RATE:g} falling to zero, batches of {BATCH}; {STEPS["graded"]} steps of code graded,
{STEPS["rate"]} of code rate).
Accuracies in per cent of the 360 test samples. "Emulator" is the model that `from_snntorch`
returns, as spikes with {BITS} bits on the emulator; agreement is with the module.

| code | seed | rates before | module before | module after | emulator | agreement | rates after |
|---|---|---|---|---|---|---|---|
{chr(10).join(rows)}
"""


def main() -> None:
    """Measure and write the page."""
    torch.set_num_threads(1)
    data, rows = ne.load_data("digits"), []
    for code in STEPS:
        for seed in SEEDS:
            rows.append(row(code, seed, data))
            print(rows[-1], flush=True)
    PAGE.write_text(page(rows))


if __name__ == "__main__":
    main()
