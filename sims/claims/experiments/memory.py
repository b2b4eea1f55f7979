"""Peak memory of one training step by EqProp, BPTT and feed-forward backpropagation.

After every operation of torch the sizes of all new storages that are still alive are summed.
Parameters and data, which all methods share, are not counted.
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

from neuro_eqprop.data import Dataset, load_digits, one_hot
from neuro_eqprop.dynamics.field import field
from neuro_eqprop.dynamics.schedules import three_phase
from neuro_eqprop.dynamics.solve import GaussSeidel
from neuro_eqprop.networks.activations import LINEAR, TANH
from neuro_eqprop.networks.architectures import layered, looped
from neuro_eqprop.networks.architectures.registry import MODELS
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.gradients import bptt_gradient
from neuro_eqprop.training.loop import TrainingLoop
from neuro_eqprop.training.rules.base import Batch
from neuro_eqprop.training.rules.hebbian import hebbian
from neuro_eqprop.training.rules.phases import SWEEPS, relax
from neuro_eqprop.training.study import Study, adapt
from sims.claims.claim import Json
from sims.claims.experiments.backprop_mlp import perceptron

INPUTS, CLASSES = 64, 10


class LiveStorages(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Tracks the storages that are alive, and the peak of their total size."""

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
        """Run the operation, then count the storages that are alive."""
        out = func(*args, **(kwargs or {}))
        given = {storage_id(t) for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)}
        self.known = {k: v for k, v in self.known.items() if not v[0].expired()}  # type: ignore[no-untyped-call]
        for made in tree_leaves(out):
            # An output that shares the storage of an argument, such as a view, is not new.
            if isinstance(made, torch.Tensor) and storage_id(made) not in given:
                storage = made.untyped_storage()
                weak = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
                self.known[storage_id(made)] = (weak, storage.nbytes())
        self.peak = max(self.peak, sum(size for _, size in self.known.values()))
        return out


def storage_id(tensor: torch.Tensor) -> int:
    """Address of the storage of a tensor."""
    return int(tensor.untyped_storage()._cdata)


@contextmanager
def count_storages() -> Iterator[LiveStorages]:
    """Count the storages created inside the context."""
    with LiveStorages() as live:
        yield live


def network_of(arguments: Mapping[str, Any]) -> Network:
    """A looped network, or a chain of `depth` hidden layers."""
    width, depth = arguments["width"], arguments["depth"]
    if arguments["model"] == "looped":
        return looped(INPUTS, width, CLASSES, hidden_rate=TANH, output_rate=LINEAR, bound=None)
    return layered(INPUTS, (width,) * depth, CLASSES, hidden_rate=TANH, output_rate=LINEAR)


def eqprop(network: Network, params: dict[str, torch.Tensor], x: Any, y: Any, steps: int) -> int:  # noqa: ANN401
    """Peak bytes of one batch by centered EqProp."""
    schedule = three_phase(beta=0.22, free=steps, nudged=max(1, steps // 2))
    ops = TorchOps()
    with torch.no_grad(), count_storages() as live:
        phases = relax(field(ops, network, params, x), y, schedule, SWEEPS)
        states = {name: settled.state for name, settled in phases.items()}
        del phases
        hebbian(ops, network, x, states=states, schedule=schedule)
    return live.peak


def bptt(network: Network, params: dict[str, torch.Tensor], x: Any, y: Any, steps: int) -> int:  # noqa: ANN401
    """Peak bytes of backpropagation through the same free steps."""
    with count_storages() as live:
        bptt_gradient(
            TorchOps(),
            network,
            params,
            Batch(x, y, measured=False),
            solver=GaussSeidel(),
            steps=steps,
        )
    return live.peak


def feedforward(network: Network, x: Any, y: Any) -> int:  # noqa: ANN401
    """Peak bytes of backpropagation through a perceptron; a loop is a second hidden layer."""
    first, *rest = (layer.size for layer in network.layers)
    looping = any(c.loops for c in network.connections)
    net = perceptron([first, *rest[:looping], *rest], "tanh", 0)
    with count_storages() as live:
        (0.5 * (net(x) - y) ** 2).sum().backward()
    return live.peak


def random_batch(
    network: Network, batch: int, seed: int
) -> tuple[dict[str, torch.Tensor], torch.Tensor, torch.Tensor]:
    """Initial parameters, random samples and targets."""
    ops, rng = TorchOps(), np.random.default_rng(seed)
    params = {name: ops.from_numpy(value) for name, value in initialize(network, rng).items()}
    x = ops.from_numpy(rng.random((batch, network.input.size)))
    classes = network.output.size
    return params, x, ops.from_numpy(np.eye(classes)[rng.integers(0, classes, batch)])


def growth(arguments: Mapping[str, Any], steps: Sequence[int]) -> dict[int, int]:
    """Peak bytes of EqProp for each number of free steps."""
    network = network_of(arguments)
    params, x, y = random_batch(network, arguments["batch"], 0)
    return {count: eqprop(network, params, x, y, count) for count in steps}


def saved_bytes(study: Study, data: Dataset) -> int:
    """Bytes that autograd saves for a backward pass in a training step."""
    loop = TrainingLoop(study, study.network(data), data)
    x, y = (
        loop.ops.from_numpy(data.train.x),
        loop.ops.from_numpy(one_hot(data.train.y, data.classes)),
    )
    total = 0

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal total
        total += tensor.nbytes
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        loop.advance(Batch(x, y, measured=True))
    return total


def saved_by_models() -> dict[str, int]:
    """`saved_bytes` of every model with its default rule."""
    digits = load_digits()
    few = Dataset.from_splits(
        "few", digits.train.take(slice(16)), digits.test, digits.classes, digits.shape
    )
    sizes: dict[str, dict[str, object]] = {
        "conv": {"hidden": (4,)},
        "transformer": {"hidden": (8,), "patch": 4},
        "sparse": {"hidden": (8,), "fan_in": 4},
    }
    ids = np.random.default_rng(0).integers(1, 9, (16, 5)).astype(float)
    sentences = Dataset(ids, np.arange(16) % 2, ids, np.arange(16) % 2, vocabulary=9)
    return {
        name: saved_bytes(
            adapt(Study(), {"model": name, **sizes.get(name, {"hidden": (8,)})}),
            sentences if name == "text" else few,
        )
        for name in MODELS
    }


def peaks(arguments: Mapping[str, Any], seed: int) -> Json:
    """Peak bytes of a training step by each method."""
    network, steps = network_of(arguments), arguments["steps"]
    params, x, y = random_batch(network, arguments["batch"], seed)
    return {
        "eqprop": eqprop(network, params, x, y, steps),
        "bptt": bptt(network, params, x, y, steps),
        "feedforward": feedforward(network, x, y),
        "parameters": int(sum(value.nbytes for value in params.values())),
    }
