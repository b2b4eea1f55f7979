"""Cost of one training batch by EqProp against backprop of the same shape and optimizer.

    .venv/bin/python sims/bench/training.py run [ROW ...]   measure rows, keep what came of it
    .venv/bin/python sims/bench/training.py write           write the table of all that was kept

Both run in this process, in turns, on one thread, through the same batches; the figure is the
median ratio of process times. Recipes are those of the rows of docs/results/models-numbers.md,
backprop is `nn.Sequential` below with the same Adam; the transformer is compared with BPTT of the
same model. The cosine is that of sims/rate/end_cosine.py at the end of the whole training, which
`sims/rate/models.py run` keeps. MNIST and Fashion-MNIST need NEURO_EQPROP_DATA.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from page import put
from torch import nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).parents[1] / "rate"))
from models import study
from models_rows import ROWS

from neuro_eqprop.data import Dataset, load_data, one_hot
from neuro_eqprop.files.write import write_text
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.loop import TrainingLoop
from neuro_eqprop.training.rules.base import Batch
from neuro_eqprop.training.rules.contrastive import path_of
from neuro_eqprop.training.settings import Rule
from neuro_eqprop.training.study import Study, adapt

KEPT = Path(__file__).parent / "measured"
MODELS = Path(__file__).parents[1] / "rate" / "measured"
ROUNDS, SECONDS = 9, 0.15
"""Turns, and about how long backprop is at it in each."""
BATCHES = 60
"""Of the data, gone through again and again."""
Batches = list[tuple[torch.Tensor, torch.Tensor]]
Step = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Timed:
    """A row of the table: a recipe, its batch size and the ratio to reach."""

    recipe: str
    batch: int
    reach: float | None = None
    baseline: str = "backprop"
    """backprop, channels_last or bptt."""


TIMED = {
    "one-64": Timed("one-small", 64, 0.95),
    "one-128": Timed("one-small", 128, 1.0),
    "one-512": Timed("one-small", 512, 1.05),
    "one-g1": Timed("one", 64),
    "two": Timed("two-small", 128, 1.25),
    "two-tiny": Timed("two-tiny", 128, 1.25),
    "two-g0.1": Timed("two", 128),
    "three": Timed("three-small", 128, 1.4),
    "three-tiny": Timed("three-tiny", 128, 1.4),
    "three-g0.1": Timed("three", 128),
    "conv": Timed("conv-small", 64, 1.1),
    "conv-tiny": Timed("conv-tiny", 64, 1.1),
    "conv-channels-last": Timed("conv-small", 64, 1.6, "channels_last"),
    "conv-g0.1": Timed("conv", 64),
    "fashion": Timed("conv-fashion-small", 64, 1.25),
    "fashion-tiny": Timed("conv-fashion-tiny", 64, 1.25),
    "fashion-channels-last": Timed("conv-fashion-small", 64, 1.6, "channels_last"),
    "looped": Timed("looped-small", 128, 1.35),
    "wide": Timed("wide-small", 128, 1.5),
    "deep": Timed("deep-small", 128, 1.5),
    "transformer": Timed("linear-small", 256, 0.8, "bptt"),
}
HEAD = [
    "Process time of a batch by EqProp (settling, rule and Adam) over that by backprop with",
    "`nn.Sequential` (its form in memory format channels_last, or BPTT of the same model, where it",
    "says so) and the same Adam, measured alternately on one thread: the median of the ratios of",
    f"{ROUNDS} rounds, and their interquartile range. Cosine: of the update of 256 samples with",
    "minus the true gradient of the settled network, at the end of the whole training of seed 0",
    "([every model, measured](models-numbers.md) has the accuracies of these trainings).",
    "A cosine refers to the network's own equilibrium, so another feedback g is another network.",
    "With g = 0.00002 each phase has one step and takes the products of backprop (the limit of",
    "weak feedback). Such networks run as spikes, but to learn in spikes they need a larger g.",
    "",
    "| network | against | g | beta | batch | path | EqProp ms | baseline ms | ratio "
    "| interquartile range | goal | cosine |",
    "|---|---|---|---|---|---|---|---|---|---|---|---|",
]


def recipe_of(row: Timed) -> Study:
    """The study of a row."""
    found: Study = study(ROWS[row.recipe].options, 0)
    return found


def stepper(wanted: Study, data: Dataset, batches: Batches) -> Step:
    """A step of the rule of a study."""
    loop, following = TrainingLoop(wanted, wanted.network(data), data), cycle(batches)

    def step() -> None:
        batch = Batch(*next(following), measured=False)
        loop.advance(batch, wanted.training.learning_rate)

    return step


def backprop(wanted: Study, batches: Batches, *, channels_last: bool = False) -> Step:
    """A step of backprop on the feed-forward network of the same shape."""
    model, following = sequential(wanted), cycle(batches)
    if channels_last:
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    adam = torch.optim.Adam(model.parameters(), lr=wanted.training.learning_rate)

    def step() -> None:
        x, y = next(following)
        adam.zero_grad()
        found = model(x)
        if wanted.training.cost == "cross_entropy":
            loss = functional.cross_entropy(found, y)
        else:
            loss = 0.5 * ((found - y) ** 2).sum() / len(x)
        loss.backward()  # type: ignore[no-untyped-call]
        adam.step()

    return step


def sequential(wanted: Study) -> nn.Sequential:
    """The feed-forward network; of a looped layer, one with two hidden layers."""
    torch.manual_seed(0)
    parts: list[nn.Module] = []
    if wanted.model.name == "conv":
        before, side = 1, 28
        parts.append(nn.Unflatten(1, (1, 28, 28)))
        for count in wanted.get("hidden"):
            parts += [nn.Conv2d(before, count, wanted.get("kernel")), nn.ReLU(), nn.AvgPool2d(2)]
            before, side = count, (side - wanted.get("kernel") + 1) // 2
        return nn.Sequential(*parts, nn.Flatten(), nn.Linear(before * side * side, 10))
    looped = wanted.model.name == "looped"
    sizes = (784, *wanted.get("hidden"), *(wanted.get("hidden") if looped else ()))
    for before, after in pairwise(sizes):
        parts += [nn.Linear(before, after), nn.Tanh() if looped else nn.ReLU()]
    return nn.Sequential(*parts, nn.Linear(sizes[-1], 10))


def seconds(step: Step, times: int) -> float:
    """Process time of a step, the mean of some."""
    began = time.process_time()
    for _ in range(times):
        step()
    return (time.process_time() - began) / times


def batches_of(data: Dataset, size: int) -> Batches:
    """The first `BATCHES` batches with their targets."""
    some = data.train.take(slice(BATCHES * size))
    x = torch.tensor(some.x, dtype=torch.float32)
    y = torch.tensor(one_hot(some.y, 10), dtype=torch.float32)
    return list(zip(x.split(size), y.split(size), strict=True))


def measure(row: Timed) -> dict[str, Any]:
    """Ratio and cosine of a row."""
    wanted = recipe_of(row)
    data, settings = load_data(wanted.dataset), wanted.rule
    batches = batches_of(data, row.batch)
    ours = stepper(wanted, data, batches)
    if row.baseline == "bptt":
        theirs = stepper(adapt(wanted, {"rule": Rule.BPTT}), data, batches)
    else:
        theirs = backprop(wanted, batches, channels_last=row.baseline == "channels_last")
    seconds(ours, 3)  # compiles
    each = max(1, round(SECONDS / seconds(theirs, 5)))
    pairs = np.array([(seconds(ours, each), seconds(theirs, each)) for _ in range(ROUNDS)])
    ratios = np.percentile(pairs[:, 0] / pairs[:, 1], (25, 50, 75))
    network = wanted.network(data)
    return {
        "feedback": wanted.get("feedback") if wanted.model.name in ("layered", "conv") else 1.0,
        "beta": settings.beta,
        "nudging": settings.nudging,
        "path": path_of(TorchOps(), network, settings).value,
        "ms": (1e3 * np.median(pairs, axis=0)).tolist(),
        "ratios": ratios.tolist(),
    }


def final_cosine(row: Timed) -> float | None:
    """The cosine at the end of the training of seed 0, if `sims/rate/models.py` has run it."""
    kept = MODELS / f"{row.recipe}-0.json"
    stored = json.loads(kept.read_text()) if kept.exists() else {}
    return stored.get("cosine") if stored.get("options") == ROWS[row.recipe].options else None


def line(name: str, found: Mapping[str, Any]) -> str:
    """A row of the table."""
    row, (low, middle, high) = TIMED[name], found["ratios"]
    title = ROWS[row.recipe].title.split(", feedback")[0]
    end = final_cosine(row)
    cosine = "-" if end is None else f"{end:.6f}"
    nudge = f"{found['beta']:g} {found['nudging']}"
    feedback = np.format_float_positional(found["feedback"], trim="-")
    return (
        f"| {title} | {row.baseline} | {feedback} | {nudge} | {row.batch} "
        f"| {found['path']} | {found['ms'][0]:.2f} | {found['ms'][1]:.2f} | {middle:.2f} "
        f"| {low:.2f} to {high:.2f} | {row.reach or '-'} | {cosine} |"
    )


def main() -> None:
    """As the first word says."""
    torch.set_num_threads(1)
    word, names = (sys.argv[1:] or ["run"])[0], sys.argv[2:] or list(TIMED)
    if word == "run":
        KEPT.mkdir(exist_ok=True)
        for name in names:
            found = measure(TIMED[name])
            write_text(KEPT / f"{name}.json", json.dumps(found, indent=1) + "\n")
            print(line(name, found), flush=True)
    else:
        kept = {name: KEPT / f"{name}.json" for name in TIMED}
        rows = [
            line(name, json.loads(path.read_text())) for name, path in kept.items() if path.exists()
        ]
        put("training", [*HEAD, *rows])


if __name__ == "__main__":
    main()
