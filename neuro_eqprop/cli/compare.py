"""`neuro-eqprop compare A.h5 B.h5`: how far the rates of two traces lie apart."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from neuro_eqprop.cli.command import Command, Json, percent

if TYPE_CHECKING:
    from neuro_eqprop.analysis.compare import Comparison


def options(parser: ArgumentParser) -> None:
    """The two traces."""
    parser.add_argument("a", type=Path, metavar="A.h5", help="the trace that is compared with")
    parser.add_argument("b", type=Path, metavar="B.h5", help="the trace that is compared")


def run(args: Namespace) -> Json:
    """Read both and compare them."""
    from neuro_eqprop.analysis.compare import SETTLED, compare
    from neuro_eqprop.io.trace.lazy import read

    a, b = read(args.a), read(args.b)
    outcome = as_json(compare(a, b))
    sides = {"a": str(args.a), "b": str(args.b), "backends": [a.origin.backend, b.origin.backend]}
    return sides | {"settled_within": SETTLED} | outcome


def as_json(agreement: Comparison) -> Json:
    """The fields of `compare --json`."""
    layers = [
        {
            "layer": each.layer,
            "phase": each.phase,
            **asdict(each.distance),
            "settled_at": each.settled_at,
            "settled_at_a": each.settled_at_a,
        }
        for each in agreement.layers
    ]
    return {
        "samples": agreement.samples,
        "layers": layers,
        "pooled": [{"phase": phase, **asdict(each)} for phase, each in agreement.pooled],
        "connections": [asdict(each) for each in agreement.connections],
        "learned": [asdict(each) for each in agreement.learned],
    }


def number(value: float | None) -> str:
    """A number of about one, or a dash."""
    return "-" if value is None else f"{value:.5f}"


def show(outcome: Json, console: Console) -> None:
    """A table of layers and one of connections."""
    from rich.table import Table

    a, b = (escape(outcome[side]) for side in ("a", "b"))
    names = ("layer", "phase", "pearson", "rmse", "p999", "worst", "settled at", "(a)")
    title = f"{outcome['samples']} samples: {b} against {a}"
    table = Table(*names, title=title, title_justify="left")
    for each in outcome["layers"]:
        numbers = (number(each[name]) for name in names[2:6])
        settled = str(each["settled_at"]), str(each["settled_at_a"])
        table.add_row(escape(each["layer"]), escape(each["phase"]), *numbers, *settled)
    if outcome["layers"]:
        console.print(table)
        within = outcome["settled_within"]
        console.print(f"settled at: the step from which on a rate stays within {within} of its end")
    if outcome["connections"]:
        show_updates("cosine of updates", outcome["connections"], console)
    elif not outcome["learned"]:
        console.print("no nudged phases, so no Hebbian updates (`simulate --phases` runs them)")
    if outcome["learned"]:
        show_updates("cosine of the changes made", outcome["learned"], console)


def show_updates(title: str, found: list[Json], console: Console) -> None:
    """A row for each connection."""
    from rich.table import Table

    updates = Table("connection", title, "same sign")
    for each in found:
        share = "-" if each["sign_agreement"] is None else percent(each["sign_agreement"])
        updates.add_row(escape(each["connection"]), number(each["cosine"]), share)
    console.print(updates)


COMMAND = Command("compare", "rates against spikes: two traces side by side", options, run, show)
