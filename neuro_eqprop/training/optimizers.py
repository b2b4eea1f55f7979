"""The optimiser that turns asked-for changes into steps: any of torch that needs no more than that.

Its options may be given with its name, as in `sgd(momentum=0.5, nesterov=True)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import torch

from neuro_eqprop.arrays import Array, UnknownNameError
from neuro_eqprop.training.option_string import OptionString, called

NOT_FOR_THIS = {
    "lbfgs": "asks for the cost several times in a step",
    "sparseadam": "needs sparse gradients",
    "muon": "takes matrices alone, and networks have biases",
    "optimizer": "is no optimiser by itself",
}
KINDS: dict[str, Any] = {
    name.lower(): kind
    for name, kind in vars(torch.optim).items()
    if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer)
}
OPTIMISERS = tuple(sorted(name for name in KINDS if name not in NOT_FOR_THIS))
ELSEWHERE = {"lr": "learning_rate", "weight_decay": "weight_decay"}
"""Options that are settings of their own here."""
USUAL = {"sgd": {"momentum": 0.9}}


def find_optimizer(asked: OptionString) -> Callable[..., torch.optim.Optimizer]:
    """The class of an optimizer; an error if there is none, or for options that are settings."""
    name = asked.name.lower()
    if name in NOT_FOR_THIS:
        raise ValueError(
            f"optimiser {asked.name!r} {NOT_FOR_THIS[name]}; use one of {', '.join(OPTIMISERS)}"
        )
    if name not in OPTIMISERS:
        raise UnknownNameError("optimiser", asked.name, OPTIMISERS)
    for option in ELSEWHERE.keys() & asked.options.keys():
        raise ValueError(
            f"optimiser {asked.name!r}: give {option} by the setting {ELSEWHERE[option]}"
        )
    found: Callable[..., torch.optim.Optimizer] = KINDS[name]
    return found


def make_optimizer(
    text: str,
    rate: float,
    params: Mapping[str, torch.Tensor],
    *,
    weights: Iterable[str] = (),
    decay: float = 0.0,
) -> torch.optim.Optimizer:
    """The optimiser that a text names; only `weights` decay."""
    asked = called(text)
    kind, name = find_optimizer(asked), asked.name.lower()
    shrinking = set(weights) if decay else set()
    decaying = [tensor for key, tensor in params.items() if key in shrinking]
    rest = [tensor for key, tensor in params.items() if key not in shrinking]
    groups = [{"params": rest, "weight_decay": 0.0}]
    if decaying:
        groups.append({"params": decaying, "weight_decay": decay})
    options = {**USUAL.get(name, {}), **asked.options}
    try:
        made: torch.optim.Optimizer = kind(groups, lr=rate, **options)
    except (TypeError, ValueError) as error:
        why = str(error).splitlines()[0]
        raise ValueError(f"optimiser {asked.name!r} refuses its options: {why}") from error
    return made


def optimizer_state(
    stepper: torch.optim.Optimizer, params: Mapping[str, torch.Tensor]
) -> dict[str, Array]:
    """The optimiser's memory, by "parameter/quantity"."""
    return {
        f"{name}/{key}": value.detach().cpu().numpy().copy()
        for name, tensor in params.items()
        for key, value in stepper.state[tensor].items()
        if isinstance(value, torch.Tensor)
    }


def restore_state(
    stepper: torch.optim.Optimizer,
    params: Mapping[str, torch.Tensor],
    memory: Mapping[str, Array],
    but: str,
) -> None:
    """Give an optimiser its memory back, all `but` one quantity, which is none of its own."""
    for entry, value in memory.items():
        name, key = entry.rsplit("/", 1)
        if key != but:
            tensor = torch.from_numpy(np.array(value))
            # Counts of steps stay where torch keeps them, arrays go where their parameter is.
            place = tensor.to(params[name].device) if tensor.ndim else tensor
            stepper.state[params[name]][key] = place
