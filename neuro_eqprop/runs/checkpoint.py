"""A trained network in one safetensors file, without pickle.

The metadata of the file holds the network as JSON, its tensors the parameters by name. Equal
contents give equal bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.files.read import one_line, parse_json
from neuro_eqprop.files.write import write_bytes
from neuro_eqprop.networks.activations import Activation
from neuro_eqprop.networks.network import Connection, Cost, Layer, Network, Role, check_parameters
from neuro_eqprop.networks.operators.serialize import from_json, to_json
from neuro_eqprop.training.trained import TRAINED, TrainedNetwork

SCHEMA = "neuro_eqprop.checkpoint/1"
LARGEST = 2 * 2**30
"""Largest size of a file in bytes; larger ones are refused before they are read."""

DAMAGE = (KeyError, TypeError, ValueError, AttributeError, RecursionError, ArithmeticError)
"""Errors that reading a damaged file raises."""


class CheckpointError(ValueError):
    """A checkpoint cannot be read; the message says why."""


def describe(network: Network) -> dict[str, Any]:
    """The network as plain JSON."""
    layers = [
        {
            "name": layer.name,
            "shape": list(layer.shape),
            "role": layer.role.value,
            "stiffness": layer.stiffness,
            "shared": None if layer.shared is None else list(layer.shared),
            "activation": layer.activation.to_json(),
        }
        for layer in network.layers
    ]
    connections = [
        {
            "source": c.source,
            "target": c.target,
            "operator": to_json(c.operator),
            "symmetric": c.symmetric,
            "bound": c.bound,
            "label": c.label,
        }
        for c in network.connections
    ]
    return {"layers": layers, "connections": connections, "cost": network.cost.value}


def rebuild(description: Mapping[str, Any]) -> Network:
    """The network that `describe` has written."""
    layers = tuple(
        Layer(
            str(t["name"]),
            tuple(int(n) for n in t["shape"]),
            Activation.from_json(t["activation"]),
            Role(t["role"]),
            float(t["stiffness"]),
            None if t.get("shared") is None else tuple(int(n) for n in t["shared"]),
        )
        for t in description["layers"]
    )
    connections = tuple(
        Connection(
            str(t["source"]),
            str(t["target"]),
            from_json(t["operator"]),
            bool(t["symmetric"]),
            t["bound"],
            str(t.get("label", "")),
        )
        for t in description["connections"]
    )
    return Network(layers, connections, Cost(description.get("cost", Cost.SQUARED.value)))


def save(
    path: Path,
    model: TrainedNetwork,
    memory: Mapping[str, Array] | None = None,
    *,
    study: str | None = None,
) -> None:
    """Write a model and, while it trains, the optimizer's state, atomically.

    `study` is the digest of the settings beside the file.
    """
    write_bytes(path, encode(model, memory, study=study))


def digest(model: TrainedNetwork) -> str:
    """The SHA-256 of the file that `save` writes."""
    return sha256(encode(model)).hexdigest()


def encode(
    model: TrainedNetwork, memory: Mapping[str, Array] | None = None, *, study: str | None = None
) -> bytes:
    """The bytes of the file that `save` writes."""
    from safetensors.numpy import save as to_bytes

    tensors = {f"params/{n}": np.ascontiguousarray(v) for n, v in model.params.items()}
    tensors |= {f"memory/{n}": np.ascontiguousarray(v) for n, v in (memory or {}).items()}
    header = {"schema": SCHEMA, "network": describe(model.network), "epoch": model.epochs}
    header["sha256"] = content_digest(header, tensors)
    if study is not None:
        header["study_sha256"] = study
    if model.provenance != TRAINED:
        header["provenance"] = model.provenance
    # One key only: the order of several is not kept, and equal contents must give equal bytes.
    metadata = {"neuro_eqprop": json.dumps(header, sort_keys=True)}
    return to_bytes(dict(sorted(tensors.items())), metadata)


def content_digest(header: Mapping[str, Any], tensors: Mapping[str, Array]) -> str:
    """The SHA-256 of the network, the epoch and all tensors of a file."""
    described = {key: header.get(key) for key in ("network", "epoch")}
    found = sha256(json.dumps(described, sort_keys=True).encode())
    for name, values in sorted(tensors.items()):
        found.update(f"{name} {values.dtype.str} {values.shape}\n".encode())
        found.update(np.ascontiguousarray(values).tobytes())
    return found.hexdigest()


def stored_study(path: Path) -> str | None:
    """The digest of the settings that a model was written with; None in files without one."""
    stored = read_header(path).get("study_sha256")
    return None if stored is None else str(stored)


def check_memory(
    network: Network, params: Mapping[str, Array], memory: Mapping[str, Array]
) -> None:
    """Raise ValueError unless every state of the optimizer fits a parameter and is finite.

    It fits if it is a scalar, has the shape of the parameter, is a row or column of it, or has the
    shape of one sample of the source layer.
    """
    taken = {c.name: (1, *network[c.source].shape) for c in network.connections}
    for entry, value in memory.items():
        name = entry.rsplit("/", 1)[0]
        fitting = {(), (1,), taken.get(name)} if name in params else set()
        own = name in params and len(value.shape) == params[name].ndim
        along = own and all(
            n in (1, size) for n, size in zip(value.shape, params[name].shape, strict=True)
        )
        if not along and value.shape not in fitting:
            raise ValueError(f"memory {entry!r} of shape {value.shape} fits no parameter")
        if not np.isfinite(value).all():
            raise ValueError(f"memory {entry!r} holds values that are not finite")


def load(path: Path) -> TrainedNetwork:
    """The model in a file, checked in full."""
    return load_training(path)[0]


def load_training(path: Path) -> tuple[TrainedNetwork, dict[str, Array]]:
    """The model in a file and the optimizer's state beside it, both checked."""
    header, tensors = read_tensors(path)
    try:
        if header["schema"] != SCHEMA:
            raise ValueError(f"its schema is {header['schema']!r}, this version reads {SCHEMA!r}")
        network = rebuild(header["network"])
        params, memory = (
            {n.split("/", 1)[1]: v for n, v in tensors.items() if n.startswith(f"{kind}/")}
            for kind in ("params", "memory")
        )
        check_parameters(network, params)
        check_memory(network, params, memory)
        epochs, provenance = header["epoch"], str(header.get("provenance", TRAINED))
        if not (isinstance(epochs, int) and epochs >= 0):
            raise ValueError(f"{epochs!r} is no number of epochs")
        return TrainedNetwork(network, params, epochs, provenance=provenance), memory
    except DAMAGE as error:
        raise CheckpointError(f"{path} does not describe a network: {error}") from error


