"""Exported C on a Cortex-M in QEMU: classes, instructions of an inference, flash and RAM.

    python -m sims.cortex_m.run [--out docs/results/microcontroller.md]

Needs `gcc-arm-none-eabi` and `qemu-system-arm`. QEMU counts instructions (`-icount`), not cycles.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which

import numpy as np

import neuro_eqprop as ne
from neuro_eqprop.common.arrays import Array
from neuro_eqprop.simulators.c.build import ARM
from neuro_eqprop.simulators.c.export import CExport
from neuro_eqprop.simulators.c.program import integer_input

HERE = Path(__file__).parent
QEMU = "qemu-system-arm"
MACHINES = {"cortex-m4": "mps2-an386", "cortex-m3": "mps2-an385", "cortex-m33": "mps2-an505"}
INSTRUCTIONS = 40
"""Instructions of a tick: one takes a virtual nanosecond, the timer runs at 25 MHz."""


def missing() -> list[str]:
    """The tools that are not installed."""
    return [tool for tool in (ARM, QEMU, "arm-none-eabi-size") if which(tool) is None]


@dataclass(frozen=True)
class OnDevice:
    """What a run in QEMU gave."""

    classes: list[int]
    instructions: float
    """Mean of an inference."""
    flash: int
    """Bytes of functions and constants of `net.c`."""
    ram: int
    """Bytes of variables of `net.c`."""


def run(folder: Path, x: Array, cpu: str = "cortex-m4", optimize: str = "-O2") -> OnDevice:
    """Build an exported program for a Cortex-M, and run samples in QEMU."""
    rows = [", ".join(map(str, row)) for row in integer_input(x)]
    text = "".join(f"    {{{row}}},\n" for row in rows)
    with tempfile.TemporaryDirectory() as name:
        made = Path(name)
        (made / "samples.h").write_text(
            f"#define SAMPLES {len(rows)}u\n"
            f"static const int16_t samples[SAMPLES][NET_INPUTS] = {{\n{text}}};\n"
        )
        options = [f"-mcpu={cpu}", "-mthumb", "-std=c99", "-ffreestanding", optimize, "-Wall"]
        options += ["-Wextra", "-Werror", f"-I{folder}", f"-I{made}"]
        command([ARM, *options, "-c", str(folder / "net.c"), "-o", str(made / "net.o")])
        files = [str(made / "net.o"), str(HERE / "startup.c")]
        link = ["-nostdlib", f"-T{HERE / 'link.ld'}", "-lgcc", "-o", str(made / "net.elf")]
        command([ARM, *options, "-std=gnu99", *files, *link])
        machine = ["-M", MACHINES[cpu], "-cpu", cpu, "-nographic", "-monitor", "none"]
        counted = ["-icount", "shift=0", "-serial", "none", "-semihosting-config"]
        kernel = ["enable=on,target=native,chardev=host", "-chardev", "stdio,id=host"]
        kernel += ["-kernel", str(made / "net.elf")]
        printed = command([QEMU, *machine, *counted, *kernel])
        sections = command(["arm-none-eabi-size", "-A", str(made / "net.o")])
    numbers = [int(number) for number in printed.split()]
    size = {kind: 0 for kind in ("text", "rodata", "data", "bss")}
    for kind, count in re.findall(r"^\.(\w+)\S*\s+(\d+)", sections, re.MULTILINE):
        if kind in size:
            size[kind] += int(count)
    return OnDevice(
        numbers[::2],
        INSTRUCTIONS * float(np.mean(numbers[1::2])),
        size["text"] + size["rodata"] + size["data"],
        size["data"] + size["bss"],
    )


def command(words: Sequence[str]) -> str:
    """What a command prints."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise RuntimeError(f"{words[0]} failed: {done.stderr[:1000]}")
    return done.stdout


def seconds(folder: Path, x: Array, spiking: ne.SpikingModel) -> tuple[float, float]:
    """Processor seconds of a sample: of the program on this computer, and of the emulator."""
    rows = [", ".join(map(str, row)) for row in integer_input(x)]
    text = "".join(f"    {{{row}}},\n" for row in rows)
    main = (
        '#include <stdio.h>\n#include <time.h>\n#include "net.h"\n'
        f"static const int16_t x[{len(rows)}][NET_INPUTS] = {{\n{text}}};\n"
        "int main(void)\n{\n    unsigned all = 0;\n    clock_t began = clock();\n"
        f"    for (int n = 0; n < 20; n++) for (int k = 0; k < {len(rows)}; k++)"
        " all += net_run(x[k]);\n"
        f'    printf("%g %u\\n", (double)(clock() - began) / CLOCKS_PER_SEC / {20 * len(rows)}, '
        "all);\n    return 0;\n}\n"
    )
    with tempfile.TemporaryDirectory() as name:
        made = Path(name)
        (made / "main.c").write_text(main)
        files = [str(folder / "net.c"), str(made / "main.c")]
        command(["gcc", "-std=c99", "-O2", f"-I{folder}", *files, "-o", str(made / "main")])
        ours = float(command([str(made / "main")]).split()[0])
    spiking.run(x[:1])
    began = time.process_time()
    for row in x[:40]:
        spiking.run(row[None])
    return ours, (time.process_time() - began) / 40


def main() -> None:
    """Export the digits, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=15)
    given = parser.parse_args()
    data = ne.load_data("digits")
    x = data.test.x
    print("| network, code | flash | RAM | instructions | operations | cycles by formula |")
    models = {
        "64-128-10": ne.train("layered", data, hidden=(128,), epochs=given.epochs, preset="chip"),
        "64-16-10": ne.train("layered", data, hidden=(16,), epochs=given.epochs, preset="chip"),
        "64-96-96-10": ne.train(
            "layered", data, hidden=(96, 96), epochs=given.epochs, preset="chip"
        ),
    }
    with tempfile.TemporaryDirectory() as name:
        for label, model in models.items():
            for code in ("graded", "rate"):
                spiking = model.to_spiking(code=code, bits=8)
                folder = Path(name) / f"{label}-{code}"
                export: CExport = spiking.to_c(folder, x)
                did = spiking.to_c(Path(name) / "same", x[:40], force=True).operations
                ran = run(folder, x[:40])
                same = ran.classes == [int(k) for k in spiking.run(x[:40]).predictions]
                ours, emulated = seconds(folder, x, spiking)
                print(
                    label, code, export.flash, export.ram, f"{ran.flash} {ran.ram}",
                    f"{ran.instructions:.0f} instructions, equal classes {same}",
                    did, f"{export.operations.cycles:.0f} cycles",
                    f"host {1e6 * ours:.1f} us, emulator {1e6 * emulated:.0f} us",
                    f"equal {export.equal} agreement {export.agreement}",
                )  # fmt: skip


if __name__ == "__main__":
    main()
