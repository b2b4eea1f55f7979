"""Networks in the HDF5 format that lava-dl's `netx.hdf5.Network` loads.

netx runs sigma-delta layers in fixed point: weights are multiples of 1/64, messages of
2^-MESSAGE_EXP, states of 2^-(MESSAGE_EXP + 6). A network without feedback becomes one `dense` layer
per layer; any other network becomes one `dense_rec` layer with all units. netx applies relu to
every unit, so a unit that clips on both sides becomes two (see `backends.lava.native.plan`), and
`out` has all units of the last layer. netx does not reset sigma-delta units, so a sample is sent as
its difference to the previous sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import numpy.typing as npt

from neuro_eqprop.common.arrays import Array, Ints
from neuro_eqprop.files.hdf5 import create_hdf5
from neuro_eqprop.files.write import atomic
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.lava.native.plan import (
    StockEdge,
    StockLayer,
    StockPlan,
    biases,
    expanded,
    integers,
    unit_count,
)

WEIGHT_EXP, STATE_EXP, SPIKE_EXP = 6, 6, 6
"""Exponents that netx fixes or uses by default."""
MESSAGE_EXP = 14
MESSAGE_BITS = 24
NINE_BITS, LARGEST = 127, 254
"""Integer weight from which netx needs nine bits, and the largest one that it keeps."""


README = """Messages of `out` (units, samples * steps) to predicted classes:

import h5py, numpy as np

