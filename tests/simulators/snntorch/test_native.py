"""The torch module sends the spikes of the backends, and gradients reach every weight."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pytest
import torch

from neuro_eqprop.api.from_snntorch import from_snntorch
from neuro_eqprop.common.arrays import Array
from neuro_eqprop.data import load_digits
from neuro_eqprop.dynamics.schedules import free_only, tail
from neuro_eqprop.networks import architectures
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR, RELU
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.simulators.recordings import MemorySink, Record
from neuro_eqprop.simulators.reference.simulator import Reference
from neuro_eqprop.simulators.snntorch.native import SpikingModule
from neuro_eqprop.spiking.codes import Code, Coding, LoweringError
from neuro_eqprop.spiking.lower import lower, stimulate

pytestmark = pytest.mark.snntorch

layered = partial(architectures.layered, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
looped = partial(architectures.looped, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
NETWORKS = {
    "one hidden layer": layered(16, (12,), 4),
    "weak feedback": layered(16, (12, 8), 4, feedback=0.3),
    "a loop": looped(16, 12, 4, bound=0.8),
}


def parameters(network: Network) -> Mapping[str, Array]:
    rng = np.random.default_rng(0)
    found = initialize(network, rng)
    return {name: value + 0.05 * rng.standard_normal(value.shape) for name, value in found.items()}


@pytest.mark.parametrize("code", [Code.RATE, Code.GRADED])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_module_sends_the_messages_of_the_reference(name: str, code: Code) -> None:
    network, coding, steps = NETWORKS[name], Coding(code), 24
    params = parameters(network)
    if name == "a loop":
        weight = params["hidden->hidden"]
        params = {**params, "hidden->hidden": (weight + weight.T) / 2}
    x = np.random.default_rng(1).random((3, 16))
    lowered = lower(network, params, dt=1e-3, coding=coding, nudged=False)
    stimulus = stimulate(network, params, x, target=None, coding=coding)
    memory = MemorySink()
    schedule = free_only(steps=steps, window=tail(steps, coding.tail))
    names = frozenset(p.name for p in lowered.populations)
    result = Reference().run(lowered, stimulus, schedule, record=Record(names), sink=memory)
    module = SpikingModule(network, params, coding)
    logits, messages, _ = module(torch.tensor(x), steps=steps)
    for layer in network.moving:
        expected = np.stack([r.spikes[layer.name] for r in memory.recordings], axis=1)
        np.testing.assert_array_equal(messages[layer.name].detach().numpy(), expected)
    drive = result.drive[network.output.name][:, 0]
    np.testing.assert_allclose(logits.detach().numpy(), drive, atol=1e-12)


def test_state_goes_in_and_out() -> None:
    network = NETWORKS["one hidden layer"]
    module = SpikingModule(network, parameters(network), Coding(Code.GRADED))
    x = torch.rand(2, 16)
    _, whole, _ = module(x, steps=10)
    _, first, state = module(x, steps=4)
    _, second, _ = module(x, steps=6, state=state)
    for name, messages in whole.items():
        assert torch.equal(messages, torch.cat([first[name], second[name]]))


@pytest.mark.parametrize("code", [Code.RATE, Code.GRADED])
def test_gradients_reach_every_parameter(code: Code) -> None:
    network = NETWORKS["weak feedback"]
    module = SpikingModule(network, parameters(network), Coding(code))
    module(torch.rand(8, 16), steps=16).logits.square().sum().backward()
    for name, value in module.values.items():
        assert value.grad is not None, name
        assert float(value.grad.abs().max()) > 0, name


def test_kernels_run_as_convolutions() -> None:
    network = architectures.convolutional(
        (1, 8, 8), (3,), 4, kernel=3, hidden_rate=RELU, output_rate=LINEAR, feedback=0.1
    )
    module = SpikingModule(network, parameters(network), Coding(Code.GRADED))
    logits, messages, _ = module(torch.rand(2, 64), steps=8)
    assert logits.shape == (2, 4)
    first = network.moving[0]
    assert messages[first.name].shape == (8, 2, *first.shape)


def test_a_code_without_a_module_is_refused_in_a_sentence() -> None:
    network = NETWORKS["one hidden layer"]
    with pytest.raises(LoweringError, match="use code 'rate' or 'graded'"):
        SpikingModule(network, parameters(network), Coding(Code.BERNOULLI))


def test_fine_tuning_with_eight_bits_keeps_the_accuracy_and_comes_back_as_a_model() -> None:
    torch.manual_seed(0)
    data = load_digits()
    network = layered(64, (32,), 10)
    params = initialize(network, np.random.default_rng(0))
    module = SpikingModule(network, params, Coding(Code.GRADED), bits=8, dtype=torch.float32)
    optimizer = torch.optim.Adam(module.parameters(), 0.005)
    x = torch.tensor(data.train.x, dtype=torch.float32)
    y = torch.tensor(data.train.y)

    def accuracy() -> float:
        with torch.no_grad():
            found = module(torch.tensor(data.test.x, dtype=torch.float32), steps=12).logits
        return float((found.argmax(dim=1).numpy() == data.test.y).mean())

    before = accuracy()
    for start in range(0, len(x), 64):
        part = slice(start, start + 64)
        loss = torch.nn.functional.cross_entropy(8 * module(x[part], steps=12).logits, y[part])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    after = accuracy()
    assert after > max(before, 0.6)
    model = from_snntorch(module)
    weight = model.params["hidden->output"]
    assert len(np.unique(weight)) <= 256
