"""Firing of the lowered network against the equilibrium of the rates it came from."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from neuro_eqprop.common.arrays import Array, defined_cosine
from neuro_eqprop.dynamics.field import State, field
from neuro_eqprop.dynamics.schedules import Schedule, three_phase
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR, RELU, TANH, Activation
from neuro_eqprop.networks.architectures import layered, looped
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.simulators.base import Result
from neuro_eqprop.simulators.recordings import NOTHING, MemorySink
from neuro_eqprop.simulators.reference.simulator import Reference
from neuro_eqprop.spiking.codes import Code, Coding
from neuro_eqprop.spiking.lower import lower, stimulate
from neuro_eqprop.training.rules.hebbian import hebbian
from neuro_eqprop.training.rules.phases import SWEEPS, relax

SAMPLES, INPUTS, OUTPUTS, BETA = 12, 10, 4, 0.25
KINDS = pytest.mark.parametrize("kind", ["one hidden", "two hidden", "soft", "looped"])
EXACT = replace(SWEEPS, tolerance=1e-13)


def network_of(
    kind: str, hidden: Activation = HARD_SIGMOID, output: Activation = HARD_SIGMOID
) -> Network:
    if kind == "looped":
        return looped(INPUTS, 24, OUTPUTS, hidden_rate=hidden, output_rate=output, bound=0.9)
    sizes = (24,) if kind == "one hidden" else (20, 16)
    feedback = 0.7 if kind == "soft" else 1.0
    return layered(
        INPUTS, sizes, OUTPUTS, hidden_rate=hidden, output_rate=output, feedback=feedback
    )


def problem(network: Network, grid: float) -> tuple[dict[str, Array], Array, Array]:
    """Parameters already on the grid, so that spikes and rates are of the very same network."""
    rng = np.random.default_rng(4)
    params = initialize(network, rng)
    params |= {layer.name: rng.normal(0.3, 0.3, layer.shape) for layer in network.moving}
    coarse = 4 * grid  # so that half of a weight, and half of that, is on the grid too
    params = {name: np.rint(value / coarse) * coarse for name, value in params.items()}
    x = rng.integers(0, 17, (SAMPLES, INPUTS)) / 16
    return params, x, np.eye(OUTPUTS)[rng.integers(0, OUTPUTS, SAMPLES)]


def equilibria(network: Network, grid: float) -> dict[str, State]:
    params, x, y = problem(network, grid)
    schedule = three_phase(beta=BETA, free=5000, nudged=5000)
    settled = relax(field(NumpyOps(), network, params, x), y, schedule, EXACT)
    return {name: each.state for name, each in settled.items()}


@cache
def fire(network: Network, coding: Coding, steps: int) -> tuple[Schedule, Result]:
    params, x, y = problem(network, coding.grid)
    schedule = three_phase(beta=BETA, free=steps, nudged=steps, part=coding.tail)
    stimulus = stimulate(network, params, x, target=y, coding=coding)
    made = lower(network, params, dt=1e-3, coding=coding, nudged=True)
    return schedule, Reference().run(made, stimulus, schedule, record=NOTHING, sink=MemorySink())


def states(schedule: Schedule, result: Result) -> dict[str, State]:
    return {
        phase.name: {name: firing[:, k] for name, firing in result.firing.items()}
        for k, phase in enumerate(schedule)
    }


def distance(one: State, two: State) -> float:
    gaps = np.concatenate([np.ravel(one[name] - two[name]) for name in one])
    return float(np.sqrt(np.mean(gaps**2)))


@cache
def rate_errors(kind: str) -> dict[str, dict[int, float]]:
    """By phase and steps, how far firing is from the equilibrium."""
    network, coding = network_of(kind), Coding(Code.RATE)
    wanted = equilibria(network, coding.grid)
    errors: dict[str, dict[int, float]] = {name: {} for name in wanted}
    for steps in (64, 256, 1024):
        found = states(*fire(network, coding, steps))
        for name, state in wanted.items():
            errors[name][steps] = distance(found[name], state)
    return errors


@KINDS
@pytest.mark.parametrize("phase", ["free", "negative", "positive"])
def test_firing_approaches_the_equilibrium_nearly_as_one_over_steps(kind: str, phase: str) -> None:
    errors = rate_errors(kind)[phase]
    assert errors[64] > errors[256] > errors[1024]
    assert errors[64] < 0.01
    power = np.log(errors[64] / errors[1024]) / np.log(1024 / 64)
    assert power >= 0.8


@KINDS
def test_drive_is_read_as_the_rates_pre_activation(kind: str) -> None:
    network, coding = network_of(kind), Coding(Code.RATE)
    params, x, _ = problem(network, coding.grid)
    wanted = equilibria(network, coding.grid)["free"]
    drive = field(NumpyOps(), network, params, x).drive("output", wanted)
    _, result = fire(network, coding, 1024)
    assert np.abs(result.drive["output"][:, 0] - drive).max() < 0.02


@KINDS
@pytest.mark.parametrize(
    ("hidden", "output"),
    [(HARD_SIGMOID, HARD_SIGMOID), (TANH, LINEAR), (RELU, LINEAR)],
    ids=lambda a: str(a.name),
)
def test_graded_messages_settle_at_the_equilibrium(
    kind: str, hidden: Activation, output: Activation
) -> None:
    network = network_of(kind, hidden, output)
    errors = {}
    for theta in (2.0**-6, 2.0**-10):
        coding = Coding(Code.GRADED, theta=theta)
        wanted = equilibria(network, coding.grid)
        schedule, result = fire(network, coding, 128)
        found = states(schedule, result)
        errors[theta] = max(distance(found[name], wanted[name]) for name in wanted)
        # Quiet at equilibrium: fewer messages than a spike every third step.
        assert result.messages["output"].mean() < 128 / 3
    assert errors[2.0**-6] < 2.0**-6
    assert errors[2.0**-10] < errors[2.0**-6] / 4


@KINDS
@pytest.mark.parametrize(
    ("coding", "steps", "least"),
    [(Coding(Code.RATE), 1024, 0.999), (Coding(Code.GRADED, theta=2.0**-12), 256, 0.999)],
    ids=["rate", "graded"],
)
def test_the_rule_asks_firing_for_what_it_asks_rates(
    kind: str, coding: Coding, steps: int, least: float
) -> None:
    """`hebbian` does not ask whether states come from equilibria or from a simulator."""
    network, ops = network_of(kind), NumpyOps()
    _, x, _ = problem(network, coding.grid)
    schedule, result = fire(network, coding, steps)
    wanted, found = (
        hebbian(ops, network, x, states=seen, schedule=schedule)
        for seen in (equilibria(network, coding.grid), states(schedule, result))
    )
    for name, change in wanted.items():
        assert defined_cosine(found[name], change) > least, name
