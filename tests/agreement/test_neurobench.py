"""Synaptic operations as we count them and as NeuroBench does, on a net that both can see."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.schedules import free_only
from neuro_eqprop.networks.activations import HARD_SIGMOID
from neuro_eqprop.networks.architectures import layered
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.simulators.base import tally
from neuro_eqprop.simulators.recordings import Counts, MemorySink, Record
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.spiking.codes import Code, Coding
from neuro_eqprop.spiking.input_coding import InputCoding, encode_input, with_input
from neuro_eqprop.spiking.ir import (
    Population,
    Projection,
    Reset,
    Spiking,
    SpikingNetwork,
    Stimulus,
)
from neuro_eqprop.spiking.lower import lower

SAMPLES, STEPS = 5, 20
SIZES = {"input": 12, "hidden": 9, "output": 4}


def chain() -> SpikingNetwork:
    """A feed-forward chain of integrate-and-fire neurons, half of whose weights are zero."""
    rng = np.random.default_rng(0)
    cell = Spiking(1.0, 0.0, 1.0, Reset.SUBTRACT, -8.0, 8.0)
    names = list(SIZES)
    populations = tuple(Population(n, cell, np.zeros(size)) for n, size in SIZES.items())
    projections = []
    for source, target in pairwise(names):
        weight = rng.integers(-3, 7, (SIZES[target], SIZES[source])) / 16.0
        weight[rng.random(weight.shape) < 0.5] = 0.0
        projections.append(Projection(source, target, weight))
    return SpikingNetwork(1e-3, populations, tuple(projections), "output")


def ours(network: SpikingNetwork) -> tuple[dict[str, Array], Counts]:
    """The spikes of all populations of the chain, and what was counted."""
    current = np.random.default_rng(1).random((SAMPLES, SIZES["input"]))
    return watched(network, Stimulus(SAMPLES, {"input": np.rint(64 * current) / 64}, {}))


def watched(network: SpikingNetwork, stimulus: Stimulus) -> tuple[dict[str, Array], Counts]:
    """What every population sent, (samples, steps, units), and what was counted."""
    names = [population.name for population in network.populations]
    schedule, memory = free_only(steps=STEPS, window=STEPS), MemorySink()
    record = Record(spikes=frozenset(names))
    result = load_backend("reference").run(network, stimulus, schedule, record=record, sink=memory)
    counts = tally(network, stimulus, schedule, result)
    spikes = {
        name: np.stack([memory.recordings[k].spikes[name] for k in range(SAMPLES)])
        for name in names
    }
    return spikes, sum(counts.values(), Counts())


def loop(code: Code, entry: InputCoding) -> tuple[SpikingNetwork, Stimulus]:
    """A network that feeds back, as it is translated, and some samples."""
    rate = layered(12, (9,), 4, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
    params = initialize(rate, np.random.default_rng(2))
    coding, x = Coding(code), np.random.default_rng(3).random((SAMPLES, 12))
    made = lower(rate, params, dt=1e-3, coding=coding, nudged=False)
    network = with_input(rate, params, made, coding=coding, entry=entry)
    return network, encode_input(rate, params, x, target=None, coding=coding, entry=entry)


def replay(network: SpikingNetwork) -> Any:  # noqa: ANN401 - a torch module
    """Every projection as a layer that NeuroBench can hook, to be fed with what was sent."""
    import torch

    class Replay(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layers = []
            for projection in network.projections:
                rows, columns = projection.weight.shape
                layer = torch.nn.Linear(columns, rows, bias=False, dtype=torch.float64)
                layer.weight = torch.nn.Parameter(torch.from_numpy(projection.weight))
                layers.append(layer)
            self.layers = torch.nn.ModuleList(layers)

        def forward(self, sent: torch.Tensor) -> torch.Tensor:
            ends = np.cumsum([0, *(population.size for population in network.populations)])
            names = [population.name for population in network.populations]
            spans = {name: slice(*ends[k : k + 2]) for k, name in enumerate(names)}
            for step in sent.unbind(1):
                for projection, layer in zip(network.projections, self.layers, strict=True):
                    layer(step[:, spans[projection.source]])
            return sent

    return Replay()


def torch_chain(network: SpikingNetwork) -> Any:  # noqa: ANN401 - a torch module
    """The same chain as layers that NeuroBench can hook, by a loop of its own."""
    import torch

    def linear(weight: Array) -> torch.nn.Linear:
        rows, columns = weight.shape
        layer = torch.nn.Linear(columns, rows, bias=False, dtype=torch.float64)
        layer.weight = torch.nn.Parameter(torch.from_numpy(weight))
        return layer

    class Chain(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.to_hidden, self.to_output = (linear(p.weight) for p in network.projections)

        def forward(self, spikes: torch.Tensor) -> torch.Tensor:
            made = []
            sizes = (SIZES["hidden"], SIZES["output"])
            v = [torch.full((len(spikes), size), 0.5, dtype=torch.float64) for size in sizes]
            arriving = [torch.zeros_like(each) for each in v]
            for t in range(spikes.shape[1]):
                sent = []
                for k in range(2):
                    v[k] = v[k] + arriving[k]
                    sent.append((v[k] >= 1.0).double())
                    v[k] = torch.clamp(v[k] - sent[k], -8.0, 8.0)
                arriving = [self.to_hidden(spikes[:, t]), self.to_output(sent[0])]
                made.append(torch.cat(sent, dim=1))
            return torch.stack(made, dim=1)

    return Chain()


def test_synops_are_those_that_neurobench_counts() -> None:
    torch = pytest.importorskip("torch")
    workload = pytest.importorskip("neurobench.metrics.workload", reason="no NeuroBench here")
    models = pytest.importorskip("neurobench.models")
    network = chain()
    spikes, counts = ours(network)
    model = models.TorchModel(torch_chain(network))
    model.register_hooks()
    metric = workload.SynapticOperations()
    batch = torch.from_numpy(spikes["input"])
    with torch.no_grad():
        made = model(batch)
    np.testing.assert_array_equal(
        made.numpy(), np.concatenate([spikes["hidden"], spikes["output"]], axis=2)
    )
    found = metric(model, made, (batch, None))
    model.cleanup_hooks()
    assert counts.synops > 1000
    assert found["Effective_ACs"] * SAMPLES == counts.synops
    assert found["Effective_MACs"] == 0
    assert found["Dense"] == STEPS * sum(p.weight.size for p in network.projections)


@pytest.mark.parametrize(
    ("code", "entry", "column"),
    [
        (Code.RATE, InputCoding.CURRENT, "Effective_ACs"),
        (Code.RATE, InputCoding.RATE, "Effective_ACs"),
        (Code.GRADED, InputCoding.GRADED, "Effective_MACs"),
    ],
)
def test_a_translated_network_with_feedback_makes_the_synops_of_neurobench(
    code: Code, entry: InputCoding, column: str
) -> None:
    torch = pytest.importorskip("torch")
    workload = pytest.importorskip("neurobench.metrics.workload", reason="no NeuroBench here")
    models = pytest.importorskip("neurobench.models")
    network, stimulus = loop(code, entry)
    spikes, counts = watched(network, stimulus)
    model = models.TorchModel(replay(network))
    model.register_hooks()
    batch = torch.from_numpy(np.concatenate([spikes[p.name] for p in network.populations], axis=2))
    with torch.no_grad():
        model(batch)
    found = workload.SynapticOperations()(model, batch, (batch, None))
    model.cleanup_hooks()
    assert counts.synops > 100
    # NeuroBench calls a step of a layer spiking if all it was sent is -1, 0 or 1: graded messages
    # are so by chance, and are then additions to it.
    assert (found["Effective_ACs"] + found["Effective_MACs"]) * SAMPLES == counts.synops
    assert found[column] > 0.5 * counts.synops / SAMPLES
    if code is Code.RATE:
        assert found["Effective_MACs"] == 0


def test_synops_are_weights_that_are_not_zero_reached_by_spikes() -> None:
    network = chain()
    spikes, counts = ours(network)
    brute = sum(
        int((spikes[p.source][k, t] != 0) @ np.count_nonzero(p.weight, axis=0))
        for p in network.projections
        for k in range(SAMPLES)
        for t in range(STEPS)
    )
    assert counts.synops == brute
