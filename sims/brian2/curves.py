"""What biology takes from the update: noise against trials, delay, phase length, tau_s.

`python sims/brian2/curves.py` measures a network 64-32-10 after 5 epochs, on 30 training samples of
the digits, and writes docs/results/biology-curves.md. Points are kept in sims/brian2/curves.json: a
point that is there is not measured again. `--kept` measures nothing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import neuro_eqprop as ne
from neuro_eqprop.common.arrays import Array, cosine
from neuro_eqprop.data import one_hot
from neuro_eqprop.dynamics.schedules import three_phase
from neuro_eqprop.runs.update_fidelity import (
    READOUTS,
    rate_settings,
    spiking_updates,
    summed_update,
)
from neuro_eqprop.simulators.biology.options import parse_options
from neuro_eqprop.simulators.biology.settings import phase_lengths
from neuro_eqprop.simulators.biology.simulator import biology
from neuro_eqprop.simulators.recordings import NOTHING, MemorySink
from neuro_eqprop.training.rules.base import Batch

HERE = Path(__file__).parent
STORE = HERE / "curves.json"
PAGE = HERE.parents[1] / "docs" / "results" / "biology-curves.md"
SAMPLES, BETA = 30, 0.5
CONNECTIONS = ("input->hidden", "hidden->output")
TRIALS = (1, 2, 4, 8, 16)
NOISES = ("0.1", "0.2", "0.5")
STEPS = (32, 64, 128, 256, 512)
DELAYS = ("0s", "50ms", "200ms")
TAUS = {"lif": ("5ms", "20ms", "50ms"), "conductance": ("5ms", "20ms", "50ms")}


def points() -> list[tuple[str, int | None, int]]:
    """Options, steps of a nudged phase (None for the default) and trials of every point."""
    found: list[tuple[str, int | None, int]] = [
        (f"noise={noise}", None, trials) for noise in NOISES for trials in TRIALS
    ]
    found += [(f"delay={delay}", steps, 1) for delay in DELAYS for steps in STEPS]
    found += [
        (f"neuron={neuron},tau_syn={tau}", None, 1) for neuron, taus in TAUS.items() for tau in taus
    ]
    return found


def measure(model: ne.Model, text: str, steps: int | None, trials: int) -> dict[str, list[float]]:
    """Cosines with the update of rates by read-out, both connections."""
    train = ne.load_data("digits").train.take(slice(SAMPLES))
    target = one_hot(train.y, 10)
    backend = biology(**parse_options(text))
    spiking = model.to_spiking(code="rate").with_nudge()
    lengths = phase_lengths(backend.biology, steps)
    total = lengths.settle + lengths.window
    schedule = three_phase(beta=BETA, free=total, nudged=total, part=lengths.window / total)
    x, repeated = np.tile(train.x, (trials, 1)), np.tile(target, (trials, 1))
    result = backend.run(
        spiking.network,
        spiking.encode(x, repeated),
        schedule,
        record=NOTHING,
        sink=MemorySink(),
    )
    settings = rate_settings(schedule, free=2000, nudged=2000)
    batch = Batch(train.x, target, measured=False)
    exact, _ = summed_update(spiking.rate, dict(spiking.params), batch, settings)
    found: dict[str, list[float]] = {}
    for readout in READOUTS:
        updates = spiking_updates(spiking, result, x, schedule, readout)
        found[readout] = [cosine(updates[n], -np.asarray(exact[n])) or 0.0 for n in CONNECTIONS]
    return found


def stored_points() -> dict[str, dict[str, list[float]]]:
    """All points, those that are stored and those measured now."""
    stored: dict[str, Any] = json.loads(STORE.read_text()) if STORE.exists() else {}
    if "--kept" in sys.argv:
        return stored
    model = ne.train("layered", "digits", hidden=(32,), seed=0, preset="chip", epochs=5)
    for text, steps, trials in points():
        key = f"{text} | {steps} | {trials}"
        if key not in stored:
            stored[key] = measure(model, text, steps, trials)
            STORE.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")
            print(key, stored[key], flush=True)
    return stored


def both(values: list[float]) -> str:
    """The cosines of both connections."""
    return " / ".join(f"{value:.3f}" for value in values)


def predicted(first: float) -> Array:
    """1 / sqrt(1 + c / n) with c fixed by the cosine of one trial."""
    c = 1.0 / first**2 - 1.0
    return np.asarray(1.0 / np.sqrt(1.0 + c / np.array(TRIALS)))


def table(header: list[str], lines: list[list[str]]) -> str:
    """Rows in Markdown."""
    every = [header, ["---"] * len(header), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in every)


def main() -> None:
    """Measure what is missing, and write the page."""
    stored = stored_points()
    noise = []
    for level in NOISES:
        for readout in ("spikes", "drive"):
            found = [stored[f"noise={level} | None | {n}"][readout] for n in TRIALS]
            noise.append([level, readout, *(both(each) for each in found)])
        ahead = [
            predicted(max(1e-6, each)) for each in stored[f"noise={level} | None | 1"]["spikes"]
        ]
        expected = [both([each[k] for each in ahead]) for k in range(len(TRIALS))]
        noise.append([level, "spikes, 1 / sqrt(1 + c / n)", *expected])
    delays = [
        [delay, *(both(stored[f"delay={delay} | {steps} | 1"]["spikes"]) for steps in STEPS)]
        for delay in DELAYS
    ]
    taus = [
        [
            neuron,
            tau,
            *(both(stored[f"neuron={neuron},tau_syn={tau} | None | 1"][r]) for r in READOUTS),
        ]
        for neuron, each in TAUS.items()
        for tau in each
    ]
    parts = [
        "# Biology: curves of the update",
        "How the cosine of the update with that of rates depends on noise and trials, delay and "
        "the length of phases, and the time constant of synapses: input->hidden / hidden->output, "
        f"64-32-10 after 5 epochs, {SAMPLES} training samples of the digits, beta {BETA}, the "
        "defaults of each option otherwise. [What survives of the update]"
        "(biology-update.md) has all options. Made by `python sims/brian2/curves.py`.",
        "## Noise and trials",
        "The update is a sum over trials of each sample with other noise. Where noise alone takes "
        "from it, the cosine grows as 1 / sqrt(1 + c / n) with the number of trials n, with c from "
        "one trial; where it stays below that, what is left is bias, which no trials cure: here "
        "a plateau near 0.94 read from spikes, and "
        "near 0.97 read from drives.",
        table(["noise", "read-out", *(f"n = {n}" for n in TRIALS)], noise),
        "## Delay and length of a phase",
        "Read from spikes; steps of 10 ms of a nudged phase.",
        table(["delay", *map(str, STEPS)], delays),
        "## Time constant of synapses and read-out",
        table(["neuron", "tau_syn", *READOUTS], taus),
    ]
    PAGE.write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
