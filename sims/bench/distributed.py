"""Data-parallel training: wall time of one process against two, on the same global batch.

    .venv/bin/python sims/bench/distributed.py [batches]

Each turn runs the same batches of random images through 784-2048-2048-10, one thread a process,
first by one process, then by two that `torchrun` starts. Needs two idle cores.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch

from neuro_eqprop.data import Dataset
from neuro_eqprop.training.distributed import process_group
from neuro_eqprop.training.loop import TrainingLoop
from neuro_eqprop.training.study import make_study

BATCH, TURNS = 512, 3


def seconds(batches: int) -> float:
    """Wall time of an epoch without the first batch, which compiles and warms up."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    study = make_study(hidden=(2048, 2048), batch=BATCH, epochs=1)
    count = BATCH * (batches + 1)
    data = Dataset(
        rng.random((count, 784)), rng.integers(0, 10, count), rng.random((10, 784)), np.arange(10)
    )
    loop = TrainingLoop(study, study.network(data), data)
    ends: list[float] = []
    with process_group("cpu") as loop.group:
        group = loop.group
        loop.epoch(lambda part, right: ends.append(time.perf_counter()), evaluate=False)
        if group.main:
            print(json.dumps(ends[-1] - ends[0]), flush=True)
    return ends[-1] - ends[0]


def measured(processes: int, batches: int) -> float:
    """The time that a child measured."""
    own = [str(Path(__file__)), "--child", str(batches)]
    run = ["-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1"]
    launch = [*run, "--nproc-per-node", str(processes)] if processes > 1 else []
    done = subprocess.run(
        [sys.executable, *launch, *own], capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[-1])


def main(batches: int) -> None:
    ratios = []
    for turn in range(TURNS):
        one, two = measured(1, batches), measured(2, batches)
        ratios.append(one / two)
        print(f"turn {turn}: one process {one:.2f} s, two {two:.2f} s, {one / two:.2f}x")
    print(f"784-2048-2048-10, batch {BATCH}: {statistics.median(ratios):.2f}x by two processes")


if __name__ == "__main__":
    if "--child" in sys.argv:
        seconds(int(sys.argv[-1]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 12)
