"""`neuro-eqprop evaluate`: accuracy on the test set, as rates or on a simulator."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any, cast

from rich.console import Console

import neuro_eqprop as ne
from neuro_eqprop.cli.biology import backend_of, biology_options
from neuro_eqprop.cli.command import (
    FAILURE,
    Command,
    Json,
    fraction,
    percent,
    positive_int,
    print_facts,
    run_argument,
    set_completions,
)
from neuro_eqprop.cli.executors import shard_options, worker_options
from neuro_eqprop.cli.options import (
    BITS_HELP,
    code_options,
    deadline_option,
    input_option,
    several,
    size_option,
    some,
    source_options,
)
from neuro_eqprop.cli.progress import counted
from neuro_eqprop.runs.run_folder import TRACES
from neuro_eqprop.simulators.base import Backend
from neuro_eqprop.simulators.registry import BACKENDS, load_backend

SWEPT = ("steps", "accuracy", "agreement", "pearson", "rmse", "p999", "spikes_per_neuron")
"""The fields of a row of a sweep."""


def options(parser: ArgumentParser) -> None:
    """Add the run, the simulator and the settings of the evaluation."""
    size_option(parser)
    deadline_option(parser)
    source_options(parser)
    where = ("rate", "numpy", *BACKENDS)
    meaning = f"where to run: {', '.join(where)}"
    set_completions(
        parser.add_argument("--on", default="rate", metavar="WHERE", help=meaning), where
    )
    samples = "use only the first N test samples, or all (default all)"
    parser.add_argument("--samples", type=some, default=None, metavar="N|all", help=samples)
    code_options(parser)
    input_option(parser)
    biology_options(parser)
    sweep = "evaluate with several numbers of steps, as 8,16,32 (default: --steps alone)"
    parser.add_argument("--sweep", type=several, metavar="T,T,...", help=sweep)
    parser.add_argument("--bits", type=positive_int, help=BITS_HELP)
    shard_options(parser)
    device = "device of torch for --on snntorch: cpu, cuda, mps (default cpu)"
    parser.add_argument("--device", metavar="DEVICE", help=device)
    drop = "fail if accuracy drops by more than this fraction (default: any drop is accepted)"
    parser.add_argument("--max-drop", type=fraction, metavar="D", help=drop)


def run(args: Namespace) -> Json:
    """Evaluate the run, with each number of steps of a sweep."""
    backend, shared = on_device(args), worker_options(args)
    opened, found = ne.open_run(args.run, dataset=args.dataset), list[Json]()
    for steps in args.sweep or [args.steps]:
        with counted(f"on {args.on}", len(opened.test_samples(args.samples)), "samples") as done:
            result = opened.evaluate(
                on=backend,
                samples=args.samples,
                code=args.code,
                bits=args.bits,
                steps=steps,
                input=args.input,
                progress=done,
                workers=shared.workers,
                executor=shared.executor,
            )
        found.append({"run": str(args.run), **result.to_dict()})
    outcome = found[-1]
    if args.sweep:
        outcome["sweep"] = [{key: each[key] for key in SWEPT} for each in found]
    if args.max_drop is not None and result.drop > args.max_drop:
        outcome[FAILURE] = (
            f"{percent(result.drop)} of accuracy is lost on {args.on}, more than --max-drop "
            f"allows; use more --steps or --code graded"
        )
    return outcome


def on_device(args: Namespace) -> str | Backend:
    """The simulator, on the device that is asked for."""
    if args.device is None:
        return backend_of(args)
    if args.on != "snntorch":
        raise ValueError(f"--device is for --on snntorch, and {args.on} has no device of torch")
    backend: Backend = cast(Any, load_backend(args.on)).on_device(args.device)
    return backend


def show(outcome: Json, console: Console) -> None:
    """Print the result."""
    spikes = outcome["code"] is not None
    pearson = "none" if outcome["pearson"] is None else f"{outcome['pearson']:.5f}"
    rows = {
        "on": outcome["on"]
        + (f", code {outcome['code']}, {outcome['steps']} steps" if spikes else ""),
        "samples": outcome["samples"],
        "accuracy": percent(outcome["accuracy"]),
        "rates settled in float64": f"{percent(outcome['rate_accuracy'])}, "
        + change(outcome["accuracy"] - outcome["rate_accuracy"]),
        "agreement": percent(outcome["agreement"]),
        "rates": f"Pearson {pearson}, RMSE {outcome['rmse']:.4f}, "
        f"99.9 % within {outcome['p999']:.4f}",
    }
    if spikes:
        rows["events"] = (
            f"{outcome['spikes_per_neuron']:.2f} per neuron, {outcome['synops_per_sample']:.0f} "
            f"synaptic and {outcome['host_macs_per_sample']:.0f} host operations per sample"
        )
        rows["input"] = (
            f"{outcome['input']}, {outcome['input_spikes_per_sample']:.0f} spikes and "
            f"{outcome['input_synops_per_sample']:.0f} of the synaptic operations"
        )
        rows["work"] = f"{outcome['work_to_dense']:.3f} of a dense pass ({outcome['dense_macs']})"
    if outcome["error_to_reference"] is not None:
        rows["against the reference"] = (
            f"firing is off by {outcome['error_to_reference']:.4f} on average: "
            f"{outcome['on']} does not run the same step"
        )
    if outcome["bits"] is not None:
        rows["fixed point"] = f"{outcome['bits']}-bit weights, {outcome['overflows']} overflows"
    for warning in outcome["warnings"]:
        rows["warning"] = warning
    print_facts(rows | {"time": f"{outcome['seconds']:.1f} s"}, console)
    if "sweep" in outcome:
        show_sweep(outcome["sweep"], console)


def change(accuracy: float) -> str:
    """A difference of accuracies in percentage points, as a gain or a drop."""
    points = f"{100 * abs(accuracy):.2f}"
    return f"a {'gain' if accuracy > 0 and float(points) else 'drop'} of {points} points"


def show_sweep(rows: list[Json], console: Console) -> None:
    """Print a row for each number of steps."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for column in ("steps", "accuracy", "agreement", "RMSE", "99.9 % within", "events"):
        table.add_column(column, justify="right")
    for row in rows:
        parts = percent(row["accuracy"]), percent(row["agreement"])
        sent = row["spikes_per_neuron"]
        events = "" if sent is None else f"{sent:.2f}"
        error = f"{row['rmse']:.4f}", f"{row['p999']:.4f}"
        table.add_row(str(row["steps"]), *parts, *error, events)
    console.print(table)


def next_step(outcome: Json) -> str | None:
    """Rates: evaluate as spikes. Spikes: record them, or if there is a trace, estimate joules."""
    folder, run = Path(outcome["run"]), run_argument(outcome["run"])
    if not folder.is_dir():
        return None  # a NIR file, which needs its data set
    if outcome["code"] is None:
        return f"evaluate {run} --on emulator --code graded"
    bits = "" if outcome["bits"] is None else f" --bits {outcome['bits']}"
    if (folder / TRACES).exists():
        return f"energy {run} --code {outcome['code']}{bits}"
    return f"simulate {run} --on {outcome['on']} --code {outcome['code']}{bits}"


COMMAND = Command(
    "evaluate",
    options,
    run,
    show,
    (
        "neuro-eqprop evaluate runs/digits",
        "neuro-eqprop evaluate runs/digits --on emulator --code graded --bits 8",
        "neuro-eqprop evaluate runs/digits --on brian2 --samples 20 --max-drop 0.05",
        "neuro-eqprop evaluate runs/digits --on emulator --code rate --sweep 16,32,64 --json",
    ),
    next_step,
)
