"""`neuro-eqprop simulate`: run samples and record traces."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rich.console import Console

from neuro_eqprop.arrays import UnknownNameError
from neuro_eqprop.backends.registry import BACKENDS
from neuro_eqprop.cli.biology import backend_of, biology_options
from neuro_eqprop.cli.command import (
    Command,
    Json,
    UsageError,
    check_overwrite,
    deadline_option,
    offer,
    positive_int,
    print_facts,
    run_argument,
    size_option,
)
from neuro_eqprop.cli.evaluate import (
    BITS_HELP,
    code_options,
    input_option,
    open_source,
    source_options,
)
from neuro_eqprop.cli.executors import shard_options, shared_by


def options(parser: ArgumentParser) -> None:
    """Add the source, the simulator and the variables to record."""
    size_option(parser)
    deadline_option(parser)
    add = parser.add_argument
    source_options(parser)
    where = ("rate", *BACKENDS)
    meaning = f"where to run: {', '.join(where)}"
    offer(add("--on", required=True, metavar="WHERE", help=meaning), where)
    add("--samples", type=positive_int, default=10, help="use only the first N test samples")
    traced = "trace file to write (default RUN/traces.h5 or NET.h5)"
    add("--traces", type=Path, metavar="FILE.h5", help=traced)
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
    from neuro_eqprop.cli.progress import announce, bar
    from neuro_eqprop.experiments.event_stats import warnings_of
    from neuro_eqprop.experiments.run_folder import TRACES, first_samples
    from neuro_eqprop.experiments.simulate import TraceOutput, record_rates, record_spikes
    from neuro_eqprop.spiking.model import to_spiking

    if args.on != "rate" and args.on not in BACKENDS:
        raise UnknownNameError("backend", args.on, ("rate", *BACKENDS))
    backend = backend_of(args)
    source = open_source(args.run, args.dataset, args.code, args.bits)
    path = args.traces or (args.run / TRACES if args.run.is_dir() else args.run.with_suffix(".h5"))
    check_overwrite(path, args.force)
    split, steps = first_samples(source.data, args.samples), args.steps or source.code.steps
    rates, spiking, workers = args.on == "rate", None, shared_by(args)
    if rates and args.bits is not None:
        raise UsageError("--bits is for spikes, and --on rate settles rates; use --on emulator")
    with bar(f"on {args.on}", len(split)) as advance:
        shared: Json = {
            "steps": steps,
            "phases": args.phases,
            "record": args.record,
            "output": TraceOutput(
                path, args.force, lambda more: advance(more, "samples"), announce
            ),
        }
        if rates:
            part = source.code.tail
            found = record_rates(source.model, split.x, split.y, part=part, **shared)
        else:
            spiking = to_spiking(source.model, code=source.code, bits=source.bits, input=args.input)
            found = record_spikes(spiking, split.x, split.y, on=backend, shared=workers, **shared)
    return {
        "run": str(args.run),
        "traces": str(path),
        "on": args.on,
        "code": None if spiking is None else spiking.code,
        "bits": None if spiking is None else spiking.bits,
        "samples": len(split),
        "steps": steps,
        "phases": [phase.name for phase in found.plan.schedule],
        "recorded": found.recorded,
        "most_bytes": found.plan.most_bytes,
        "input": None if spiking is None else spiking.input.name,
        "input_spikes": found.input_counts.spikes,
        "input_synops": found.input_counts.synops,
        "warnings": [] if spiking is None else warnings_of(spiking, steps),
        "bytes": path.stat().st_size,
        "seconds": found.seconds,
    }


def show(outcome: Json, console: Console) -> None:
    """Print the result."""
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


def next_step(outcome: Json) -> str:
    """The report of the run if it shows this trace, otherwise the contents of the trace."""
    from neuro_eqprop.experiments.run_folder import TRACES

    if Path(outcome["traces"]) == Path(outcome["run"]) / TRACES:
        return f"report {run_argument(outcome['run'])}"
    return f"traces show {run_argument(outcome['traces'])}"


COMMAND = Command(
    "simulate",
    "run samples and record traces",
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
