"""`neuro-eqprop translate`: the spiking description as a NIR file."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rich.console import Console

from neuro_eqprop.cli.command import Command, Json, check_overwrite, positive_int, print_facts
from neuro_eqprop.spiking.codes import CODES, find_code


def options(parser: ArgumentParser) -> None:
    """Which run, and where to."""
    parser.add_argument("run", type=Path, metavar="RUN")
    parser.add_argument("--out", type=Path, required=True, metavar="NET.nir")
    parser.add_argument("--code", default="rate", help=", ".join(CODES))
    parser.add_argument("--bits", type=positive_int, help="of integer weights, in fixed point")
    parser.add_argument("--nudged", action="store_true", help="with the synapses of the nudge")
    parser.add_argument("--force", action="store_true", help="replace the file")


def run(args: Namespace) -> Json:
    """Translate and write."""
    from neuro_eqprop.experiments.run_folder import open_run
    from neuro_eqprop.experiments.translate import translate

    code = find_code(args.code)
    check_overwrite(args.out, args.force)
    model = open_run(args.run).model
    found = translate(
        model, args.out, code=code, nudged=args.nudged, force=args.force, bits=args.bits
    )
    return {"run": str(args.run), **found}


def show(outcome: Json, console: Console) -> None:
    """The outcome in words."""
    sizes = [f"{p['name']} {p['units']}" for p in outcome["populations"]]
    ways = [f"{p['name']} {p['synapses']}" for p in outcome["projections"]]
    ways = [f"input->{f['target']} {f['synapses']}" for f in outcome["feeds"]] + ways
    rows = {
        "wrote": f"{outcome['path']} ({outcome['bytes'] / 1e6:.2f} MB)",
        "code": outcome["code"] + (f", {outcome['bits']}-bit weights" if outcome["bits"] else ""),
        "units": ", ".join(sizes),
        "synapses": ", ".join(ways),
        "in metadata alone": "; ".join(outcome["beyond_nir"]),
        "digest": outcome["digest"][:16],
    }
    print_facts(rows, console)


COMMAND = Command("translate", "the spiking description as a NIR file", options, run, show)
