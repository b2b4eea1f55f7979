"""Spike timing of the learning rule, measured.

`python sims/stdp/curve.py` pairs isolated spikes in the simulators that learn, learns digits with
binary spikes on the emulator, and writes docs/results/stdp.md with its figure.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

import neuro_eqprop as ne
from neuro_eqprop.runs.learn_on_chip.trace import TraceRequest
from neuro_eqprop.runs.pair_protocol import PairCurve
from neuro_eqprop.traces.spike_timing import SpikeTiming, stdp_window

RESULTS = Path(__file__).parents[2] / "docs" / "results"
TAU, SAMPLES = 8.0, 200
CONNECTIONS = ("input->hidden", "hidden->output")
STEPS = (64, 128)
SIMULATORS = ("reference", "emulator", "brian2", "lava", "brian2-biology")


def learned(steps: int) -> list[SpikeTiming]:
    """Spike timing of both connections in a run with so many steps in a nudged phase."""
    request = TraceRequest("stdp.h5", ["input:spikes", "hidden->output:hebbian"], samples=SAMPLES)
    settings: dict[str, Any] = {"hidden": (32,), "beta": 0.2, "learning_rate": 0.05, "seed": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ne.learn_on_chip(
            "layered", "digits", on="emulator", code="rate", epochs=1, samples=SAMPLES,
            steps=steps, tau=TAU, traces=request, **settings,
        )  # fmt: skip
    assert model.trace is not None
    trace = model.trace.load()
    Path(request.path).unlink()
    return [ne.spike_timing(trace, name, tau=TAU) for name in CONNECTIONS]


def draw(pairs: list[PairCurve], found: list[SpikeTiming]) -> None:
    """The figure: kernel, what pairs add in a run, change around the change of beta."""
    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "stdp"
    from matplotlib import pyplot

    figure, grid = pyplot.subplots(2, 2, figsize=(10, 7), layout="constrained")
    first = grid[0, 0]
    for curve in pairs:
        curve.plot(ax=first)
    window = pairs[0].kernel.max() * stdp_window(pairs[0].lag, TAU)
    for side in (pairs[0].lag < 0, pairs[0].lag > 0):
        first.plot(1e3 * pairs[0].seconds[side], window[side], "--", color="C3")
    first.set_title("isolated pairs; dashed: exponential STDP window")
    second, timing = grid[0, 1], found[1]
    second.axvline(0.0, color="0.8", linewidth=0.8)
    for name in ("potentiated", "depressed"):
        second.plot(1e3 * timing.seconds, getattr(timing, name), label=f"{name} synapses")
    second.set_xlabel("post spike after pre spike (ms)")
    second.set_ylabel("part of the tag, per synapse")
    second.set_title(f"{timing.connection}: what pairs add to the tags")
    second.legend(fontsize="small")
    for axes, each in zip(grid[1], found, strict=True):
        each.plot(ax=axes)
    figure.savefig(RESULTS / "figures" / "stdp.svg", metadata={"Date": None})


def row(steps: int, found: SpikeTiming) -> str:
    """A row of the table."""
    values = (
        found.product_pearson,
        found.window_pearson,
        found.window_sign,
        found.kernel_pearson,
        found.odd_share,
        found.odd_share_of_pairs,
    )
    cells = ["-" if value is None else f"{value:.3f}" for value in values]
    return f"| {found.connection} | {steps} | {' | '.join(cells)} |"


def main() -> None:
    """Measure, draw and write the page."""
    curves = {
        (on, f): ne.pair_protocol(on, tau=TAU, factor=f) for on in SIMULATORS for f in (1, -1)
    }
    errors = {
        on: max(float(np.abs(curves[on, f].tag - curves[on, f].kernel).max()) for f in (1, -1))
        for on in SIMULATORS
    }
    found = {steps: learned(steps) for steps in STEPS}
    draw([curves["emulator", f] for f in (1, -1)], found[STEPS[-1]])
    height = curves["emulator", 1].kernel.max()
    rows = [row(steps, each) for steps, both in found.items() for each in both]
    kernel = [f"| `{on}` | {error:.1e} | {error / height:.1e} |" for on, error in errors.items()]
    text = (Path(__file__).parent / "page.md").read_text(encoding="utf-8")
    text = text.replace("{{kernel}}", "\n".join(kernel)).replace("{{rows}}", "\n".join(rows))
    (RESULTS / "stdp.md").write_text(text, encoding="utf-8")
    print("\n".join([*kernel, *rows]))


if __name__ == "__main__":
    main()
