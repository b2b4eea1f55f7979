"""`neuro-eqprop learn`: both phases and the Hebbian rule run in a simulator."""

from __future__ import annotations

import sys
import warnings
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

import neuro_eqprop as ne
from neuro_eqprop.cli.biology import biology_options, given_options
from neuro_eqprop.cli.command import (
    Command,
    Json,
    UsageError,
    in_flags,
    percent,
    positive_int,
    print_facts,
    run_argument,
    set_completions,
)
from neuro_eqprop.cli.executors import shard_options, worker_options
from neuro_eqprop.cli.options import DEFAULT_TRACE, deadline_option, size_option, trace_path
from neuro_eqprop.cli.progress import announce, bar
from neuro_eqprop.cli.setting_options import (
    flag,
    given_settings,
    metavar,
    names_of,
    placeholder,
    shown,
)
from neuro_eqprop.common.settings import limits_of, settings_of
from neuro_eqprop.networks.activations import HIDDEN
from neuro_eqprop.runs.on_chip_config import (
    DEEP_FEEDBACK,
    MANY,
    MANY_SAMPLES,
    OnChipConfig,
    flat_settings,
    learning_settings,
    read,
)
from neuro_eqprop.runs.run_folder import STUDY, check_begun
from neuro_eqprop.simulators.registry import learner_names
from neuro_eqprop.spiking.codes import CODES, learning_codes

if TYPE_CHECKING:
    from neuro_eqprop.cli.progress import Advance

STUDY_HELP = {
    "dataset": "an .npz file, or a data set by name",
    "model": "layered, or looped without a bound",
    "hidden": "units of each hidden layer, separated by commas",
    "activation": "of hidden layers (code rate needs hard_sigmoid)",
    "output": "activation of the output, hard_sigmoid or linear; code rate needs the first",
    "feedback": "scale of the feedback weights of a layered network",
    "feedback_weights": "of a layered network: tied to the forward ones, random, or learned",
    "epochs": "passes over the training samples",
    "batch": "samples that share a commit; a chip has 1",
    "learning_rate": "learning rate at the start; it decreases to zero along half a cosine",
    "seed": "of weights, order of samples, rounding and nonidealities",
    "beta": "strength of the nudge",
    "nudging": "centered or positive",
}
"""Settings of a study that have an option; `--set` reaches the others."""
METAVARS = {"biology": "KEY=VALUE,..."}
"""Placeholders that the type of a setting does not give."""


def options(parser: ArgumentParser) -> None:
    """Add the settings of learning, the run folder and the trace."""
    size_option(parser)
    deadline_option(parser)

    add = parser.add_argument
    add(
        "study",
        nargs="?",
        type=Path,
        metavar="STUDY.toml",
        help="settings; options override them (default: those below)",
    )
    add("--out", type=Path, required=True, metavar="RUN", help="run folder to write")
    usual = flat_settings(*learning_settings({}))
    lists = {
        "dataset": ", ".join(names_of("dataset")),
        "activation": ", ".join(HIDDEN),
        "on": ", ".join(learner_names()),
        "code": " or ".join(learning_codes()),
    }
    for key, text in STUDY_HELP.items():
        names = f": {lists[key]}" if key in lists else ""
        deep = f"; {DEEP_FEEDBACK:g} for several hidden layers" if key == "feedback" else ""
        if key in MANY:
            deep = f"; {MANY[key]:g} from {MANY_SAMPLES} samples on"
        described = f"{text}{names} (default {shown(usual[key])}{deep})"
        set_completions(add(flag(key), metavar=metavar(key), help=described), names_of(key))
    steps = ", ".join(
        f"{policy.steps} for {name}"
        for name in learning_codes()
        if (policy := CODES[name].learning) is not None
    )
    add(
        "--steps",
        metavar="N",
        help="steps of a nudged phase; sets free, settle, window "
        f"(default {steps}; twice as many for each further hidden layer)",
    )
    for key, field in settings_of(OnChipConfig).items():
        text = f"{limits_of(field).help}{f': {lists[key]}' if key in lists else ''}"
        if isinstance(field.default, bool):
            add(flag(key), action="store_true", default=None, help=text)
        else:
            described = f"{text} (default {shown(field.default) or 'none'})"
            add(flag(key), metavar=METAVARS.get(key) or placeholder(field.default), help=described)
    biology_options(parser)
    settings = "any setting of a study; repeatable"
    add("--set", action="append", default=[], metavar="KEY=VALUE", help=settings)
    traced = (
        "record the first samples step by step, then the epochs "
        "(default: no trace; without a file: RUN/traces.h5)"
    )
    add("--traces", type=Path, nargs="?", const=DEFAULT_TRACE, metavar="FILE.h5", help=traced)
    also = (
        "with --traces, also: hidden:voltage, hidden:current, source->target:hebbian, "
        "source->target[row,column]:hebbian; repeatable"
    )
    add("--record", action="append", default=[], metavar="WHAT:VARIABLE", help=also)
    whole = (
        "with --traces: record all weights after these numbers of samples, for example 0,100,1000 "
        "(default: never)"
    )
    add("--snapshots", type=sample_numbers, default=(), metavar="N,...", help=whole)
    recorded = "samples recorded step by step"
    add("--watched", type=positive_int, default=50, metavar="N", help=recorded)
    threads = "threads that share the test samples; training samples follow one another"
    shard_options(parser, threads)
    add("--resume", action="store_true", help="continue the run in --out after its last epoch")
    add("--force", action="store_true", help="replace a run that --out already holds")


