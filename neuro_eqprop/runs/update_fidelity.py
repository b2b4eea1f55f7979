"""How well the Hebbian update of a spiking network survives: against rates, and its own gradient.

The update of a connection is the sum over phases and samples of c s_post s_pre, with the contrast c
of the schedule and the rates s of the windows. It is compared with

- the update of the rate network of the same parameters, whether spikes translate it;
- minus the gradient of the loss of the spiking network itself, in its free phase, whether what
  learns descends its own loss. Changes of the loss are measured along random directions of the
  weights, by central differences; their cosine with the update along the same directions estimates
  the cosine of the vectors, with a standard error of about (1 - cosine^2) / sqrt(directions).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import Array, cosine
from neuro_eqprop.dynamics.field import field
from neuro_eqprop.dynamics.schedules import Schedule, contrast, free_only
from neuro_eqprop.networks.network import Cost, Network
from neuro_eqprop.networks.operators import Dense
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.networks.ops.protocol import Values
from neuro_eqprop.simulators.base import Backend, Result, TimedPhases
from neuro_eqprop.simulators.recordings import NOTHING, MemorySink
from neuro_eqprop.spiking.lower import rates_of
from neuro_eqprop.spiking.lowered import LoweredNetwork, lower_network
from neuro_eqprop.training.rules.base import Batch
from neuro_eqprop.training.rules.contrastive import phase_gradients
from neuro_eqprop.training.rules.phases import settle_phases
from neuro_eqprop.training.settings import ContrastiveSettings, Nudging, Rule, RuleSettings

READOUTS = ("spikes", "mixed", "drive")
"""What the update reads: rates of spikes; presynaptic spikes and postsynaptic drive; drives."""
DIRECTIONS = 16
"""Random directions of the weights of each connection."""
COMPILED, LARGEST = ("biology", "emulator"), 20_000
"""Simulators and number of weights with which the gradient of the loss is measured by default."""
CHANGE = 0.1
"""Size of a change of weights, relative to their root mean square."""


@dataclass(frozen=True, slots=True)
class ConnectionFidelity:
    """Cosines of the update of a connection; None if undefined or not measured."""

    connection: str
    readout: str
    rate: float | None
    """With the update of rates."""
    gradient: float | None = None
    """With minus the gradient of the spiking network's own loss."""

    def to_json(self) -> dict[str, Any]:
        """Fields in reports."""
        return asdict(self)


def rate_settings(schedule: Schedule, *, free: int, nudged: int) -> RuleSettings:
    """Return the rule settings that correspond to the phases of on-chip learning.

    `free` and `nudged` are the steps of the phases; rates settle in fewer steps than spikes.
    """
    return ContrastiveSettings(
        Rule.HEBBIAN,
        nudging=(Nudging.CENTERED if len(schedule) == 3 else Nudging.POSITIVE).value,
        beta=max(phase.beta for phase in schedule),
        free_steps=free,
        nudged_steps=nudged,
        tolerance=1e-9,
    )


def summed_update(
    network: Network, params: Mapping[str, Values], batch: Batch, settings: RuleSettings
) -> tuple[dict[str, Values], Array]:
    """Return the Hebbian gradients, summed over a batch, and the drive of the output at rest."""
    free = field(NumpyOps(), network, params, batch.x)
    settled = settle_phases(free, batch, settings)
    drive = np.asarray(free.drive(network.output.name, settled.rest.state))
    return phase_gradients(settled, batch, settings, -1.0), drive


def spiking_updates(
    spiking: LoweredNetwork, result: Result, x: Array, schedule: Schedule, readout: str = "spikes"
) -> dict[str, Array]:
    """The Hebbian update of each dense connection (targets, sources), summed over samples.

    It is that of `spiking.rate`, whose rates are those of the spikes.
    """
    rates = rates_of(spiking.rate, result.firing, spiking.coding)
    if readout != "spikes":
        drives = {name: np.clip(value, 0.0, 1.0) for name, value in result.drive.items()}
        drives = rates_of(spiking.rate, drives, spiking.coding)
    network, updates = spiking.rate, dict[str, Array]()
    for connection in network.connections:
        if not isinstance(connection.operator, Dense):
            continue
        post = (rates if readout == "spikes" else drives)[connection.target]
        if connection.source == network.input.name:
            pre = np.repeat(x[:, None], len(schedule), axis=1)
        else:
            pre = (drives if readout == "drive" else rates)[connection.source]
        factors = contrast(schedule).values()
        updates[connection.name] = np.asarray(
            sum(c * (post[:, k].T @ pre[:, k]) for k, c in enumerate(factors))
        )
    return updates