def decode(path, messages, steps):
    with h5py.File(path) as file:
        a = dict(file.attrs)
    state = np.cumsum(messages, axis=1) / 2.0 ** a["message_exp"]
    late = state.reshape(len(state), -1, steps)[..., -max(1, steps // 4):].mean(axis=2)
    size, first = int(a["classes"]), int(a["output_first"])
    parts = late[first : first + size * len(a["output_signs"])].reshape(-1, size, late.shape[1])
    return np.tensordot(a["output_signs"], parts, 1).argmax(axis=0)

A sample is sent once, in its first step, as its difference to the sample before, in integer
multiples of 2^-message_exp.
"""
"""The attribute `readme` of a file."""


@dataclass(frozen=True)
class NetxCoding:
    """Encodes samples for a netx network and decodes its messages."""

    features: int
    units: int
    """Number of units of `out`."""
    output: StockLayer
    first: int
    """Index of the first unit of the output layer in `out`."""

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the file that say where its outputs are, and how to read them."""
        signs = [sign for sign, _ in self.output.corners] or [1.0]
        low = self.output.low if np.isfinite(self.output.low) else 0.0
        return {
            "classes": self.output.size,
            "output_first": self.first,
            "output_signs": np.array(signs),
            "output_low": low,
            "message_exp": MESSAGE_EXP,
            "readme": README,
        }

    def encode(self, x: npt.ArrayLike, steps: int) -> Ints:
        """Samples (samples, features) as the data (features, samples * steps) of a RingBuffer."""
        rows = np.atleast_2d(np.asarray(x, dtype=np.float64))
        if rows.shape[1] != self.features:
            raise ValueError(f"x has {rows.shape[1]} features; the network takes {self.features}")
        sent = np.diff(integers(rows, MESSAGE_EXP), axis=0, prepend=0)
        data = np.zeros((self.features, len(rows) * steps), dtype=np.int64)
        data[:, ::steps] = sent.T
        return data

    def decode(self, messages: npt.ArrayLike, steps: int) -> Ints:
        """Predicted classes (samples,) from messages (units, samples * steps) of `out`."""
        return np.asarray(self.rates(messages, steps).argmax(axis=1))

    def rates(self, messages: npt.ArrayLike, steps: int) -> Array:
        """Rates of the output (samples, classes)."""
        state = np.ldexp(np.cumsum(np.asarray(messages, dtype=np.float64), axis=1), -MESSAGE_EXP)
        late = state.reshape(len(state), -1, steps)[..., -max(1, steps // 4) :].mean(axis=2)
        size, total = self.output.size, 0.0
        for number, (sign, _) in enumerate(self.output.corners or ((1.0, 0.0),)):
            start = self.first + number * size
            total = total + sign * late[start : start + size]
        low = self.output.low if np.isfinite(self.output.low) else 0.0
        return np.asarray(low + total).T


def write_netx(plan: StockPlan, path: str | Path) -> NetxCoding:
    """Write a graded network as a netx file; returns the coding of its input and output.

    Load it with `netx.hdf5.Network(net_config=path, input_message_bits=24)`.
    """
    if not plan.graded:
        raise BackendError("a netx file can hold only sigma-delta layers: use code 'graded'")
    order = [layer.name for layer in plan.layers]
    chain = [plan.input, *order]
    forward = all(chain.index(e.target) == chain.index(e.source) + 1 for e in plan.edges)
    with atomic(Path(path)) as temporary, create_hdf5(temporary) as file:
        file.attrs["made_by"] = "neuro_eqprop"
        entry = file.create_group("layer/0")
        entry["type"], entry["shape"] = np.bytes_("input"), np.array([plan.features])
        if forward:
            for number, layer in enumerate(plan.layers, start=1):
                edge = next(e for e in plan.edges if e.target == layer.name)
                dense(file, number, "dense", [layer], plan, weight=block(plan, [layer], [edge]))
        else:
            fed = [e for e in plan.edges if e.source == plan.input]
            inner = [e for e in plan.edges if e.source != plan.input]
            weight = block(plan, plan.layers, fed)
            back = block(plan, plan.layers, inner, plan.layers)
            dense(file, 1, "dense_rec", plan.layers, plan, weight=weight, weight_rec=back)
        coding = coding_of(plan, plan.layers[-1:] if forward else plan.layers)
        file.attrs.update(coding.attributes)
    return coding


def coding_of(plan: StockPlan, last: Sequence[StockLayer]) -> NetxCoding:
    """The coding of a network whose last netx layer holds these layers."""
    sizes = [unit_count(plan, layer) for layer in last]
    first = sum(sizes[: [layer.name for layer in last].index(plan.output)])
    return NetxCoding(plan.features, sum(sizes), plan[plan.output], first)


def block(
    plan: StockPlan,
    targets: Sequence[StockLayer],
    edges: Sequence[StockEdge],
    sources: Sequence[StockLayer] = (),
) -> Array:
    """The weights of several edges as one matrix over the relu units of all layers."""
    rows, columns = (
        np.cumsum([0, *(unit_count(plan, layer) for layer in layers)])
        for layers in (targets, sources)
    )
    target_names, source_names = [t.name for t in targets], [s.name for s in sources]
    width = columns[-1] if sources else expanded(plan, edges[0]).shape[1]
    found = np.zeros((rows[-1], width))
    for edge in edges:
        weight = expanded(plan, edge)
        dense_weight = weight if isinstance(weight, np.ndarray) else weight.toarray()
        left = columns[source_names.index(edge.source)] if sources else 0
        top = rows[target_names.index(edge.target)]
        found[top : top + len(dense_weight), left : left + dense_weight.shape[1]] += dense_weight
    return found


def weights(weight: Array, largest: float) -> Ints:
    """Integer weights in the format of netx; even integers if `largest` needs nine bits."""
    if np.ldexp(largest, WEIGHT_EXP) < NINE_BITS:
        return integers(weight, WEIGHT_EXP)
    return np.clip(2 * integers(weight, WEIGHT_EXP - 1), -LARGEST, LARGEST)


def dense(
    file: h5py.File,
    number: int,
    kind: str,
    layers: Sequence[StockLayer],
    plan: StockPlan,
    **matrices: Array,
) -> None:
    """Write a dense layer of sigma-delta units; `matrices` are weights under their netx names."""
    group = file.create_group(f"layer/{number}")
    bias = np.concatenate([biases(plan, layer) for layer in layers])
    largest = max(float(np.abs(matrix).max()) for matrix in matrices.values())
    for name, matrix in matrices.items():
        group[name] = weights(matrix, largest)
    # netx shifts bias and threshold by SPIKE_EXP + STATE_EXP.
    group["type"], group["shape"] = np.bytes_(kind), np.array([len(bias)])
    group["bias"] = integers(bias, MESSAGE_EXP - SPIKE_EXP)
    neuron = group.create_group("neuron")
    neuron["type"] = np.bytes_("SDNN")
    threshold = integers(np.array([plan.threshold]), MESSAGE_EXP - SPIKE_EXP)
    neuron["vThMant"] = int(max(1, threshold[0]))


def simulate_netx(path: str | Path, data: Ints) -> Ints:
    """Messages (units, steps) that netx sends for the data (features, steps) of `encode`.

    It repeats the arithmetic of Lava's fixed-point `SigmaDelta` and `Dense` in NumPy: a message
    arrives in the next step, without its lowest STATE_EXP bits.
    """
    with h5py.File(path) as file:
        groups = [file[f"layer/{k}"] for k in range(1, len(file["layer"]))]
        names = ("weight", "bias", "weight_rec")
        given = [{n: np.asarray(g[n][()]) for n in names if n in g} for g in groups]
        thresholds = [int(group["neuron/vThMant"][()]) for group in groups]
    shift = SPIKE_EXP + STATE_EXP
    state = [np.zeros((3, len(each["bias"])), dtype=np.int64) for each in given]
    sent = [np.zeros(data.shape[0], dtype=np.int64), *(s[0] for s in state)]
    found = np.zeros((len(given[-1]["bias"]), data.shape[1]), dtype=np.int64)
    for step in range(data.shape[1]):
        before, sent = sent, [data[:, step]]
        for k, each in enumerate(given):
            sigma, act, residue = state[k]
            arriving = each["weight"] @ before[k]
            if "weight_rec" in each:
                arriving = arriving + each["weight_rec"] @ before[k + 1]
            sigma = sigma + arriving
            new = np.maximum(sigma + (each["bias"] << shift), 0)
            change = new - act + residue
            message = np.where(np.abs(change) >= thresholds[k] << shift, change, 0)
            state[k] = np.stack([sigma, new, change - message])
            sent.append(message >> STATE_EXP)
        found[:, step] = sent[-1]
    return found
