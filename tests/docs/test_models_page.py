"""The page on models does what it says: its example runs, its names are those of the program."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.cli.train import SETTINGS
from neuro_eqprop.common.arrays import Array
from neuro_eqprop.common.settings import settings_of
from neuro_eqprop.dynamics.field import field
from neuro_eqprop.dynamics.solve import GaussSeidel, Stop, solve
from neuro_eqprop.networks.activations import LINEAR, TANH
from neuro_eqprop.networks.architectures import convolutional, multiscale
from neuro_eqprop.networks.architectures.multiscale import SCALES
from neuro_eqprop.networks.architectures.registry import MODELS
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.training.rules.registry import RULES
from neuro_eqprop.training.settings import Nudging, TrainingSettings
from neuro_eqprop.training.study import Study, adapt, make_study

TEXT = (Path(__file__).parents[2] / "docs" / "explanation" / "models.md").read_text()


def test_the_example_prints_what_it_says() -> None:
    found = re.search(r"```python\n(.*?)```\n\n((?:    .*\n)+)", TEXT, re.DOTALL)
    assert found
    code, said = found.groups()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == re.sub(r"^    ", "", said, flags=re.MULTILINE).strip()


def test_every_model_rule_and_nudging_has_its_row() -> None:
    rows = set(re.findall(r"`([a-z-]+)`", "\n".join(re.findall(r"^\| `.*", TEXT, re.MULTILINE))))
    names = {*MODELS, *RULES, *(n.value for n in Nudging)}
    assert names <= rows


def test_every_setting_without_an_option_has_its_row_with_a_value_it_takes() -> None:
    cells = re.findall(r"^\| (`\w+=.*?`) \|", TEXT, re.MULTILINE)
    result = {key: value for cell in cells for key, value in re.findall(r"`(\w+)='?(.*?)'?`", cell)}
    known = {
        *(key for model in MODELS.values() for key in settings_of(type(model.settings()))),
        *(key for rule in RULES.values() for key in settings_of(rule.settings)),
        *settings_of(TrainingSettings),
    }
    assert known - set(SETTINGS) | {"validation", "bound"} <= set(result)
    for key, value in result.items():
        study = next(made for made in map(make_study_of, MODELS) if key in made.flat())
        needs = ONLY_WITH.get(key, {})
        assert adapt(study, {**needs, key: value}).get(key) is not None


ONLY_WITH: dict[str, dict[str, Any]] = {
    "height": {"activation": "box"},
    "points": {"nudging": "holomorphic"},
    "attention_sharpness": {"attention": "softmax"},
    "patience": {"validation": 0.1},
}


def make_study_of(model: str) -> Study:
    return make_study(model=model)


def at_rest(network: Network, x: Array) -> tuple[dict[str, Array], dict[str, Array]]:
    """Parameters, biases among them, and the rates at equilibrium."""
    rng = np.random.default_rng(0)
    params = initialize(network, rng)
    params |= {layer.name: rng.uniform(0.1, 0.4, layer.bias) for layer in network.moving}
    free = field(NumpyOps(), network, params, x)
    return params, dict(solve(free, free.zero_state(), GaussSeidel(), Stop(1e-14, 2000)).state)


def test_the_equations_of_multiscale_hold_at_rest() -> None:
    x = np.random.default_rng(1).normal(size=(4, 5))
    network = multiscale(5, 8, 3, hidden_rate=TANH, output_rate=LINEAR, bound=0.95)
    p, s = at_rest(network, x)
    assert [s[name].shape[1] for name in SCALES] == [2, 4, 8]
    for k, name in enumerate(SCALES):
        memory, h = f"{name}-memory", s[name]
        assert np.allclose(s[memory], np.tanh(h @ p[f"{name}->{memory}"].T + p[memory]))
        drive = x @ p[f"input->{name}"].T + p[name] + s[memory] @ p[f"{name}->{memory}"]
        drive = drive + s["output"] @ p[f"{name}->output"]
        if k > 0:
            drive = drive + s[SCALES[k - 1]] @ p[f"{SCALES[k - 1]}->{name}"].T
        if k < 2:
            drive = drive + s[SCALES[k + 1]] @ p[f"{name}->{SCALES[k + 1]}"]
        assert np.allclose(h, np.tanh(drive))
    read = sum(s[name] @ p[f"{name}->output"].T for name in SCALES)
    assert np.allclose(s["output"], read + p["output"])
    bounds = {connection.name: connection.bound for connection in network.connections}
    assert np.isclose(bounds["coarse->middle"] or 0.0, 0.95 / 3)
    for name in ("fine->fine-memory", "fine->output"):
        assert np.isclose(bounds[name] or 0.0, 0.95 / 3**0.5)


def test_the_equations_of_conv_hold_at_rest() -> None:
    x, g = np.random.default_rng(1).normal(size=(3, 10, 10)), 0.3
    network = convolutional(
        (1, 10, 10), (2, 3), 4, kernel=3, hidden_rate=TANH, output_rate=LINEAR, feedback=g
    )
    p, s = at_rest(network, x.reshape(3, -1))
    one, two, out = s["conv1"], s["conv2"], s["output"]
    first, second = p["input->conv1"], p["conv1->conv2"]
    read = p["conv2->output"].reshape(4, 3, 1, 1)

    def means(y: Array) -> Array:
        n, c, high, wide = y.shape
        return np.asarray(y.reshape(n, c, high // 2, 2, wide // 2, 2).mean((3, 5)))

    def quarters(y: Array) -> Array:
        return np.asarray(y.repeat(2, axis=2).repeat(2, axis=3) / 4)

    def over(kernel: Array, y: Array) -> Array:
        side = kernel.shape[2]
        seen = np.lib.stride_tricks.sliding_window_view(y, (1, 1, side, side))[..., 0, 0, :, :]
        return np.asarray(np.einsum("ocab,ncijab->noij", kernel, seen))

    def back(kernel: Array, y: Array) -> Array:
        side = kernel.shape[2] - 1
        wide = np.pad(y, ((0, 0), (0, 0), (side, side), (side, side)))
        return over(kernel.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1], wide)

    above = g * quarters(back(second, two))
    assert np.allclose(one, np.tanh(over(first, x[:, None]) + p["conv1"] + above), atol=1e-10)
    end = g * quarters(np.einsum("ocab,no->ncab", read, out))
    drive = over(second, means(one)) + p["conv2"] + end
    assert np.allclose(two, np.tanh(drive), atol=1e-10)
    assert np.allclose(out, np.einsum("ocab,ncab->no", read, means(two)) + p["output"])
