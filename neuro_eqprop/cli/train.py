"""`neuro-eqprop train`: train a rate network by equilibrium propagation."""

from __future__ import annotations

import re
import warnings
from argparse import ArgumentParser, Namespace
from pathlib import Path

from rich.console import Console

import neuro_eqprop as ne
from neuro_eqprop.cli.command import (
    FAILURE,
    Command,
    Json,
    UsageError,
    percent,
    positive_float,
    positive_int,
    print_facts,
    run_argument,
)
from neuro_eqprop.cli.options import DEFAULT_TRACE, size_option, trace_path
from neuro_eqprop.cli.progress import announce, bar
from neuro_eqprop.cli.setting_options import add_settings, flag, given_settings
from neuro_eqprop.cli.setting_options import shown as listed
from neuro_eqprop.data import Dataset, is_data_file
from neuro_eqprop.runs.run_folder import STUDY, check_begun
from neuro_eqprop.training import study as config
from neuro_eqprop.training.defaults import PRESETS, derive, is_complete
from neuro_eqprop.training.study import Study

SETTINGS = (
    *("dataset", "model", "hidden", "activation", "output", "bound"),
    *("feedback", "feedback_weights"),
    *("epochs", "batch", "learning_rate", "seed", "beta", "rule", "nudging"),
    *("validation", "patience", "device"),
)
"""Settings with their own option; `--set` takes the others."""


def options(parser: ArgumentParser) -> None:
    """Add the options of `train`."""
    size_option(parser)

    add = parser.add_argument
    add(
        "study",
        nargs="?",
        type=Path,
        metavar="STUDY.toml",
        help="settings; options override them (default: those below)",
    )
    add("--out", type=Path, required=True, metavar="RUN", help="folder of the run, to be made")
    add_settings(parser, SETTINGS)
    names = "; ".join(f"{name}: {meaning}" for name, meaning in PRESETS.items())
    add("--preset", choices=tuple(PRESETS), help=f"defaults of other settings; {names}")
    threads = "threads of torch; results may depend on it in the last digits (default 1)"
    add("--threads", type=positive_int, default=1, metavar="N", help=threads)
    traced = (
        "record how a few samples settle after each epoch "
        "(default: no trace; without a file: RUN/traces.h5)"
    )
    add("--traces", type=Path, nargs="?", const=DEFAULT_TRACE, metavar="FILE.h5", help=traced)
    limit = "end the training after this many seconds; --resume continues it (default: no limit)"
    add("--deadline", type=positive_float, metavar="S", help=limit)
    add("--resume", action="store_true", help="continue the run in --out after its last epoch")
    add("--force", action="store_true", help="replace a run that --out already holds")


def changes(args: Namespace) -> dict[str, str]:
    """Return the settings given on the command line."""
    given = given_settings(args, SETTINGS)
    if is_data_file(given.get("dataset", "")):
        # The run may be opened from another working directory.
        given["dataset"] = str(Path(given["dataset"]).resolve())
    return given


def study_of(args: Namespace) -> tuple[Study, Dataset | None]:
    """Return the settings of the study file or the run to resume, changed by the options.

    Settings that are not stated are derived from the data, which are returned too.
    """
    if args.resume:
        check_begun(args.out)
    written = args.study or (args.out / STUDY if args.resume else None)
    stated = config.read_settings(written) if written else {}
    whole = written is not None and (args.resume or is_complete(stated))
    if whole and args.preset is not None:
        raise UsageError(f"{written} states all settings; leave out --preset")
    try:
        study = config.adapt(config.read(written) if written else Study(), changes(args))
    except ValueError as error:
        raise UsageError(str(error)) from error
    if whole:
        return study, None
    data = ne.load_data(study.dataset)
    given = stated | config.flat_names(changes(args))
    return derive({**given, "dataset": study.dataset}, data, args.preset), data


def run(args: Namespace) -> Json:
    """Train and write the run."""
    import torch

    from neuro_eqprop.runs.train import TrainingWarning
    from neuro_eqprop.training.distributed import started_by_torchrun

    torch.set_num_threads(args.threads)
    (study, data), shown = study_of(args), ""
    with bar(f"training {study.model.name} on {study.dataset}", study.training.epochs) as advance:

        def on_epoch(row: Json) -> None:
            nonlocal shown
            shown = f"test {percent(row['test_accuracy'])}"
            advance(0.0, f"epochs, {shown}")

        def on_batch(part: float, right: float) -> None:
            advance(part, f"epochs, {shown or f'train {percent(right)}'}")

        warnings.simplefilter("ignore", TrainingWarning)  # reported as the failure of the outcome
        model = ne.train(
            study,
            data,
            out=args.out,
            force=args.force,
            resume=args.resume,
            traces=trace_path(args),
            progress=on_epoch,
            on_batch=on_batch,
            announce=announce,
            deadline=args.deadline,
        )
    if not started_by_torchrun().main:
        raise SystemExit(0)
    result = ne.open_run(args.out).summary() | {"diverged": model.diverged}
    return result | ({FAILURE: model.diverged} if model.diverged else {})


def show(outcome: Json, console: Console) -> None:
    """Print the result."""
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
        "chosen": ", ".join(f"{name} {listed(value)}" for name, value in outcome["chosen"].items()),
        "run": outcome["run"],
    }
    if not outcome["chosen"]:
        del rows["chosen"]
    if "validation_accuracy" in outcome:
        rows["validation accuracy"] = percent(outcome["validation_accuracy"])
    if outcome["cosine"]:
        worst = min(outcome["cosine"], key=outcome["cosine"].get)
        rows["gradient"] = (
            f"cosine with the true one at least {outcome['cosine'][worst]:.4f} ({worst})"
        )
    if outcome["feedback_cosine"]:
        rows["feedback"] = ", ".join(
            f"{name} has a cosine of {value:.3f} with the transposed weights"
            for name, value in outcome["feedback_cosine"].items()
            if value is not None
        )
    if outcome["settled"] < 1.0:
        rows["unsettled"] = f"{percent(1 - outcome['settled'])} of test samples did not settle"
    if outcome["warning"]:
        rows["warning"] = in_options(outcome["warning"])
    if outcome["note"]:
        rows["data"] = outcome["note"]
    print_facts(rows, console)


def in_options(sentence: str) -> str:
    """Replace settings by options: learning_rate becomes --learning-rate, others get --set."""
    known = Study().flat()

    def option(found: re.Match[str]) -> str:
        name, value = found["name"], found["value"] or ""
        if name not in known:
            return found[0]
        return flag(name) if name in SETTINGS else f"--set {name}{value}"

    return re.sub(r"\b(?P<name>[a-z]+_[a-z]+|[a-z]+(?==))(?P<value>=\w+)?", option, sentence)


def next_step(outcome: Json) -> str:
    """Suggest to evaluate the run as spikes."""
    return f"evaluate {run_argument(outcome['run'])} --on emulator --code graded"


COMMAND = Command(
    "train",
    options,
    run,
    show,
    (
        "neuro-eqprop train --dataset digits --hidden 64 --epochs 5 --out runs/digits",
        "neuro-eqprop train --model looped --hidden 32 --epochs 2 --out runs/looped --traces",
        "neuro-eqprop train runs/digits/study.toml --seed 1 --set free_steps=20 --out runs/seed1",
    ),
    next_step,
)
