"""`neuro-eqprop demo`: the whole chain on the embedded digits, from training to the report."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

import neuro_eqprop as ne
from neuro_eqprop.chips.energy.file import read_energy
from neuro_eqprop.cli.command import Command, Json, percent
from neuro_eqprop.cli.progress import counted
from neuro_eqprop.runs.run_folder import refuse_run
from neuro_eqprop.simulators.base import BackendError

ENERGY = "energy.json"
EPOCHS = 30
RECORDED = 48
"""Samples; among fewer, the nudge moves the output of no sample that is classified correctly."""
EVALUATED = (
    ("rate", "rate", None, None),
    ("reference, rate", "reference", "rate", None),
    ("reference, graded", "reference", "graded", None),
    ("emulator, rate", "emulator", "rate", None),
    ("emulator, graded", "emulator", "graded", None),
    ("snnTorch, rate", "snntorch", "rate", None),
    ("snnTorch, graded", "snntorch", "graded", None),
    ("Brian2, rate", "brian2", "rate", None),
    ("Brian2, graded", "brian2", "graded", None),
    ("Brian2 biology", "brian2-biology", "rate", 60),
    ("Lava, rate", "lava", "rate", 60),
    ("Lava, graded", "lava", "graded", 60),
)
"""Label, simulator, code, and number of samples (None for all; fewer for slow simulators)."""


def options(parser: ArgumentParser) -> None:
    """Add the run folder."""
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the run folder")
    parser.add_argument("--force", action="store_true", help="replace a run that is there")


def log(sentence: str) -> None:
    """Print a message on standard error."""
    Console(stderr=True, highlight=False).print(f"demo: {sentence}", markup=False)


def run(args: Namespace) -> Json:
    """Train, evaluate on every simulator, record, compare, estimate energy, report."""
    refuse_run(args.out, force=args.force)
    log("training a layered network 64-128-10 on the digits by equilibrium propagation")
    # Nudged phases in spikes need full feedback, which preset chip has.
    train = partial(ne.train, "layered", "digits", preset="chip", epochs=EPOCHS)
    with counted("training", EPOCHS, "epochs") as done:
        train(out=args.out, force=args.force, progress=done)
    opened, evaluations, missing = ne.open_run(args.out), [], []
    for name, on, code, samples in EVALUATED:
        size = samples or len(opened.data.test)
        try:
            with counted(f"evaluating: {name}", size, "samples") as done:
                found = opened.evaluate(on=on, code=code, samples=samples, progress=done)
            evaluations.append({"name": name, **found.to_dict()})
        except BackendError as error:
            log(f"left out: {error}")
            missing.append({"name": name, "reason": str(error)})
    log("recording rates and spikes as they settle, free and nudged")
    few = opened.test_samples(RECORDED)
    on = "reference" if any("Lava" in each["name"] for each in missing) else "lava"
    rates = opened.model.record(few.x, few.y, phases=True, out=args.out / "rate.h5")
    spiking = opened.model.to_spiking(code="rate")
    spikes = spiking.record(few.x, few.y, on=on, phases=True, out=args.out / "traces.h5")
    log("counting events and estimating joules")
    energy = ne.estimate_energy(opened, samples=60, curve=(1, 2, 4, 8, 16, 32, 64))
    energy.save(args.out / ENERGY)
    return {
        "run": str(args.out),
        "train": opened.summary(),
        "evaluations": evaluations,
        "missing": missing,
        "compare": ne.compare(rates, spikes).to_json(),
        "energy": energy.to_json(),
        "report": str(ne.report(opened, rates, spikes, energy)),
    }


def show(outcome: Json, console: Console) -> None:
    """Print a table of the evaluations, one of the energy, and the path of the report."""
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
    console.print("agreement: the fraction of samples with the same class as the rates")
    console.print("\nits energy on each chip:")
    read_energy(Path(outcome["run"]) / ENERGY).table(console)
    console.print(f"report: {outcome['report']}", markup=False)


COMMAND = Command(
    "demo",
    options,
    run,
    show,
    ("neuro-eqprop demo --out runs/demo",),
)
