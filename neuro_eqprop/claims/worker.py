"""A process that carries out cells: a line of JSON in, a line of JSON out.

`python -m neuro_eqprop.claims.worker` reads cells from standard input until it ends. What a cell
prints goes to standard error, so that it cannot be mistaken for a result.
"""

from __future__ import annotations

import json
import os
import sys
from typing import IO

from neuro_eqprop.claims.claim import Cell, Outcome, canonical
from neuro_eqprop.claims.registry import perform

READY = b"ready\n"
"""What a worker says first."""


def pack(cell: Cell) -> bytes:
    """A cell as a line."""
    order = {"function": cell.function, "arguments": dict(cell.arguments), "seed": cell.seed}
    return canonical(order) + b"\n"


def unpack(line: bytes, cell: Cell) -> Outcome:
    """The outcome that a line tells."""
    told = json.loads(line)
    return Outcome(cell, told["values"], told["error"], told["seconds"])


def serve(orders: IO[bytes], results: IO[bytes]) -> None:
    """Carry out one cell after another."""
    for line in orders:
        order = json.loads(line)
        done = perform(Cell("", order["function"], order["arguments"], order["seed"]))
        told = {"values": done.values, "error": done.error, "seconds": done.seconds}
        results.write(canonical(told) + b"\n")
        results.flush()


def main() -> None:
    """Serve, with standard output kept for results."""
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    results.write(READY)
    results.flush()
    serve(sys.stdin.buffer, results)


if __name__ == "__main__":
    main()
