from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from neuro_eqprop.common.arrays import cosine
from neuro_eqprop.data import Dataset, Split
from neuro_eqprop.dynamics.field import field
from neuro_eqprop.dynamics.schedules import Schedule, three_phase, two_phase
from neuro_eqprop.dynamics.solve import GaussSeidel
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR, RELU, TANH, Activation, box
from neuro_eqprop.networks.architectures import (
    convolutional,
    feed_forward,
    layered,
    looped,
    multiscale,
)
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Connection, Cost, Layer, Network, Role
from neuro_eqprop.networks.operators import Conv2d, Dense, LayerNorm, Pooled
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.fast import displacement, layer_kernels, structure
from neuro_eqprop.training.fast.displacement import update_by_displacement
from neuro_eqprop.training.fast.layer_state import add_transpose, displace
from neuro_eqprop.training.gradients import implicit
from neuro_eqprop.training.loop import TrainingLoop, sample_source
from neuro_eqprop.training.rules.base import Batch
from neuro_eqprop.training.rules.contrastive import UpdatePath, contrastive, path_of
from neuro_eqprop.training.rules.hebbian import hebbian
from neuro_eqprop.training.rules.phases import Settling, relax
from neuro_eqprop.training.settings import ContrastiveSettings, Nudging, Rule
from neuro_eqprop.training.study import make_study

CLASSES, SAMPLES, STEPS = 6, 11, 60
SCHEDULES = {
    "positive": two_phase(beta=0.3, free=STEPS, nudged=STEPS),
    "negative": two_phase(beta=-0.3, free=STEPS, nudged=STEPS),
    "centered": three_phase(beta=0.25, free=STEPS, nudged=STEPS),
}
RATES = {"relu": (RELU, LINEAR), "box": (box(0.4), HARD_SIGMOID), "tanh": (TANH, LINEAR)}


def pyramid(rate: Activation, output: Activation, feedback: float = 0.3) -> Network:
    """Three scales, each coupled to the next and to the output; two of them and it to the input."""
    layers = (
        Layer("input", (2, 8, 8), LINEAR, Role.INPUT),
        Layer("fine", (3, 8, 8), rate, shared=(3, 1, 1)),
        Layer("middle", (4, 4, 4), rate, stiffness=feedback, shared=(4, 1, 1)),
        Layer("coarse", (5, 2, 2), rate, stiffness=feedback**2),
        Layer("output", (CLASSES,), output, Role.OUTPUT, stiffness=feedback**3),
    )
    return Network(
        layers,
        (
            Connection("input", "fine", Conv2d(3, padding=1)),
            Connection("input", "middle", Pooled(2, Conv2d(3, padding=1))),
            Connection("input", "output"),
            Connection("fine", "middle", Pooled(2, Conv2d(3, padding=1))),
            Connection("middle", "coarse", Conv2d(3, padding=1, stride=2)),
            Connection("fine", "output", Pooled(4, Dense())),
            Connection("middle", "output"),
            Connection("coarse", "output"),
        ),
    )


def unpooled(rate: Activation, output: Activation) -> Network:
    """An image that the output reads pixel by pixel."""
    layers = (
        Layer("input", (2, 5, 6), LINEAR, Role.INPUT),
        Layer("hidden", (3, 3, 4), rate, shared=(3, 1, 1)),
        Layer("output", (CLASSES,), output, Role.OUTPUT, stiffness=0.4),
    )
    return Network(
        layers, (Connection("input", "hidden", Conv2d(3)), Connection("hidden", "output"))
    )


def network_of(kind: str, rate: Activation, output: Activation) -> Network:
    rates: dict[str, Any] = {"hidden_rate": rate, "output_rate": output}
    made = {
        "one": lambda: layered(9, (14,), CLASSES, **rates, feedback=0.4),
        "three": lambda: layered(9, (7, 8, 6), CLASSES, **rates, feedback=0.4),
        "images": lambda: convolutional(
            (1, 10, 10), (3, 4), CLASSES, kernel=3, **rates, feedback=0.4
        ),
        "looped": lambda: looped(9, 14, CLASSES, **rates, bound=0.9),
        "multiscale": lambda: multiscale(9, 16, CLASSES, **rates, bound=0.3),
        "pyramid": lambda: pyramid(rate, output),
        "unpooled": lambda: unpooled(rate, output),
    }
    return made[kind]()


