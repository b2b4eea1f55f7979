"""Phases by a clock and as a rhythm: what is learned, and how well the update survives.

`python sims/learn/rhythm.py` learns the digits with binary spikes on the emulator and writes
docs/results/rhythm.md. Runs are kept in sims/learn/measured/rhythm.json: a run that is there is not
repeated. `--kept` runs nothing.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import neuro_eqprop as ne

HERE = Path(__file__).parent
STORE = HERE / "measured" / "rhythm.json"
PAGE = HERE.parents[1] / "docs" / "results" / "rhythm.md"
FORMS: dict[str, dict[str, Any]] = {
    "clock": {},
    "rhythm": {"rhythm": True},
    "rhythm, no reset": {"rhythm": True, "run_on": True},
}
STEPS, SEEDS, EPOCHS = (64, 128), (0, 1, 2), 2
CONNECTIONS = ("input->hidden", "hidden->output")


def measure(form: dict[str, Any], steps: int, seed: int) -> dict[str, Any]:
    """Test accuracy, and the cosines of the update with that of rates before learning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = ne.learn_on_chip(
            "layered", "digits", hidden=(64,), code="rate", epochs=EPOCHS, steps=steps, seed=seed,
            **form,
        )  # fmt: skip
    return {
        "accuracy": made.history[-1]["test_accuracy"],
        "cosine": [made.directions[name].rate for name in CONNECTIONS],
    }


def main() -> None:
    """Measure what is missing, and write the page."""
    stored: dict[str, Any] = json.loads(STORE.read_text()) if STORE.exists() else {}
    for seed in () if "--kept" in sys.argv else SEEDS:
        for steps in STEPS:
            for name, form in FORMS.items():
                key = f"{name} | {steps} | {seed}"
                if key not in stored:
                    stored[key] = measure(form, steps, seed)
                    STORE.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")
                    print(key, stored[key], flush=True)
    lines = [
        "| phases | steps of a nudged phase | test accuracy, % | cosine with rates |",
        "| --- | --- | --- | --- |",
    ]
    for steps in STEPS:
        for name in FORMS:
            keys = [f"{name} | {steps} | {seed}" for seed in SEEDS]
            found = [stored[key] for key in keys if key in stored]
            if not found:
                continue
            accuracy = ", ".join(f"{100 * row['accuracy']:.2f}" for row in found)
            cosines = np.mean([row["cosine"] for row in found], axis=0)
            both = " / ".join(f"{value:.3f}" for value in cosines)
            lines.append(f"| {name} | {steps} | {accuracy} | {both} |")
    parts = [
        "# Phases as a rhythm",
        "By default a clock divides a sample into phases of constant beta, with windows in which "
        "tags accumulate. With `learn --rhythm` the nudge of a sample is one oscillation, "
        "-beta sin(2 pi t / T), over the time of both nudged phases, after a free part. The third "
        "factor is the same wave, later by the lag arctan(2 pi tau / T) of the traces. A synapse "
        "needs no window and no phase name: it multiplies its product by an oscillation that all "
        "synapses share, as a rhythm of the brain might provide. With `--run-on` neurons keep "
        "their state from sample to sample. The rule is in `neuro_eqprop.spiking.plasticity`; "
        "`--rhythm` works on the reference, the emulator and in biology, with code rate.",
        f"Digits, 64 hidden units, code rate on the emulator, {EPOCHS} epochs, otherwise the "
        "defaults of `learn`; accuracies of seeds 0, 1, 2 in this order; cosines of the update "
        "with that of rates, input->hidden / hidden->output, before learning, mean over seeds. "
        "Each of the samples for the cosine starts from rest. Made by "
        "`python sims/learn/rhythm.py`.",
        "\n".join(lines),
    ]
    PAGE.write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
