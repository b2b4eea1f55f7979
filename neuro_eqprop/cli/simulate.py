"""`neuro-eqprop simulate`: run samples and record traces."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rich.console import Console

import neuro_eqprop as ne
from neuro_eqprop.cli.biology import backend_of, biology_options
from neuro_eqprop.cli.command import (
    Command,
    Json,
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
    size_option,
    source_options,
)
from neuro_eqprop.cli.progress import announce, counted
from neuro_eqprop.runs.run_folder import TRACES
from neuro_eqprop.simulators.registry import BACKENDS


def options(parser: ArgumentParser) -> None:
    """Add the source, the simulator and the variables to record."""
    size_option(parser)
    deadline_option(parser)
    add = parser.add_argument
    source_options(parser)
    where = ("rate", *BACKENDS)
    meaning = f"where to run: {', '.join(where)}"
    set_completions(add("--on", required=True, metavar="WHERE", help=meaning), where)
    add("--samples", type=positive_int, default=10, help="use only the first N test samples")
    traced = "trace file to write (default RUN/traces.h5 or NET.h5)"
    add("--traces", type=Path, metavar="FILE.h5", help=traced)
    repeated = "show the samples N times, with other random numbers, for statistics by stimulus"
    add("--repeats", type=positive_int, default=1, metavar="N", help=f"{repeated} (default 1)")
    add("--phases", action="store_true", help="run the nudged phases too")
    record = (
        "record also, for example, hidden:voltage, 'hidden->output:hebbian' or "
        "'hidden->output[3,17]:hebbian'; repeatable"
    )
    add("--record", action="append", default=[], metavar="WHAT:VARIABLE", help=record)
    add("--bits", type=positive_int, help=BITS_HELP)
    add("--force", action="store_true", help="replace the trace file")
    code_options(parser)
    input_option(parser)
    biology_options(parser)
    shard_options(parser)


def run(args: Namespace) -> Json:
    """Simulate and write the trace."""
    backend, shared = backend_of(args), worker_options(args)
    opened = ne.open_run(args.run, dataset=args.dataset)
    with counted(f"on {args.on}", args.samples * args.repeats, "samples") as done:
        found = opened.record(
            on=backend,
            samples=args.samples,
            out=args.traces,
            phases=args.phases,
            repeats=args.repeats,
            record=args.record,
            code=args.code,
            steps=args.steps,
            bits=args.bits,
            input=args.input,
            force=args.force,
            progress=done,
            announce=announce,
            workers=shared.workers,
            executor=shared.executor,
        )
    return {"run": str(args.run), **found.to_json()}


def show(outcome: Json, console: Console) -> None:
    """Print the result."""
    rows = {
        "on": outcome["on"],
        "phases": phases(outcome["phases"], outcome["steps"]),
        "samples": outcome["samples"],
        "recorded": ", ".join(outcome["recorded"]),
        "traces": f"{outcome['traces']} ({outcome['bytes'] / 1e6:.2f} MB)",
        "time": f"{outcome['seconds']:.1f} s",
    }
    rows |= fidelity_rows(outcome["fidelity"])
    for warning in outcome["warnings"]:
        rows["warning"] = warning
    print_facts(rows, console)


def fidelity_rows(fidelity: list[Json]) -> dict[str, str]:
    """A row for each read-out of the update: its cosines, connection by connection."""
    rows: dict[str, str] = {}
    for each in fidelity:
        title = f"update, {each['readout']}"
        gradient = each["gradient"]
        text = f"{each['connection']} {cosine_text(each['rate'])} with rates"
        if gradient is not None:
            text += f", {gradient:.2f} with minus its own gradient"
        rows[title] = f"{rows[title]}; {text}" if title in rows else f"cosine of {text}"
    return rows


def cosine_text(cosine: float | None) -> str:
    """A cosine with three digits, or that it has none."""
    return "undefined" if cosine is None else f"{cosine:.3f}"


def phases(names: list[str], steps: int) -> str:
    """The phases and their steps."""
    if len(names) == 1:
        return f"{names[0]} phase, {steps} steps"
    return f"{', '.join(names)}, {steps} steps each"


def next_step(outcome: Json) -> str:
    """The report of the run if it shows this trace, otherwise the contents of the trace."""
    if Path(outcome["traces"]) == Path(outcome["run"]) / TRACES:
        return f"report {run_argument(outcome['run'])}"
    return f"traces show {run_argument(outcome['traces'])}"


COMMAND = Command(
    "simulate",
    options,
    run,
    show,
    (
        "neuro-eqprop simulate runs/digits --on rate --phases --samples 3 --traces rates.h5",
        "neuro-eqprop simulate runs/digits --on emulator --phases --samples 3 --traces spikes.h5",
        "neuro-eqprop simulate runs/digits --on reference --samples 2 --record hidden:voltage",
    ),
    next_step,
)
