"""The same lessons with rates: what learning on a chip is measured against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from neuro_eqprop.arrays import Array
from neuro_eqprop.backends.learning import NO_SYNAPSES, Learner, ProgressCallback, no_progress
from neuro_eqprop.networks import Network
from neuro_eqprop.ops.numpy import NumpyOps
from neuro_eqprop.rate.field import field
from neuro_eqprop.schedules import Schedule, three_phase, two_phase
from neuro_eqprop.spiking.ir import Stimulus
from neuro_eqprop.spiking.make_plastic import ALWAYS
from neuro_eqprop.spiking.plasticity import PlasticNetwork, TrainingSamples
from neuro_eqprop.training.relax import SWEEPS, relax
from neuro_eqprop.training.rules.hebbian import hebbian


@dataclass(frozen=True, slots=True)
class RateLearned:
    """What lessons with rates left behind."""

    params: Mapping[str, Array]
    drive: Array
    """Of the output in the free phase (lessons, units)."""
    clipped: int


def rate_schedule(schedule: Schedule, *, free: int, nudged: int) -> Schedule:
    """The phases for rates, which need fewer steps, with the betas of those on the chip."""
    beta = max(phase.beta for phase in schedule)
    make = three_phase if len(schedule) == 3 else two_phase
    return make(beta=beta, free=free, nudged=nudged)


def asked_for(
    network: Network, params: Mapping[str, Array], stimulus: Stimulus, schedule: Schedule
) -> tuple[dict[str, Array], Array]:
    """What rate EqProp asks for, summed over the samples, and the output's free drive."""
    ops, x = NumpyOps(), stimulus.current[network.input.name]
    target = stimulus.pull[network.output.name]
    free = field(ops, network, params, x)
    settling = replace(SWEEPS, tolerance=1e-9, measured=False)
    phases = relax(free, target, schedule, settling)
    states = {name: settled.state for name, settled in phases.items()}
    asked = hebbian(ops, network, x, states=states, schedule=schedule)
    return asked, np.asarray(free.drive(network.output.name, states[schedule[0].name]))


def learn_rates(
    network: Network,
    params: Mapping[str, Array],
    lessons: TrainingSamples,
    *,
    schedule: Schedule,
    batch: int,
    limit: float,
    watch: ProgressCallback = no_progress,
) -> RateLearned:
    """Learn from all lessons with rates: the same order, batches, learning rates and limit."""
    held, drives, clipped = dict(params), [], 0
    for start in range(0, lessons.stimulus.samples, batch):
        stimulus = lessons.stimulus.take(start, start + batch)
        asked, drive = asked_for(network, held, stimulus, schedule)
        rate = float(lessons.rates[start + stimulus.samples - 1]) / stimulus.samples
        for name, change in asked.items():
            wanted = held[name] + rate * change
            held[name] = np.clip(wanted, -limit, limit)
            clipped += int(np.count_nonzero(held[name] != wanted))
        drives.append(drive)
        watch(stimulus.samples)
    return RateLearned(held, np.concatenate(drives), clipped)


@dataclass(frozen=True, slots=True)
class Direction:
    """The median cosine of the tags of a connection with what rate EqProp asks for.

    And with minus the true gradient; None where no sample has one.
    """

    rate: float | None
    gradient: float | None


def directions(
    network: Network,
    plastic: PlasticNetwork,
    params: Mapping[str, Array],
    stimulus: Stimulus,
    learner: Learner,
) -> dict[str, Direction]:
    """By parameter, where the tags of single samples point; samples that ask nothing are left out.

    `params` are those of the network that the plastic one was made from, as it stands.
    """
    schedule = rate_schedule(plastic.rule.schedule, free=2000, nudged=2000)
    rates: dict[str, list[float]] = {}
    slopes: dict[str, list[float]] = {}
    for k in range(stimulus.samples):
        one = stimulus.take(k, k + 1)
        lesson = TrainingSamples(one, np.zeros(1))
        tags = learner.learn(plastic, lesson, synapses=NO_SYNAPSES, progress=no_progress).tags
        asked, _ = asked_for(network, params, one, schedule)
        slope = gradient(network, params, one)
        for name in asked:
            tag = tags[name if "->" in name else f"{ALWAYS}->{name}"].ravel()
            note(rates, name, cosine(tag, asked[name]))
            note(slopes, name, None if slope is None else cosine(tag, -slope[name]))
    return {
        name: Direction(median(rates.get(name)), median(slopes.get(name)))
        for name in network.parameters()
    }


def gradient(
    network: Network, params: Mapping[str, Array], stimulus: Stimulus
) -> dict[str, Array] | None:
    """The true gradient of a sample, if its rates settle."""
    from neuro_eqprop.training.gradients.exact import implicit

    x, target = stimulus.current[network.input.name], stimulus.pull[network.output.name]
    try:
        return implicit(network, dict(params), x, target)
    except ValueError:
        return None


def note(found: dict[str, list[float]], name: str, value: float | None) -> None:
    """Keep a value if there is one."""
    if value is not None:
        found.setdefault(name, []).append(value)


def cosine(a: Array, b: Array) -> float | None:
    """The cosine of two arrays; None if one is zero, or so small that it is noise of the solver."""
    sizes = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    if min(sizes) < 1e-7:
        return None
    return float(np.sum(a.ravel() * b.ravel()) / (sizes[0] * sizes[1]))


def median(values: list[float] | None) -> float | None:
    """The median, if there are values."""
    return float(np.median(values)) if values else None
