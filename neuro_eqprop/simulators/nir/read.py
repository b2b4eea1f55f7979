"""Read a NIR file as a spiking network; a file without step semantics needs assumptions."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from neuro_eqprop.common.arrays import Array, type_name
from neuro_eqprop.files.hdf5 import create_hdf5
from neuro_eqprop.files.probe import ProbeError, allow_bytes, call_reader, memory_file, open_copy
from neuro_eqprop.files.read import one_line
from neuro_eqprop.simulators.nir.assume import Assumptions
from neuro_eqprop.simulators.nir.document import Document, Feed, NirError, damaged, library
from neuro_eqprop.simulators.nir.foreign import assumed
from neuro_eqprop.simulators.nir.write import KEY, SEMANTICS, VERSION, graph_of
from neuro_eqprop.spiking.ir import Reset, SpikingNetwork
from neuro_eqprop.spiking.serialize import rebuild, text
from neuro_eqprop.spiking.synapses import (
    DenseSynapses,
    DiagonalSynapses,
    SparseSynapses,
    Synapses,
    rebuild_synapses,
)

LARGEST = 2 * 2**30
"""Files that hold or declare more bytes than this are rejected before they are read."""
MOST_OBJECTS = 20_000
"""Largest number of groups and data sets in a file."""
SMALL = 1000
"""Number of values above which the copy of an array is compressed."""
DEEPEST = 12
"""Largest depth of nested groups."""


def from_nir(path: Path, assume: Assumptions | None = None) -> SpikingNetwork:
    """The network in a file; one written by other tools needs `assume`."""
    return read(path, assume).network


def read(path: Path, assume: Assumptions | None = None) -> Document:
    """The content of a file; `assume` is used only if the file states no semantics.

    HDF5 can hang or crash on a damaged file. So a child process reads it first and copies its data
    to a new file, which this process then reads.
    """
    if not path.is_file():
        raise NirError(f"{path} does not exist; `neuro-eqprop translate RUN --out {path}` makes it")
    library()
    settings = None if assume is None else {**asdict(assume), "reset": assume.reset.value}
    with memory_file() as copy:
        try:
            copy_in_child(path, str(copy), settings)
            return read_copy(copy, str(path), assume)
        except NirError:
            raise
        except ProbeError as error:
            if error.own:
                raise NirError(str(error)) from None
            raise unreadable(path, error) from error
        # The library raises errors of almost any type on a damaged file.
        except Exception as error:
            raise unreadable(path, error) from error


def copy_in_child(path: Path, copy: str, settings: Mapping[str, Any] | None) -> None:
    """Call `copy_checked` in a child process with a deadline; on Windows, in this process."""
    if os.name == "posix":
        reader = f"{__name__}:copy_checked"
        call_reader(path, reader, copy, str(path), settings, error=NirError)
    else:
        copy_checked(path, copy, str(path), settings)


def unreadable(path: Path, error: Exception) -> NirError:
    """The error for a file that `nir` or HDF5 cannot read."""
    return NirError(
        f"{path} is cut short, damaged or no NIR file ({one_line(error)}); write it again"
    )


def copy_checked(
    path: Path, copy: str, name: str, settings: Mapping[str, Any] | None = None
) -> None:
    """Copy the data of a file to a new one, and read that; errors call the file `name`."""
    import h5py

    serialization = import_module("nir.serialization")
    inspect(path, name)
    with h5py.File(path, "r") as file:
        content = serialization.hdf2dict(file["node"])
    # HDF5 cannot open an in-memory file by its path, but h5py accepts the open file.
    with open_copy(Path(copy)) as opened, create_hdf5(opened) as file:
        write_group(file.create_group("node"), content)
    assume = settings and Assumptions(**{**settings, "reset": Reset(settings["reset"])})
    read_copy(Path(copy), name, assume or None)


def write_group(group: Any, content: Mapping[str, Any]) -> None:  # noqa: ANN401
    """Write nested dictionaries of arrays, numbers and text."""
    import h5py

    for name, value in content.items():
        if isinstance(value, Mapping):
            write_group(group.create_group(name), value)
        elif isinstance(value, str) or np.asarray(value).dtype.kind == "O":
            group.create_dataset(name, data=value, dtype=h5py.string_dtype())
        else:
            large = np.size(value) > SMALL
            group.create_dataset(name, data=value, compression="lzf" if large else None)


def read_copy(path: Path, name: str, assume: Assumptions | None) -> Document:
    """The content of a file that this package has copied; errors call it `name`."""
    nir = library()
    with path.open("rb") as file:
        graph = nir.read(file, type_check=False)
    if not isinstance(graph, nir.NIRGraph):
        raise NirError(f"{name} holds a single node, not a graph")
    return read_graph(graph, name, assume)


def read_graph(graph: Any, name: str, assume: Assumptions | None = None) -> Document:  # noqa: ANN401
    """The content of a NIR graph; errors begin with `name`."""
    if not hasattr(graph, "metadata"):
        raise NirError(f"{name} is {type_name(graph)}; give a .nir file or a nir.NIRGraph")
    try:
        if KEY in graph.metadata:
            return document_of(graph)
        if assume is None:
            raise NirError(
                "it does not say how it is stepped (NIR leaves open what delay an edge has, what "
                "dt is and how a spike resets); say what to assume, or have it written by "
                "`neuro-eqprop translate`"
            )
        return assumed(graph, assume)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        reason = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise NirError(f"{name}: {one_line(reason)}") from error


def inspect(path: Path, name: str) -> None:
    """Raise NirError for a file that declares too much data, or data that NIR does not have."""
    import h5py

    if path.stat().st_size > LARGEST:
        raise NirError(f"{name} is larger than {LARGEST} bytes")
    if damaged(path.read_bytes()):
        raise NirError(f"{name} is damaged: its bytes are not those written; write it again")
    declared, seen = 0, 0
    with h5py.File(path, "r") as file:
        waiting = [(file, 0)]
        while waiting:
            group, depth = waiting.pop()
            for key in group:
                seen += 1
                if seen > MOST_OBJECTS or depth > DEEPEST:
                    raise NirError(f"{name} has more nodes or nested groups than are allowed")
                if not isinstance(group.get(key, getlink=True), h5py.HardLink):
                    raise NirError(f"{name}: {key!r} leads out of the file")
                item = group[key]
                if isinstance(item, h5py.Group):
                    waiting.append((item, depth + 1))
                    continue
                declared += bytes_of(name, key, item)
                if declared > LARGEST:
                    raise NirError(f"{name}: {key!r} has shape {item.shape}, which is too large")
    allow_bytes(declared)


def bytes_of(name: str, key: str, data: Any) -> int:  # noqa: ANN401
    """Memory of a data set, in bytes."""
    import h5py

    if not isinstance(data, h5py.Dataset) or data.is_virtual or data.external:
        raise NirError(f"{name}: {key!r} leads out of the file")
    text = h5py.check_string_dtype(data.dtype) is not None
    if not text and data.dtype.kind not in "biufS":
        raise NirError(f"{name}: {key!r} is of type {data.dtype}, neither numbers nor text")
    return int(data.size or 0) * max(int(data.dtype.itemsize), 8)


def document_of(graph: Any) -> Document:  # noqa: ANN401
    """The document in the metadata and node weights; raises NirError if they disagree."""
    meta = graph.metadata[KEY]
    version = int(meta["version"])
    if version != VERSION:
        raise NirError(f"its semantics are version {version}, this one reads {VERSION}")
    said = json.loads(text(meta["description"]))
    if said["semantics"] != SEMANTICS:
        raise NirError(f"its semantics are {said['semantics']!r}, not {SEMANTICS!r}")
    network = rebuild(
        said,
        [numbers(meta["bias"][p["node"]], "bias") for p in said["populations"]],
        [synapses(graph, p) for p in said["projections"]],
    )
    feeds = tuple(Feed(text(f["target"]), synapses(graph, f)) for f in said["feeds"])
    document = Document(network, feeds, dict(said["notes"]))
    agree(graph, graph_of(document))
    return document


def agree(graph: Any, meant: Any) -> None:  # noqa: ANN401
    """Raise NirError if nodes or edges differ from the description."""
    if set(graph.nodes) != set(meant.nodes) or set(graph.edges) != set(meant.edges):
        raise NirError("its nodes and edges are not those its metadata describe")
    for name, node in graph.nodes.items():
        mine, right = node.to_dict(), meant.nodes[name].to_dict()
        keys = set(right) - {"metadata"}
        if set(mine) - {"metadata"} != keys or not all(
            np.array_equal(mine[key], right[key]) for key in keys
        ):
            raise NirError(f"its node {name!r} and its metadata contradict each other")


def synapses(graph: Any, said: Mapping[str, Any]) -> Synapses:  # noqa: ANN401
    """The synapses of a node, as the metadata describe them."""
    name, settings = text(said["node"]), said.get("synapses", {"kind": DenseSynapses.kind})
    node, kind = graph.nodes[name], text(settings["kind"])
    if kind == DiagonalSynapses.kind:
        return DiagonalSynapses(numbers(node.scale, name))
    weight = numbers(node.weight, name)
    if kind == SparseSynapses.kind:
        stored = graph.metadata[KEY]["sparse"][name]
        places = {key: numbers(stored[key], key).astype(np.int64) for key in ("indptr", "indices")}
        rows = np.repeat(np.arange(len(weight)), np.diff(places["indptr"]))
        arrays = {**places, "data": weight[rows, places["indices"]]}
    else:
        arrays = {"kernel": weight, "weight": weight}
    return rebuild_synapses(kind, settings, arrays)


def numbers(value: Any, name: str) -> Array:  # noqa: ANN401
    """An array of floats."""
    array = np.asarray(value)
    if array.dtype.kind not in "iuf":
        raise NirError(f"{name!r} holds {array.dtype}, not numbers")
    return np.ascontiguousarray(array, dtype=np.float64)
