"""A rate network as a torch module: its gradient is that of the equilibrium."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
import torch

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.adjoint import NotSettledError
from neuro_eqprop.dynamics.inference import infer
from neuro_eqprop.dynamics.solve import Stop
from neuro_eqprop.dynamics.to_torch import EquilibriumLayer
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR, RELU, TANH
from neuro_eqprop.networks.architectures import convolutional, layered, looped
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.numpy import NumpyOps

EXACT = Stop(1e-13, 5000)
NETWORKS = {
    "one hidden layer": layered(6, (5,), 3, hidden_rate=TANH, output_rate=LINEAR),
    "two hidden layers": layered(6, (5, 4), 3, hidden_rate=TANH, output_rate=LINEAR, feedback=0.3),
    "a symmetric loop": looped(6, 5, 3, hidden_rate=TANH, output_rate=LINEAR, bound=0.8),
}


def parameters(network: Network, seed: int = 0) -> Mapping[str, Array]:
    return initialize(network, np.random.default_rng(seed))


@pytest.mark.parametrize("name", NETWORKS)
def test_the_module_passes_gradcheck_for_input_and_parameters(name: str) -> None:
    network = NETWORKS[name]
    layer = EquilibriumLayer(network, parameters(network), stop=EXACT, dtype=torch.float64)
    x = torch.rand(2, 6, dtype=torch.float64, requires_grad=True)
    names = list(layer.values)

    def run(x: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
        given = {f"values.{n}": v for n, v in zip(names, values, strict=True)}
        return torch.as_tensor(torch.func.functional_call(layer, given, (x,)))

    given = [layer.values[n].detach().clone().requires_grad_() for n in names]
    assert torch.autograd.gradcheck(run, (x, *given), atol=1e-6)


def test_the_module_predicts_what_the_network_settles_to() -> None:
    network = layered(6, (5,), 3, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
    params = parameters(network)
    x = np.random.default_rng(1).random((4, 6))
    layer = EquilibriumLayer(network, params, stop=Stop(1e-10, 1000), dtype=torch.float64)
    found = infer(NumpyOps(), network, params, x, Stop(1e-10, 1000))
    with torch.no_grad():
        drive = layer(torch.tensor(x)).numpy()
    np.testing.assert_allclose(drive, found.drive, atol=1e-8)


def test_the_module_trains_inside_a_torch_model() -> None:
    torch.manual_seed(0)
    network = layered(8, (16,), 4, hidden_rate=TANH, output_rate=LINEAR)
    model = torch.nn.Sequential(
        torch.nn.Linear(5, 8), EquilibriumLayer(network, parameters(network)), torch.nn.Linear(4, 2)
    )
    x = torch.rand(64, 5)
    y = (x.sum(dim=1) > 2.5).long()
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    losses = []
    for _ in range(60):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]


def test_a_convolutional_network_has_gradients_of_the_input_and_of_every_parameter() -> None:
    network = convolutional(
        (1, 8, 8), (4,), 3, kernel=3, hidden_rate=RELU, output_rate=LINEAR, feedback=0.1
    )
    layer = EquilibriumLayer(network, parameters(network))
    x = torch.rand(2, 64, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad is not None
    assert float(x.grad.abs().max()) > 0
    assert all(p.grad is not None for p in layer.parameters())


def test_a_network_that_does_not_settle_raises_a_sentence() -> None:
    network = looped(6, 5, 3, hidden_rate=TANH, output_rate=LINEAR, bound=None)
    params = {name: 10.0 * value for name, value in parameters(network).items()}
    # One step: saturated rates may stand still after a few.
    layer = EquilibriumLayer(network, params, stop=Stop(1e-9, 1))
    with pytest.raises(NotSettledError, match="give `stop` more steps"):
        layer(torch.rand(2, 6))
