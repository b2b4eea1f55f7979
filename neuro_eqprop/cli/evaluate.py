"""`neuro-eqprop evaluate`: accuracy on the test set, as rates or on a simulator."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rich.console import Console

from neuro_eqprop.arrays import UnknownNameError
from neuro_eqprop.cli.base import FAILURE, Command, Json, facts, fraction, percent, positive_int
from neuro_eqprop.spiking.lower import Code

STEPS = {"rate": 64, "graded": 32}
"""Steps of a free phase that each code needs to settle and be read."""


def some(text: str) -> int | None:
    """A number of samples, or all of them."""
    return None if text == "all" else positive_int(text)


def code_options(parser: ArgumentParser) -> None:
    """How rates become spikes: shared by all commands that make spikes."""
    parser.add_argument(
        "--steps", type=positive_int, help="of a phase (64 for rate, 32 for graded)"
    )
    parser.add_argument("--code", default="rate", help="rate (binary spikes) or graded")


def options(parser: ArgumentParser) -> None:
    """Which run, where, and how."""
    parser.add_argument("run", type=Path, metavar="RUN")
    parser.add_argument("--on", default="rate", metavar="WHERE", help="rate, numpy or a simulator")
    parser.add_argument("--samples", type=some, default=None, metavar="N", help="a number or all")
    code_options(parser)
    parser.add_argument(
        "--max-drop", type=fraction, metavar="D", help="fail if more accuracy is lost"
    )


def run(args: Namespace) -> Json:
    """Evaluate and add a line to the run's evaluations."""
    from neuro_eqprop.cli.progress import bar
    from neuro_eqprop.study.evaluation import evaluate, samples_of
    from neuro_eqprop.study.folder import EVALUATIONS, append, open_run

    code, opened = code_named(args.code), open_run(args.run)
    total = len(samples_of(opened, args.samples))
    with bar(f"on {args.on}", total) as advance:
        outcome = evaluate(
            opened,
            on=args.on,
            code=code,
            steps=args.steps or STEPS[code.value],
            samples=args.samples,
            watch=lambda more: advance(more, "samples"),
        )
    append(args.run / EVALUATIONS, outcome)
    drop = outcome["rate_accuracy"] - outcome["accuracy"]
    if args.max_drop is not None and drop > args.max_drop:
        outcome[FAILURE] = (
            f"{percent(drop)} of accuracy is lost on {args.on}, more than --max-drop allows; "
            f"take more --steps or --code graded"
        )
    return outcome


def code_named(name: str) -> Code:
    """The code of that name."""
    known = {code.value: code for code in Code}
    if name not in known:
        raise UnknownNameError("code", name, known)
    return known[name]


def show(outcome: Json, console: Console) -> None:
    """The outcome in words."""
    spikes = outcome["code"] is not None
    pearson = "none" if outcome["pearson"] is None else f"{outcome['pearson']:.5f}"
    rows = {
        "on": outcome["on"]
        + (f", code {outcome['code']}, {outcome['steps']} steps" if spikes else ""),
        "samples": outcome["samples"],
        "accuracy": percent(outcome["accuracy"]),
        "rates settled in float64": percent(outcome["rate_accuracy"]),
        "agreement": percent(outcome["agreement"]),
        "rates": f"Pearson {pearson}, RMSE {outcome['rmse']:.4f}, "
        f"99.9 % within {outcome['p999']:.4f}",
    }
    if spikes:
        rows["events"] = (
            f"{outcome['spikes_per_neuron']:.2f} per neuron, {outcome['synops_per_sample']:.0f} "
            f"synaptic and {outcome['host_macs_per_sample']:.0f} host operations per sample"
        )
    facts(rows | {"time": f"{outcome['seconds']:.1f} s"}, console)


COMMAND = Command("evaluate", "accuracy on the test set", options, run, show)
