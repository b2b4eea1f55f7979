"""Write docs/results/conversion.md: whole test sets as spikes, against what was to be reached.

Run it with `.venv/bin/python sims/spikes/tables.py` (about twenty minutes on one core;
NEURO_EQPROP_DATA must lead to MNIST). Trained networks are kept in the folder of `--runs`, what was
measured in measured.json beside this file: `--only ROW ...` measures these rows anew and no others.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from recipes import RECIPES, Bench

from neuro_eqprop.files.write import write_text
from neuro_eqprop.spiking.codes import Code
from neuro_eqprop.spiking.input_coding import InputCoding

CURRENT, GRADED, RATE = InputCoding.CURRENT, InputCoding.GRADED, InputCoding.RATE
MEASURED = Path(__file__).parent / "measured.json"
ONE, TWO, TANH, DIGITS, SIGNED, IMAGES = RECIPES
ROWS = {
    "rate": (ONE, Code.RATE, 32, CURRENT, None),
    "rate 64": (ONE, Code.RATE, 64, CURRENT, None),
    "rate in": (ONE, Code.RATE, 32, RATE, None),
    "rate 8": (ONE, Code.RATE, 32, CURRENT, 8),
    "graded": (ONE, Code.GRADED, 16, CURRENT, None),
    "graded in": (ONE, Code.GRADED, 16, GRADED, None),
    "graded 8": (ONE, Code.GRADED, 16, CURRENT, 8),
    "graded in 8": (ONE, Code.GRADED, 16, GRADED, 8),
    "predictive": (ONE, Code.PREDICTIVE, 32, CURRENT, None),
    "bernoulli": (ONE, Code.BERNOULLI, 64, CURRENT, None),
    "two rate": (TWO, Code.RATE, 64, CURRENT, None),
    "two graded": (TWO, Code.GRADED, 64, CURRENT, None),
    "digits rate": (DIGITS, Code.RATE, 64, CURRENT, None),
    "digits graded": (DIGITS, Code.GRADED, 64, CURRENT, None),
    "tanh": (TANH, Code.GRADED, 32, CURRENT, None),
    "paired": (SIGNED, Code.PAIRED, 64, CURRENT, None),
    "conv": (IMAGES, Code.GRADED, 32, CURRENT, None),
}
"""Network, code, steps, input, bits of weights."""

Result = dict[str, Any]
Goal = tuple[str, str, Callable[[dict[str, Result]], float], float]


def gap(result: Result) -> float:
    """Points of accuracy between spikes and rates."""
    return 100 * abs(result["accuracy"] - result["rate_accuracy"])


def more(rows: dict[str, Result], plain: str, small: str) -> float:
    """Points of accuracy that fixed point costs."""
    return 100 * (rows[plain]["accuracy"] - rows[small]["accuracy"])


GOALS: tuple[Goal, ...] = (
    ("accuracy gap, rate, 32 steps (points)", "<=", lambda r: gap(r["rate"]), 0.1),
    ("accuracy gap, graded, 16 steps (points)", "<=", lambda r: gap(r["graded"]), 0.1),
    ("agreement, rate, 32 steps (%)", ">=", lambda r: 100 * r["rate"]["agreement"], 99.7),
    ("agreement, graded, 16 steps (%)", ">=", lambda r: 100 * r["graded"]["agreement"], 99.9),
    ("Pearson, rate, 32 steps", ">=", lambda r: r["rate"]["pearson"], 0.999),
    ("99.9 % of errors within, rate, 32 steps", "<=", lambda r: r["rate"]["p999"], 0.05),
    ("Pearson, graded, 16 steps", ">=", lambda r: r["graded"]["pearson"], 0.9999),
    (
        f"agreement, {DIGITS}, rate, 64 steps (%)",
        ">=",
        lambda r: 100 * r["digits rate"]["agreement"],
        99.0,
    ),
    (
        f"agreement, {TWO}, rate, 64 steps (%)",
        ">=",
        lambda r: 100 * r["two rate"]["agreement"],
        99.0,
    ),
    (
        f"agreement, {TANH}, graded, 32 steps (%)",
        ">=",
        lambda r: 100 * r["tanh"]["agreement"],
        99.8,
    ),
    (f"accuracy gap, {IMAGES}, graded, 32 steps (points)", "<=", lambda r: gap(r["conv"]), 0.2),
    ("8-bit weights, rate: points more", "<=", lambda r: more(r, "rate", "rate 8"), 0.1),
    ("8-bit weights, graded: points more", "<=", lambda r: more(r, "graded", "graded 8"), 0.1),
    ("graded input: messages per neuron", "<=", lambda r: r["graded in"]["spikes_per_neuron"], 1.5),
    (
        "graded input: synaptic operations to a dense pass",
        "<=",
        lambda r: r["graded in"]["work_to_dense"],
        0.25,
    ),
)


def line(key: str, result: Result) -> str:
    name, code, steps, entry, bits = ROWS[key]
    accuracy = f"{100 * result['rate_accuracy']:.2f} | {100 * result['accuracy']:.2f}"
    return (
        f"| {name} | {code.name} | {entry.name} | {bits or 'float'} | {steps} | "
        f"{result['samples']} | {accuracy} | {100 * result['agreement']:.2f} | "
        f"{result['pearson']:.5f} | {result['p999']:.3f} | {result['spikes_per_neuron']:.2f} | "
        f"{result['synops_per_sample']:.0f} | {result['host_macs_per_sample']:.0f} | "
        f"{result['work_to_dense']:.2f} |"
    )


def judged(goal: Goal, rows: dict[str, Result]) -> str:
    what, relation, find, limit = goal
    value = find(rows)
    met = value <= limit if relation == "<=" else value >= limit
    return f"| {what} | {relation} {limit:g} | {value:.5g} | {'yes' if met else 'NO'} |"


def page(rows: dict[str, Result]) -> str:
    return "\n".join(
        [
            "# Complete test sets as spikes",
            "",
            "How much accuracy a network loses as spikes, on complete test sets, and how many",
            "events it takes. Made by `.venv/bin/python sims/spikes/tables.py`; do not edit.",
            "Spikes run on the emulator. The class is the largest drive of the output, for",
            "rates and for spikes. Networks have one seed, and the",
            "constants of the codes were chosen with these test sets: differences of 0.1",
            "points are noise.",
            "",
            "| quantity | goal | measured | reached |",
            "|---|---|---|---|",
            *(judged(goal, rows) for goal in GOALS),
            "",
            "If no network is named, it is 784-256-10 on the 10 000 test images of MNIST.",
            "",
            "## All results",
            "",
            "Events are spikes or messages per sample and neuron, except input. Synops are",
            "synaptic operations, including the input's; host operations are multiplications",
            "on the host. Work is the sum of both relative to the multiplications of a dense",
            "feed-forward pass. The dense pass of the convolutional network pools before it",
            "multiplies; its synapses do not: each of four pooled units has its own.",
            "",
            "| network | code | input | weights | steps | samples | rates % | spikes % "
            "| agreement % | Pearson | p999 | events | synops | host | work |",
            "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
            *(line(key, message) for key, message in rows.items()),
            "",
            "## The networks",
            "",
            *(
                f"- {name}: `neuro-eqprop train {words} --out RUN`"
                for name, words in RECIPES.items()
            ),
            "",
        ]
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=Path, default=Path("runs/spikes"))
    options.add_argument("--out", type=Path, default=Path("docs/results/conversion.md"))
    options.add_argument("--only", nargs="+", choices=ROWS, default=[*ROWS])
    args = options.parse_args()
    torch.set_num_threads(1)
    rows: dict[str, Result] = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    bench = Bench(args.runs)
    for key in args.only:
        name, code, steps, entry, bits = ROWS[key]
        rows[key] = bench.judged(name, code, steps, entry=entry, bits=bits)
        print(line(key, rows[key]), flush=True)
        write_text(MEASURED, json.dumps(rows, indent=1) + "\n")
    if set(rows) == set(ROWS):
        write_text(args.out, page({key: rows[key] for key in ROWS}))


if __name__ == "__main__":
    main()