def read_tensors(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """The metadata and the tensors of a file that this package wrote, checked by their digest."""
    from safetensors import SafetensorError, safe_open

    header = read_header(path)
    try:
        with safe_open(path, framework="numpy") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, *DAMAGE) as error:
        raise unreadable(path, error) from error
    # Files of version 0.1 have no digest.
    if "sha256" in header and header["sha256"] != content_digest(header, tensors):
        raise CheckpointError(
            f"{path} is damaged: its contents are not those that were written (SHA-256); restore "
            f"it from a copy, or train again"
        )
    return header, tensors


def unreadable(path: Path, reason: object) -> CheckpointError:
    """The error for a file that is no safetensors file."""
    return CheckpointError(
        f"{path} is cut short or no safetensors file ({one_line(reason)}); train again or restore "
        f"a copy"
    )


def read_header(path: Path) -> dict[str, Any]:
    """The metadata of a file that this package wrote."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise CheckpointError(f"{path} does not exist; `neuro-eqprop train` makes one")
    if path.stat().st_size > LARGEST:
        raise CheckpointError(f"{path} is larger than {LARGEST} bytes")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
    except (SafetensorError, OSError, *DAMAGE) as error:
        raise unreadable(path, error) from error
    if "neuro_eqprop" not in metadata:
        raise CheckpointError(f"{path} is a safetensors file of another program")
    header = parse_json(
        metadata["neuro_eqprop"], f"{path} does not describe a network", CheckpointError
    )
    if not isinstance(header, dict):
        raise CheckpointError(f"{path} does not describe a network: its header is no JSON object")
    return header
