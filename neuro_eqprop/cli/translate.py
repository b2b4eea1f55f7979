"""`neuro-eqprop translate`: a run as a NIR file, a Lava package or a netx file."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rich.console import Console

from neuro_eqprop.cli.command import (
    Command,
    Json,
    UsageError,
    check_overwrite,
    offer,
    percent,
    positive_int,
    print_facts,
)
from neuro_eqprop.cli.evaluate import BITS_HELP
from neuro_eqprop.spiking.codes import CODES, find_code

FORMATS = ("nir", "lava", "netx")


def options(parser: ArgumentParser) -> None:
    """Add the run and the file."""
    add = parser.add_argument
    add("run", type=Path, metavar="RUN", help="a run folder")
    out = "file to write, or with --to lava the folder"
    add("--out", type=Path, required=True, metavar="NET.nir|DIR|NET.net", help=out)
    add(
        "--to",
        choices=FORMATS,
        default="nir",
        help="nir: a NIR file; lava: a package that needs lava-nc alone; netx: lava-dl's file "
        "(default: nir)",
    )
    codes = f"spike code: {', '.join(CODES)} (default: rate; graded for lava and netx)"
    offer(add("--code", metavar="CODE", help=codes), CODES)
    add("--bits", type=positive_int, help=BITS_HELP)
    add("--nudged", action="store_true", help="with the synapses of the nudge (nir)")
    neurons = "exact: our processes; stock: Lava's own alone (with --to lava)"
    add("--neurons", default="exact", metavar="exact|stock", help=neurons)
    add(
        "--steps",
        type=positive_int,
        help="steps of a sample (with lava, netx; default: that of the code)",
    )
    add("--samples", type=positive_int, default=20, help="samples that agreement is measured on")
    add("--force", action="store_true", help="replace the file or folder")


def run(args: Namespace) -> Json:
    """Translate and write."""
    from neuro_eqprop.experiments.run_folder import open_run

    code = find_code(args.code or ("rate" if args.to == "nir" else "graded"))
    check_overwrite(args.out, args.force)
    if args.to == "nir":
        from neuro_eqprop.experiments.translate import translate

        model = open_run(args.run).model
        found = translate(
            model, args.out, code=code, nudged=args.nudged, force=args.force, bits=args.bits
        )
        return {"run": str(args.run), "to": "nir", **found}
    from neuro_eqprop.experiments.export import export_lava, export_netx

    opened = open_run(args.run)
    x = opened.data.test.take(slice(args.samples)).x
    if args.to == "lava":
        made = export_lava(
            opened.model,
            args.out,
            x,
            code=code,
            bits=args.bits,
            neurons=args.neurons,
            steps=args.steps,
            force=args.force,
        )
    else:
        if code.name != "graded":
            raise UsageError(f"a netx file holds graded messages, not code {code.name!r}")
        made = export_netx(opened.model, args.out, x, steps=args.steps, force=args.force)
    return {
        "run": str(args.run),
        "to": args.to,
        "path": str(made.path),
        "code": made.code,
        "neurons": made.neurons,
        "bits": made.bits,
        "agreement": made.agreement,
        "samples": made.samples,
        "load": made.load,
        "warning": made.warning,
    }


def show(outcome: Json, console: Console) -> None:
    """Print the result."""
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
    "a run as a NIR file, a Lava package or a netx file",
    options,
    run,
    show,
    (
        "neuro-eqprop translate runs/digits --code rate --out digits.nir",
        "neuro-eqprop translate runs/digits --to netx --out digits.net",
    ),
)
