"""Event counts of a simulation per sample, and their ratio to a dense feed-forward pass."""

from __future__ import annotations

from neuro_eqprop.runs.simulation import Simulation
from neuro_eqprop.simulators.recordings import Counts
from neuro_eqprop.spiking.lowered import LoweredNetwork

EVENTS = (
    "spikes_per_neuron",
    "synops_per_sample",
    "input_spikes_per_sample",
    "input_synops_per_sample",
    "host_macs_per_sample",
    "dense_macs",
    "work_to_dense",
)
"""Keys of `event_stats`."""


def event_stats(run: Simulation) -> dict[str, float]:
    """Return the event counts per sample, with the keys `EVENTS`.

    `spikes_per_neuron` excludes input spikes, `synops_per_sample` includes their synaptic
    operations. `work_to_dense` is synaptic operations plus host MACs, divided by `dense_macs`.
    """
    outside, total, samples = run.spiking.input_populations, run.total, run.samples
    of_input = sum((c for (name, _), c in run.counts.items() if name in outside), Counts())
    values = (
        (total.spikes - of_input.spikes) / (run.spiking.neurons * samples),
        total.synops / samples,
        of_input.spikes / samples,
        of_input.synops / samples,
        total.host_macs / samples,
        run.dense_macs,
        (total.synops + total.host_macs) / (run.dense_macs * samples),
    )
    return dict(zip(EVENTS, values, strict=True))


def warnings_of(spiking: LoweredNetwork, steps: int) -> list[str]:
    """Return a warning if the steps are too few for the depth of the network."""
    if steps >= spiking.steps_needed:
        return []
    return [
        f"{steps} steps are too few for a network of this depth: rates are read before the input "
        f"reaches the output and comes back; use {spiking.steps_needed} or more"
    ]
