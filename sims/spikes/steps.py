"""Write docs/results/steps.md and its figure: the error of each code against its steps.

Run it with `.venv/bin/python sims/spikes/steps.py` (about three minutes on one core;
NEURO_EQPROP_DATA must lead to MNIST). Trained networks are kept in the folder of `--runs`.
"""

from __future__ import annotations

import argparse
from math import ceil, floor, log2, log10
from pathlib import Path
from typing import Any

import torch
from recipes import Bench

from neuro_eqprop.files.write import write_text
from neuro_eqprop.spiking.codes import Code

NETWORKS = {
    Code.RATE: "784-256-10",
    Code.GRADED: "784-256-10",
    Code.PREDICTIVE: "784-256-10",
    Code.BERNOULLI: "784-256-10",
    Code.PAIRED: "64-128-10 hard tanh",
}
STEPS = (2, 4, 8, 16, 32, 64, 128, 256)
SAMPLES = 2000
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#767676")
"""Distinguishable without red and green."""
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 400, 70, 130, 30, 50

Result = dict[str, Any]


def swept(runs: Path) -> dict[Code, list[Result]]:
    """Each code at each number of steps."""
    found: dict[Code, list[Result]] = {}
    bench = Bench(runs, SAMPLES)
    for code, name in NETWORKS.items():
        found[code] = [bench.judged(name, code, steps) for steps in STEPS]
        print(code.name, [f"{result['rmse']:.4f}" for result in found[code]], flush=True)
    return found


def picture(found: dict[Code, list[Result]]) -> str:
    """RMSE against steps, both axes logarithmic, as SVG."""
    errors = [result["rmse"] for rows in found.values() for result in rows]
    low, high = floor(log10(min(errors))), ceil(log10(max(errors)))

    def x(steps: int) -> float:
        part = (log2(steps) - log2(STEPS[0])) / (log2(STEPS[-1]) - log2(STEPS[0]))
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def y(error: float) -> float:
        return TOP + (high - log10(error)) / (high - low) * (HEIGHT - TOP - BOTTOM)

    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="13" role="img">',
        "<title>Root mean square error of rates against steps, by code</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
    ]
    for power in range(low, high + 1):
        at = f"{y(10.0**power):.1f}"
        parts.append(f'<path d="M{LEFT} {at}H{right}" stroke="#dddddd"/>')
        parts.append(
            f'<text x="{LEFT - 8}" y="{at}" dy="4" text-anchor="end">{10.0**power:g}</text>'
        )
    parts += [
        f'<text x="{x(t):.1f}" y="{bottom + 18}" text-anchor="middle">{t}</text>' for t in STEPS
    ]
    middle = (LEFT + right) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">steps</text>')
    parts.append(f'<text x="{LEFT}" y="18">root mean square error of rates</text>')
    ends = sorted((rows[-1]["rmse"], code) for code, rows in found.items())
    labels = spread([y(error) for error, _ in ends])
    heights = {code: at for (_, code), at in zip(ends, labels, strict=True)}
    for colour, (code, rows) in zip(COLOURS, found.items(), strict=True):
        pairs = zip(STEPS, rows, strict=True)
        points = " ".join(f"{x(t):.1f},{y(result['rmse']):.1f}" for t, result in pairs)
        drawn = f'fill="none" stroke="{colour}" stroke-width="2"'
        parts.append(f'<polyline points="{points}" {drawn}/>')
        place = f'x="{right + 8}" y="{heights[code]:.1f}" dy="4"'
        parts.append(f'<text {place} fill="{colour}">{code.name}</text>')
    return "\n".join([*parts, "</svg>", ""])


def spread(heights: list[float], room: float = 16.0) -> list[float]:
    """Heights from the bottom up, moved until labels do not touch."""
    placed: list[float] = []
    for height in heights:
        placed.append(min(height, placed[-1] - room) if placed else height)
    return placed


def page(found: dict[Code, list[Result]]) -> str:
    head = "| code | " + " | ".join(str(t) for t in STEPS) + " |"
    bar = "|---|" + "---|" * len(STEPS)

    def table(key: str, shown: str, factor: float) -> list[str]:
        rows = [
            f"| {code.name} | " + " | ".join(format(factor * r[key], shown) for r in each) + " |"
            for code, each in found.items()
        ]
        return [head, bar, *rows, ""]

    return "\n".join(
        [
            "# The error of each code against the number of steps",
            "",
            "How many steps a spike code needs for a given error, and how many spikes that takes.",
            "Made by `.venv/bin/python sims/spikes/steps.py`; do not edit. The first "
            f"{SAMPLES} test images of",
            "MNIST on a 784-256-10 network of hard sigmoids; `paired` on the 360 digits with hard",
            "tanh.",
            "",
            "![Root mean square error of rates against steps](figures/steps.svg)",
            "",
            "Root mean square error of rates, against the equilibrium in float64:",
            "",
            *table("rmse", ".4f", 1.0),
            "Agreement in percent:",
            "",
            *table("agreement", ".2f", 100.0),
            "Events per neuron and sample:",
            "",
            *table("spikes_per_neuron", ".2f", 1.0),
            "Any run of yours: "
            "`neuro-eqprop evaluate RUN --on emulator --code graded --sweep 4,8,16,32`.",
            "",
        ]
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=Path, default=Path("runs/spikes"))
    options.add_argument("--docs", type=Path, default=Path("docs/results"))
    args = options.parse_args()
    torch.set_num_threads(1)
    found = swept(args.runs)
    write_text(args.docs / "figures" / "steps.svg", picture(found))
    write_text(args.docs / "steps.md", page(found))


if __name__ == "__main__":
    main()
