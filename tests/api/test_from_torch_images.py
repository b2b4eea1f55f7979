"""A torch ConvNet brought in: torch's own answers as rates, nearly the same as spikes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from neuro_eqprop.api.from_torch import forward, from_torch, normalised
from neuro_eqprop.api.run import open_run
from neuro_eqprop.cli import main
from neuro_eqprop.common.arrays import Array
from neuro_eqprop.data import load_data
from neuro_eqprop.dynamics.torch_layers import ForeignError
from neuro_eqprop.networks.activations import RELU
from neuro_eqprop.networks.operators import Conv2d, Dense, Pooled
from neuro_eqprop.runs.convert import conversion_error
from neuro_eqprop.spiking.codes import Code
from neuro_eqprop.spiking.operator_synapses import dense_macs, operator_matrix

SHAPE = (2, 8, 8)
X = np.random.default_rng(0).random((12, *SHAPE))


def end(size: int) -> tuple[nn.Module, nn.Module]:
    """From images of so many values to four answers."""
    return nn.Flatten(), nn.Linear(size, 4)


END = end(3 * 8 * 8)


def seeded(*parts: nn.Module) -> nn.Sequential:
    """The parts with weights drawn anew."""
    torch.manual_seed(1)
    for part in parts:
        if isinstance(part, nn.Linear | nn.Conv2d):
            part.reset_parameters()
    return nn.Sequential(*parts).eval()


def answers(module: nn.Module, x: Array) -> Array:
    with torch.no_grad():
        return np.asarray(module.double()(torch.tensor(x)).numpy())


def flat(x: Array) -> Array:
    return x.reshape(len(x), -1)


def small() -> nn.Sequential:
    return seeded(
        nn.Conv2d(1, 8, 3),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Conv2d(8, 16, 2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64, 24),
        nn.Hardsigmoid(),
        nn.Linear(24, 10),
        nn.LogSoftmax(dim=1),
    )


BODIES = {
    "kernels": (nn.Conv2d(2, 3, 3), nn.ReLU(), *end(108)),
    "margin": (nn.Conv2d(2, 3, 3, padding=1), nn.Hardsigmoid(), *END),
    "same": (nn.Conv2d(2, 3, 5, padding="same"), nn.ReLU(), *END),
    "valid": (nn.Conv2d(2, 3, 3, padding="valid"), nn.ReLU(), *end(108)),
    "steps": (nn.Conv2d(2, 3, 3, stride=2), nn.Tanh(), *end(27)),
    "steps in a margin": (nn.Conv2d(2, 3, 4, stride=3, padding=2), nn.ReLU6(), *end(27)),
    "gaps": (nn.Conv2d(2, 3, 3, dilation=2, padding=2), nn.ReLU(), *END),
    "groups": (nn.Conv2d(2, 4, 3, groups=2, bias=False), nn.ReLU(), *end(144)),
    "means first": (nn.AvgPool2d(2), nn.Conv2d(2, 3, 2), nn.ReLU(), *end(27)),
    "means of means": (
        nn.Conv2d(2, 3, 1),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.AvgPool2d(2),
        *end(12),
    ),
    "one mean": (nn.Conv2d(2, 3, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), *end(3)),
    "normed by kept means": (nn.Conv2d(2, 3, 1, bias=False), nn.BatchNorm2d(3), nn.ReLU(), *END),
    "vectors normed": (nn.AvgPool2d(4), *end(8), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 4)),
}


@pytest.mark.parametrize("body", BODIES)
def test_rates_are_torchs_own(body: str) -> None:
    module = seeded(*BODIES[body])
    for part in module:
        if isinstance(part, nn.BatchNorm1d | nn.BatchNorm2d):
            part.running_mean.uniform_(-0.3, 0.3)  # type: ignore[union-attr]
            part.running_var.uniform_(0.3, 2.0)  # type: ignore[union-attr]
            nn.init.uniform_(part.weight, -1.5, 1.5)
            nn.init.uniform_(part.bias)
    brought = from_torch(module, SHAPE)
    wanted = answers(module, X)
    np.testing.assert_allclose(forward(brought, flat(X))["output"], wanted, atol=1e-6)
    assert wanted.std() > 1e-3
    for connection in brought.network.connections:  # the matrix is what becomes synapses
        source = brought.network[connection.source].shape
        spelled = operator_matrix(connection.operator, brought.params[connection.name], source)
        assert spelled.shape[1] == np.prod(source)


def test_names_operators_and_shapes() -> None:
    network = from_torch(small(), (1, 8, 8)).network
    shapes = {layer.name: layer.shape for layer in network.layers}
    assert shapes == {
        "input": (1, 8, 8),
        "conv1": (8, 6, 6),
        "conv2": (16, 2, 2),
        "hidden": (24,),
        "output": (10,),
    }
    operators = [connection.operator for connection in network.connections]
    assert operators == [Conv2d(3), Pooled(2, Conv2d(2)), Dense(), Dense()]
    assert network["conv1"].activation == RELU
    framed = from_torch(seeded(*BODIES["steps in a margin"]), SHAPE).network
    assert framed.connections[0].operator == Conv2d(4, padding=2, stride=3)


REFUSED: list[tuple[tuple[nn.Module, ...], str]] = [
    ((nn.Conv2d(2, 3, (3, 2)), *END), r"layer '0' is a Conv2d: its kernel_size \(3, 2\)"),
    ((nn.Conv2d(2, 3, 3, stride=(1, 2)), *END), r"its stride \(1, 2\)"),
    ((nn.Conv2d(2, 3, 3, padding=(1, 0)), *END), r"its padding \(1, 0\)"),
    ((nn.Conv2d(2, 3, 3, dilation=(1, 2)), *END), r"its dilation \(1, 2\)"),
    ((nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular"), *END), "mode is 'circular'"),
    ((nn.Conv2d(2, 3, 3, padding="same", padding_mode="reflect"), *END), "mode is 'reflect'"),
    (
        (nn.Conv2d(2, 3, 1), nn.ReLU(), nn.BatchNorm2d(3), *END),
        "a norm must follow a Linear or Conv2d",
    ),
    ((nn.Conv2d(2, 3, 4, padding="same"), *END), "'same' with a kernel of 4 is not symmetric"),
    ((nn.Conv2d(1, 3, 3), *END), "takes 1 channels and is given 2"),
    ((nn.Conv2d(2, 3, 9), *END), "kernels of 9 leave nothing"),
    ((nn.Conv2d(2, 3, 3, dtype=torch.complex64), *END), "complex64, not floating point"),
    ((nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Linear(6, 4)), "layer '2' .* put a Flatten before it"),
    ((nn.Conv2d(2, 3, 3), nn.AvgPool2d(2), nn.ReLU(), *END), "'1' .* put an activation before it"),
    ((nn.Conv2d(2, 3, 3), nn.ReLU(), nn.MaxPool2d(2), *END), "'2' is a MaxPool2d: max pooling"),
    ((nn.Conv2d(2, 3, 3), nn.MaxPool2d(2), *END), "max pooling is not linear"),
    ((nn.AvgPool2d(3), *END), "cannot be divided into squares of 3"),
    ((nn.AvgPool2d(2, stride=1), *END), "overlap or leave gaps"),
    ((nn.AvgPool2d(2, divisor_override=3), *END), "divides by 3"),
    ((nn.AdaptiveAvgPool2d(3), *END), "into equal squares"),
    ((nn.AdaptiveAvgPool2d((None, 2)), *END), "AdaptiveAvgPool2d: its output_size"),
    ((nn.Flatten(), nn.AvgPool2d(2)), r"is given \(128,\)"),
    ((nn.Flatten(2), nn.AvgPool2d(2)), "flattens axes 2..-1"),
    ((nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten()), "does not end in a Linear"),
    ((nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3, track_running_stats=False), *END), "keeps no means"),
    ((nn.ConvTranspose2d(2, 3, 3), *END), "'0' is a ConvTranspose2d"),
]


@pytest.mark.parametrize(("parts", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_cannot_be_brought_in_is_refused_by_name(
    parts: tuple[nn.Module, ...], message: str
) -> None:
    with pytest.raises(ForeignError, match=message):
        from_torch(nn.Sequential(*parts), SHAPE)


def test_weights_that_are_not_finite_and_shapes_without_channels_are_refused() -> None:
    module = small()
    nn.init.constant_(module.get_parameter("3.weight"), torch.nan)
    with pytest.raises(ForeignError, match="layer '3' is a Conv2d: its weight holds values"):
        from_torch(module, (1, 8, 8))
    with pytest.raises(ForeignError, match=r"is given \(8, 8\), not \(channels, height, width\)"):
        from_torch(small(), (8, 8))


def test_numbers_of_half_precision_are_brought_in() -> None:
    module = small().to(torch.bfloat16)
    brought = from_torch(module, (1, 8, 8))
    x = np.random.default_rng(1).random((5, 1, 8, 8))
    found = forward(brought, flat(x))["output"]
    np.testing.assert_allclose(found, answers(module[:-1], x), atol=1e-12)


def learned(steps: int = 100) -> nn.Sequential:
    """A small ConvNet that has learned the digits to some degree, by Adam."""
    module, data = small(), load_data("digits").train
    x = torch.tensor(data.x.reshape(-1, 1, 8, 8), dtype=torch.float32)
    y = torch.tensor(data.y)
    module = module.float()
    adam = torch.optim.Adam(module.parameters(), lr=0.03)
    for step in range(steps):
        rows = slice(step * 64 % 1344, step * 64 % 1344 + 64)
        adam.zero_grad()
        torch.autograd.backward(nn.functional.nll_loss(module(x[rows]), y[rows]))
        adam.step()
    return module


def test_a_convnet_that_learned_digits_loses_nothing_as_spikes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module, data = learned(), load_data("digits")
    brought, test = from_torch(module, (1, 8, 8)), data.test
    result = conversion_error(brought, test.x, test.y, code=Code.GRADED, steps=24)
    assert result["rate_accuracy"] > 0.8
    assert result["agreement"] >= 0.99
    assert abs(result["accuracy"] - result["rate_accuracy"]) <= 0.006
    losses = {layer["layer"]: layer["rmse"] for layer in result["layers"]}
    assert list(losses) == ["conv1", "conv2", "hidden", "output"]
    assert all(0 < rmse < 0.05 for rmse in losses.values())
    binary = normalised(brought, data.train.x)
    assert conversion_error(binary, test.x, test.y, code=Code.RATE, steps=256)["agreement"] >= 0.95
    out = tmp_path / "run"
    brought.save(out, dataset="digits")
    words = ["evaluate", str(out), "--on", "emulator", "--code", "graded", "--samples", "20"]
    assert main([*words, "--json"]) == 0
    assert '"agreement": 1.0' in capsys.readouterr().out
    loaded = open_run(out).model
    # Kernels at their places, the means taken first.
    assert dense_macs(loaded.network, loaded.params) == 8 * 36 * 9 + 16 * 4 * 32 + 64 * 24 + 24 * 10
