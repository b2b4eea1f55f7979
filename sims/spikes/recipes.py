"""Networks that the scripts beside this one convert, trained when first asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuro_eqprop.api.run import Run, open_run
from neuro_eqprop.api.train import run_training
from neuro_eqprop.cli.program import parser
from neuro_eqprop.cli.train import changes
from neuro_eqprop.dynamics.inference import Inference
from neuro_eqprop.runs.evaluate import accuracy_of, agreement, equilibria
from neuro_eqprop.runs.event_stats import event_stats
from neuro_eqprop.runs.run_folder import MODEL
from neuro_eqprop.spiking.codes import Code
from neuro_eqprop.spiking.input_coding import InputCoding
from neuro_eqprop.training.study import Study, adapt

MNIST = "--dataset mnist --learning-rate 0.001 --batch 64"
DEEP = "--feedback 0.1 --set free_steps=10 --set nudged_steps=4"
RECIPES = {
    "784-256-10": f"{MNIST} --epochs 15 --hidden 256 --set free_steps=8 --set nudged_steps=4",
    "784-256-256-10": f"{MNIST} --epochs 6 --hidden 256,256 {DEEP}",
    "784-128-10 looped tanh": f"{MNIST} --epochs 4 --model looped --hidden 128 --activation tanh "
    "--output linear --beta 0.25",
    "64-96-96-10": f"--hidden 96,96 --epochs 40 {DEEP}",
    "64-128-10 hard tanh": "--activation hard_tanh --epochs 20",
    "convolutional": "--dataset mnist --model conv --hidden 16,32 --activation relu "
    "--output linear --beta 0.25 --feedback 0.1 --bound 2.5 --epochs 8 --batch 64 "
    "--learning-rate 0.003 --set free_steps=3 --set nudged_steps=1",
}
"""Options of `neuro-eqprop train` by network."""


def unseen(_: object) -> None:
    pass


def study(options: str) -> Study:
    words = ["train", *options.split(), "--out", "RUN"]
    return adapt(Study(), changes(parser(words).parse_args(words)))


def trained(name: str, runs: Path) -> Run:
    """The run of that name in the folder, trained if it is not there."""
    folder = runs / name.replace(" ", "_")
    if not (folder / MODEL).exists():
        run_training(study(RECIPES[name]), folder, force=True, resume=False, on_epoch=unseen)
    return open_run(folder)


@dataclass(frozen=True, slots=True)
class Bench:
    """Trained networks and where their rates settle, each made once; `samples` of each test set."""

    runs: Path
    samples: int | None = None
    known: dict[str, tuple[Run, Inference]] = field(default_factory=dict)

    def settled(self, name: str) -> tuple[Run, Inference]:
        """A run and its equilibria."""
        if name not in self.known:
            run = trained(name, self.runs)
            x = run.test_samples(self.size(run)).x
            self.known[name] = run, equilibria(run.model.network, run.model.params, x)
        return self.known[name]

    def size(self, run: Run) -> int:
        """How many samples are taken."""
        return min(self.samples or len(run.data.test), len(run.data.test))

    def judged(
        self,
        name: str,
        code: Code,
        steps: int,
        *,
        entry: InputCoding = InputCoding.CURRENT,
        bits: int | None = None,
    ) -> dict[str, Any]:
        """What `evaluate --on emulator` tells, with the equilibria solved only once."""
        run, exact = self.settled(name)
        split = run.test_samples(self.size(run))
        spiking = run.model.to_spiking(code=code, bits=bits, input=entry)
        made = spiking.run(split.x, on="emulator", steps=steps)
        sides = (exact.state, exact.drive), (made.rates, made.drive)
        return {
            "samples": len(split),
            "rate_accuracy": accuracy_of(exact.drive, split.y),
            "accuracy": accuracy_of(made.drive, split.y),
            **agreement(run.model.network, *sides),
            **event_stats(made),
        }
