"""docs/results/scale.md from the values that `scale.py` has measured.

python sims/bench/scale_page.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from neuro_eqprop.files.write import write_text

MEASURED = Path(__file__).parent / "measured" / "scale.json"
PAGE = Path(__file__).parents[2] / "docs" / "results" / "scale.md"
ORDER = ["convolution", "mnist", "recurrent", "million", "startup", "emulator workers"]
ORDER += ["brian2 workers", "lava workers", "training"]
HEAD = """# Cost and size

Time and memory of large networks, and the gain from two workers. [What scales
how](../explanation/scale.md) explains the numbers. Times are processor times of one thread at
raised priority, on a shared machine with two cores. Rows with two workers are wall-clock times,
measured alternately at real-time priority, since other work used both cores. Made by
`python sims/bench/scale.py PART`.

| what | measured | part |
|---|---|---|
"""
NO_NEST = """
NEST was not installed when these rows were measured. In an earlier measurement NEST 3.10 took
59.9 s and 4.4 GB on the recurrent network (60.1 s and 0.95 GB without a spike recorder), and the
emulator 2.4 s. This was not repeated, and its spike counts were not kept.
"""


def measured() -> dict[str, Any]:
    """The values of each part."""
    found: dict[str, Any] = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    return found


def keep(part: str, values: dict[str, Any]) -> None:
    """Keep the values of a part."""
    write_text(MEASURED, json.dumps(measured() | {part: values}, indent=1, sort_keys=True) + "\n")


def convolution(values: dict[str, Any]) -> dict[str, str]:
    sizes = (
        f"{values['neurons']:,} neurons, {values['synapses'] / 1e6:.0f} million synapses, "
        f"{values['weights']:,} weights"
    )
    what = "convolution of 32x32x3, 32-64-128 channels of 5x5, 8 bits: lower, quantise, tables of"
    return {
        f"{what} the emulator; {sizes}": f"{values['seconds']:.2f} s, {values['mb']:.0f} MB "
        "above the start"
    }


def mnist(values: dict[str, Any]) -> dict[str, str]:
    share = 100 * values["right"] / values["samples"]
    times = values["expanded"] / values["symbolic"]
    memory = values["expanded mb"] / values["symbolic mb"]
    same = "the same" if values["same"] else "OTHER"
    return {
        "convolutional network on MNIST, 16-32 channels of 5x5, trained for one epoch, "
        f"{values['samples']:,} test images ({share:.1f} % right), graded, 32 steps, as kernels": (
            f"{values['symbolic']:.1f} s, {values['symbolic mb']:.0f} MB for the network, its "
            "tables and 100 images"
        ),
        f"the same written out as matrices: {same} messages of all neurons": (
            f"{values['expanded']:.1f} s ({times:.1f} times), {values['expanded mb']:.0f} MB "
            f"({memory:.0f} times)"
        ),
    }


SIMULATORS = {
    "emulator": "the emulator",
    "brian2": "Brian2 with Cython, after its compilation",
    "brian2-cpp": "Brian2 in C++, less a run of one step",
    "nest": "NEST, one thread",
    "nest-silent": "NEST without a spike recorder",
}


def recurrent(values: dict[str, Any]) -> dict[str, str]:
    spikes, rows = values["emulator"]["spikes"], {}
    for name in (each for each in SIMULATORS if each in values):
        row, network = values[name], "the same on"
        if name == "emulator":
            network = "random recurrent network, 10^5 neurons, 10^7 synapses, 1000 steps, "
            network += f"{spikes / 1e6:.1f} million spikes, on"
        counted = name in ("emulator", "nest-silent")
        same = row["counts"] == values["emulator"]["counts"]
        note = "" if counted else f": {'the same' if same else 'OTHER'} spike counts"
        memory = "" if name == "brian2-cpp" else f", {row['peak_gb']:.2f} GB"
        rows[f"{network} {SIMULATORS[name]}{note}"] = f"{row['seconds']:.1f} s{memory}"
    return rows


def million(values: dict[str, Any]) -> dict[str, str]:
    seconds = (values["lower"], values["quantise"], values["tables and 100 steps"])
    what = (
        f"10^6 neurons, {values['synapses'] / 1e8:.2f} x 10^8 synapses, 8 bits, graded, "
        f"{values['messages'] / 1e6:.1f} million messages: lower; quantise; tables and 100 steps"
    )
    times = "; ".join(f"{each:.1f} s" for each in seconds)
    return {what: f"{times}; {values['gb']:.1f} GB above the start"}


def startup(values: dict[str, Any]) -> dict[str, str]:
    rows = {
        f"first compilation, an empty cache: model and code {name}": f"{first - second:.1f} s"
        for name, (first, second) in values.items()
    }
    seconds = values["layered rate"][1]
    return rows | {
        "`evaluate --on emulator --samples 5` of a network on digits, compiled before": (
            f"{seconds:.1f} s"
        )
    }


def faster(values: dict[str, Any]) -> str:
    """How many times faster two workers were in each turn."""
    ratios = [f"{float(one) / float(two):.2f}" for one, two in values["turns"]]
    same = {True: ", the same bytes", False: ", OTHER bytes", None: ""}[values.get("same")]
    return f"{', '.join(ratios)} times faster{same}"


def training(values: dict[str, Any]) -> dict[str, str]:
    what = "training of 784-2048-2048-10, batch 512, two processes of `torchrun` against one"
    return {what: faster(values)}


def workers(on: str, kind: str, values: dict[str, Any]) -> dict[str, str]:
    sizes = "-".join(map(str, values["hidden"]))
    seconds = ", ".join(f"{one:.1f} to {two:.1f} s" for one, two in values["turns"])
    what = (
        f"two {kind} of {on} against one, {values['samples']} digits, {sizes} hidden units, "
        f"{values['steps']} steps"
    )
    return {what: f"{faster(values)} ({seconds})"}


def rows(part: str, values: dict[str, Any]) -> dict[str, str]:
    """What was measured, and its result, for each row of a part."""
    if part.endswith(" workers"):
        on = part.removesuffix(" workers")
        label = {"emulator": "the emulator", "brian2": "Brian2", "lava": "Lava"}[on]
        return workers(label, "threads" if on == "emulator" else "processes", values)
    parts = (convolution, mnist, recurrent, million, training, startup)
    return {each.__name__: each for each in parts}[part](values)


def write() -> None:
    """Write the page."""
    lines = [
        f"| {what} | {result} | `{part}` |"
        for part, values in sorted(measured().items(), key=lambda each: ORDER.index(each[0]))
        for what, result in rows(part, values).items()
    ]
    tail = "" if "nest" in measured().get("recurrent", {}) else NO_NEST
    write_text(PAGE, HEAD + "\n".join(lines) + "\n" + tail)


if __name__ == "__main__":
    write()
