from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from neuro_eqprop.dynamics.field import Field, field
from neuro_eqprop.dynamics.schedules import Schedule, three_phase, two_phase
from neuro_eqprop.dynamics.solve import Damped, Equilibrium, SolveStatus, Stop, solve
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR, RELU, TANH, Activation, box
from neuro_eqprop.networks.architectures import convolutional, feed_forward, layered, looped
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Cost, Network
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.networks.ops.protocol import Ops
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.fast.one_hidden import (
    has_one_hidden_layer,
    is_chain,
    is_worth_compiling,
    relax_one_hidden,
    update_one_hidden,
)
from neuro_eqprop.training.rules.base import Batch
from neuro_eqprop.training.rules.contrastive import UpdatePath, contrastive, path_of
from neuro_eqprop.training.rules.hebbian import hebbian
from neuro_eqprop.training.rules.phases import SWEEPS, Settling, relax, settle_phases
from neuro_eqprop.training.settings import ContrastiveSettings, Nudging, Rule

CLASSES = 6  # one more than the compiled sweeps take in one pass
SIZES = pytest.mark.parametrize("hidden", [(14,), (12, 9), (7, 8, 6)], ids=str)
RECIPE = ContrastiveSettings(
    "hebbian", nudging=Nudging.CENTERED, beta=0.25, free_steps=6, nudged_steps=3
)
SCHEDULES = [
    three_phase(beta=0.25, free=6, nudged=3),
    two_phase(beta=-0.3, free=1, nudged=1),
    two_phase(beta=0.3, free=2, nudged=2),
]


def chain_of(
    hidden: tuple[int, ...], rate: Activation = RELU, output: Activation = LINEAR
) -> Network:
    return layered(9, hidden, CLASSES, hidden_rate=rate, output_rate=output, feedback=0.4)


def pictures(rate: Activation = RELU, output: Activation = LINEAR) -> Network:
    return convolutional(
        (1, 10, 10),
        (3, 4),
        CLASSES,
        kernel=3,
        hidden_rate=rate,
        output_rate=output,
        feedback=0.4,
    )


def given(network: Network, ops: Ops) -> tuple[dict[str, Any], Batch]:
    """Parameters that make units hear enough to be on, and samples."""
    rng = np.random.default_rng(3)
    params = initialize(network, rng)
    params |= {layer.name: rng.uniform(0, 0.3, layer.bias) for layer in network.moving}
    brought = {name: ops.from_numpy(value) for name, value in params.items()}
    target = ops.from_numpy(np.eye(CLASSES)[rng.integers(0, CLASSES, 11)])
    x = ops.from_numpy(rng.random((11, network.input.size)))
    return brought, Batch(x, target, measured=True)


def problem(network: Network, ops: Ops) -> tuple[Field, object]:
    params, batch = given(network, ops)
    return field(ops, network, params, batch.x), batch.target


def plainly(free: Field, target: object, schedule: Schedule) -> dict[str, Equilibrium]:
    """Sweep by sweep through `Field.sweep`."""
    found: dict[str, Equilibrium] = {}
    start = free.zero_state()
    for phase in schedule:
        at = free.nudged(target, phase.beta) if phase.beta else free
        solver = SWEEPS.nudged if phase.beta else SWEEPS.free
        found[phase.name] = solve(at, start, solver, Stop(None, phase.steps))
        start = start if len(found) > 1 else found[phase.name].state
    return found


@SIZES
@pytest.mark.parametrize("schedule", SCHEDULES, ids=["centered", "one step", "two steps"])
@pytest.mark.parametrize("ops", [NumpyOps(), TorchOps(torch.float64)], ids=["numpy", "torch"])
@pytest.mark.parametrize(
    ("rate", "output"),
    [(RELU, LINEAR), (box(0.4), HARD_SIGMOID), (TANH, LINEAR)],
    ids=lambda a: str(a.name),
)
@torch.no_grad()
def test_a_chain_settles_as_any_network_does(
    hidden: tuple[int, ...], schedule: Schedule, ops: Ops, rate: Activation, output: Activation
) -> None:
    free, target = problem(chain_of(hidden, rate, output), ops)
    wanted = plainly(free, target, schedule)
    agree(ops, relax(free, target, schedule, SWEEPS), wanted)
    assert has_one_hidden_layer(free.network) == (len(hidden) == 1 and rate is not TANH)
    if has_one_hidden_layer(free.network):
        agree(ops, relax_one_hidden(free, target, schedule, measured=True), wanted)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=["centered", "one step", "two steps"])
@pytest.mark.parametrize("ops", [NumpyOps(), TorchOps(torch.float64)], ids=["numpy", "torch"])
@torch.no_grad()
def test_a_chain_of_pictures_settles_as_any_network_does(schedule: Schedule, ops: Ops) -> None:
    network = pictures()
    assert is_chain(network)
    assert not has_one_hidden_layer(network)
    free, target = problem(network, ops)
    agree(ops, relax(free, target, schedule, SWEEPS), plainly(free, target, schedule))


