"""`neuro-eqprop translate`: export a run to a NIR file, a Lava package, C, or other files."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rich.console import Console

from neuro_eqprop.api.run import FORMATS, open_run
from neuro_eqprop.cli.command import (
    Command,
    Json,
    percent,
    positive_int,
    print_facts,
    set_completions,
)
from neuro_eqprop.cli.options import BITS_HELP
from neuro_eqprop.spiking.codes import CODES


def options(parser: ArgumentParser) -> None:
    """Add the options of `translate`."""
    add = parser.add_argument
    add("run", type=Path, metavar="RUN", help="a run folder")
    out = "file to write, or with --to lava and --to c the folder"
    add("--out", type=Path, required=True, metavar="NET.nir|DIR|NET.net", help=out)
    add(
        "--to",
        choices=FORMATS,
        default="nir",
        help="nir: a NIR file; lava: a package that needs only lava-nc; netx: a file for lava-dl; "
        "c: C99 in integers for microcontrollers; sanafe: a folder for SANA-FE (default: nir)",
    )
    codes = f"spike code: {', '.join(CODES)} (default: rate; graded for lava, netx and c)"
    set_completions(add("--code", metavar="CODE", help=codes), CODES)
    add("--bits", type=positive_int, help=BITS_HELP)
    add("--nudged", action="store_true", help="with the synapses of the nudge (nir)")
    neurons = "exact: processes of neuro_eqprop; stock: only those of Lava (with --to lava)"
    add("--neurons", default="exact", metavar="exact|stock", help=neurons)
    add(
        "--steps",
        type=positive_int,
        help="steps of a sample (with lava, netx, c; default: that of the code)",
    )
    add("--samples", type=positive_int, default=20, help="samples that agreement is measured on")
    add("--force", action="store_true", help="replace the file or folder")


def run(args: Namespace) -> Json:
    """Translate and write."""
    return open_run(args.run).translate(
        args.out,
        to=args.to,
        code=args.code,
        bits=args.bits,
        nudged=args.nudged,
        neurons=args.neurons,
        steps=args.steps,
        samples=args.samples,
        force=args.force,
    )


def show(outcome: Json, console: Console) -> None:
    """Print the result."""
    if outcome["to"] == "c":
        print_facts({"wrote": outcome["path"], **outcome["table"]}, console)
        return
    if outcome["to"] != "nir":
        rows = {
            "wrote": outcome["path"],
            "code": f"{outcome['code']}, {outcome['neurons']} neurons",
            "agreement": f"{percent(outcome['agreement'])} of {outcome['samples']} samples",
            "load it with": outcome["load"],
        }
        if outcome["warning"]:
            rows["warning"] = outcome["warning"]
        print_facts(rows, console)
        return
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


COMMAND = Command(
    "translate",
    options,
    run,
    show,
    (
        "neuro-eqprop translate runs/digits --code rate --out digits.nir",
        "neuro-eqprop translate runs/digits --to netx --out digits.net",
        "neuro-eqprop translate runs/digits --to c --out net",
    ),
)