def sample_numbers(text: str) -> tuple[int, ...]:
    """Numbers of samples, separated by commas."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise ArgumentTypeError(f"{text!r} is no list of sample numbers, such as 0,100,1000")
    return tuple(int(part) for part in parts)


def settings(args: Namespace) -> dict[str, Any]:
    """The settings of the study file, if there is one, and of the options, which override them."""
    if args.resume:
        check_begun(args.out)
    path = args.study or (args.out / STUDY if args.resume else None)
    given: dict[str, Any] = {
        **given_settings(args, (*STUDY_HELP, *settings_of(OnChipConfig), "steps"))
    }
    biology = [f"{name}={value}" for name, value in given_options(args).items()]
    if biology:
        given["biology"] = ",".join([*filter(None, [given.get("biology")]), *biology])
    if path is None:
        return given
    written = flat_settings(*read(path))
    if "steps" in given or given.get("code", written["code"]) != written["code"]:
        for key in ("free", "settle", "window"):  # of the other code, or of other steps
            del written[key]
    return written | given


def run(args: Namespace) -> Json:
    """Learn and write the run."""
    from neuro_eqprop.runs.learn_on_chip.result import learning_result
    from neuro_eqprop.runs.learn_on_chip.trace import TraceRequest

    given, shared = settings(args), worker_options(args)
    model, data = given.pop("model", "layered"), given.pop("dataset", "digits")
    trace = None
    if (args.record or args.snapshots) and args.traces is None:
        raise UsageError("--record and --snapshots are for a trace: add --traces")
    path = trace_path(args)
    if path is not None:
        trace = TraceRequest(path, args.record, args.watched, announce, args.snapshots)
    with ProgressBar(f"learning {data}") as bar, printed_warnings():
        learned = ne.learn_on_chip(
            model,
            data,
            out=args.out,
            force=args.force,
            resume=args.resume,
            traces=trace,
            progress=bar.on_epoch,
            on_samples=bar.on_samples,
            workers=shared.workers,
            executor=shared.executor,
            **given,
        )
    return learning_result(learned) | ({} if trace is None else {"traces": str(trace.path)})


class ProgressBar(ExitStack):
    """A bar over the samples, with the test accuracy of the last epoch."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self.title, self.text, self.done = title, "samples", 0
        self.advance: Advance | None = None

    def on_samples(self, done: int, total: int) -> None:
        """Advance the bar, which opens when the total is known."""
        if self.advance is None:
            self.advance = self.enter_context(bar(self.title, total))
        self.advance(done - self.done, self.text)
        self.done = done

    def on_epoch(self, metrics: Json) -> None:
        """Show the test accuracy."""
        self.text = f"samples, test {percent(metrics['test_accuracy'])}"


@contextmanager
def printed_warnings() -> Iterator[None]:
    """Print warnings of learning on standard error, one line each."""
    from neuro_eqprop.runs.learn_on_chip.loop import OnChipWarning

    def write(message: Warning | str, *_: object, **__: object) -> None:
        sentence = in_flags(str(message), options)
        sys.stderr.write(f"neuro-eqprop learn: warning: {sentence}\n")

    with warnings.catch_warnings():
        warnings.simplefilter("always", OnChipWarning)
        warnings.showwarning = write
        yield


def show(result: Json, console: Console) -> None:
    """Print the result as a table."""
    phases = ", ".join(f"{steps} {name}" for name, steps in result["phases"].items())
    batch = result["batch"]
    saturated = sum(result["saturated"].values())
    cosines = ", ".join(
        f"{name} {cosine['rate']:.3f}"
        for name, cosine in result["cosines"].items()
        if cosine["rate"] is not None
    )
    bits = f"{result['bits']} bits" if result["bits"] else "floating point"
    rows = {
        "network": f"{result['model']}, {result['parameters']} parameters",
        "learned on": f"{result['on']}, code {result['code']}, {bits}, batch {batch}"
        + ("" if batch == 1 else f" (a commit for {batch} samples)"),
        "test accuracy": f"{percent(result['test_accuracy'])} in spikes, "
        f"{percent(result['rate_test_accuracy'])} as rates",
        "train accuracy": f"{percent(result['train_accuracy'])} in the last epoch's free phases",
        "rule": f"{result['nudging']} nudging, beta {result['beta']}; steps {phases}",
        "cosine with rates": cosines or "not measured",
        "updates": f"{result['weight_updates']} of weights, {result['tag_updates']} of tags, "
        f"{result['trace_updates']} of traces",
        "limits": f"{saturated} weights at their limit, {result['clipped']} updates clipped, "
        f"{result['overflows']} overflows",
        "time": f"{result['seconds']:.1f} s, {result['images_per_second']:.0f} images/s",
        "run": result["run"],
    }
    if result["feedback_cosine"]:
        rows["feedback"] = ", ".join(
            f"{name} has a cosine of {value:.3f} with the transposed weights"
            for name, value in result["feedback_cosine"].items()
            if value is not None
        )
    if result["forgetting"]:
        rows["forgetting"] = ", ".join(
            f"{percent(task['learned'])} -> {percent(task['end'])}" for task in result["forgetting"]
        )
    print_facts(rows, console)


def next_step(outcome: Json) -> str:
    """Estimate the energy of the run, learning included."""
    return f"energy {run_argument(outcome['run'])} --profile loihi2"


COMMAND = Command(
    "learn",
    options,
    run,
    show,
    (
        "neuro-eqprop learn --on emulator --hidden 128 --epochs 2 --out runs/chip",
        "neuro-eqprop learn --code graded --bits 8 --samples 50 --epochs 1 --out runs/8bit",
    ),
    next_step,
)