def given(network: Network, ops: TorchOps) -> tuple[dict[str, Any], Batch]:
    rng = np.random.default_rng(3)
    params = initialize(network, rng)
    params |= {layer.name: rng.uniform(0, 0.3, layer.bias) for layer in network.moving}
    if "hidden->hidden" in params:
        params["hidden->hidden"] = 0.5 * params["hidden->hidden"]
    target = ops.from_numpy(np.eye(CLASSES)[rng.integers(0, CLASSES, SAMPLES)])
    x = ops.from_numpy(rng.random((SAMPLES, network.input.size)))
    return {n: ops.from_numpy(v) for n, v in params.items()}, Batch(x, target, measured=True)


def by_phases(
    ops: TorchOps, network: Network, params: dict[str, Any], batch: Batch, schedule: Schedule
) -> dict[str, Any]:
    """The update of phases that a solver settled, one after the other."""
    settling = Settling(GaussSeidel(), GaussSeidel(backwards=True), 1e-14)
    phases = relax(field(ops, network, params, batch.x), batch.target, schedule, settling)
    assert max(float(settled.residual.max()) for settled in phases.values()) < 1e-12
    states = {name: settled.state for name, settled in phases.items()}
    scale = -1.0 / len(batch.x)
    return hebbian(
        ops, network, batch.x, states=states, schedule=schedule, params=params, scale=scale
    )


