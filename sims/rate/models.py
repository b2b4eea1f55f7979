"""Measure the models of the rate trainer and write docs/results/models-numbers.md.

    .venv/bin/python sims/rate/models.py run ROW [SEED ...]   train a row, keep what came of it
    .venv/bin/python sims/rate/models.py cosines              gradients against the implicit ones
    .venv/bin/python sims/rate/models.py page                 write the page of all that was kept
    .venv/bin/python sims/rate/models.py list                 the rows, and which seeds are missing

What was measured is kept as a file for each row and seed in sims/rate/measured, so that the page
can be filled bit by bit; a file that is there already is not measured again, and a training that
was stopped goes on after its last epoch (from measured/begun). MNIST and
Fashion-MNIST need NEURO_EQPROP_DATA.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cosines import cosines
from end_cosine import end_cosine
from models_page import page
from models_rows import ROWS

from neuro_eqprop.cli.program import parser
from neuro_eqprop.cli.train import changes
from neuro_eqprop.data import Dataset, Split, load_data
from neuro_eqprop.dynamics.field import State, field
from neuro_eqprop.dynamics.solve import Stop, solve
from neuro_eqprop.files.write import write_text
from neuro_eqprop.networks.network import Cost, Network
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.runs import checkpoint
from neuro_eqprop.training.loop import TrainingLoop
from neuro_eqprop.training.rules.phases import settling
from neuro_eqprop.training.settings import RuleSettings
from neuro_eqprop.training.study import Study, adapt

KEPT = Path(__file__).parent / "measured"
PAGE = Path(__file__).parents[2] / "docs" / "results" / "models-numbers.md"
PART = 1000
"""Samples that settle together."""


def study(options: str, seed: int) -> Study:
    """The study that these options of `train` make."""
    words = ["train", *options.split(), "--seed", str(seed), "--out", "RUN"]
    return adapt(Study(), changes(parser(words).parse_args(words)))


Params = dict[str, torch.Tensor]


@torch.no_grad()
def answered(
    network: Network, params: Params, split: Split, settings: RuleSettings, steps: int
) -> float:
    """Accuracy in percent after so many free steps, taken as in training."""
    ops, right = TorchOps(), 0
    way = settling(settings, measured=False).free
    for start in range(0, len(split), PART):
        part = split.take(slice(start, start + PART))
        free = field(ops, network, params, ops.from_numpy(part.x))
        state = solve(free, free.zero_state(), way, Stop(None, steps, measured=False)).state
        drive = free.drive(network.output.name, state)
        right += int((drive.argmax(1).numpy() == part.y).sum())
    return 100.0 * right / len(split)


@torch.no_grad()
def settled(
    network: Network, params: Params, split: Split, settings: RuleSettings
) -> dict[str, Any]:
    """Steps until no rate moves more than 1e-4 in a step, of all samples."""
    ops, found = TorchOps(), []
    way = settling(settings, measured=True).free
    norm = 0.0
    for start in range(0, len(split), PART):
        part = split.take(slice(start, start + PART))
        free = field(ops, network, params, ops.from_numpy(part.x))
        rest = solve(free, free.zero_state(), way, Stop(1e-4, 200))
        found.append(rest.steps)
        if "hidden->hidden" in params:
            norm = max(norm, steepest(network, params, rest.state))
    steps = np.concatenate(found)
    result = {"steps_mean": float(steps.mean()), "steps_max": int(steps.max())}
    return result | ({"jacobian": norm} if norm else {})


def steepest(network: Network, params: Params, state: State) -> float:
    """The largest norm, over samples, of the Jacobian of h <- tanh(drive), by power iteration."""
    slope, loop = 1.0 - state["hidden"] ** 2, params["hidden->hidden"]
    back = params["hidden->output"] if network.cost is Cost.SQUARED else None
    v = torch.randn(slope.shape, generator=torch.Generator().manual_seed(0))
    size = torch.zeros(len(v))
    for _ in range(100):
        v = v / v.norm(dim=1, keepdim=True)
        moved = v @ loop if back is None else v @ loop + (v @ back.T) @ back
        size = (slope * moved).norm(dim=1)
        u = slope * slope * moved
        v = u @ loop if back is None else u @ loop + (u @ back.T) @ back
    return float(size.max())


def measure(options: str, seed: int, begun: Path) -> dict[str, Any]:
    """Train once, by way of the checkpoint `begun`; judge the last epoch on the test samples."""
    wanted = study(options, seed)
    data = load_data(wanted.dataset)
    result, network, params = trained(wanted, data, begun)
    free = 1 if wanted.rule.name == "backprop" else wanted.rule.free_steps
    result["test"] = answered(network, params, data.test, wanted.rule, free)
    if wanted.rule.name != "backprop":
        result["test4"] = answered(network, params, data.test, wanted.rule, 4 * free)
        result |= settled(network, params, data.test, wanted.rule)
    if wanted.rule.name == "hebbian":
        result["cosine"] = end_cosine(network, params, data.train, wanted.rule)
    return result


def trained(wanted: Study, data: Dataset, begun: Path) -> tuple[dict[str, Any], Network, Params]:
    """The last epoch of a training, with its process time; goes on where it was stopped."""
    loop, spent = TrainingLoop(wanted, wanted.network(data), data), 0.0
    clock, row = begun.with_suffix(".seconds"), None
    if begun.exists() and checkpoint.load(begun).network == loop.network:
        (kept, memory), spent = checkpoint.load_training(begun), float(clock.read_text())
        steps = kept.epochs * loop.epoch_steps
        loop.load_state_dict({"steps": steps, "params": kept.params, "memory": memory})
    since = time.process_time() - spent
    while not loop.finished:
        row = loop.epoch(evaluate=False)
        spent = time.process_time() - since
        print(f"epoch {row['epoch']} train {row['train_accuracy']:.4f}", end=" ", flush=True)
        print(f"residual {row['residual']:.1e} cpu {spent:.0f} s", flush=True)
        if not loop.finished:
            checkpoint.save(begun, loop.current(), loop.memory())
            write_text(clock, str(spent))
    if row is None:
        raise ValueError("a row needs at least one epoch")
    result = {
        "cpu": spent,
        "train": 100.0 * row["train_accuracy"],
        "residual": row["residual"],
        "spectral": row["spectral"],
        "parameters": loop.current().parameters,
    }
    return result, loop.network, loop.params


def run(name: str, seeds: list[int]) -> None:
    """Measure a row for each seed that is not kept yet."""
    for seed in seeds:
        kept = KEPT / f"{name}-{seed}.json"
        if not kept.exists():
            begun = KEPT / "begun" / f"{name}-{seed}"
            begun.parent.mkdir(parents=True, exist_ok=True)
            result = measure(ROWS[name].options, seed, begun)
            keep(kept, {"options": ROWS[name].options, "seed": seed, **result})
            begun.unlink(missing_ok=True)
            begun.with_suffix(".seconds").unlink(missing_ok=True)
            print(name, seed, result, flush=True)


def keep(path: Path, result: dict[str, Any]) -> None:
    """Write what was measured."""
    path.parent.mkdir(exist_ok=True)
    write_text(path, json.dumps(result, indent=1) + "\n")


def known() -> dict[str, list[dict[str, Any]]]:
    """What is kept, by row; a file made with other options than the row has now is left out."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in ROWS}
    for name, row in ROWS.items():
        for path in sorted(KEPT.glob(f"{name}-[0-9]*.json")):
            result = json.loads(path.read_text())
            if result["options"] == row.options:
                found[name].append(result)
    return found


def main() -> None:
    """As the first word says."""
    torch.set_num_threads(1)
    word, rest = (sys.argv[1:] or ["list"])[0], sys.argv[2:]
    if word == "run":
        run(rest[0], [int(seed) for seed in rest[1:]] or [0, 1, 2])
    elif word == "cosines":
        keep(KEPT / "cosines.json", cosines())
    elif word == "page":
        cosine = KEPT / "cosines.json"
        result = json.loads(cosine.read_text()) if cosine.exists() else None
        write_text(PAGE, page(known(), result))
    else:
        for name, result in known().items():
            print(f"{name:24s} seeds {[t['seed'] for t in result]}")


if __name__ == "__main__":
    main()