def update_fidelity(
    spiking: LoweredNetwork,
    result: Result,
    samples: tuple[Array, Array],
    schedule: Schedule,
    *,
    backend: Backend,
    directions: int | None = None,
) -> tuple[ConnectionFidelity, ...]:
    """Compare the updates of a run with those of rates, and with the gradient of its own loss.

    Parameters
    ----------
    spiking
        The network that ran.
    result
        Firing and drive of all samples and phases.
    samples
        Inputs (samples, features) and targets (samples, classes).
    schedule
        The phases that ran.
    backend
        Runs the free phases of changed networks; phases of its own length with its own windows.
    directions
        Random directions along which the loss is measured; 0 leaves out the gradient. None for
        `DIRECTIONS` on compiled simulators and networks of up to `LARGEST` weights, else 0.

    Returns
    -------
    tuple of ConnectionFidelity
        By connection, and by read-out if the backend runs in continuous time. Empty for a network
        that cannot be compared: without nudged phases, or with another cost than the squared error.

    """
    network, x, target = spiking.rate, samples[0], spiking.encode_target(samples[1])
    if len(schedule) < 2 or network.cost is Cost.CROSS_ENTROPY:
        return ()
    settings = rate_settings(schedule, free=2000, nudged=2000)
    batch = Batch(x, target, measured=False)
    gradients, _ = summed_update(network, dict(spiking.params), batch, settings)
    readouts = READOUTS if isinstance(backend, TimedPhases) else READOUTS[:1]
    updates = {each: spiking_updates(spiking, result, x, schedule, each) for each in readouts}
    measured: dict[str, tuple[Array, Array]] = {}
    if directions is None:
        small = sum(update.size for update in updates["spikes"].values()) <= LARGEST
        directions = DIRECTIONS if small and backend.name in COMPILED else 0
    if directions:
        free = schedule[0]
        phase = free_only(steps=free.steps, window=free.window)

        def loss(params: Mapping[str, Array]) -> float:
            return own_loss(spiking, params, (x, target), phase, backend)

        measured = {
            name: changes_of_loss(loss, spiking.params, name, directions)
            for name in updates["spikes"]
        }
    return tuple(
        ConnectionFidelity(
            name,
            each,
            cosine(update, -gradients[name]),
            along(update, measured[name]) if name in measured else None,
        )
        for name in updates["spikes"]
        for each in readouts
        for update in (updates[each][name],)
    )


def along(update: Array, measured: tuple[Array, Array]) -> float | None:
    """The cosine of an update with minus the changes of the loss along the same directions."""
    moves, changes = measured
    return cosine(moves @ update.ravel(), -changes)


def changes_of_loss(
    loss: Callable[[Mapping[str, Array]], float],
    params: Mapping[str, Array],
    name: str,
    directions: int,
) -> tuple[Array, Array]:
    """Random directions (directions, weights), and how the loss changes along each."""
    weight = params[name]
    rng = np.random.default_rng(0)
    moves = rng.choice((-1.0, 1.0), size=(directions, weight.size))
    size = CHANGE * float(np.sqrt(np.mean(weight**2))) or CHANGE
    changes = [
        sum(
            sign * loss({**params, name: weight + sign * size * move.reshape(weight.shape)})
            for sign in (1.0, -1.0)
        )
        for move in moves
    ]
    return moves, np.array(changes)


def own_loss(
    spiking: LoweredNetwork,
    params: Mapping[str, Array],
    samples: tuple[Array, Array],
    schedule: Schedule,
    backend: Backend,
) -> float:
    """Half the squared error of the mean drive of the output, clipped as its rate is."""
    x, target = samples
    changed = lower_network(
        spiking.rate, params, code=spiking.coding.code, bits=spiking.bits, input=spiking.input
    )
    changed = replace(changed, coding=spiking.coding)
    result = backend.run(
        changed.network, changed.encode(x), schedule, record=NOTHING, sink=MemorySink()
    )
    drive = rates_of(spiking.rate, result.drive, spiking.coding)[spiking.rate.output.name][:, 0]
    output = spiking.rate.output.activation
    rate = np.clip(drive, output.low, output.high)
    return float(0.5 * np.sum((rate - target) ** 2))
