"""The local rule against true gradients, by two ways that share nothing with it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from neuro_eqprop.common.arrays import Array, defined_cosine
from neuro_eqprop.dynamics.field import field
from neuro_eqprop.dynamics.schedules import Schedule, three_phase, two_phase
from neuro_eqprop.dynamics.solve import SolveStatus
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR, TANH, Activation
from neuro_eqprop.networks.architectures import layered, looped
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.training.gradients import equilibrium, finite_difference, implicit
from neuro_eqprop.training.rules.hebbian import hebbian
from neuro_eqprop.training.rules.phases import SWEEPS, relax

RATES = {"tanh": TANH, "hard_sigmoid": HARD_SIGMOID, "linear": LINEAR}
KINDS = ("one hidden", "two hidden", "soft", "looped")
CASES = [
    (kind, hidden, output)
    for kind in KINDS
    for hidden, output in (
        ("tanh", "linear"),
        ("tanh", "hard_sigmoid"),
        ("hard_sigmoid", "linear"),
        ("hard_sigmoid", "hard_sigmoid"),
    )
]
EVERY = pytest.mark.parametrize("case", CASES, ids="-".join)
SMOOTH = [(kind, "tanh", "linear") for kind in KINDS]
Case = tuple[str, str, str]
Problem = tuple[Network, dict[str, Array], Array, Array]
TIGHT = replace(SWEEPS, tolerance=1e-14)
MARGIN = 0.02
"""How far every drive stays from a kink, so that a small nudge does not cross one."""


def network_of(case: Case) -> Network:
    kind, hidden, output = case
    rates: dict[str, Any] = {"hidden_rate": RATES[hidden], "output_rate": RATES[output]}
    if kind == "looped":
        return looped(5, 6, 3, **rates, bound=0.9)
    sizes = (6,) if kind == "one hidden" else (6, 4)
    return layered(5, sizes, 3, **rates, bound=None, feedback=0.4 if kind == "soft" else 1.0)


def kinks(activation: Activation) -> list[float]:
    if not activation.piecewise_linear:
        return []
    return [end for end in (activation.low, activation.high) if np.isfinite(end)]


def telling(network: Network, params: dict[str, Array], x: Array) -> bool:
    """Whether no unit is near a kink, and every clipped layer has units on both sides of one."""
    state = equilibrium(network, params, x)
    at = field(NumpyOps(), network, params, x)
    for layer in network.moving:
        drive = at.drive(layer.name, state)
        for kink in kinks(layer.activation):
            if np.abs(drive - kink).min() < MARGIN:
                return False
        inside = (drive > layer.activation.low) & (drive < layer.activation.high)
        if kinks(layer.activation) and (inside.all() or not inside.any()):
            return False
    return True


@cache
def problem(case: Case) -> Problem:
    """The first draw of parameters and samples that tells something and is clear of kinks."""
    network = network_of(case)
    for seed in range(2000):
        rng = np.random.default_rng(seed)
        params = initialize(network, rng)
        params |= {layer.name: rng.normal(0.4, 0.5, layer.shape) for layer in network.moving}
        x, y = rng.random((3, 5)), np.eye(3)[rng.integers(0, 3, 3)]
        if telling(network, params, x):
            return network, params, x, y
    raise AssertionError(f"no draw of {case} is clear of all kinks")


@cache
def truth(case: Case) -> dict[str, Array]:
    return implicit(*problem(case))


def local(case: Case, schedule: Schedule) -> dict[str, Array]:
    network, params, x, y = problem(case)
    ops = NumpyOps()
    settled = relax(field(ops, network, params, x), y, schedule, TIGHT)
    assert {each.status for each in settled.values()} == {SolveStatus.CONVERGED}
    states = {name: each.state for name, each in settled.items()}
    return hebbian(ops, network, x, states=states, schedule=schedule)


def centered(beta: float) -> Schedule:
    return three_phase(beta=beta, free=5000, nudged=5000)


def one_sided(beta: float) -> Schedule:
    return two_phase(beta=beta, free=5000, nudged=5000)


def whole(parts: dict[str, Array]) -> Array:
    return np.concatenate([np.ravel(parts[name]) for name in sorted(parts)])


@EVERY
def test_the_rule_descends_the_implicit_gradient(case: Case) -> None:
    asked, gradient = local(case, centered(0.01)), truth(case)
    assert set(asked) == set(network_of(case).parameters())
    for name, change in asked.items():
        assert defined_cosine(change, -gradient[name]) >= 0.9999, name
        ratio = np.linalg.norm(change) / np.linalg.norm(gradient[name])
        assert ratio == pytest.approx(1.0, abs=1e-3), name


@EVERY
def test_the_rule_descends_finite_differences(case: Case) -> None:
    network, params, x, y = problem(case)
    gradient = finite_difference(network, params, x, target=y, epsilon=1e-5)
    for name, change in local(case, centered(0.01)).items():
        assert defined_cosine(change, -gradient[name]) >= 0.9999, name
    # The two oracles share nothing but the equilibrium, so their agreement vouches for both.
    for name, slope in truth(case).items():
        gap = np.linalg.norm(slope - gradient[name]) / np.linalg.norm(slope)
        assert gap < 1e-5, name


@EVERY
def test_one_sided_nudging_descends_too(case: Case) -> None:
    for beta in (0.01, -0.01):
        for name, change in local(case, one_sided(beta)).items():
            assert defined_cosine(change, -truth(case)[name]) >= 0.999, name


@pytest.mark.parametrize("case", SMOOTH, ids="-".join)
def test_the_error_falls_with_beta_and_when_centered_with_its_square(case: Case) -> None:
    wanted = -whole(truth(case))

    def error(schedule: Schedule) -> float:
        return float(np.linalg.norm(whole(local(case, schedule)) - wanted))

    assert error(one_sided(0.1)) / error(one_sided(0.05)) == pytest.approx(2.0, rel=0.15)
    assert error(centered(0.1)) / error(centered(0.05)) == pytest.approx(4.0, rel=0.15)
    assert error(centered(0.1)) < error(one_sided(0.1))


def test_a_flipped_sign_is_seen() -> None:
    case = CASES[0]
    for name, change in local(case, centered(0.01)).items():
        assert defined_cosine(-change, -truth(case)[name]) <= -0.9999


def test_a_forgotten_half_of_a_loop_is_seen() -> None:
    case = ("looped", "tanh", "linear")
    doubled = 2 * local(case, centered(0.01))["hidden->hidden"]
    ratio = np.linalg.norm(doubled) / np.linalg.norm(truth(case)["hidden->hidden"])
    assert ratio == pytest.approx(2.0, abs=1e-2)


def test_a_one_way_network_is_not_descended() -> None:
    """Without symmetry there is no energy, and the plain rule is no gradient."""
    network, params, x, y = problem(("looped", "tanh", "linear"))
    one_way = Network(
        network.layers,
        tuple(replace(c, symmetric=not c.loops) for c in network.connections),
    )
    rng = np.random.default_rng(0)
    twisted = rng.normal(size=(6, 6))
    bent = {**params, "hidden->hidden": 0.9 * twisted / np.linalg.norm(twisted, 2)}
    ops, schedule = NumpyOps(), centered(0.01)
    settled = relax(field(ops, one_way, bent, x), y, schedule, TIGHT)
    states = {name: each.state for name, each in settled.items()}
    asked = hebbian(ops, one_way, x, states=states, schedule=schedule)
    gradient = implicit(one_way, bent, x, y)
    assert defined_cosine(asked["hidden->hidden"], -gradient["hidden->hidden"]) < 0.99


def test_a_gradient_needs_a_settled_state() -> None:
    _, params, x, y = problem(("one hidden", "hard_sigmoid", "linear"))
    rates: dict[str, Any] = {"hidden_rate": LINEAR, "output_rate": LINEAR}
    unbounded = layered(5, (6,), 3, **rates, bound=None, feedback=1.0)
    wild = {**params, "hidden->output": 10 * params["hidden->output"]}
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="not settled"):
        implicit(unbounded, wild, x, y)


def test_an_angle_needs_two_directions() -> None:
    with pytest.raises(ValueError, match="the cosine is undefined"):
        defined_cosine(np.zeros(3), np.ones(3))
