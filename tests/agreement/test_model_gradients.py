"""Every model and rule against the true gradient, weight group by weight group, sign included."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from neuro_eqprop.common.arrays import Array, defined_cosine
from neuro_eqprop.dynamics.field import field
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR, TANH
from neuro_eqprop.networks.architectures import (
    Block,
    convolutional,
    feed_forward,
    layered,
    looped,
    looped_block,
    modern,
    modern_notes,
    multiscale,
    toroidal,
    transformer,
)
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Connection, Cost, Network
from neuro_eqprop.networks.operators import Attention, AttentionKind, Conv2d
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.networks.ops.protocol import Ops
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.gradients import finite_difference, implicit
from neuro_eqprop.training.rules.asymmetric import vector_field
from neuro_eqprop.training.rules.base import Batch, TrainingError
from neuro_eqprop.training.rules.hebbian import hebbian
from neuro_eqprop.training.rules.phases import SWEEPS, relax
from neuro_eqprop.training.rules.registry import RULES
from neuro_eqprop.training.settings import ContrastiveSettings, Nudging, Rule, RuleSettings
from neuro_eqprop.training.study import make_study

NUMPY = NumpyOps()
IMAGE = (2, 6, 6)


def attentive(kind: AttentionKind, others: bool) -> Network:
    block = Block(6, 5, Attention(kind, 2, 0.5, others=others), 0.7, 1.0)
    return transformer((4, 3), block, 3, patch=1, query=-1 if others else None)


NETWORKS: dict[str, Network] = {
    "layered": layered(5, (6, 4), 3, hidden_rate=TANH, output_rate=LINEAR),
    "looped": looped(5, 6, 3, hidden_rate=TANH, output_rate=LINEAR, bound=0.9),
    "toroidal": toroidal(5, 6, 3, hidden_rate=TANH, output_rate=LINEAR, bound=0.9),
    "modern": modern(5, 6, 3, memory=8, hidden_rate=TANH, output_rate=LINEAR, bound=0.8),
    "conv": convolutional(
        IMAGE, (3,), 3, kernel=3, hidden_rate=TANH, output_rate=LINEAR, feedback=0.5
    ),
    "conv two": convolutional(
        (1, 10, 10), (2, 3), 3, kernel=3, hidden_rate=TANH, output_rate=LINEAR, bound=0.7
    ),
    "multiscale": multiscale(5, 8, 3, hidden_rate=TANH, output_rate=LINEAR, bound=0.9),
    "linear attention": attentive(AttentionKind.LINEAR, others=False),
    "softmax attention": attentive(AttentionKind.SOFTMAX, others=False),
    "softmax attention of others": attentive(AttentionKind.SOFTMAX, others=True),
    "looped cross-entropy": replace(
        looped(5, 6, 3, hidden_rate=TANH, output_rate=LINEAR, bound=0.9), cost=Cost.CROSS_ENTROPY
    ),
}
ONE_WAY: dict[str, Network] = {
    "looped": looped(5, 8, 3, hidden_rate=TANH, output_rate=LINEAR, bound=0.95, symmetric=False),
    "there and back": Network(
        layered(5, (6, 4), 3, hidden_rate=TANH, output_rate=LINEAR).layers,
        (
            Connection("input", "hidden1"),
            Connection("hidden1", "hidden2", symmetric=False, bound=0.9),
            Connection("hidden2", "hidden1", symmetric=False, bound=0.9),
            Connection("hidden2", "output"),
        ),
    ),
}
PRECISE = ContrastiveSettings(
    "hebbian", nudging=Nudging.CENTERED, beta=0.1, free_steps=400, nudged_steps=400
)
Problem = tuple[dict[str, Array], Array, Array]


def problem(network: Network, size: float = 0.6) -> Problem:
    rng = np.random.default_rng(8)
    params = initialize(network, rng)
    for c in network.connections:
        if c.bound is not None and not c.operator.linear:
            params[c.name] = params[c.name] * 2.0
        elif c.bound is not None:
            norm = c.operator.spectral_norms(NUMPY, params[c.name], network[c.source].shape)[0]
            params[c.name] = params[c.name] * (size * c.bound / norm)
    params |= {layer.name: rng.normal(0, 0.2, layer.bias) for layer in network.moving}
    x = rng.normal(0, 1, (6, network.input.size))
    return params, x, np.eye(3)[rng.integers(0, 3, 6)]


def asked(network: Network, given: Problem, recipe: RuleSettings) -> dict[str, Array]:
    ops = TorchOps(torch.float64)
    params = {name: ops.from_numpy(v) for name, v in given[0].items()}
    batch = Batch(ops.from_numpy(given[1]), ops.from_numpy(given[2]), measured=True)
    with torch.no_grad():
        learned = RULES[recipe.name].update(ops, network, params, batch, recipe)
    assert learned.residual < 1e-12
    return {name: -len(given[1]) * ops.to_numpy(slope) for name, slope in learned.gradients.items()}


@cache
def truth(kind: str, one_way: bool = False) -> dict[str, Array]:
    network = (ONE_WAY if one_way else NETWORKS)[kind]
    params, x, y = problem(network)
    return implicit(network, params, x, y)


def cosines(changes: dict[str, Array], gradient: dict[str, Array]) -> dict[str, float]:
    assert changes.keys() == gradient.keys()
    return {name: defined_cosine(-change, gradient[name]) for name, change in changes.items()}


@pytest.mark.parametrize("kind", NETWORKS)
def test_the_hebbian_rule_is_minus_the_gradient(kind: str) -> None:
    network = NETWORKS[kind]
    found = cosines(asked(network, problem(network), PRECISE), truth(kind))
    assert min(found.values()) >= 0.9999, found


def test_max_pooling_sends_feedback_to_the_largest_drives() -> None:
    settings: dict[str, Any] = {"kernel": Conv2d(3, 1), "output_rate": LINEAR, "pool": "max"}
    network = convolutional((2, 8, 8), (3, 4), 3, hidden_rate=HARD_SIGMOID, **settings)
    params, x, y = given = problem(network)
    gradient = implicit(network, params, x, y)
    found = asked(network, given, replace(PRECISE, beta=1e-4))
    assert min(cosines(found, gradient).values()) >= 0.9999
    slow = finite_difference(network, params, x[:1], target=y[:1], epsilon=1e-6)
    for name, slope in implicit(network, params, x[:1], y[:1]).items():
        np.testing.assert_allclose(slope, slow[name], rtol=1e-4, atol=1e-6)
    for wrong in (Rule.VECTOR_FIELD, Rule.ASYMMETRIC):
        with pytest.raises(ValueError, match="max pooling: use rule 'hebbian'"):
            RULES[wrong].check(network, replace(PRECISE, name=wrong))
    with pytest.raises(ValueError, match="rates below zero"):
        convolutional((2, 8, 8), (3, 4), 3, hidden_rate=TANH, **settings)


@pytest.mark.parametrize("kind", ["toroidal", "looped cross-entropy", "modern"])
def test_the_implicit_gradient_is_that_of_finite_differences(kind: str) -> None:
    network = NETWORKS[kind]
    params, x, y = problem(network)
    slow = finite_difference(network, params, x[:1], target=y[:1], epsilon=1e-5)
    fast = implicit(network, params, x[:1], y[:1])
    for name, slope in slow.items():
        np.testing.assert_allclose(fast[name], slope, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", ONE_WAY)
def test_without_symmetry_only_the_adjoint_nudge_is_right(kind: str) -> None:
    network = ONE_WAY[kind]
    given = problem(network, size=1.0)
    gradient = implicit(network, *given)
    exact = asked(network, given, replace(PRECISE, name=Rule.ASYMMETRIC))
    assert min(cosines(exact, gradient).values()) >= 0.9999
    for rule in (Rule.HEBBIAN, Rule.VECTOR_FIELD):
        plain = asked(network, given, replace(PRECISE, name=rule))
        assert min(cosines(plain, gradient).values()) < 0.99, rule


@pytest.mark.parametrize("kind", [k for k in NETWORKS if "attention" not in k])
def test_the_vector_field_rule_is_right_where_all_is_symmetric(kind: str) -> None:
    network = NETWORKS[kind]
    changes = asked(network, problem(network), replace(PRECISE, name=Rule.VECTOR_FIELD))
    assert min(cosines(changes, truth(kind)).values()) >= 0.9999


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize("rule", [Rule.BPTT, Rule.IMPLICIT])
def test_baselines_are_the_gradient(kind: str, rule: str) -> None:
    network = NETWORKS[kind]
    recipe = replace(PRECISE, name=rule, free_steps=300)
    ops = TorchOps(torch.float64)
    params, x, y = problem(network)
    batch = Batch(ops.from_numpy(x), ops.from_numpy(y), measured=False)
    brought = {name: ops.from_numpy(v) for name, v in params.items()}
    with torch.no_grad():
        learned = RULES[rule].update(ops, network, brought, batch, recipe)
    for name, slope in truth(kind).items():
        np.testing.assert_allclose(
            len(x) * ops.to_numpy(learned.gradients[name]), slope, 1e-6, 1e-9
        )


@pytest.mark.parametrize("points", [3, 6])
def test_more_points_around_the_circle_come_nearer(points: int) -> None:
    network = NETWORKS["looped"]
    strong = replace(PRECISE, beta=0.4, nudging=Nudging.HOLOMORPHIC, points=points)
    found = cosines(asked(network, problem(network), strong), truth("looped"))
    centered = cosines(
        asked(network, problem(network), replace(PRECISE, beta=0.4)), truth("looped")
    )
    worst, before = 1 - min(found.values()), 1 - min(centered.values())
    assert worst < before / (3 if points == 3 else 100)


@pytest.mark.parametrize("kind", ["layered", "looped"])
def test_anderson_mixing_around_the_circle_keeps_the_gradient(kind: str) -> None:
    network = NETWORKS[kind]
    mixed = replace(PRECISE, beta=0.2, nudging=Nudging.HOLOMORPHIC, points=6, anderson=3)
    found = cosines(asked(network, problem(network), mixed), truth(kind))
    assert min(found.values()) > 0.9999, found


def test_holomorphic_nudging_refuses_kinks() -> None:
    network = layered(5, (4,), 3, hidden_rate=replace(LINEAR, low=0.0), output_rate=LINEAR)
    with pytest.raises(TrainingError, match="kinks"):
        RULES[Rule.HEBBIAN].check(network, replace(PRECISE, nudging=Nudging.HOLOMORPHIC))


@pytest.mark.parametrize("nudging", [Nudging.POSITIVE, Nudging.NEGATIVE])
def test_one_sided_nudges_have_the_right_sign(nudging: Nudging) -> None:
    network = NETWORKS["layered"]
    recipe = replace(PRECISE, nudging=nudging, beta=0.01)
    found = cosines(asked(network, problem(network), recipe), truth("layered"))
    assert min(found.values()) > 0.999


def test_the_hybrid_rule_is_the_gradient_in_the_stem_too() -> None:
    network = layered(5, (6, 5, 4), 3, hidden_rate=TANH, output_rate=LINEAR, stem=2)
    given = problem(network)
    gradient = implicit(network, *given)
    changes = asked(network, given, replace(PRECISE, name=Rule.HYBRID, beta=0.02))
    assert min(cosines(changes, gradient).values()) >= 0.9999
    plain = asked(network, given, PRECISE)
    assert not plain["input->hidden1"].any()


@pytest.mark.parametrize("cost", Cost)
def test_a_single_phase_finds_the_gradient_of_the_feed_forward_network(cost: Cost) -> None:
    base = layered(5, (6, 4), 3, hidden_rate=TANH, output_rate=LINEAR)
    network = replace(feed_forward(base), cost=cost)
    given = problem(network)
    gradient = implicit(network, *given)
    changes = asked(network, given, replace(PRECISE, name=Rule.SINGLE_PHASE, beta=1e-3))
    assert min(cosines(changes, gradient).values()) >= 0.9999


NOTES: dict[str, Network] = {
    "modern": modern_notes(5, 6, 3, memory=7, hidden_rate=TANH, bound=0.5),
    **{
        f"{kind.value} block": looped_block(
            (4, 3), Block(6, 5, Attention(kind, 2, 1.0), 0.6, 1.0), 3, patch=1
        )
        for kind in AttentionKind
    },
}


@pytest.mark.parametrize("kind", NOTES)
def test_the_forms_of_the_notes_learn_exactly_by_the_adjoint_nudge_alone(kind: str) -> None:
    """Their norms and lookups are not linear: the transposed slope stands for the transpose."""
    network = NOTES[kind]
    given = problem(network)
    gradient = {n: g for n, g in implicit(network, *given).items() if g.size}
    found = {}
    for rule in (Rule.ASYMMETRIC, Rule.VECTOR_FIELD):
        changes = asked(network, given, replace(PRECISE, name=rule))
        found[rule] = min(cosines({n: changes[n] for n in gradient}, gradient).values())
    assert found[Rule.ASYMMETRIC] >= 0.9999
    assert found[Rule.VECTOR_FIELD] < 0.99


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        ("looped cross-entropy", Rule.HEBBIAN),
        ("looped cross-entropy", Rule.VECTOR_FIELD),
        ("looped cross-entropy", Rule.ASYMMETRIC),
        ("softmax attention", Rule.HEBBIAN),  # attention learns by its energy alone
    ],
)
def test_a_circle_of_nudges_is_exact_by_three_rules(kind: str, rule: str) -> None:
    network = NETWORKS[kind]
    recipe = replace(PRECISE, name=rule, nudging=Nudging.HOLOMORPHIC, beta=0.2, points=6)
    found = cosines(asked(network, problem(network), recipe), truth(kind))
    assert min(found.values()) >= 0.999999


def test_a_circle_follows_the_beta_of_its_batch() -> None:
    network, ops = NETWORKS["looped"], TorchOps(torch.float64)
    params, x, y = problem(network)
    brought = {name: ops.from_numpy(v) for name, v in params.items()}
    recipe = replace(PRECISE, nudging=Nudging.HOLOMORPHIC, points=3)
    with torch.no_grad():
        one, other = (
            RULES[Rule.HEBBIAN]
            .update(ops, network, brought, batch, each)
            .gradients["hidden->hidden"]
            for batch, each in (
                (Batch(ops.from_numpy(x), ops.from_numpy(y), False, beta=0.4), recipe),
                (Batch(ops.from_numpy(x), ops.from_numpy(y), False), replace(recipe, beta=0.4)),
            )
        )
    assert torch.equal(one, other)


@pytest.mark.parametrize("rule", [Rule.HYBRID, Rule.SINGLE_PHASE])
def test_other_rules_refuse_a_circle(rule: str) -> None:
    with pytest.raises(ValueError, match="does not support nudging 'holomorphic'"):
        make_study(rule=rule, nudging="holomorphic", hidden=(6, 5), stem=1)


@pytest.mark.parametrize("change", [{"order": "synchronous"}, {"tolerance": 1e-13}], ids=str)
def test_other_ways_to_settle_end_at_the_same_changes(change: dict[str, Any]) -> None:
    network = NETWORKS["looped"]
    usual = asked(network, problem(network), PRECISE)
    found = asked(network, problem(network), replace(PRECISE, **change))
    for name, wanted in usual.items():
        np.testing.assert_allclose(found[name], wanted, rtol=1e-8, atol=1e-10)


def test_a_tolerance_is_reported_in_steps() -> None:
    network, ops = NETWORKS["looped"], TorchOps(torch.float64)
    params, x, y = problem(network)
    brought = {name: ops.from_numpy(v) for name, v in params.items()}
    batch, recipe = (
        Batch(ops.from_numpy(x), ops.from_numpy(y), False),
        replace(PRECISE, tolerance=1e-3),
    )
    with torch.no_grad():
        steps = RULES[Rule.HEBBIAN].update(ops, network, brought, batch, recipe).steps
    assert steps is not None
    assert 1.0 < steps["nudged"] < steps["free"] < 40.0


def episode(ops: Ops, kind: str) -> tuple[dict[str, Array], dict[str, Array]]:
    """The rates of all phases, and the changes they ask for."""
    network = NETWORKS.get(kind) or NOTES[kind]
    params, x, y = problem(network)
    schedule = replace(PRECISE, free_steps=30, nudged_steps=15).schedule()
    ask = hebbian if kind in NETWORKS else vector_field
    brought = {name: ops.from_numpy(v) for name, v in params.items()}
    given = ops.from_numpy(x)
    with torch.no_grad():
        phases = relax(field(ops, network, brought, given), ops.from_numpy(y), schedule, SWEEPS)
        states = {name: each.state for name, each in phases.items()}
        result = ask(ops, network, given, states=states, schedule=schedule, params=brought)
    rates = {f"{p}/{n}": ops.to_numpy(s) for p, each in states.items() for n, s in each.items()}
    return rates, {name: ops.to_numpy(v) for name, v in result.items() if params[name].size}


@pytest.mark.parametrize("kind", [*NETWORKS, *NOTES])
def test_numpy_settles_and_asks_as_torch_does(kind: str) -> None:
    """Changes are compared in float64: in float32 a nudge of saturated rates is few last digits."""
    single = episode(NumpyOps(np.float32), kind)[0], episode(TorchOps(), kind)[0]
    double = episode(NumpyOps(), kind)[1], episode(TorchOps(torch.float64), kind)[1]
    for (one, other), close in ((single, 1e-4), (double, 1e-9)):
        assert one.keys() == other.keys()
        for name, values in one.items():
            assert np.abs(values - other[name]).max() <= close * np.abs(values).max(), name
