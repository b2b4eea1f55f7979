"""Bytes of tensors alive at once in one training step: EqProp, BPTT, feed-forward backpropagation.

Counted, not sampled: after every operation of torch the sizes of all storages that it made and
that are still alive are summed. Parameters and data, which all ways share, are not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from neuro_eqprop.activations import LINEAR, TANH
from neuro_eqprop.architectures import layered, looped
from neuro_eqprop.architectures.registry import MODELS
from neuro_eqprop.claims.claim import Json
from neuro_eqprop.claims.experiments.backprop_mlp import twin
from neuro_eqprop.claims.experiments.common import begin
from neuro_eqprop.data import Dataset, load_digits, one_hot
from neuro_eqprop.experiments.config import Study, adapt
from neuro_eqprop.initialise import initialise
from neuro_eqprop.networks import Network
from neuro_eqprop.ops.torch import TorchOps
from neuro_eqprop.rate.field import field
from neuro_eqprop.schedules import three_phase
from neuro_eqprop.solve import GaussSeidel, Stop, solve
from neuro_eqprop.training.config import Batch
from neuro_eqprop.training.relax import SWEEPS, relax
from neuro_eqprop.training.rules.hebbian import hebbian
from neuro_eqprop.training.train import start_state, train_batch

INPUTS, CLASSES = 64, 10


class Live(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Watches which storages live."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.known: dict[int, tuple[StorageWeakRef, int]] = {}
        self.peak = 0

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        """Do the operation, then count."""
        out = func(*args, **(kwargs or {}))
        given = {id_of(t) for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)}
        self.known = {k: v for k, v in self.known.items() if not v[0].expired()}  # type: ignore[no-untyped-call]
        for made in tree_leaves(out):
            # What an operation was given and returns, as a view does, is not new.
            if isinstance(made, torch.Tensor) and id_of(made) not in given:
                storage = made.untyped_storage()
                weak = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
                self.known[id_of(made)] = (weak, storage.nbytes())
        self.peak = max(self.peak, sum(size for _, size in self.known.values()))
        return out


def id_of(tensor: torch.Tensor) -> int:
    """The identity of the memory behind a tensor."""
    return int(tensor.untyped_storage()._cdata)


@contextmanager
def counting() -> Iterator[Live]:
    """Count inside."""
    with Live() as live:
        yield live


def network_of(arguments: Mapping[str, Any]) -> Network:
    """A looped network, or a chain of so many hidden layers."""
    width, depth = arguments["width"], arguments["depth"]
    if arguments["model"] == "looped":
        return looped(INPUTS, width, CLASSES, hidden_rate=TANH, output_rate=LINEAR, bound=None)
    return layered(INPUTS, (width,) * depth, CLASSES, hidden_rate=TANH, output_rate=LINEAR)


def eqprop(network: Network, params: dict[str, torch.Tensor], x: Any, y: Any, steps: int) -> int:  # noqa: ANN401
    """The peak of one centered episode and its update."""
    schedule = three_phase(beta=0.22, free=steps, nudged=max(1, steps // 2))
    ops = TorchOps()
    with torch.no_grad(), counting() as live:
        phases = relax(field(ops, network, params, x), y, schedule, SWEEPS)
        states = {name: settled.state for name, settled in phases.items()}
        del phases
        hebbian(ops, network, x, states=states, schedule=schedule)
    return live.peak


def bptt(network: Network, params: dict[str, torch.Tensor], x: Any, y: Any, steps: int) -> int:  # noqa: ANN401
    """The peak of backpropagation through the same free steps."""
    leaves = {name: value.clone().requires_grad_() for name, value in params.items()}
    ops = TorchOps()
    with counting() as live:
        free = field(ops, network, leaves, x)
        stop = Stop(None, steps, measured=False)
        settled = solve(free, free.zero_state(), GaussSeidel(), stop)
        (0.5 * (settled.state[network.output.name] - y) ** 2).sum().backward()
    return live.peak


def feedforward(network: Network, x: Any, y: Any) -> int:  # noqa: ANN401
    """The peak of ordinary backpropagation through the twin; a loop is a second hidden layer."""
    first, *rest = (layer.size for layer in network.layers)
    looping = any(way.loops for way in network.connections)
    net = twin([first, *rest[:looping], *rest], "tanh", 0)
    with counting() as live:
        (0.5 * (net(x) - y) ** 2).sum().backward()
    return live.peak


def given(
    network: Network, batch: int, seed: int
) -> tuple[dict[str, torch.Tensor], torch.Tensor, torch.Tensor]:
    """Parameters, samples and targets."""
    ops, rng = TorchOps(), np.random.default_rng(seed)
    params = {name: ops.from_numpy(value) for name, value in initialise(network, rng).items()}
    x = ops.from_numpy(rng.random((batch, network.input.size)))
    classes = network.output.size
    return params, x, ops.from_numpy(np.eye(classes)[rng.integers(0, classes, batch)])


def growth(arguments: Mapping[str, Any], steps: Sequence[int]) -> dict[int, int]:
    """Bytes of EqProp for each number of settle steps."""
    network = network_of(arguments)
    params, x, y = given(network, arguments["batch"], 0)
    return {count: eqprop(network, params, x, y, count) for count in steps}


def saved(study: Study, data: Dataset) -> int:
    """Bytes that a batch of training saves for a backward pass."""
    network, recipe = study.network(data), study.recipe()
    at = start_state(network, recipe, begin(study, network), TorchOps())
    x, y = at.ops.from_numpy(data.train.x), at.ops.from_numpy(one_hot(data.train.y, data.classes))
    total = 0

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal total
        total += tensor.nbytes
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        train_batch(at, Batch(x, y, measured=True), recipe)
    return total


def saved_by_models() -> dict[str, int]:
    """What a batch saves for a backward pass, by model; EqProp alone, each by its own rule."""
    whole = load_digits()
    few = Dataset.from_splits(
        "few", whole.train.take(slice(16)), whole.test, whole.classes, whole.shape
    )
    sizes: dict[str, dict[str, object]] = {
        "conv": {"hidden": (4,)},
        "transformer": {"hidden": (8,), "patch": 4},
    }
    return {
        name: saved(adapt(Study(), {"model": name, **sizes.get(name, {"hidden": (8,)})}), few)
        for name in MODELS
    }


def peaks(arguments: Mapping[str, Any], seed: int) -> Json:
    """Bytes of each way."""
    network, steps = network_of(arguments), arguments["steps"]
    params, x, y = given(network, arguments["batch"], seed)
    return {
        "eqprop": eqprop(network, params, x, y, steps),
        "bptt": bptt(network, params, x, y, steps),
        "feedforward": feedforward(network, x, y),
        "parameters": int(sum(value.nbytes for value in params.values())),
    }