@pytest.fixture(autouse=True)
def _no_graph() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.mark.parametrize(
    ("rates", "nudging", "cost"),
    [
        *(("relu", nudging, Cost.SQUARED) for nudging in SCHEDULES),
        ("relu", "positive", Cost.CROSS_ENTROPY),
        ("box", "centered", Cost.SQUARED),
        ("box", "positive", Cost.CROSS_ENTROPY),
        ("tanh", "positive", Cost.SQUARED),
        ("tanh", "centered", Cost.CROSS_ENTROPY),
    ],
)
@pytest.mark.parametrize(
    "kind", ["one", "three", "images", "looped", "multiscale", "pyramid", "unpooled"]
)
def test_displacements_give_the_update_of_settled_phases(
    kind: str, rates: str, nudging: str, cost: Cost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(structure, "NEGLIGIBLE_TERM", 0.0)
    network = replace(network_of(kind, *RATES[rates]), cost=cost)
    assert structure.is_supported(network)
    ops = TorchOps(torch.float64)
    params, batch = given(network, ops)
    wanted = by_phases(ops, network, params, batch, SCHEDULES[nudging])
    found = update_by_displacement(ops, network, params, batch, SCHEDULES[nudging])
    assert found.gradients.keys() == wanted.keys()
    for name, gradient in wanted.items():
        size = float(gradient.abs().max())
        assert size > 1e-6
        assert float((found.gradients[name] - gradient).abs().max()) < 1e-9 * size
    assert float(found.residual) < 1e-12
    assert 0 <= int(found.correct) <= SAMPLES


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("nudged", [1, 3])
@pytest.mark.parametrize("rates", ["box", "tanh"])
@pytest.mark.parametrize(
    ("kind", "cost"),
    [
        *((kind, Cost.SQUARED) for kind in ("three", "images", "looped", "pyramid")),
        *((kind, Cost.CROSS_ENTROPY) for kind in ("three", "looped")),
    ],
)
def test_compiled_passes_equal_those_of_torch(
    kind: str,
    cost: Cost,
    rates: str,
    nudged: int,
    dtype: torch.dtype,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network, ops = replace(network_of(kind, *RATES[rates]), cost=cost), TorchOps(dtype)
    params, batch = given(network, ops)
    schedule = two_phase(beta=0.3, free=3, nudged=nudged)
    compiled = update_by_displacement(ops, network, params, batch, schedule)
    monkeypatch.setattr(structure, "is_accessible", lambda *_: False)
    monkeypatch.setattr(displacement, "evaluate_compiled", lambda *_: None)
    params, batch = given(network, ops)  # else the chain of the first update serves again
    plain = update_by_displacement(ops, network, params, batch, schedule)
    allowed = 2e-6 if dtype is torch.float32 else 1e-12
    for name, gradient in plain.gradients.items():
        size = max(1.0, float(gradient.abs().max()))
        assert float((compiled.gradients[name] - gradient).abs().max()) < allowed * size
    assert float(compiled.loss) == pytest.approx(float(plain.loss), rel=1e-5)
    assert int(compiled.correct) == int(plain.correct)


def test_the_compiled_tanh_is_that_of_numpy_to_rounding() -> None:
    u = np.concatenate(
        [np.linspace(-12, 12, 20001), np.logspace(-30, 0, 100), [0, np.inf, -np.inf]]
    )
    u, s = u.astype(np.float32), np.empty(len(u), dtype=np.float32)
    layer_kernels.settle_tanh(u, np.zeros_like(u), s)
    np.testing.assert_allclose(s, np.tanh(u.astype(float)), rtol=5e-7, atol=0)
    assert np.abs(s).max() == 1.0
    layer_kernels.settle_tanh(np.full_like(u, np.nan), u[:0], s)
    assert np.isnan(s).all()


def test_a_matrix_plus_its_transpose_by_blocks() -> None:
    for side in (1, 31, 32, 77):
        matrix = torch.rand(side, side)
        assert torch.equal(add_transpose(TorchOps(), matrix.clone()), matrix + matrix.T)


def test_gradients_are_written_over_those_of_the_batch_before() -> None:
    network, ops = network_of("three", RELU, LINEAR), TorchOps()
    params, batch = given(network, ops)
    schedule = two_phase(beta=0.3, free=3, nudged=1)
    first = update_by_displacement(ops, network, params, batch, schedule).gradients
    kept = {name: gradient.clone() for name, gradient in first.items()}
    spare = {name: torch.full_like(tensor, torch.nan) for name, tensor in params.items()}
    entering = network.connections[0].name
    given_away = spare[entering]
    batch = replace(batch, spare=spare)
    again = update_by_displacement(ops, network, params, batch, schedule).gradients
    assert all(torch.equal(again[name], gradient) for name, gradient in kept.items())
    assert again[entering] is given_away
    assert entering not in spare


@pytest.mark.parametrize("cost", Cost)
@pytest.mark.parametrize("kind", ["three", "images", "looped", "pyramid", "unpooled"])
def test_parameters_that_were_updated_in_place_are_used(kind: str, cost: Cost) -> None:
    network, ops = replace(network_of(kind, RELU, LINEAR), cost=cost), TorchOps()
    params, batch = given(network, ops)
    schedule = two_phase(beta=0.3, free=3, nudged=2)
    before = update_by_displacement(ops, network, params, batch, schedule).gradients
    for tensor in params.values():
        tensor.mul_(0.7)
    found = update_by_displacement(ops, network, params, batch, schedule).gradients
    copies = {name: tensor.clone() for name, tensor in params.items()}
    wanted = update_by_displacement(ops, network, copies, batch, schedule).gradients
    for name, gradient in wanted.items():
        assert torch.equal(found[name], gradient)
        assert not torch.equal(before[name], gradient)


@pytest.mark.parametrize("rate", [HARD_SIGMOID, RELU, box(0.4), TANH, LINEAR], ids=lambda r: r.name)
def test_a_displacement_is_exact_also_where_rates_are_clipped(rate: Activation) -> None:
    u = torch.linspace(-2, 2, 401, dtype=torch.float64)
    activate = TorchOps(torch.float64).activate
    for step in (-1.5, -0.01, 1e-9, 0.3):
        s = activate(rate, u.clone())
        moved = displace(rate, torch.full_like(u, step), s, u - s)
        assert torch.allclose(moved, activate(rate, u + step) - s, rtol=0, atol=1e-15)


def test_a_tiny_displacement_keeps_its_digits_in_single_precision() -> None:
    u = torch.linspace(0.1, 0.9, 9)
    for rate in (HARD_SIGMOID, TANH):
        s = TorchOps().activate(rate, u.clone())
        moved = displace(rate, torch.full_like(u, 1e-7), s, u - s if rate is HARD_SIGMOID else None)
        slope = 1.0 if rate is HARD_SIGMOID else 1.0 - s.double() ** 2
        assert torch.allclose(moved.double(), 1e-7 * slope * torch.ones(9).double(), rtol=1e-5)


@pytest.mark.parametrize("kind", ["three", "images", "pyramid"])
def test_few_half_sweeps_and_one_small_nudge_give_the_gradient_in_single_precision(
    kind: str,
) -> None:
    rates: dict[str, Any] = {"hidden_rate": RELU, "output_rate": LINEAR, "feedback": 0.02}
    network = {
        "three": lambda: layered(9, (7, 8, 6), CLASSES, **rates),
        "images": lambda: convolutional((1, 10, 10), (3, 4), CLASSES, kernel=3, **rates),
        "pyramid": lambda: pyramid(RELU, LINEAR, 0.02),
    }[kind]()
    params, batch = given(network, TorchOps())
    found = update_by_displacement(
        TorchOps(), network, params, batch, two_phase(beta=0.02, free=3, nudged=2)
    )
    arrays = {name: value.numpy().astype(float) for name, value in params.items()}
    exact = implicit(network, arrays, batch.x.numpy(), batch.target.numpy())
    for name, gradient in exact.items():
        assert (cosine(found.gradients[name].numpy(), gradient) or 0.0) > 0.9995


def test_a_batch_overwrites_nothing_that_it_was_given() -> None:
    ops = TorchOps()
    for kind in ("three", "images", "looped", "pyramid"):
        network = network_of(kind, RELU, LINEAR)
        params, batch = given(network, ops)
        before = [value.clone() for value in (*params.values(), batch.x, batch.target)]
        schedule = three_phase(beta=0.1, free=2, nudged=2)
        first = update_by_displacement(ops, network, params, batch, schedule)
        again = update_by_displacement(ops, network, params, batch, schedule)
        after = (*params.values(), batch.x, batch.target)
        assert all(torch.equal(a, b) for a, b in zip(after, before, strict=True))
        for name, gradient in first.gradients.items():
            assert torch.equal(gradient, again.gradients[name])


def test_the_path_of_a_network_is_stated() -> None:
    config = ContrastiveSettings(
        "hebbian", nudging=Nudging.POSITIVE, beta=0.05, free_steps=2, nudged_steps=1
    )
    ops, deep = TorchOps(), network_of("three", RELU, LINEAR)
    assert path_of(ops, deep, config) is UpdatePath.DISPLACEMENT
    assert path_of(ops, network_of("looped", TANH, LINEAR), config) is UpdatePath.DISPLACEMENT
    assert path_of(ops, network_of("one", TANH, LINEAR), config) is UpdatePath.DISPLACEMENT
    assert path_of(ops, network_of("one", RELU, LINEAR), config) is UpdatePath.ONE_HIDDEN
    assert path_of(NumpyOps(), deep, config) is UpdatePath.PHASES
    for other in (
        replace(config, tolerance=1e-6),
        replace(config, anderson=3),
        replace(config, damping=0.5),
        replace(config, order="synchronous"),
        replace(config, nudging=Nudging.HOLOMORPHIC),
        replace(config, name=Rule.VECTOR_FIELD),
    ):
        assert path_of(ops, deep, other) is UpdatePath.PHASES


def test_a_nudge_too_small_for_differences_of_rates_is_resolved_by_displacement() -> None:
    config = ContrastiveSettings(
        "hebbian", nudging=Nudging.POSITIVE, beta=1e-6, free_steps=STEPS, nudged_steps=STEPS
    )
    network, ops = network_of("one", RELU, LINEAR), TorchOps()
    params, batch = given(network, ops)
    found = contrastive(ops, network, params, batch, config).gradients
    params, batch = given(network, TorchOps(torch.float64))
    wanted = by_phases(TorchOps(torch.float64), network, params, batch, config.schedule(1e-3))
    for name, gradient in wanted.items():
        assert torch.allclose(found[name].double(), gradient, rtol=0.01, atol=1e-4)
    assert path_of(ops, network, replace(config, beta=0.05)) is UpdatePath.ONE_HIDDEN
    falling = replace(config, beta=0.05, beta_end=1e-5)
    assert path_of(ops, network, falling) is UpdatePath.DISPLACEMENT


def test_other_networks_are_left_to_the_phases() -> None:
    deep = network_of("three", RELU, LINEAR)
    normed = replace(
        deep, connections=(*deep.connections, Connection("hidden1", "hidden1", LayerNorm(), False))
    )
    skipped = replace(deep, connections=deep.connections[1:])
    one_way = looped(9, 14, 4, hidden_rate=RELU, output_rate=LINEAR, bound=0.9, symmetric=False)
    soft = network_of("three", RELU, TANH)
    for other in (feed_forward(deep), normed, one_way, skipped, soft):
        assert not structure.is_supported(other)
    assert structure.is_supported(replace(soft, cost=Cost.CROSS_ENTROPY))


IMAGES = Dataset(np.zeros((4, 3, 8, 8)), np.arange(4), np.zeros((4, 3, 8, 8)), np.arange(4))
SPLIT = Split(np.arange(4 * 192, dtype=np.uint8).reshape(4, 192), np.arange(4))
BYTES = Dataset.from_splits("bytes", SPLIT, SPLIT, 4, (3, 8, 8))
WORDS = Dataset(np.ones((4, 7)), np.arange(4), np.ones((4, 7)), np.arange(4), vocabulary=9)


@pytest.mark.parametrize("measured", [False, True])
@pytest.mark.parametrize(
    ("settings", "data"),
    [
        ({"model": "layered", "hidden": (8,), "bound": 1.9}, IMAGES),
        ({"model": "layered", "hidden": (8, 8), "bound": 1.9}, IMAGES),
        ({"model": "conv", "hidden": (4,), "kernel": 3, "bound": 2.0}, IMAGES),
        ({"model": "looped", "hidden": (8,), "cost": "cross_entropy"}, IMAGES),
        ({"model": "modern", "hidden": (8,)}, IMAGES),
        ({"model": "multiscale", "hidden": (16,)}, IMAGES),
        ({"model": "pyramid", "hidden": (3, 4)}, IMAGES),
        ({"model": "text", "width": 6, "hidden": 5}, WORDS),
        ({"model": "transformer", "hidden": (8,), "heads": 2, "patch": 4}, IMAGES),
    ],
    ids=lambda value: value["model"] if isinstance(value, dict) else "",
)
def test_a_training_step_reads_nothing_back_from_the_device(
    settings: dict[str, Any], data: Dataset, measured: bool
) -> None:
    """On the device "meta", whose tensors have no values: reading one raises an error."""
    study = make_study(epochs=1, nudging="positive", beta=0.05, **settings)
    network, ops = study.network(data), TorchOps(device="meta")
    loop = TrainingLoop(study, network, data, ops=ops)
    x, y = ops.from_numpy(data.train.x), ops.from_numpy(np.eye(4))
    assert path_of(ops, network, study.rule) is UpdatePath.DISPLACEMENT
    update = loop.advance(Batch(x, y, measured), 0.01)
    assert update.loss.is_meta
    assert update.correct.is_meta
    with pytest.raises(RuntimeError, match="meta"):
        float(update.loss)


@pytest.mark.parametrize("nudging", [n.value for n in Nudging if n is not Nudging.HOLOMORPHIC])
@pytest.mark.parametrize(
    ("settings", "data"),
    [
        ({"hidden": (8,), "shift": 1, "flip": True, "normalize": True}, IMAGES),
        ({"model": "conv", "hidden": (4,), "kernel": 3, "shift": 1, "normalize": True}, BYTES),
        ({"model": "text", "width": 6, "hidden": 5, "word_dropout": 0.2}, WORDS),
    ],
    ids=["layered", "conv", "text"],
)
def test_taking_and_moving_the_samples_reads_nothing_back_either(
    settings: dict[str, Any], data: Dataset, nudging: str
) -> None:
    study = make_study(nudging=nudging, beta=0.05, weight_decay=0.01, **settings)
    ops = TorchOps(device="meta")
    loop = TrainingLoop(study, study.network(data), data, ops=ops)
    x = sample_source(ops, data.train)(np.arange(4))
    for augment in study.augmentation(data):
        x = augment(x, np.random.default_rng(0))
    update = loop.advance(Batch(x, ops.from_numpy(np.eye(4)), True), 0.01)
    assert update.loss.is_meta


def test_training_and_diagnosis_take_the_same_path() -> None:
    network = network_of("three", RELU, LINEAR)
    config = ContrastiveSettings(
        "hebbian", nudging=Nudging.POSITIVE, beta=0.05, free_steps=2, nudged_steps=1
    )
    for ops in (TorchOps(), TorchOps(torch.float64)):
        params, batch = given(network, ops)
        found = contrastive(ops, network, params, batch, config)
        wanted = update_by_displacement(ops, network, params, batch, config.schedule())
        assert all(torch.equal(found.gradients[n], g) for n, g in wanted.gradients.items())
