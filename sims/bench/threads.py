"""Wall time of a training batch on one and on two threads, for EqProp and for backprop.

    .venv/bin/python sims/bench/threads.py [--write]

All four alternate in this process; recipes and backprop are those of training.py, with batches of
512. A core that other programs use counts as none: run it on an idle machine or, for its 30 s, at
real-time priority (`chrt -r 1`). MNIST needs NEURO_EQPROP_DATA.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch
from page import put
from training import Step, Timed, backprop, batches_of, recipe_of, stepper

from neuro_eqprop.data import load_data

ROWS = {
    "784-512-10": Timed("one-small", 512),
    "784-512-512-10": Timed("two-small", 512),
    "convolutional, MNIST": Timed("conv-small", 512),
}
ROUNDS, STEPS = 9, 5
HEAD = [
    f"Wall time of a batch of 512 on one thread of torch over that on two: the median of {ROUNDS}",
    "rounds, and their interquartile range.",
    "",
    "| network | EqProp: one thread, ms | two, ms | speed-up | backprop: one thread, ms | two, ms "
    "| speed-up |",
    "|---|---|---|---|---|---|---|",
]


def milliseconds(step: Step, threads: int) -> float:
    """Mean wall time of a step."""
    torch.set_num_threads(threads)
    step()
    began = time.perf_counter()
    for _ in range(STEPS):
        step()
    return 1e3 * (time.perf_counter() - began) / STEPS


def speed_up(times: list[tuple[float, float]]) -> str:
    """The cells of one method: times on one and on two threads, and their ratio."""
    one, two = np.array(times).T
    low, middle, high = np.percentile(one / two, (25, 50, 75))
    return f"{np.median(one):.1f} | {np.median(two):.1f} | {middle:.2f} ({low:.2f} to {high:.2f})"


def measure(title: str, row: Timed) -> str:
    """A row of the table."""
    wanted = recipe_of(row)
    data = load_data(wanted.dataset)
    batches = batches_of(data, row.batch)
    steps = stepper(wanted, data, batches), backprop(wanted, batches)
    times: list[list[tuple[float, float]]] = [[], []]
    for _ in range(ROUNDS):
        for step, kept in zip(steps, times, strict=True):
            kept.append((milliseconds(step, 1), milliseconds(step, 2)))
    return f"| {title} | {speed_up(times[0])} | {speed_up(times[1])} |"


def main() -> None:
    """Measure, and put the table into the docs with `--write`."""
    lines = [*HEAD, *(measure(title, row) for title, row in ROWS.items())]
    print("\n".join(lines))
    if "--write" in sys.argv[1:]:
        put("threads", lines)


if __name__ == "__main__":
    main()
