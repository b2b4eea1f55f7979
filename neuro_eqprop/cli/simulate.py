"""`neuro-eqprop simulate`: run samples and record traces."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rich.console import Console

from neuro_eqprop.backends.registry import BACKENDS
from neuro_eqprop.cli.command import Command, Json, positive_int, print_facts
from neuro_eqprop.cli.evaluate import (
    code_options,
    input_option,
    open_source,
    source_options,
)


def options(parser: ArgumentParser) -> None:
    """Which run, where, what to record."""
    add = parser.add_argument
    source_options(parser)
    add("--on", required=True, metavar="WHERE", help=", ".join(("rate", *BACKENDS)))
    add("--samples", type=positive_int, default=10, metavar="N")
    add("--traces", type=Path, metavar="FILE.h5", help="RUN/traces.h5 or NET.h5 if not given")
    add("--phases", action="store_true", help="run the nudged phases too")
    told = (
        "also, for example hidden:voltage, 'hidden->output:hebbian', 'hidden->output[3,17]:hebbian'"
    )
    add("--record", action="append", default=[], metavar="WHAT:VARIABLE", help=told)
    add("--bits", type=positive_int, help="of integer weights, in fixed point")
    add("--force", action="store_true", help="replace the trace file")
    code_options(parser)
    input_option(parser)
    parser.set_defaults(code=None)


def run(args: Namespace) -> Json:
    """Simulate and write the trace."""
    from neuro_eqprop.cli.progress import announce, bar
    from neuro_eqprop.experiments.run_folder import TRACES
    from neuro_eqprop.experiments.simulate import SimulationConfig, simulate
    from neuro_eqprop.spiking.input_coding import find_input_coding

    opened, code, bits = open_source(args.run, args.dataset, args.code, args.bits)
    beside = args.run / TRACES if args.run.is_dir() else args.run.with_suffix(".h5")
    simulation = SimulationConfig(
        on=args.on,
        samples=args.samples,
        steps=args.steps or code.steps,
        code=code,
        phases=args.phases,
        record=tuple(args.record),
        entry=find_input_coding(args.input),
        bits=args.bits if args.on == "rate" else bits,
    )
    with bar(f"on {args.on}", args.samples) as advance:
        return simulate(
            opened,
            simulation,
            args.traces or beside,
            force=args.force,
            watch=lambda more: advance(more, "samples"),
            tell=announce,
        )


def show(outcome: Json, console: Console) -> None:
    """The outcome in words."""
    rows = {
        "on": outcome["on"],
        "phases": f"{', '.join(outcome['phases'])}, {outcome['steps']} steps each",
        "samples": outcome["samples"],
        "recorded": ", ".join(outcome["recorded"]),
        "traces": f"{outcome['traces']} ({outcome['bytes'] / 1e6:.2f} MB)",
        "time": f"{outcome['seconds']:.1f} s",
    }
    for warning in outcome["warnings"]:
        rows["warning"] = warning
    print_facts(rows, console)


COMMAND = Command("simulate", "run samples and record traces", options, run, show)
