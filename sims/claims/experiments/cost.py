"""CPU time of an epoch by EqProp, backpropagation, BPTT and implicit differentiation.

Also the gradients of one batch by the last two and by phantom gradients, for other experiments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.field import State, field
from neuro_eqprop.dynamics.solve import Damped, GaussSeidel, Stop, solve
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.gradients import bptt_gradient, implicit_gradient
from neuro_eqprop.training.loop import TrainingLoop
from neuro_eqprop.training.rules.base import Batch
from neuro_eqprop.training.settings import Rule
from neuro_eqprop.training.study import adapt
from sims.claims.claim import Json
from sims.claims.experiments.backprop_mlp import matching_perceptron, train_by_backprop
from sims.claims.experiments.common import data_of, study_of
from sims.claims.experiments.kernel import interleaved_times

Tensors: TypeAlias = dict[str, torch.Tensor]
GradientMethod: TypeAlias = Callable[
    [Network, Tensors, torch.Tensor, torch.Tensor, int], Mapping[str, torch.Tensor]
]
"""Returns the gradient of the summed cost, given network, parameters, samples, targets, steps."""


@torch.no_grad()
def free_state(network: Network, params: Tensors, x: torch.Tensor, steps: int) -> State:
    """The state after `steps` free sweeps."""
    free = field(TorchOps(), network, params, x)
    stop = Stop(None, steps, measured=False)
    return solve(free, free.zero_state(), GaussSeidel(), stop).state


def bptt(
    network: Network, params: Tensors, x: torch.Tensor, y: torch.Tensor, steps: int
) -> Mapping[str, torch.Tensor]:
    """The gradient by backpropagation through all steps."""
    return bptt_gradient(
        TorchOps(), network, params, Batch(x, y, measured=False), solver=GaussSeidel(), steps=steps
    ).gradients


def implicit(
    network: Network, params: Tensors, x: torch.Tensor, y: torch.Tensor, steps: int
) -> Mapping[str, torch.Tensor]:
    """The gradient by the implicit function theorem; the adjoint takes as many steps."""
    state, stop = free_state(network, params, x, steps), Stop(None, steps)
    return implicit_gradient(TorchOps(), network, params, x=x, target=y, state=state, stop=stop)


def phantom(tail: int) -> GradientMethod:
    """Phantom gradients: through `tail` damped steps from the settled state (Geng et al. 2021)."""

    def gradient(
        network: Network, params: Tensors, x: torch.Tensor, y: torch.Tensor, steps: int
    ) -> Mapping[str, torch.Tensor]:
        start = free_state(network, params, x, steps)
        return bptt_gradient(
            TorchOps(),
            network,
            params,
            Batch(x, y, measured=False),
            solver=Damped(0.5),
            steps=tail,
            start=start,
        ).gradients

    return gradient


def prepare_gradient(
    network: Network,
    params: Mapping[str, Array],
    x: Array,
    y: Array,
    steps: int,
    method: GradientMethod,
) -> Callable[[], Mapping[str, torch.Tensor]]:
    """A function that computes the gradient of one batch, ready to be timed."""
    ops = TorchOps()
    tensors = {name: ops.from_numpy(value) for name, value in params.items()}
    inputs, targets = ops.from_numpy(x), ops.from_numpy(y)
    return lambda: method(network, tensors, inputs, targets, steps)


def times(arguments: Mapping[str, Any], seed: int) -> Json:
    """CPU seconds of an epoch by each method."""
    data, study = data_of(arguments), study_of(arguments, seed)
    network = study.network(data)
    net = matching_perceptron(study, data)

    def epoch(rule: str) -> Callable[[], object]:
        changed = adapt(study, {"rule": rule})
        return lambda: TrainingLoop(changed, network, data).epoch(evaluate=False)

    found = interleaved_times(
        {
            "eqprop": epoch(study.rule.name),
            "backprop": lambda: next(train_by_backprop(net, data.train, study)),
            "bptt": epoch(Rule.BPTT),
            "implicit": epoch(Rule.IMPLICIT),
        },
        rounds=arguments["rounds"],
        times=1,
    )
    return {name: {"seconds": seconds} for name, seconds in found.items()}
