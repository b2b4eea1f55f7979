"""The claims of the research notes, one module each."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from neuro_eqprop.common.arrays import UnknownNameError
from sims.claims.claim import Claim

IDS = (
    "gradient-symmetric",
    "gradient-nonsymmetric",
    "transformer-mnist",
    "symmetric-saturates",
    "softmax-attention",
    "first-transformer",
    "sn-lipschitz",
    "parity-mlp",
    "multi-dataset",
    "beta-optimum",
    "beta-annealing",
    "memory",
    "adaptive-compute",
    "kernel-speed",
    "training-cost",
    "settle-steps",
    "hyperparameters",
    "toroidal-variance",
    "tp-eqprop",
    "hierarchical-cifar",
    "text-sst2",
    "algorithmic",
    "deq-comparison",
    "landscape",
    "continual",
    "energy-1000x",
    "multi-seed",
    "generative",
)


def claim(name: str) -> Claim:
    """The claim with that identifier."""
    if name not in IDS:
        raise UnknownNameError("claim", name, IDS)
    found = import_module(f"{__name__}.{name.replace('-', '_')}").CLAIM
    if not isinstance(found, Claim) or found.id != name:
        raise TypeError(f"the definition of {name!r} has no claim of that name")
    return found


def claims(chosen: Sequence[str] = ()) -> tuple[Claim, ...]:
    """The chosen claims, or all if none is chosen, in the order of the notes."""
    for name in chosen:
        claim(name)
    return tuple(claim(name) for name in IDS if name in chosen or not chosen)
