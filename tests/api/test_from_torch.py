"""A torch MLP brought in: the same answers as rates, nearly the same as spikes, losses by layer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import neuro_eqprop
from neuro_eqprop.api.from_torch import forward, from_torch, normalised
from neuro_eqprop.api.run import open_run
from neuro_eqprop.cli import main
from neuro_eqprop.common.arrays import Array
from neuro_eqprop.data import load_data
from neuro_eqprop.dynamics.torch_layers import ForeignError
from neuro_eqprop.networks.activations import HARD_SIGMOID, HARD_TANH, LINEAR, RELU
from neuro_eqprop.runs.convert import conversion_error
from neuro_eqprop.spiking.codes import Code

X = np.random.default_rng(0).random((40, 2, 3))


def mlp(*middle: nn.Module) -> nn.Sequential:
    torch.manual_seed(1)
    body = [nn.Linear(6, 16), *middle, nn.Linear(16, 4)]
    return nn.Sequential(nn.Flatten(), *body)


def answers(module: nn.Module, x: Array) -> Array:
    with torch.no_grad():
        return np.asarray(module(torch.tensor(x, dtype=torch.float32)).numpy(), dtype=np.float64)


@pytest.mark.parametrize(
    "activation",
    [nn.ReLU(), nn.Hardsigmoid(), nn.Hardtanh(), nn.Hardtanh(0.0, 1.0), nn.Tanh(), nn.ReLU6()],
    ids=str,
)
def test_rates_are_torchs_own(activation: nn.Module) -> None:
    module = mlp(activation, nn.Dropout(0.5)).eval()
    brought = neuro_eqprop.from_torch(module, (2, 3))
    found = forward(brought, X.reshape(40, 6))
    np.testing.assert_allclose(found["output"], answers(module, X), atol=1e-5)
    assert found["hidden"].std() > 0.05
    assert all(not connection.symmetric for connection in brought.network.connections)


def test_activations_and_names() -> None:
    module = nn.Sequential(
        nn.Linear(6, 5, bias=False),
        nn.ReLU(),
        nn.Sequential(nn.Linear(5, 4), nn.Hardsigmoid()),
        nn.Linear(4, 3),
        nn.Hardtanh(),
        nn.Linear(3, 2),
        nn.Softmax(dim=1),
    )
    network = from_torch(module, (6,)).network
    assert [layer.name for layer in network.moving] == ["hidden1", "hidden2", "hidden3", "output"]
    kinds = [layer.activation for layer in network.moving]
    assert kinds == [RELU, HARD_SIGMOID, HARD_TANH, LINEAR]


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (nn.Sequential(nn.Linear(6, 4), nn.GELU()), "layer '1' is a GELU: it has no counterpart"),
        (nn.Sequential(nn.Linear(6, 4), nn.LayerNorm(4)), "layer '1' is a LayerNorm"),
        (
            nn.Sequential(nn.ReLU(), nn.Linear(6, 4)),
            "layer '0' is a ReLU: an activation must follow",
        ),
        (nn.Sequential(nn.Linear(5, 4)), "takes 5 values and is given 6"),
        (nn.Sequential(nn.Flatten()), "does not end in a Linear layer"),
        (nn.MultiheadAttention(4, 2), "layer 'the module' is a MultiheadAttention"),
    ],
)
def test_what_cannot_be_brought_in_is_refused_by_name(module: nn.Module, message: str) -> None:
    with pytest.raises(ForeignError, match=message):
        from_torch(module, (2, 3))


def test_the_loss_is_reported_layer_by_layer() -> None:
    module = mlp(nn.ReLU())
    brought, x = from_torch(module, (2, 3)), X.reshape(40, 6)
    y = answers(module, X).argmax(axis=1)
    result = conversion_error(brought, x, y, code="graded", steps=24)
    assert result["rate_accuracy"] == 1.0
    assert result["accuracy"] == result["agreement"] >= 0.95
    assert [layer["layer"] for layer in result["layers"]] == ["hidden", "output"]
    assert all(0 < layer["rmse"] < 0.02 for layer in result["layers"])
    # One message of each unit that is not silent, and hardly more: nothing comes back.
    assert result["spikes_per_neuron"] < 4


def test_rates_of_one_at_most_are_carried_by_binary_spikes() -> None:
    module, x = mlp(nn.ReLU()), X.reshape(40, 6)
    brought = normalised(from_torch(module, (2, 3)), x, 1.0)
    y = answers(module, X).argmax(axis=1)
    assert forward(brought, x)["hidden"].max() == pytest.approx(1.0)
    result = conversion_error(brought, x, y, code=Code.RATE, steps=256)
    assert result["rate_accuracy"] == 1.0
    assert result["agreement"] >= 0.9
    assert result["layers"][0]["rmse"] < 0.02
    half = conversion_error(
        normalised(from_torch(module, (2, 3)), x, 0.5), x, y, code=Code.RATE, steps=64
    )
    assert half["layers"][0]["clipped"] > 0.2
    with pytest.raises(ForeignError, match="rates below zero"):
        normalised(from_torch(mlp(nn.Tanh()), (2, 3)), x)


def test_it_becomes_a_run_that_every_command_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, 10))
    brought, out = from_torch(module, (64,)), tmp_path / "run"
    brought.save(out, dataset="digits")
    run = open_run(out)
    found = run.model.network
    assert found == brought.network
    x = load_data("digits").test.x[:5]
    np.testing.assert_allclose(forward(brought, x)["output"], answers(module, x), atol=1e-5)
    words = ["evaluate", str(out), "--on", "emulator", "--code", "graded", "--samples", "20"]
    assert main([*words, "--json"]) == 0
    assert '"agreement": 1.0' in capsys.readouterr().out
    with pytest.raises(ValueError, match="already holds a run"):
        brought.save(out, dataset="digits")


class Net(nn.Module):
    """A usual module of torch, with its own `forward`."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 3), nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.second(torch.relu(self.first(x)))
        return found


def test_a_module_with_its_own_forward_is_refused_with_what_to_do() -> None:
    for module in (Net(), nn.Sequential(Net(), nn.ReLU(), nn.Linear(2, 2))):
        with pytest.raises(ForeignError, match=r"Net with its own `forward`.*nn\.Sequential"):
            from_torch(module, 4)


def test_with_feedback_training_goes_on_from_the_module() -> None:
    data = load_data("digits")
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, 10)
    )
    plain, fed_back = (from_torch(module, 64, feedback=g) for g in (0.0, 0.02))
    assert not fed_back.network.layers_without_feedback
    x = data.test.x[:20]
    drives = [model.equilibrium(x).drive for model in (plain, fed_back)]
    np.testing.assert_allclose(drives[0], drives[1], atol=0.05)
    trainer = neuro_eqprop.Trainer(fed_back, data, epochs=3, batch=16)
    for name, value in trainer.params.items():
        np.testing.assert_allclose(value.numpy(), fed_back.params[name], rtol=1e-6)
    rows = list(trainer)
    assert trainer.study.rule.name == "hebbian"
    assert rows[-1]["test_accuracy"] > 0.8
    with pytest.raises(ValueError, match="positive factor"):
        from_torch(module, 64, feedback=-1.0)
