"""`neuro-eqprop demo`: the whole chain on the embedded digits, from training to the report."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from neuro_eqprop.cli.command import Command, Json, percent

RUNS = (
    ("rate", ("--on", "rate")),
    ("reference, rate", ("--on", "reference", "--code", "rate")),
    ("reference, graded", ("--on", "reference", "--code", "graded")),
    ("emulator, rate", ("--on", "emulator", "--code", "rate")),
    ("emulator, graded", ("--on", "emulator", "--code", "graded")),
    ("snnTorch, rate", ("--on", "snntorch", "--code", "rate")),
    ("snnTorch, graded", ("--on", "snntorch", "--code", "graded")),
    ("Brian2, rate", ("--on", "brian2", "--code", "rate")),
    ("Brian2, graded", ("--on", "brian2", "--code", "graded")),
    ("Brian2 biology", ("--on", "brian2-biology", "--code", "rate", "--samples", "60")),
    ("Lava, rate", ("--on", "lava", "--code", "rate", "--samples", "60")),
    ("Lava, graded", ("--on", "lava", "--code", "graded", "--samples", "60")),
)
"""What is evaluated, and how; the slow ones get fewer samples."""

SAMPLES = "30"
"""Of which traces are recorded."""


def options(parser: ArgumentParser) -> None:
    """Where to."""
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the run folder")
    parser.add_argument("--force", action="store_true", help="replace a run that is there")


def perform(words: Sequence[str]) -> Json:
    """Another command, as a user would call it."""
    from neuro_eqprop.cli import command, parser

    args = parser(list(words)).parse_args(list(words))
    return command(words[0]).run_json(args)


def tell(sentence: str) -> None:
    """Say on standard error what comes next."""
    Console(stderr=True, highlight=False).print(f"demo: {sentence}", markup=False)


def run(args: Namespace) -> Json:
    """Every step as the command that does it."""
    from neuro_eqprop.backends.base import BackendError

    out = str(args.out)
    forced = ["--force"] if args.force else []
    tell("training a layered network 64-128-10 on the digits by equilibrium propagation")
    outcome: Json = {"run": out, "train": perform(["train", "--out", out, *forced])}
    evaluations, missing = [], []
    for name, words in RUNS:
        tell(f"evaluating: {name}")
        try:
            evaluations.append({"name": name, **perform(["evaluate", out, *words])})
        except BackendError as error:
            tell(f"left out: {error}")
            missing.append({"name": name, "reason": str(error)})
    tell("recording the settling of rates and of spikes, free and nudged")
    rates, spikes = f"{out}/rate.h5", f"{out}/traces.h5"
    on = "reference" if any("Lava" in each["name"] for each in missing) else "lava"
    common = ["--samples", SAMPLES, "--phases", "--steps", "64"]
    perform(["simulate", out, "--on", "rate", "--traces", rates, *common])
    perform(["simulate", out, "--on", on, "--traces", spikes, *common])
    outcome |= {"evaluations": evaluations, "missing": missing}
    outcome["compare"] = perform(["compare", rates, spikes])
    tell("counting events and estimating joules")
    outcome["energy"] = perform(["energy", out, "--samples", "60", "--curve"])
    outcome["report"] = perform(["report", out])["report"]
    return outcome


def show(outcome: Json, console: Console) -> None:
    """One table, and where the report is."""
    table = Table(title="the same network as rates and as spikes", title_justify="left")
    for column in ("where", "samples", "steps", "accuracy", "agreement", "Pearson", "s"):
        table.add_column(column, justify="left" if column == "where" else "right")
    for each in outcome["evaluations"]:
        table.add_row(
            each["name"],
            str(each["samples"]),
            str(each["steps"] or "-"),
            percent(each["accuracy"]),
            percent(each["agreement"]),
            "none" if each["pearson"] is None else f"{each['pearson']:.5f}",
            f"{each['seconds']:.1f}",
        )
    console.print(table)
    for each in outcome["missing"]:
        console.print(f"left out: {each['name']}: {each['reason']}", markup=False)
    console.print("agreement: the share of samples with the same answer as the rates")
    console.print(f"report: {outcome['report']}", markup=False)


COMMAND = Command("demo", "the whole chain on the embedded digits", options, run, show)
