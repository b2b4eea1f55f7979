"""`neuro-eqprop compare A.h5 B.h5`: agreement of two traces."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

import neuro_eqprop as ne
from neuro_eqprop.cli.command import Command, Json
from neuro_eqprop.traces.compare import SETTLED
from neuro_eqprop.traces.spike_statistics import TrainAgreement

if TYPE_CHECKING:
    from neuro_eqprop.traces.compare import Cells, Comparison


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison, and whether to print the agreement of each sample too."""

    comparison: Comparison
    by_sample: bool

    def to_json(self) -> Json:
        """Return the comparison as a JSON object."""
        return self.comparison.to_json()


def options(parser: ArgumentParser) -> None:
    """Add the two traces."""
    parser.add_argument("a", type=Path, metavar="A.h5", help="the reference trace, usually rates")
    parser.add_argument("b", type=Path, metavar="B.h5", help="the trace to compare with it")
    meaning = "also print the agreement of each sample and phase"
    parser.add_argument("--by-sample", action="store_true", help=meaning)


def run(args: Namespace) -> Compared:
    """Compare the traces."""
    return Compared(ne.compare(args.a, args.b), args.by_sample)


def show(outcome: Compared, console: Console) -> None:
    """Print the tables of layers, connections, synapses and spike statistics, and the notes."""
    comparison = outcome.comparison
    console.print(
        f"{comparison.samples} samples: {comparison.b} against {comparison.a}", markup=False
    )
    for cells in comparison.tables():
        print_cells(cells, console)
    if comparison.layers:
        console.print(
            f"settled at: the time from which on a rate stays within {SETTLED} of its end"
        )
    if spikes := (*comparison.spikes_a, *comparison.spikes_b):
        print_cells(comparison.spike_table(), console)
        console.print(f"ISI CV and Fano factor by {spikes[0].computed_by}", markup=False)
    for each in comparison.trains:
        console.print(train_text(each), markup=False)
    if outcome.by_sample:
        print_cells(comparison.sample_table(), console)
    for note in comparison.notes:
        named = note.replace("record with phases", "`simulate --phases` runs them")
        console.print(named, markup=False)


def train_text(trains: TrainAgreement) -> str:
    """Distances and lag of the trains of a layer, and how many pairs are left out as silent."""
    if trains.van_rossum is None or trains.spike_distance is None:
        return f"trains of {trains.layer}: silent on both sides"
    lag = "" if trains.lag is None else f", lag {trains.lag * 1e3:g} ms"
    return (
        f"trains of {trains.layer}: van Rossum distance {trains.van_rossum:.3f}, SPIKE distance "
        f"{trains.spike_distance:.3f}{lag}; {trains.pairs} pairs, {trains.silent} more are silent "
        "on both sides"
    )


def print_cells(cells: Cells, console: Console) -> None:
    """Print a table whose first row is its header."""
    header, *rows = cells
    table = Table(*(escape(cell) for cell in header))
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    console.print(table)


COMMAND = Command(
    "compare",
    options,
    run,
    show,
    ("neuro-eqprop compare rates.h5 spikes.h5",),
)
