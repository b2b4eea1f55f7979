"""Write docs/results/agreement.md: random networks on every simulator, spike by spike.

Run it with `.venv/bin/python sims/spikes/agreement.py` (about twenty minutes on one core). Rows are
kept in the file of `--rows` as they are made; those that are there are not made again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from neuro_eqprop.files.write import write_text
from neuro_eqprop.simulators.base import Feature
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.simulators.testing import check_case, draw_case
from neuro_eqprop.simulators.testing.case import Case, run_case
from neuro_eqprop.simulators.testing.random_networks import draw_whole_case, lengthened

SIMULATORS = ("emulator", "snntorch", "brian2", "lava")
SEED = 11
KINDS: dict[str, Callable[[int, int], Case]] = {
    "floating point": draw_case,
    "fixed point": draw_whole_case,
}


@dataclass(frozen=True, slots=True)
class Row:
    """How often a simulator was equal to the reference."""

    simulator: str
    numbers: str
    networks: int
    equal: int
    values: int
    events: int
    first: str
    seconds: float

    @property
    def line(self) -> str:
        """A row of the table."""
        share = f"{self.equal} of {self.networks}"
        return (
            f"| {self.simulator} | {self.numbers} | {share} | {self.values:,} | {self.events:,} | "
            f"{self.first or 'none'} |"
        )


def events(cases: Iterable[Case]) -> tuple[int, int]:
    """Of all cases, the places for a spike or message, and how many there are."""
    places = sent = 0
    for case in cases:
        for raster in run_case(load_backend("reference"), case).recordings[0].spikes.values():
            places, sent = places + raster.size, sent + int(np.count_nonzero(raster))
    return places, sent


def difference(simulator: str, case: Case) -> str:
    """The first difference to the reference, if there is one."""
    try:
        check_case(load_backend(simulator), case)
    except AssertionError as error:
        return str(error)
    return ""


def compared(simulator: str, numbers: str, cases: list[Case], count: tuple[int, int]) -> Row:
    """Run all cases on a simulator."""
    began = time.perf_counter()
    found = [difference(simulator, case) for case in cases]
    first, equal = next((each for each in found if each), ""), found.count("")
    took = time.perf_counter() - began
    return Row(simulator, numbers, len(cases), equal, *count, first, took)


def page(rows: list[Row], networks: int, steps: int) -> str:
    return "\n".join(
        [
            "# Agreement of the simulators",
            "",
            "Whether every simulator computes the spikes of the reference, on random networks.",
            f"Made by `.venv/bin/python sims/spikes/agreement.py --networks {networks} "
            f"--steps {steps}`; do not edit.",
            "",
            f"{networks} random recurrent networks (spiking, graded and mixed, with delays,",
            f"decays, both resets and gains of beta), each over {steps} steps of three phases,",
            "against the reference: every spike or message equal, voltages, states and drives",
            "within 1e-12, and in fixed point also the overflows of 24 bits. By construction,",
            "every spiking population has a unit that always fires and one that reaches its",
            "threshold exactly.",
            "",
            "| simulator | arithmetic | networks equal | values compared | events "
            "| first difference |",
            "|---|---|---|---|---|---|",
            *(row.line for row in rows),
            "",
            "snnTorch and Brian2 have no integer step.",
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=50)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--on", nargs="*", default=SIMULATORS, choices=SIMULATORS)
    parser.add_argument("--rows", type=Path, default=Path("runs/agreement.json"))
    parser.add_argument("--out", type=Path, default=Path("docs/results/agreement.md"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    kept = json.loads(options.rows.read_text()) if options.rows.exists() else []
    rows = {(each["simulator"], each["numbers"]): Row(**each) for each in kept}
    for numbers, draw in KINDS.items():
        missing = [name for name in options.on if (name, numbers) not in rows]
        if numbers == "fixed point":
            missing = [n for n in missing if Feature.FIXED_POINT in load_backend(n).support]
        wanted = range(options.networks) if missing else ()
        cases = [lengthened(draw(SEED, n), options.steps) for n in wanted]
        count = events(cases)
        for simulator in missing:
            row = rows[simulator, numbers] = compared(simulator, numbers, cases, count)
            print(f"{row.seconds:8.1f} s {row.line}", flush=True)
            options.rows.parent.mkdir(parents=True, exist_ok=True)
            write_text(options.rows, json.dumps([asdict(each) for each in rows.values()]))
    write_text(options.out, page(list(rows.values()), options.networks, options.steps))


if __name__ == "__main__":
    main()
