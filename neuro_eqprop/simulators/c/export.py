"""Write a C program into a folder, and measure its size, its operations and its agreement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.files.write import write_text
from neuro_eqprop.simulators.c.build import CodeSize, code_size
from neuro_eqprop.simulators.c.program import Program, integer_input, safe_text
from neuro_eqprop.simulators.c.source import (
    array_bytes,
    example,
    flash_arrays,
    header,
    source,
    state_bytes,
    weights_header,
)

SHOWN = 4
"""Samples in the example."""
INSTRUCTIONS = {"updates": 41.0, "checks": 9.0, "synapses": 6.4, "products": 6.8}
"""Instructions of a Cortex-M4 for each operation, fitted to the counts of `sims/cortex_m`."""
CYCLES = 1.5
"""Cycles of an instruction: loops of loads, one product and a branch, by the manual of the core."""


@dataclass(frozen=True, slots=True)
class Operations:
    """What an inference does."""

    updates: int
    """Steps of neurons."""
    checks: int
    """Messages that are looked at, of every source unit and path in every step."""
    synapses: float
    """Additions of a weight times a message; the mean of samples, or all if none were given."""
    products: float
    """Products of inputs and weights."""

    @property
    def cycles(self) -> float:
        """Estimated cycles of a Cortex-M4, by formula."""
        return CYCLES * self.instructions

    @property
    def instructions(self) -> float:
        """Estimated instructions of a Cortex-M4: each operation times its constant."""
        return float(sum(INSTRUCTIONS[name] * count for name, count in asdict(self).items()))


def operations(program: Program, x: Array | None, messages: Mapping[str, float]) -> Operations:
    """The operations of an inference, from the mean messages of a sample by population.

    A population without a count sends at every step.
    """
    sizes = {cells.name: cells.size for cells in program.cells}
    labels = {cells.name: cells.label for cells in program.cells}
    synapses = 0.0
    for path in program.paths:
        most = program.steps * sizes[path.source]
        synapses += messages.get(labels[path.source], most) * path.fan_out
    inputs = program.features if x is None else float(np.count_nonzero(x, axis=1).mean())
    return Operations(
        updates=program.steps * sum(sizes.values()),
        checks=program.steps * sum(sizes[path.source] for path in program.paths),
        synapses=synapses,
        products=sum(inputs * path.fan_out for path in program.feeds),
    )


@dataclass(frozen=True)
class CExport:
    """An exported C program: its files, size, operations and agreement.

    Parameters
    ----------
    path : Path
        The folder.
    code : str
        The spike code.
    bits : int
        Bits of the weights.
    learning : bool
        Whether it learns.
    steps : int
        Steps of an inference.
    constants, ram : int
        Bytes of weights and biases in flash, and of all variables.
    code_size : CodeSize, optional
        Bytes of the compiled functions; None without a compiler.
    operations : Operations
        Operations of an inference.
    agreement : float, optional
        Fraction of samples with the class of the rate network, by the compiled program; None
        if there were no samples or no gcc.
    equal : float, optional
        Fraction of samples in which every message equals that of the reference in fixed point.
    samples : int
        Number of samples of both.
    """

    path: Path
    code: str
    bits: int
    learning: bool
    steps: int
    constants: int
    ram: int
    code_size: CodeSize | None
    operations: Operations
    agreement: float | None = None
    equal: float | None = None
    samples: int = 0

    @property
    def flash(self) -> int | None:
        """Bytes of code and constants; weights that learn are copied to RAM at the start."""
        return None if self.code_size is None else self.constants + self.code_size.code

    @property
    def warning(self) -> str | None:
        """A sentence if something was not measured or is not as it should be."""
        if which("gcc") is None:
            return "gcc is not installed, so nothing was compiled, and the agreement is not known"
        if self.equal is not None and self.equal < 1:
            return "some messages differ from those of the reference in fixed point"
        return None

    def table(self) -> dict[str, str]:
        """The facts as text."""
        size, did = self.code_size, self.operations
        rows = {"code": f"{self.code}, {self.bits}-bit weights, {self.steps} steps"}
        rows["weights and biases"] = f"{self.constants} bytes"
        if size is not None:
            rows["functions"] = f"{size.code} bytes, compiled for {size.target} with -Os"
        rows["RAM"] = f"{self.ram} bytes"
        rows["an inference"] = (
            f"{did.updates} neuron updates, {did.checks} messages looked at, "
            f"{did.synapses:.0f} synaptic additions, {did.products:.0f} input products"
        )
        rows["cycles"] = f"about {did.cycles:.2g} on a Cortex-M4, by formula"
        if self.agreement is not None:
            rows["agreement"] = (
                f"{100 * self.agreement:.1f} % of {self.samples} samples have the class of the "
                "rate network"
            )
        if self.equal is not None:
            rows["equal"] = (
                f"{100 * self.equal:.1f} % send every message of the reference in fixed point"
            )
        if self.warning:
            rows["warning"] = self.warning
        return rows

    def to_json(self) -> dict[str, Any]:
        """The fields as plain JSON values."""
        own = {
            "flash": self.flash,
            "cycles": self.operations.cycles,
            "instructions": self.operations.instructions,
            "warning": self.warning,
            "table": self.table(),
        }
        return asdict(self) | {"path": str(self.path)} | own


def write_program(folder: Path, program: Program, x: Array | None) -> None:
    """Write `net.h`, `net.c`, `weights.h` and `example.c`."""
    shown = np.zeros((1, program.features)) if x is None else x[:SHOWN]
    write_text(folder / "net.h", header(program))
    write_text(folder / "net.c", source(program))
    write_text(folder / "weights.h", weights_header(program))
    write_text(folder / "example.c", example(integer_input(shown)))


def sizes(folder: Path, program: Program) -> tuple[int, int, CodeSize | None]:
    """Bytes of constants, of variables, and of functions."""
    return array_bytes(flash_arrays(program)), state_bytes(program), code_size(folder)


def readme(export: CExport, title: str) -> str:
    """`README.md`."""
    rows = [f"| {name} | {text} |" for name, text in export.table().items()]
    learning = LEARNING if export.learning else ()
    return "\n".join([*README.format(title=safe_text(title)).splitlines(), *rows, *learning, ""])


README = """# {title}

C99 in integers that needs `stdint.h` alone: static memory, loops with fixed bounds, no floats.

    cc -std=c99 -O2 net.c example.c -o ../example && ../example

```c
#include "net.h"

int16_t x[NET_INPUTS];          /* inputs times NET_INPUT_ONE */
uint32_t label = net_run(x);    /* the class */
```

`net_start(x)` and `net_step` do the same step by step; the messages, drives and states of each
population are in the structs of `net.h`.

| | |
|---|---|"""
LEARNING = (
    "",
    "`net_learn(x, label)` learns from one sample: both phases and the Hebbian commit.",
)
