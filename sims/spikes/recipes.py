"""Networks that the scripts beside this one convert, trained when first asked for."""

from __future__ import annotations

from pathlib import Path

from neuro_eqprop.cli import parser
from neuro_eqprop.cli.train import changes
from neuro_eqprop.study.folder import MODEL, Run, open_run
from neuro_eqprop.study.settings import Study, adapt
from neuro_eqprop.study.training import run_training

MNIST = "--dataset mnist --learning-rate 0.001 --batch 64"
DEEP = "--feedback 0.1 --set free_steps=10 --set nudged_steps=4"
RECIPES = {
    "784-256-10": f"{MNIST} --epochs 15 --hidden 256 --set free_steps=8 --set nudged_steps=4",
    "784-256-256-10": f"{MNIST} --epochs 6 --hidden 256,256 {DEEP}",
    "784-128-10 looped tanh": f"{MNIST} --epochs 4 --model looped --hidden 128 --activation tanh "
    "--output linear --beta 0.25",
    "64-96-96-10": f"--hidden 96,96 --epochs 40 {DEEP}",
    "64-128-10 hard tanh": "--activation hard_tanh --epochs 20",
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
        run_training(study(RECIPES[name]), folder, force=True, resume=False, watch=unseen)
    return open_run(folder)