@pytest.mark.parametrize("schedule", SCHEDULES, ids=["centered", "one step", "two steps"])
@pytest.mark.parametrize("ops", [NumpyOps(), TorchOps(torch.float64)], ids=["numpy", "torch"])
@pytest.mark.parametrize(
    ("rate", "output"), [(RELU, LINEAR), (box(0.4), HARD_SIGMOID)], ids=lambda a: str(a.name)
)
@torch.no_grad()
def test_compiled_batches_give_the_update_of_the_rule(
    schedule: Schedule, ops: Ops, rate: Activation, output: Activation
) -> None:
    network = chain_of((14,), rate, output)
    params, batch = given(network, ops)
    free = field(ops, network, params, batch.x)
    learned = update_one_hidden(ops, network, params, batch, schedule)
    assert learned is not None
    phases = plainly(free, batch.target, schedule)
    states = {name: settled.state for name, settled in phases.items()}
    wanted = hebbian(ops, network, batch.x, states=states, schedule=schedule, scale=-1 / 11)
    assert learned.gradients.keys() == wanted.keys()
    for name, slope in wanted.items():
        assert np.abs(ops.to_numpy(slope)).max() > 1e-4
        assert np.abs(ops.to_numpy(learned.gradients[name] - slope)).max() < 1e-12
    answers = ops.to_numpy(states["free"]["output"]).argmax(1) == ops.to_numpy(batch.target).argmax(
        1
    )
    assert learned.correct == answers.sum()
    error = ops.to_numpy(states["free"]["output"]) - ops.to_numpy(batch.target)
    assert learned.loss == pytest.approx(0.5 * (error**2).sum() / 11)
    assert 0 < answers.sum() < 11
    assert learned.residual == pytest.approx(phases["free"].residual.max(), abs=1e-12)
    quiet = replace(batch, measured=False)
    unmeasured = update_one_hidden(ops, network, params, quiet, schedule)
    assert unmeasured is not None
    assert unmeasured.residual == 0.0


@torch.no_grad()
def test_training_takes_the_compiled_way_and_probes_the_plain_one() -> None:
    network = chain_of((14,))
    for ops, wanted in ((TorchOps(), True), (TorchOps(torch.float64), False)):
        params, batch = given(network, ops)
        free, recipe = field(ops, network, params, batch.x), RECIPE
        assert is_worth_compiling(free) == wanted
        assert path_of(ops, network, recipe) is UpdatePath.ONE_HIDDEN
        assert path_of(ops, network, replace(recipe, name=Rule.VECTOR_FIELD)) is UpdatePath.PHASES
        assert path_of(ops, network, replace(recipe, damping=0.5)) is UpdatePath.PHASES
        plain = settle_phases(free, batch, recipe)
        slopes = hebbian(
            ops,
            network,
            batch.x,
            states=plain.states,
            schedule=plain.schedule,
            scale=-1.0 / 11,
        )
        learned = contrastive(ops, network, params, batch, recipe)
        for name, slope in slopes.items():
            assert torch.allclose(learned.gradients[name], slope, rtol=0, atol=1e-5)


def agree(ops: Ops, found: dict[str, Equilibrium] | None, wanted: dict[str, Equilibrium]) -> None:
    assert found is not None
    assert list(found) == list(wanted)
    for phase, settled in found.items():
        assert np.allclose(settled.residual, wanted[phase].residual, rtol=0, atol=1e-12)
        assert np.array_equal(settled.steps, wanted[phase].steps)
        for name, rates in settled.state.items():
            before = ops.to_numpy(wanted[phase].state[name])
            assert before.any()
            assert np.abs(ops.to_numpy(rates) - before).max() < 1e-12


def test_loops_one_way_streets_and_other_outputs_make_no_chain() -> None:
    net = chain_of((12, 9))
    assert is_chain(net)
    loop = looped(9, 14, 4, hidden_rate=RELU, output_rate=LINEAR, bound=0.9)
    for other in (
        loop,
        feed_forward(net),
        replace(net, cost=Cost.CROSS_ENTROPY),
        replace(net, connections=net.connections[::-1]),
        chain_of((12, 9), output=TANH),
    ):
        assert not is_chain(other)


def test_other_ways_to_settle_are_left_to_the_plain_path() -> None:
    free, target = problem(chain_of((14,)), NumpyOps())
    schedule = SCHEDULES[0]
    damped = relax(free, target, schedule, Settling(Damped(0.5), Damped(0.5)))
    swept = relax(free, target, schedule, SWEEPS)
    apart = damped["free"].state["hidden"] - swept["free"].state["hidden"]
    assert np.abs(apart).max() > 1e-6


def test_a_nudge_that_cannot_settle_is_refused() -> None:
    free, target = problem(chain_of((14,)), NumpyOps())
    with pytest.raises(ValueError, match="unbounded"):
        relax(free, target, two_phase(beta=-1.0, free=2, nudged=2), SWEEPS)


@torch.no_grad()
def test_compiled_sweeps_name_the_layer_that_diverged() -> None:
    free, target = problem(chain_of((14,)), NumpyOps())
    free.params["hidden->output"][:] *= 1e200
    found = relax_one_hidden(free, target, SCHEDULES[0], measured=True)
    assert found is not None
    assert all(settled.status is SolveStatus.NOT_FINITE for settled in found.values())
    assert not np.isfinite(found["free"].state["hidden"]).all()
    batch = Batch(np.ones((11, 9)), target, measured=True)
    assert update_one_hidden(free.ops, free.network, free.params, batch, SCHEDULES[0]) is None


def test_compiled_sweeps_leave_graphs_and_other_devices_alone() -> None:
    ops = TorchOps(torch.float64)
    free, target = problem(chain_of((14,)), ops)
    free.params["hidden->output"].requires_grad_()
    assert relax_one_hidden(free, target, SCHEDULES[0], measured=True) is None
    batch = Batch(torch.ones(11, 9, dtype=torch.float64), target, measured=True)
    assert update_one_hidden(free.ops, free.network, free.params, batch, SCHEDULES[0]) is None
    assert ops.numpy_view(torch.zeros(2, device="meta")) is None
