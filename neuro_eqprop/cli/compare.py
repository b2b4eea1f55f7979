"""`neuro-eqprop compare A.h5 B.h5`: agreement of two traces."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from neuro_eqprop.cli.command import Command, Json, percent


def options(parser: ArgumentParser) -> None:
    """Add the two traces."""
    parser.add_argument("a", type=Path, metavar="A.h5", help="the reference trace, usually rates")
    parser.add_argument("b", type=Path, metavar="B.h5", help="the trace to compare with it")
    meaning = "also print the agreement of each sample and phase"
    parser.add_argument("--by-sample", action="store_true", help=meaning)


def run(args: Namespace) -> Json:
    """Compare the traces."""
    from neuro_eqprop.traces.compare import compare

    return compare(args.a, args.b).to_json() | {"print_samples": args.by_sample}


def show(outcome: Json, console: Console) -> None:
    """Print a table of layers and one of connections."""
    from rich.table import Table

    a, b = (escape(outcome[side]) for side in ("a", "b"))
    names = ("layer", "phase", "pearson", "rmse", "p999", "worst", "settled at", "(a)")
    title = f"{outcome['samples']} samples: {b} against {a}"
    table = Table(*names, title=title, title_justify="left")
    for each in outcome["layers"]:
        numbers = (value(each, name) for name in names[2:6])
        settled = str(each["settled_at"]), str(each["settled_at_a"])
        table.add_row(escape(each["layer"]), escape(each["phase"]), *numbers, *settled)
    if outcome["layers"]:
        console.print(table)
        within = outcome["settled_within"]
        console.print(f"settled at: the step from which on a rate stays within {within} of its end")
    show_updates("cosine of updates", outcome["connections"], console)
    show_updates("cosine of learned changes", outcome["learned"], console)
    show_synapses(outcome["synapses"], console)
    show_spikes(outcome, console)
    if outcome["print_samples"]:
        show_samples(outcome, console)
    for note in outcome.get("notes", []):
        console.print(escape(note.replace("record with phases", "`simulate --phases` runs them")))


def show_updates(title: str, found: list[Json], console: Console) -> None:
    """Print a row for each connection."""
    from rich.table import Table

    updates = Table("connection", title, "same sign")
    for each in found:
        share = each["sign_agreement"]
        same = "" if share is None else percent(share)
        updates.add_row(escape(each["connection"]), value(each, "cosine"), same)
    if found:
        console.print(updates)


def show_synapses(found: list[Json], console: Console) -> None:
    """Print the agreement of synapses that both traces recorded."""
    from rich.table import Table

    table = Table("connection", "synapses", "cosine of tags", "rmse of weights")
    for each in found:
        numbers = value(each, "tag_cosine"), value(each, "weight_rmse")
        table.add_row(escape(each["connection"]), str(each["synapses"]), *numbers)
    if found:
        console.print(table)


def show_spikes(outcome: Json, console: Console) -> None:
    """Print the spike statistics of both traces."""
    from rich.table import Table

    names = ("mean_rate", "isi_cv", "fano_factor", "count_correlation", "balance")
    heads = ("rate, Hz", "ISI CV", "Fano", "correlation", "I/E")
    table = Table("trace", "layer", "phase", *heads)
    for side in ("a", "b"):
        for each in outcome["spike_statistics"][side]:
            numbers = ["-" if each[n] is None else f"{each[n]:.3g}" for n in names]
            table.add_row(side, escape(each["layer"]), escape(each["phase"]), *numbers)
            table.caption = f"ISI CV and Fano factor by {escape(each['computed_by'])}"
    if table.row_count:
        console.print(table)
    for layer, distance in outcome["van_rossum"].items():
        console.print(escape(f"van Rossum distance of {layer}: {distance:.3f} a train"))


def show_samples(outcome: Json, console: Console) -> None:
    """Print the agreement of each sample: of its rates in each phase, and of its updates."""
    from rich.table import Table

    names = [each["connection"] for each in outcome["connections"]]
    updates: dict[int, dict[str, Json]] = {}
    for each in outcome["sample_updates"]:
        updates.setdefault(each["sample"], {})[each["connection"]] = each
    table = Table("sample", "phase", "pearson", "rmse", *(f"cosine {name}" for name in names))
    for each in outcome["by_sample"]:
        here = updates.get(each["sample"], {})
        cosines = [value(here[name], "cosine") if name in here else "" for name in names]
        numbers = value(each, "pearson"), value(each, "rmse")
        table.add_row(str(each["sample"]), escape(each["phase"]), *numbers, *cosines)
    console.print(table)


def value(row: Json, name: str) -> str:
    """Format a number with five decimals, or return the reason why there is none."""
    return row.get("reason", "unknown") if row[name] is None else f"{row[name]:.5f}"


COMMAND = Command(
    "compare",
    options,
    run,
    show,
    ("neuro-eqprop compare rates.h5 spikes.h5",),
)
