"""Fidelity of the Hebbian update in continuous time, by neuron, option and read-out.

`python sims/brian2/update.py` measures the settings below with their defaults, on 30 training
samples of the digits, near initial weights and after 5 epochs, and writes
docs/results/biology-update.md. Rows are kept in sims/brian2/update.json: a row that is there is not
measured again.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import neuro_eqprop as ne
from neuro_eqprop.data import one_hot
from neuro_eqprop.dynamics.schedules import three_phase
from neuro_eqprop.runs.update_fidelity import READOUTS, update_fidelity
from neuro_eqprop.simulators.biology.options import parse_options
from neuro_eqprop.simulators.biology.settings import phase_lengths
from neuro_eqprop.simulators.biology.simulator import biology
from neuro_eqprop.simulators.recordings import NOTHING, MemorySink

HERE = Path(__file__).parent
STORE = HERE / "update.json"
PAGE = HERE.parents[1] / "docs" / "results" / "biology-update.md"
SAMPLES, BETA, DIRECTIONS = 30, 0.5, 16
SETTINGS = (
    "",
    "nudge=spikes",
    "tau_m=20ms",
    "noise=0.2",
    "noise=0.5",
    "noise=0.2,tau_m=20ms",
    "noise=0.2,common_noise=yes",
    "delay=50ms",
    "delay=200ms",
    "dale=pairs",
    "dale=interneurons",
    "neuron=conductance",
    "neuron=conductance,noise=0.2",
    "neuron=adex,dt=0.2ms",
    "neuron=izhikevich,dt=0.2ms",
)
NETWORKS = {
    f"64-{hidden}-10, {epochs}": (hidden, epochs)
    for hidden in (32, 128)
    for epochs in ("near initial weights", "after 5 epochs")
}
WITH_GRADIENT = ("", "noise=0.2")
"""Settings whose own loss is measured, on the smaller network."""


def models(seed: int) -> dict[str, ne.Model]:
    """The networks, by name."""
    made = {}
    for name, (hidden, when) in NETWORKS.items():
        trained: dict[str, Any] = (
            {"epochs": 5} if "5" in when else {"epochs": 1, "learning_rate": 1e-9}
        )
        made[name] = ne.train(
            "layered", "digits", hidden=(hidden,), seed=seed, preset="chip", **trained
        )
    return made


def measure(text: str, model: ne.Model, directions: int) -> dict[str, Any]:
    """Cosines of all connections, with rates and with the own gradient."""
    train = ne.load_data("digits").train.take(slice(SAMPLES))
    target = one_hot(train.y, model.network.output.size)
    backend = biology(**parse_options(text))
    spiking = model.to_spiking(code="rate").with_nudge()
    lengths = phase_lengths(backend.biology)
    steps = lengths.settle + lengths.window
    schedule = three_phase(beta=BETA, free=steps, nudged=steps, part=lengths.window / steps)
    stimulus = spiking.encode(train.x, target)
    began = time.process_time()
    result = backend.run(spiking.network, stimulus, schedule, record=NOTHING, sink=MemorySink())
    seconds = time.process_time() - began
    found = update_fidelity(
        spiking,
        result,
        (train.x, target),
        schedule,
        backend=backend,
        directions=directions,
    )
    return {
        "seconds": seconds,
        "steps": steps,
        "rate": {f"{f.connection} {f.readout}": f.rate for f in found},
        "gradient": {f"{f.connection} {f.readout}": f.gradient for f in found},
    }


def rows(seed: int = 0) -> dict[str, dict[str, Any]]:
    """All rows, those that are stored and those measured now."""
    stored: dict[str, Any] = json.loads(STORE.read_text()) if STORE.exists() else {}
    trained: dict[str, ne.Model] = {}
    for text in SETTINGS:
        for name, (hidden, _) in NETWORKS.items():
            key = f"{text or 'lif'} | {name} | seed {seed}"
            if key in stored:
                continue
            trained = trained or models(seed)
            with_gradient = hidden == 32 and text in WITH_GRADIENT
            stored[key] = measure(text, trained[name], DIRECTIONS if with_gradient else 0)
            STORE.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")
            print(key, stored[key]["rate"], flush=True)
    return stored


def worst(text: str, stored: dict[str, Any], readout: str, seed: int = 0) -> str:
    """The lowest cosine over networks, of each connection."""
    lowest = []
    for connection in ("input->hidden", "hidden->output"):
        found = [
            stored[f"{text or 'lif'} | {name} | seed {seed}"]["rate"][f"{connection} {readout}"]
            for name in NETWORKS
        ]
        lowest.append(f"{min(found):.3f}")
    return " / ".join(lowest)


def table(header: list[str], lines: list[list[str]]) -> str:
    """Rows in Markdown."""
    every = [header, ["---"] * len(header), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in every)


def main() -> None:
    """Measure what is missing, and write the page."""
    stored = rows()
    measured = [
        text
        for text in SETTINGS
        if all(f"{text or 'lif'} | {name} | seed 0" in stored for name in NETWORKS)
    ]
    fidelity = [
        [
            text or "lif",
            str(stored[f"{text or 'lif'} | {next(iter(NETWORKS))} | seed 0"]["steps"]),
            *(worst(text, stored, readout) for readout in READOUTS),
        ]
        for text in measured
    ]
    gradients = [
        [
            text or "lif",
            name,
            " / ".join(
                f"{row['gradient'][f'{connection} spikes']:.2f}"
                for connection in ("input->hidden", "hidden->output")
            ),
        ]
        for text in WITH_GRADIENT
        for name, (hidden, _) in NETWORKS.items()
        if hidden == 32
        for row in (stored[f"{text or 'lif'} | {name} | seed 0"],)
        if text in measured
    ]
    parts = [
        "# Biology: what survives of the update",
        "The cosine of the Hebbian update of membranes in continuous time (`biology`) with that of "
        f"the rates, input->hidden / hidden->output, on {SAMPLES} training samples of the digits, "
        f"centered nudging with beta {BETA}, one trial, seed 0. Each figure is the lowest of four "
        "networks: 64-32-10 and 64-128-10, near initial weights and after 5 epochs. Every option "
        "has its defaults otherwise, phases included ([biology](../explanation/biology.md)); a "
        "step is 10 ms. The read-outs are window means: of spikes; of presynaptic spikes and the "
        "postsynaptic drive; of drives, clipped to 0..1. Made by `python sims/brian2/update.py`.",
        table(["setting", "steps of a nudged phase", *READOUTS], fidelity),
        "## The gradient of its own loss",
        "The cosine of the update, read from spikes, with minus the gradient of the spiking "
        f"network's own loss, measured along {DIRECTIONS} random directions of the weights of each "
        "connection (standard error about (1 - cosine²) / 4). A nudge of beta 0.5 is not "
        "small: it takes the update away from the gradient in rates, too.",
        table(["setting", "network", "input->hidden / hidden->output"], gradients),
        "With `--common-noise` both nudged phases get the same random numbers, which reduces the "
        "variance of their difference in spikes and is no model of biology.",
    ]
    PAGE.write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
