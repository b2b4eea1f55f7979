"""Compile a C program, run it, and compare it with the reference."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which

import numpy as np

from neuro_eqprop.common.arrays import Ints
from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.files.subprocess import capture
from neuro_eqprop.files.write import write_bytes, write_text
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.c.program import Program, beta_part

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror")
"""Options that accept only clean C99."""
ARM = "arm-none-eabi-gcc"
CORTEX_M = ("-mcpu=cortex-m4", "-mthumb", "-Os")
"""Options for the size of the code on a Cortex-M4."""
DEADLINE = 600.0
"""Seconds that a compiler or a program may take."""
PROGRAM = "program"
"""The name of the compiled program."""


def compile_c(
    folder: Path, sources: Sequence[str], options: Sequence[str] = ("-O2",), compiler: str = "gcc"
) -> Path:
    """Compile sources of a folder with all warnings as errors; the program."""
    folder = folder.absolute()
    made = folder / PROGRAM
    files = [str(folder / name) for name in sources]
    command = [compiler, *STRICT, *options, f"-I{folder}", *files, "-o", str(made)]
    done = capture(command, deadline=DEADLINE)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line]
        last = (lines or ["no message"])[0]
        raise BackendError(f"{compiler} does not compile {folder.name}: {last}")
    return made


def run_c(program: Path, *arguments: str) -> str:
    """What a program prints; BackendError if it fails."""
    done = capture([str(program), *arguments], deadline=DEADLINE)
    if done.returncode:
        raise BackendError(f"{program} failed: {done.stderr.strip()[:500]}")
    return done.stdout


@dataclass(frozen=True, slots=True)
class Steps:
    """What a program did in each step."""

    classes: Ints
    """The classes that `net_run` returned."""
    messages: dict[str, Ints]
    """By population (samples, steps, units); graded ones count thetas."""
    drives: dict[str, Ints]
    """By population, in the unit of its drive."""


@dataclass(frozen=True, slots=True)
class CodeSize:
    """The size of the compiled functions, without constants."""

    code: int
    target: str
    """What they were compiled for."""


def code_size(folder: Path) -> CodeSize | None:
    """The size of `net.c` for a Cortex-M4, else for this computer; None without a compiler."""
    for compiler, options, target in (
        (ARM, CORTEX_M, "Cortex-M4"),
        ("gcc", ("-Os",), "this computer"),
    ):
        size = which(compiler.replace("gcc", "size") if compiler == ARM else "size")
        if which(compiler) is None or size is None:
            continue
        made = compile_c(folder, ["net.c"], (*options, "-c"), compiler)
        listed = capture([size, "-A", str(made)], deadline=DEADLINE).stdout
        sections = re.findall(r"^(\.text\S*)\s+(\d+)", listed, re.MULTILINE)
        return CodeSize(sum(int(count) for _, count in sections), target)
    return None


def check_source(program: Program, schedule: Schedule, *, given: bool = False) -> str:
    """A program that writes all messages and drives of all samples of a file to another file.

    It prints the class of each sample.
    If `given`, a sample has the bias and current of all driven populations and the pull of all
    pulled ones after its inputs, in units.
    """
    fields = []
    if given:
        fields = [f"net_layer_{c.name}.outside" for c in program.cells if c.driven is not None]
        fields += [f"net_layer_{c.name}.pull" for c in program.cells if c.pulled]
    phases = ", ".join(f"{{{phase.steps}, {beta_part(phase.beta)}}}" for phase in schedule)
    step = "net_step(phases[p][1])" if program.nudged else "net_step()"
    reads = [f"        read({name}, sizeof {name}, in);" for name in fields]
    writes = []
    for cells in program.cells:
        own = f"net_layer_{cells.name}"
        writes += [
            f"                for (unsigned i = 0; i < {cells.size}u; i++) {{",
            f"                    int32_t pair[2] = {{net_message_{cells.name}[i],",
            f"                                       {own}.drive[i]}};",
            "                    fwrite(pair, sizeof pair, 1, out);",
            "                }",
        ]
    return "\n".join(
        [
            "#include <stdio.h>",
            "#include <stdlib.h>",
            '#include "net.h"',
            f"static const int32_t phases[{len(schedule)}][2] = {{{phases}}};",
            "static void read(void *to, size_t size, FILE *in)",
            "{",
            "    if (fread(to, 1, size, in) != size) {",
            "        exit(1);",
            "    }",
            "}",
            "int main(int count, char **names)",
            "{",
            "    static int16_t x[NET_INPUTS + 1u];",
            '    FILE *in = fopen(names[1], "rb"), *out = fopen(names[2], "wb");',
            "    int32_t samples;",
            "    if (count != 3 || in == NULL || out == NULL) {",
            "        return 1;",
            "    }",
            "    read(&samples, sizeof samples, in);",
            "    for (int32_t k = 0; k < samples; k++) {",
            "        read(x, NET_INPUTS * sizeof x[0], in);",
            '        printf("%u\\n", (unsigned)net_run(x));',
            "        net_start(x);",
            *reads,
            f"        for (unsigned p = 0; p < {len(schedule)}u; p++) {{",
            "            for (int32_t t = 0; t < phases[p][0]; t++) {",
            f"                {step};",
            *writes,
            "            }",
            "        }",
            "    }",
            "    return fclose(out) != 0;",
            "}",
            "",
        ]
    )


def run_steps(
    folder: Path,
    program: Program,
    schedule: Schedule,
    samples: Sequence[bytes],
    options: Sequence[str] = ("-O2",),
) -> Steps:
    """What the program of a folder does, with files of its own beside it.

    `samples` are the bytes that the program of `check_source` reads.
    """
    given = any(len(sample) > 2 * program.features for sample in samples)
    write_text(folder / "check.c", check_source(program, schedule, given=given))
    made = compile_c(folder, ["net.c", "check.c"], options)
    folder = made.parent
    write_bytes(folder / "in", np.int32(len(samples)).tobytes() + b"".join(samples))
    printed = run_c(made, str(folder / "in"), str(folder / "out"))
    steps = sum(phase.steps for phase in schedule)
    units = sum(cells.size for cells in program.cells)
    written = np.fromfile(folder / "out", dtype=np.int32).reshape(len(samples), steps, units, 2)
    ends = np.cumsum([0, *(cells.size for cells in program.cells)])
    parts = {
        cells.label: written[:, :, first : first + cells.size].astype(np.int64)
        for cells, first in zip(program.cells, ends, strict=False)
    }
    return Steps(
        np.array(printed.split(), dtype=np.int64),
        {name: part[..., 0] for name, part in parts.items()},
        {name: part[..., 1] for name, part in parts.items()},
    )
