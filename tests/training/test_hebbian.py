from __future__ import annotations

import numpy as np
import pytest
import torch

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.field import State, field
from neuro_eqprop.dynamics.schedules import free_only, three_phase, two_phase
from neuro_eqprop.dynamics.solve import Damped, GaussSeidel, SolveStatus
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR
from neuro_eqprop.networks.architectures import layered, looped
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Connection, Network
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.rules.hebbian import hebbian
from neuro_eqprop.training.rules.phases import Settling, relax

LOOPED = looped(4, 9, 3, hidden_rate=HARD_SIGMOID, output_rate=LINEAR, bound=0.9)
LAYERED = layered(4, (6, 5), 3, hidden_rate=HARD_SIGMOID, output_rate=LINEAR)
CENTERED = three_phase(beta=0.25, free=60, nudged=60)
ONE_SIDED = two_phase(beta=0.25, free=40, nudged=20)


def states(network: Network, names: list[str], rows: int = 6) -> tuple[Array, dict[str, State]]:
    """Any rates will do: the rule does not ask where they come from."""
    rng = np.random.default_rng(0)
    made = {
        name: {layer.name: rng.random((rows, *layer.shape)) for layer in network.moving}
        for name in names
    }
    return rng.random((rows, 4)), made


def test_the_rule_is_the_difference_of_products_over_the_gap() -> None:
    x, seen = states(LAYERED, ["free", "negative", "positive"])
    asked = hebbian(NumpyOps(), LAYERED, x, states=seen, schedule=CENTERED)
    up, down = seen["positive"], seen["negative"]
    for source, target in (("hidden1", "hidden2"), ("hidden2", "output")):
        wanted = sum(
            np.outer(up[target][k], up[source][k]) - np.outer(down[target][k], down[source][k])
            for k in range(6)
        )
        assert np.allclose(asked[f"{source}->{target}"], wanted / 0.5, atol=1e-12)
    moved = up["hidden1"] - down["hidden1"]
    assert np.allclose(asked["input->hidden1"], moved.T @ x / 0.5, atol=1e-12)
    assert np.allclose(asked["hidden1"], moved.sum(axis=0) / 0.5, atol=1e-12)
    assert set(asked) == set(LAYERED.parameters())


def test_the_free_phase_counts_only_when_nudging_is_one_sided() -> None:
    x, seen = states(LAYERED, ["free", "negative", "positive", "nudged"])
    louder = {**seen, "free": {name: 2 * rates for name, rates in seen["free"].items()}}
    ops = NumpyOps()
    same = [hebbian(ops, LAYERED, x, states=s, schedule=CENTERED) for s in (seen, louder)]
    other = [hebbian(ops, LAYERED, x, states=s, schedule=ONE_SIDED) for s in (seen, louder)]
    for name in LAYERED.parameters():
        assert np.array_equal(same[0][name], same[1][name])
        assert not np.allclose(other[0][name], other[1][name])


def test_equal_phases_ask_for_nothing() -> None:
    x, seen = states(LOOPED, ["free"])
    still = dict.fromkeys(("free", "negative", "positive"), seen["free"])
    asked = hebbian(NumpyOps(), LOOPED, x, states=still, schedule=CENTERED)
    assert all(np.abs(change).max() < 1e-12 for change in asked.values())


@pytest.mark.parametrize("rows", [13, 29, 64])
def test_a_symmetric_loop_stays_exactly_symmetric_in_single_precision(rows: int) -> None:
    ops, names = TorchOps(torch.float32), ["free", "negative", "positive"]
    x, seen = states(LOOPED, names, rows)
    brought = {n: {k: ops.from_numpy(v) for k, v in s.items()} for n, s in seen.items()}
    asked = hebbian(ops, LOOPED, ops.from_numpy(x), states=brought, schedule=CENTERED)
    change = asked["hidden->hidden"]
    assert torch.equal(change, change.T)
    assert change.abs().max() > 0


def test_a_loop_counts_half_when_symmetric_and_whole_when_not() -> None:
    one_way = Network(
        LOOPED.layers,
        tuple(
            Connection(c.source, c.target, symmetric=not c.loops, bound=c.bound)
            for c in LOOPED.connections
        ),
    )
    x, seen = states(LOOPED, ["free", "nudged"])
    half, whole = (
        hebbian(NumpyOps(), network, x, states=seen, schedule=ONE_SIDED)["hidden->hidden"]
        for network in (LOOPED, one_way)
    )
    assert np.allclose(2 * half, whole)


def test_a_schedule_without_nudge_cannot_teach() -> None:
    x, seen = states(LAYERED, ["free"])
    with pytest.raises(ValueError, match="two different betas"):
        hebbian(NumpyOps(), LAYERED, x, states=seen, schedule=free_only(steps=5, window=5))


def episode(tolerance: float | None) -> dict[str, State]:
    rng = np.random.default_rng(1)
    free = field(NumpyOps(), LAYERED, initialize(LAYERED, rng), rng.random((6, 4)))
    y = np.eye(3)[rng.integers(0, 3, 6)]
    settled = relax(free, y, CENTERED, Settling(GaussSeidel(), Damped(0.9), tolerance))
    assert list(settled) == ["free", "negative", "positive"]
    wanted = SolveStatus.CONVERGED if tolerance else SolveStatus.OUT_OF_STEPS
    assert {each.status for each in settled.values()} == {wanted}
    return {name: each.state for name, each in settled.items()}


def test_nudged_phases_start_from_the_free_equilibrium() -> None:
    found = episode(None)
    rng = np.random.default_rng(1)
    free = field(NumpyOps(), LAYERED, initialize(LAYERED, rng), rng.random((6, 4)))
    y = np.eye(3)[rng.integers(0, 3, 6)]
    for name, beta in (("negative", -0.25), ("positive", 0.25)):
        state = found["free"]
        for _ in range(60):
            state = Damped(0.9).step(free.nudged(y, beta), state)
        for layer, rates in found[name].items():
            assert np.array_equal(rates, state[layer])


def test_an_episode_may_stop_at_a_tolerance() -> None:
    exact, early = episode(None), episode(1e-9)
    for name, state in exact.items():
        for layer, rates in state.items():
            assert np.abs(rates - early[name][layer]).max() < 1e-7
