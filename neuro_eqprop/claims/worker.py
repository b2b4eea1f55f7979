"""A worker process that runs cells: a line of JSON in, a line of JSON out.

`python -m neuro_eqprop.claims.worker` reads cells from standard input until it ends. Output of
cells goes to standard error, so that it cannot be mistaken for a result.
"""

from __future__ import annotations

import json
import os
import sys
from typing import IO

from neuro_eqprop.claims.claim import Cell, CellResult, canonical
from neuro_eqprop.claims.registry import run_cell

READY = b"ready\n"
"""The first line of a worker."""


def pack(cell: Cell) -> bytes:
    """A cell as a line of JSON."""
    order = {"function": cell.function, "arguments": dict(cell.arguments), "seed": cell.seed}
    return canonical(order) + b"\n"


def unpack(line: bytes, cell: Cell) -> CellResult:
    """The result in a line of JSON."""
    reply = json.loads(line)
    return CellResult(cell, reply["values"], reply["error"], reply["seconds"])


def serve(orders: IO[bytes], results: IO[bytes]) -> None:
    """Run one cell after another."""
    for line in orders:
        order = json.loads(line)
        done = run_cell(Cell("", order["function"], order["arguments"], order["seed"]))
        reply = {"values": done.values, "error": done.error, "seconds": done.seconds}
        results.write(canonical(reply) + b"\n")
        results.flush()


def main() -> None:
    """Serve, with standard output reserved for results."""
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    results.write(READY)
    results.flush()
    serve(sys.stdin.buffer, results)


if __name__ == "__main__":
    main()
