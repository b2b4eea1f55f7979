"""The direction of the update before learning starts, and warnings where it is poor."""

from __future__ import annotations

from collections.abc import Mapping

from neuro_eqprop.runs.learn_on_chip.state import LearningState, rate_parameters
from neuro_eqprop.runs.learn_on_chip.task import OnChipTask
from neuro_eqprop.runs.on_chip_config import DEEP_FEEDBACK, hidden_layers
from neuro_eqprop.runs.rate_baseline import Direction, directions
from neuro_eqprop.simulators.biology.settings import CONTINUOUS
from neuro_eqprop.simulators.registry import load_learner
from neuro_eqprop.spiking.plasticity import with_weights

SAMPLES = 10
"""Samples on which the direction of the update is measured."""
RATE_LEAST, GRADIENT_LEAST = 0.9, 0.8
"""A warning is given below these cosines with the rate update and with minus the gradient."""
FEEDBACK_MOST = 0.5
"""Largest feedback with which two hidden layers were seen to learn (docs/results/learning.md)."""


def measure_directions(task: OnChipTask, state: LearningState) -> dict[str, Direction]:
    """Cosines of the update of each parameter on a few samples; empty where rates learn.

    Nonidealities and untied feedback are included: they are part of the network that learns. In
    continuous time the learner itself is measured; the others give the updates of the emulator.
    """
    if task.on_rates or state.epoch >= task.epochs:
        return {}
    _, samples = task.training_samples(state.epoch, most=SAMPLES)
    plastic = with_weights(task.plastic, state.weights)
    params = rate_parameters(task, state)
    learner = task.learner if task.config.on in CONTINUOUS else load_learner("emulator")
    return directions(task.network, plastic, params, samples.stimulus, learner)


def direction_warnings(task: OnChipTask, cosines: Mapping[str, Direction]) -> list[str]:
    """Warnings of settings with which the update is far from rate EqProp or the gradient."""
    warnings, beta, rule = [], task.study.rule.beta, task.plastic.rule
    rates = [d.rate for d in cosines.values() if d.rate is not None]
    gradients = [d.gradient for d in cosines.values() if d.gradient is not None]
    if rates and min(rates) < RATE_LEAST:
        other = "" if task.config.code == "graded" else ", or code graded"
        warnings.append(
            f"phases of {rule.schedule[-1].steps} steps are short for beta {beta:g} and code "
            f"{task.config.code}: the cosine of the update with that of rates is "
            f"{min(rates):.3f}; use more `steps`{other}"
        )
    if gradients and min(gradients) < GRADIENT_LEAST:
        warnings.append(
            f"beta {beta:g} is too large for this network: the cosine of the update with minus the "
            f"gradient is {min(gradients):.3f}; use a smaller `beta`"
        )
    if rule.unsettled and task.config.code == "rate":
        warnings.append(
            f"one-sided nudging compares windows while traces of tau {rule.tau:g} still rise; "
            f"let the free phase settle {4 * rule.tau:g} steps, or use nudging centered"
        )
    hidden, feedback = hidden_layers(task.study), task.study.get("feedback", 1.0)
    if not task.on_rates and hidden > 1 and feedback > FEEDBACK_MOST:
        cure = (
            "in fixed point there is no other, so use floating point or one hidden layer"
            if task.config.fixed_point
            else f"use feedback={DEEP_FEEDBACK:g}"
        )
        warnings.append(
            f"{hidden} hidden layers hardly learn with a feedback of {feedback:g}; {cure}"
        )
    return warnings
