"""`neuro-eqprop train`: a rate network, trained by equilibrium propagation."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rich.console import Console

from neuro_eqprop.cli.command import (
    FAILURE,
    Command,
    Json,
    UsageError,
    percent,
    positive_float,
    positive_int,
    print_facts,
)

SETTINGS = (
    "dataset",
    "model",
    "hidden",
    "activation",
    "output",
    "bound",
    "feedback",
    "epochs",
    "batch",
    "learning_rate",
    "seed",
    "beta",
    "rule",
    "nudging",
    "validation",
    "device",
)
"""Settings of a study that have an option of their own; `--set` reaches the rest."""


BESIDE = Path()
"""Stands for a trace in the folder of the run."""


def options(parser: ArgumentParser) -> None:
    """What to train, how, and where to."""
    add = parser.add_argument
    add("study", nargs="?", type=Path, metavar="STUDY.toml", help="settings; options override them")
    add("--out", type=Path, required=True, metavar="RUN", help="the folder of the run")
    add("--dataset", metavar="NAME|FILE.npz", help="see `data list`; or arrays x, y of your own")
    add(
        "--model",
        help="layered, looped, toroidal, modern, conv, multiscale, predictive, transformer",
    )
    add("--hidden", metavar="N[,N...]", help="units of each hidden layer")
    add("--activation", help="hard_sigmoid, hard_tanh, box, relu or tanh")
    add("--output", help="hard_sigmoid or linear (spikes of code rate need the first)")
    add("--bound", type=positive_float, help="spectral bound of weights that close a loop")
    add("--feedback", type=positive_float, help="scale of what comes back in a layered network")
    add("--epochs", type=positive_int)
    add("--batch", type=positive_int)
    add("--learning-rate", type=positive_float)
    add("--seed", type=int)
    add("--beta", type=positive_float, help="strength of the nudge, per sample")
    add(
        "--rule",
        help="hebbian, vector-field, asymmetric, hybrid, single-phase; backprop, bptt, implicit",
    )
    add("--nudging", help="positive, negative, centered, random or holomorphic")
    add(
        "--validation", type=positive_float, help="part of the training samples held out to look at"
    )
    add("--device", help="of torch: cpu, cuda, mps")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="any setting of a study")
    add("--threads", type=positive_int, default=1, help="of torch; the bytes may depend on it")
    told = "record how a few samples settle after each epoch; `traces watch RUN/traces.h5`"
    add("--traces", type=Path, nargs="?", const=BESIDE, metavar="FILE.h5", help=told)
    add("--resume", action="store_true", help="go on where the run in --out was left")
    add("--force", action="store_true", help="replace a run that --out already holds")


def changes(args: Namespace) -> dict[str, object]:
    """The settings that the command line names."""
    given = vars(args)
    named = {key: given[key] for key in SETTINGS if given.get(key) is not None}
    for pair in args.set:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"--set takes KEY=VALUE, not {pair!r}")
        named[key] = value
    if str(named.get("dataset", "")).endswith(".npz"):
        # A run is opened again from other folders.
        named["dataset"] = str(Path(str(named["dataset"])).resolve())
    return named


def run(args: Namespace) -> Json:
    """Train and write the run."""
    import torch

    from neuro_eqprop.cli.progress import announce, bar
    from neuro_eqprop.experiments import config
    from neuro_eqprop.experiments.run_folder import STUDY, TRACES, check_begun
    from neuro_eqprop.experiments.train import run_training

    torch.set_num_threads(args.threads)
    if args.resume:
        check_begun(args.out)
    written = args.study or (args.out / STUDY if args.resume else None)
    study = config.read(written) if written else config.Study()
    try:
        study = config.adapt(study, changes(args))
    except ValueError as error:
        raise UsageError(str(error)) from error
    with bar(f"training {study.model.name} on {study.dataset}", study.training.epochs) as advance:
        judged: list[str] = []

        def watch(line: Json) -> None:
            judged[:] = [f"test {percent(line['test_accuracy'])}"]
            advance(0.0, f"epochs, {judged[0]}")

        def tick(part: float, right: float) -> None:
            advance(part, f"epochs, {judged[0] if judged else f'train {percent(right)}'}")

        traces = args.out / TRACES if args.traces == BESIDE else args.traces
        told = run_training(
            study,
            args.out,
            force=args.force,
            resume=args.resume,
            watch=watch,
            traces=traces,
            tell=announce,
            tick=tick,
        )
    return told | ({FAILURE: told["diverged"]} if told["diverged"] else {})


def show(outcome: Json, console: Console) -> None:
    """The outcome in words."""
    steps = outcome["settle_steps"]
    norms = ", ".join(f"{name} {norm:.2f}" for name, norm in outcome["spectral"].items())
    rows = {
        "network": f"{outcome['model']}, {outcome['parameters']} parameters",
        "test accuracy": percent(outcome["test_accuracy"]),
        "train accuracy": percent(outcome["train_accuracy"]),
        "rule": f"{outcome['rule']}, {outcome['nudging']} nudging, beta {outcome['beta']}",
        "settle steps": f"{steps['free']:.0f} free, {steps['nudged']:.0f} nudged",
        "spectral norms": norms,
        "time": f"{outcome['seconds']:.1f} s for {outcome['epochs']} epochs",
        "run": outcome["run"],
    }
    if "validation_accuracy" in outcome:
        rows["validation accuracy"] = percent(outcome["validation_accuracy"])
    if outcome["cosine"]:
        worst = min(outcome["cosine"], key=outcome["cosine"].get)
        rows["gradient"] = (
            f"cosine with the true one at least {outcome['cosine'][worst]:.4f} ({worst})"
        )
    if outcome["settled"] < 1.0:
        rows["unsettled"] = (
            f"{percent(1 - outcome['settled'])} of test samples did not come to rest"
        )
    if outcome["warning"]:
        rows["warning"] = outcome["warning"]
    if outcome["note"]:
        rows["data"] = outcome["note"]
    print_facts(rows, console)


COMMAND = Command("train", "train a rate network", options, run, show)
