"""`neuro-eqprop learn`: both phases and the Hebbian rule run in the simulator."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from neuro_eqprop.backends.registry import learner_names
from neuro_eqprop.cli.command import (
    Command,
    Json,
    UsageError,
    fraction,
    percent,
    positive_float,
    positive_int,
    print_facts,
)
from neuro_eqprop.spiking.codes import learning_codes

if TYPE_CHECKING:
    from neuro_eqprop.experiments.config import Study
    from neuro_eqprop.experiments.on_chip_config import OnChipConfig

SETTINGS = (
    "dataset",
    "model",
    "hidden",
    "activation",
    "output",
    "feedback",
    "epochs",
    "batch",
    "learning_rate",
    "seed",
    "beta",
    "nudging",
)
"""Settings of a study that have an option of their own; `--set` reaches the rest."""
OWN = (
    "on",
    "code",
    "bits",
    "free",
    "settle",
    "window",
    "tau",
    "theta",
    "limit",
    "bias",
    "samples",
    "tasks",
    "weight_noise",
    "dead",
    "mismatch",
)
SWITCHES = ("engine", "run_on", "asymmetric")
"""Settings of the table [learn]."""
BESIDE = Path()
"""Stands for a trace in the folder of the run."""


def options(parser: ArgumentParser) -> None:
    """What to learn, how, where, and where to."""
    add = parser.add_argument
    add("study", nargs="?", type=Path, metavar="STUDY.toml", help="settings; options override them")
    add("--out", type=Path, required=True, metavar="RUN", help="the folder of the run")
    add("--on", help=f"{', '.join(learner_names())}, or rate: the rate network, as a baseline")
    add("--dataset", help="digits (embedded), mnist, fashion-mnist")
    add("--model", help="layered, or looped without a bound")
    add("--hidden", metavar="N[,N...]", help="units of each hidden layer")
    add("--activation", help="of hidden layers: hard_sigmoid; code graded also has others")
    add("--output", help="hard_sigmoid or linear; spikes of code rate need the first")
    add("--feedback", type=positive_float, help="scale of what comes back in a layered network")
    add("--code", help=" or ".join(learning_codes()))
    add("--bits", type=positive_int, help="of weights, rounded at random; traces have 7")
    add("--engine", action="store_true", help="whole numbers as Lava's engine rounds them")
    add("--steps", type=positive_int, help="of a nudged phase; sets free, settle and window")
    add("--free", type=positive_int, help="steps of the free phase")
    add("--settle", type=positive_int, help="steps of a nudged phase before its window")
    add("--window", type=positive_int, help="steps of a phase in which tags gather")
    add("--tau", type=positive_float, help="steps in which a trace of spikes falls to 1/e")
    add("--theta", type=positive_float, help="graded messages are multiples of it")
    add("--limit", type=positive_float, help="the largest size of a weight")
    add("--bias", type=float, help="that every neuron starts with")
    add("--beta", type=positive_float, help="strength of the nudge")
    add("--nudging", help="centered or positive")
    add("--batch", type=positive_int, help="lessons that share a commit; a chip has 1")
    add("--learning-rate", type=positive_float, help="it falls to zero along half a cosine")
    add("--epochs", type=positive_int)
    add("--samples", type=positive_int, help="so many of the training samples, the first ones")
    add("--tasks", type=positive_int, help="classes come in so many parts one after the other")
    add("--seed", type=int)
    add("--run-on", action="store_true", help="neurons keep their state between lessons")
    add("--weight-noise", type=fraction, help="of what a synapse passes on, as a part of it")
    add("--dead", type=fraction, help="the part of hidden neurons that never fire")
    add("--mismatch", type=fraction, help="of thresholds, as a part of them")
    add("--asymmetric", action="store_true", help="both directions are rounded on their own")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="any setting of a study")
    told = "record synapses in the first lessons, then the epochs; `traces watch RUN/traces.h5`"
    add("--traces", type=Path, nargs="?", const=BESIDE, metavar="FILE.h5", help=told)
    add("--record", action="append", metavar="WORD", help="source->target[row,column]:hebbian")
    add("--watched", type=positive_int, default=50, help="lessons in the trace")
    add("--resume", action="store_true", help="go on where the run in --out was left")
    add("--force", action="store_true", help="replace a run that --out already holds")


def chosen(args: Namespace) -> tuple[Study, OnChipConfig]:
    """The settings that the command line, and the study file if there is one, make."""
    from neuro_eqprop.experiments import config, on_chip_config
    from neuro_eqprop.experiments.run_folder import STUDY, check_begun

    if args.resume:
        check_begun(args.out)
    written = args.study or (args.out / STUDY if args.resume else None)
    study, learning = (
        on_chip_config.read(written)
        if written
        else (config.adapt(config.Study(), on_chip_config.DEFAULTS), on_chip_config.OnChipConfig())
    )
    own = {key: getattr(args, key) for key in OWN if getattr(args, key) is not None}
    own |= {key: True for key in SWITCHES if getattr(args, key)}
    try:
        study = config.adapt(study, changes(args))
        code = own.get("code", learning.code)
        if args.steps or code != learning.code:
            own = on_chip_config.phase_steps(code, args.steps) | own
        return study, on_chip_config.adapt(learning, own)
    except ValueError as error:
        raise UsageError(str(error)) from error


def changes(args: Namespace) -> dict[str, object]:
    """The settings of a study that the command line names."""
    named = {key: getattr(args, key) for key in SETTINGS if getattr(args, key) is not None}
    for pair in args.set:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"--set takes KEY=VALUE, not {pair!r}")
        named[key] = value
    return named


def run(args: Namespace) -> Json:
    """Learn and write the run."""
    from neuro_eqprop.cli.progress import announce, bar
    from neuro_eqprop.experiments.learn_on_chip import (
        Callbacks,
        TraceRequest,
        prepare,
        run_learning,
    )
    from neuro_eqprop.experiments.run_folder import TRACES

    study, config = chosen(args)
    trace = None
    if args.traces:
        path = args.out / TRACES if args.traces == BESIDE else args.traces
        trace = TraceRequest(path, args.record or (), args.watched, announce)
    total = prepare(study, config).total_samples
    with bar(f"learning {study.dataset} on {config.on}", total) as advance:
        text = "samples"

        def show_epoch(metrics: Json) -> None:
            nonlocal text
            text = f"samples, test {percent(metrics['test_accuracy'])}"

        result = run_learning(
            study,
            config,
            args.out,
            force=args.force,
            resume=args.resume,
            callbacks=Callbacks(lambda more: advance(more, text), show_epoch, warn),
            trace=trace,
        )
    if trace:
        result["traces"] = str(trace.path)
    return result


def warn(warning: str) -> None:
    """Print a warning on standard error."""
    sys.stderr.write(f"neuro-eqprop learn: warning: {warning}\n")


def show(outcome: Json, console: Console) -> None:
    """The outcome in words."""
    phases = ", ".join(f"{steps} {name}" for name, steps in outcome["phases"].items())
    batch = "batch 1" if outcome["batch"] == 1 else f"batch {outcome['batch']} (tags wait)"
    stuck = sum(outcome["saturated"].values())
    cosines = ", ".join(
        f"{name} {told['rate']:.3f}"
        for name, told in outcome["cosines"].items()
        if told["rate"] is not None
    )
    rows = {
        "network": f"{outcome['model']}, {outcome['parameters']} parameters",
        "learned on": f"{outcome['on']}, code {outcome['code']}, "
        f"{outcome['bits'] or 'real'} bits, {batch}",
        "test accuracy": f"{percent(outcome['test_accuracy'])} in spikes, "
        f"{percent(outcome['rate_test_accuracy'])} as rates",
        "train accuracy": f"{percent(outcome['train_accuracy'])} in the last epoch's free phases",
        "rule": f"{outcome['nudging']} nudging, beta {outcome['beta']}; steps {phases}",
        "cosine with rates": cosines or "not measured",
        "updates": f"{outcome['weight_updates']} of weights, {outcome['tag_updates']} of tags, "
        f"{outcome['trace_updates']} of traces",
        "limits": f"{stuck} weights stand at one, {outcome['clipped']} changes were cut off, "
        f"{outcome['overflows']} overflows",
        "time": f"{outcome['seconds']:.1f} s, {outcome['images_per_second']:.0f} images/s",
        "run": outcome["run"],
    }
    if outcome["forgetting"]:
        rows["forgetting"] = ", ".join(
            f"{percent(task['learned'])} -> {percent(task['end'])}"
            for task in outcome["forgetting"]
        )
    print_facts(rows, console)


COMMAND = Command("learn", "learn in the spiking domain itself", options, run, show)
