"""Optimizers: any of `torch.optim` that needs gradients alone, and clipped gradient descent.

Options may be given with the name, as in `sgd(momentum=0.5, nesterov=True)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import signature
from typing import Any

import numpy as np
import torch

from neuro_eqprop.common.arrays import Array, UnknownNameError
from neuro_eqprop.training.settings import OptionString, parse_option_string

UNSUPPORTED = {
    "lbfgs": "evaluates the cost several times in a step",
    "sparseadam": "needs sparse gradients",
    "muon": "takes matrices only, and networks have biases",
    "optimizer": "is an abstract base class",
}
CLASSES: dict[str, Any] = {
    name.lower(): kind
    for name, kind in vars(torch.optim).items()
    if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer)
}
OPTIMIZERS = tuple(sorted(name for name in CLASSES if name not in UNSUPPORTED))
SETTINGS = {"lr": "learning_rate", "weight_decay": "weight_decay"}
"""Options that have their own training setting."""
DEFAULT_OPTIONS = {"sgd": {"momentum": 0.9}}
FUSED_DEVICES = ("cpu", "cuda")
"""Devices on which torch's fused implementations of optimizers run; they take two thirds of the
time."""


def find_optimizer(parsed: OptionString) -> Callable[..., torch.optim.Optimizer]:
    """The class of an optimizer; ValueError if it, or one of its options, cannot be used."""
    name = parsed.name.lower()
    if name in UNSUPPORTED:
        raise ValueError(
            f"optimizer {parsed.name!r} {UNSUPPORTED[name]}; use one of {', '.join(OPTIMIZERS)}"
        )
    if name not in OPTIMIZERS:
        raise UnknownNameError("optimizer", parsed.name, OPTIMIZERS)
    for option in SETTINGS.keys() & parsed.options.keys():
        raise ValueError(
            f"optimizer {parsed.name!r}: give {option} by the setting {SETTINGS[option]}"
        )
    found: Callable[..., torch.optim.Optimizer] = CLASSES[name]
    return found


def make_optimizer(
    text: str,
    rate: float,
    params: Mapping[str, torch.Tensor],
    *,
    weights: Iterable[str] = (),
    decay: float = 0.0,
) -> torch.optim.Optimizer:
    """The torch optimizer that `text` names; weight decay applies to `weights` only."""
    parsed = parse_option_string(text)
    kind = find_optimizer(parsed)
    decayed = set(weights) if decay else set()
    with_decay = [tensor for key, tensor in params.items() if key in decayed]
    without = [tensor for key, tensor in params.items() if key not in decayed]
    groups = [{"params": without, "weight_decay": 0.0}]
    if with_decay:
        groups.append({"params": with_decay, "weight_decay": decay})
    options = {**DEFAULT_OPTIONS.get(parsed.name.lower(), {}), **parsed.options}
    other = {"foreach", "capturable", "differentiable", "amsgrad", "maximize"} & options.keys()
    if "fused" in signature(kind).parameters and not other:
        options.setdefault("fused", all(p.device.type in FUSED_DEVICES for p in params.values()))
    try:
        return kind(groups, lr=rate, **options)
    except (TypeError, ValueError) as error:
        why = str(error).splitlines()[0]
        raise ValueError(f"optimizer {parsed.name!r} rejects its options: {why}") from error


def optimizer_state(
    optimizer: torch.optim.Optimizer, params: Mapping[str, torch.Tensor]
) -> dict[str, Array]:
    """Copies of the optimizer's state (moments, step counts) by "parameter/quantity"."""
    return {
        f"{name}/{key}": value.detach().cpu().numpy().copy()
        for name, tensor in params.items()
        for key, value in optimizer.state[tensor].items()
        if isinstance(value, torch.Tensor)
    }


def restore_optimizer(
    optimizer: torch.optim.Optimizer,
    params: Mapping[str, torch.Tensor],
    state: Mapping[str, Array],
    *,
    skip: str,
) -> None:
    """Restore what `optimizer_state` returned, except the quantity `skip`."""
    for entry, value in state.items():
        name, key = entry.rsplit("/", 1)
        if key != skip:
            tensor = torch.from_numpy(np.array(value))
            # Torch keeps step counts on the CPU and arrays on the device of the parameter.
            placed = tensor.to(params[name].device) if tensor.ndim else tensor
            optimizer.state[params[name]][key] = placed
