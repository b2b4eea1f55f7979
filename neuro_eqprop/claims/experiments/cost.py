"""CPU time of one pass over some samples: EqProp against backpropagation, BPTT and implicit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import torch

from neuro_eqprop.arrays import Array
from neuro_eqprop.claims.claim import Json
from neuro_eqprop.claims.experiments.backprop_mlp import learn, twin
from neuro_eqprop.claims.experiments.common import begin, data_of, epochs, study_of
from neuro_eqprop.claims.experiments.kernel import interleaved
from neuro_eqprop.data import Dataset, batches, one_hot
from neuro_eqprop.experiments.config import Study
from neuro_eqprop.networks import Network
from neuro_eqprop.ops.torch import TorchOps
from neuro_eqprop.rate import spectral
from neuro_eqprop.rate.field import State, field
from neuro_eqprop.solve import Damped, GaussSeidel, Solver, Stop, solve

Grads: TypeAlias = Callable[[Network, Any, Any, Any, int], None]
"""Leaves gradients of the squared error in parameters, for some samples, targets and steps."""


def settle(network: Network, leaves: Any, x: Any, solver: Solver, steps: int) -> State:  # noqa: ANN401
    """The free state after so many steps, with a graph if autograd is on."""
    free = field(TorchOps(), network, leaves, x)
    return solve(free, free.zero_state(), solver, Stop(None, steps, measured=False)).state


def bptt(network: Network, leaves: Any, x: Any, y: Any, steps: int) -> None:  # noqa: ANN401
    """Gradients by backpropagation through the settling."""
    state = settle(network, leaves, x, GaussSeidel(), steps)
    (0.5 * (state[network.output.name] - y) ** 2).sum().backward()


def implicit(network: Network, leaves: Any, x: Any, y: Any, steps: int) -> None:  # noqa: ANN401
    """Gradients by the implicit function theorem, the adjoint with as many steps as the state."""
    with torch.no_grad():
        state = settle(network, leaves, x, GaussSeidel(), steps)
    names = list(state)
    rates = {name: state[name].detach().requires_grad_() for name in names}
    image = field(TorchOps(), network, leaves, x)(rates)
    images, inputs = [image[n] for n in names], [rates[n] for n in names]
    pull = [torch.zeros_like(state[n]) for n in names]
    pull[names.index(network.output.name)] = state[network.output.name] - y
    adjoint = pull
    for _ in range(steps):
        back = torch.autograd.grad(images, inputs, adjoint, retain_graph=True, allow_unused=True)
        adjoint = [p if b is None else p + b for p, b in zip(pull, back, strict=True)]
    torch.autograd.backward(images, adjoint)


def phantom(network: Network, leaves: Any, x: Any, y: Any, steps: int, tail: int) -> None:  # noqa: ANN401
    """Gradients through the last `tail` steps alone, damped, from where the state had settled."""
    with torch.no_grad():
        state = settle(network, leaves, x, GaussSeidel(), steps)
    free, solver = field(TorchOps(), network, leaves, x), Damped(0.5)
    for _ in range(tail):
        state = solver.step(free, state)
    (0.5 * (state[network.output.name] - y) ** 2).sum().backward()


def ready(
    network: Network, params: Mapping[str, Array], x: Array, y: Array, steps: int, way: Grads
) -> Callable[[], dict[str, torch.Tensor]]:
    """One way of autograd, ready to be run: it returns the gradient of each parameter."""
    ops = TorchOps()
    leaves = {name: ops.from_numpy(value).requires_grad_() for name, value in params.items()}
    given, target = ops.from_numpy(x), ops.from_numpy(y)

    def run() -> dict[str, torch.Tensor]:
        for leaf in leaves.values():
            leaf.grad = None
        with torch.enable_grad():
            way(network, leaves, given, target, steps)
        return {n: torch.zeros_like(v) if v.grad is None else v.grad for n, v in leaves.items()}

    return run


def loop(study: Study, data: Dataset, grads: Grads) -> Callable[[], None]:
    """One epoch with the same optimiser and bounds, with gradients from elsewhere."""
    network, ops = study.network(data), TorchOps()
    leaves = {
        name: ops.from_numpy(value).requires_grad_()
        for name, value in begin(study, network).params.items()
    }
    x, y = ops.from_numpy(data.train.x), ops.from_numpy(one_hot(data.train.y, data.classes))
    stepper = torch.optim.Adam(list(leaves.values()), lr=study.training.learning_rate)

    def run() -> None:
        for rows in batches(data.train, study.training.batch, np.random.default_rng(study.seed)):
            chosen = torch.from_numpy(rows)
            stepper.zero_grad()
            grads(network, leaves, x[chosen], y[chosen], study.rule.free_steps)
            stepper.step()
            with torch.no_grad():
                for name, kept in spectral.project_exactly(ops, network, leaves).items():
                    leaves[name].copy_(kept)

    return run


def times(arguments: Mapping[str, Any], seed: int) -> Json:
    """CPU seconds of an epoch by each way."""
    data, study = data_of(arguments), study_of(arguments, seed)
    hidden = study.get("hidden") * 2 if study.model.name == "looped" else study.get("hidden")
    net = twin((data.features, *hidden, data.classes), study.get("activation"), seed)

    def feedforward() -> None:
        rate, batch = study.training.learning_rate, study.training.batch
        next(learn(net, data.train, epochs=1, batch=batch, rate=rate, seed=seed))

    runs: dict[str, Callable[[], object]] = {
        "eqprop": lambda: next(epochs(study, data)),
        "backprop": feedforward,
        "bptt": loop(study, data, bptt),
        "implicit": loop(study, data, implicit),
    }
    found = interleaved(runs, rounds=arguments["rounds"], times=1)
    return {name: {"seconds": s} for name, s in found.items()}
