"""An equilibrium network made only of Lava's own processes, as one hierarchical process.

Graded messages: the activation of a layer that clips its drive d to low..high is

    clip(d, low, high) = low + relu(d - low) - relu(d - high)

so n units become 2n `SigmaDelta` units in RELU mode, whose messages the next layer reads with
weights W and -W. Without bounds (a linear output) n units in UNIT mode suffice.

Binary spikes: `ATRLIF` with theta_0 = 1/2 and without decays integrates its drive in v, fires when
v - r reaches 1/2, and then adds 1 to r. This is a neuron with threshold 1 and reset by subtraction
that starts at half its threshold and has neither floor nor ceiling.

In fixed point, weights are integers of 8 bits times a power of two, graded messages are
multiples of 2^-message_exp, and states of 2^-(message_exp + state_exp). This module needs only
lava-nc, NumPy and SciPy.
"""

# No `from __future__ import annotations`: Lava executes this file under another module name, where
# dataclasses could not resolve annotations given as text.

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from lava.magma.core.decorator import implements, requires, tag
from lava.magma.core.process.ports.ports import InPort, OutPort
from lava.magma.core.process.process import AbstractProcess
from lava.magma.core.process.variable import Var
from lava.magma.core.resources import CPU
from lava.magma.core.sync.protocols.loihi_protocol import LoihiProtocol
from lava.proc.atrlif.process import ATRLIF
from lava.proc.dense.process import Dense
from lava.proc.io.reset import Reset
from lava.proc.sdn.process import ActivationMode, SigmaDelta
from lava.proc.sparse.process import Sparse
from scipy.sparse import csr_matrix, hstack, identity, issparse

from neuro_eqprop.simulators.lava.native.network import (
    ExportedNetwork,
    ExportedNetworkModel,
    classes,
    message_rows,
    sample_rows,
)
from neuro_eqprop.simulators.lava.native.plan import (
    MOST,
    SPARSE_BELOW,
    Array,
    Edge,
    Layer,
    Plan,
    Row,
    Scale,
    Weight,
    biases,
    expanded,
    identifier,
    integers,
    port_name,
    scale_of,
    unit_count,
)


class StockNetwork(ExportedNetwork):
    """A network of `lava.proc` processes with ports `inp`, `out` and `s_<layer>`.

    `inp` takes one value for each feature in each step (see `encode`), `out` sends messages or
    spikes of the output layer. Weights, biases and states are Vars under the names that
    `processes()` lists.
    """

    def __init__(self, plan: Plan, name: str | None = None) -> None:
        super().__init__(plan=plan, name=name)
        self.plan, self.scale = plan, scale_of(plan)
        self.inp = InPort(shape=(plan.features,))
        self.out = OutPort(shape=(plan[plan.output].size,))
        for layer in plan.layers:
            setattr(self, port_name(layer.name), OutPort(shape=(layer.size,)))
            for state in exposed_states(plan):
                shape = (unit_count(plan, layer),)
                setattr(self, f"{state}_{identifier(layer.name)}", Var(shape=shape))
        self._post_init()

    @property
    def tag(self) -> str:
        """The tag of a run configuration: `Loihi2SimCfg(select_tag=net.tag)`."""
        return "floating_pt" if self.plan.bits is None else "fixed_pt"

    def processes(self) -> tuple[Row, ...]:
        """The leaf processes: name, class, whether it is Lava's own, units, synapses."""
        found = []
        for layer in self.plan.layers:
            units = unit_count(self.plan, layer)
            kind = "SigmaDelta" if self.plan.graded else "ATRLIF"
            found.append(Row(layer.name, kind, True, units, 0))
        for edge in self.plan.edges:
            weight = expanded(self.plan, edge)
            count = int(weight.count_nonzero() if issparse(weight) else np.count_nonzero(weight))
            sparse = issparse(weight) or count < SPARSE_BELOW * weight.size
            kind = "Sparse" if sparse else "Dense"
            found.append(Row(f"{edge.source}->{edge.target}", kind, True, 0, count))
        if self.plan.reset_interval is not None:
            found.append(Row("reset between samples", "Reset", True, 0, 0))
        return tuple(found)

    def encode(self, x: npt.ArrayLike, steps: int) -> npt.NDArray[Any]:
        """Samples (samples, features) as the data (features, samples * steps) of a RingBuffer.

        Graded units sum their input, so each sample is sent once: as its difference to the previous
        sample if the units are not reset. Spiking units receive it in every step.
        """
        plan = self.plan
        rows = sample_rows(x, steps, features=plan.features, reset_interval=plan.reset_interval)
        if plan.graded:
            sent = rows if plan.reset_interval else np.diff(rows, axis=0, prepend=0 * rows[:1])
            data = np.zeros((plan.features, len(rows) * steps))
            data[:, ::steps] = sent.T
        else:
            data = np.repeat(rows.T, steps, axis=1)
        return data if plan.bits is None else integers(data, self.scale.message_exp)

    def rates(self, messages: npt.ArrayLike, steps: int) -> Array:
        """Rates (samples, units) from messages (units, samples * steps) of a port."""
        sent = message_rows(messages, steps)
        sent = sent.reshape(len(sent), -1, steps).transpose(1, 0, 2)
        if not self.plan.graded:
            return np.asarray(sent[..., steps // 4 :].mean(axis=2))
        sums = sent.cumsum(axis=2)
        if self.plan.reset_interval is None:  # states continue from the previous sample
            sums = (
                sums
                + np.concatenate([0 * sums[:1, :, -1], sums[:-1, :, -1].cumsum(axis=0)])[..., None]
            )
        late = sums[..., -max(1, steps // 4) :].mean(axis=2)
        return np.asarray(np.ldexp(late, -self.scale.message_exp))

    def decode(self, messages: npt.ArrayLike, steps: int) -> npt.NDArray[np.int64]:
        """Predicted classes (samples,) from the messages (classes, samples * steps) of `out`."""
        return classes(self.rates, messages, steps, self.out.shape[0])


class StockGraph(ExportedNetworkModel):
    """The neurons and synapses of a plan as sub-processes, with resets between samples."""

    cells: dict[str, Any]
    """The neurons by layer."""
    synapses: list[Any]
    """The synapses of each edge."""

    def build(self, plan: Plan, scale: Scale) -> None:
        """Make the sub-processes and connect them."""
        self.cells, self.synapses = {}, []
        for number, layer in enumerate(plan.layers):
            cell = self.keep(f"cells_{number}", neurons(plan, scale, layer))
            self.cells[layer.name] = cell
            self.reset(plan, f"cells_{number}", states_of(plan, cell))
        for number, edge in enumerate(plan.edges):
            conn = self.keep(f"edge_{number}", synapses(plan, scale, edge))
            conn.a_out.connect(self.cells[edge.target].a_in)
            if edge.source != plan.input:
                self.cells[edge.source].s_out.connect(conn.s_in)
            self.reset(plan, f"edge_{number}", [conn.a_buff])
            self.synapses.append(conn)

    def reset(self, plan: Plan, name: str, states: Sequence[Var]) -> None:
        """Set states to zero after every `reset_interval` steps."""
        for number, process in enumerate(resets(plan, states)):
            self.keep(f"{name}_reset_{number}", process)


@implements(proc=StockNetwork, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt", "fixed_pt")
class StockNetworkModel(StockGraph):
    """Sub-processes of a stock network, with its ports."""

    def __init__(self, proc: StockNetwork) -> None:
        super().__init__(proc)
        plan = proc.plan
        self.build(plan, proc.scale)
        for edge, conn in zip(plan.edges, self.synapses, strict=True):
            if edge.source == plan.input:
                proc.inp.connect(conn.s_in)
        for layer in plan.layers:
            cell = self.cells[layer.name]
            self.expose(plan, cell, layer, getattr(proc, port_name(layer.name)))
            if layer.name == plan.output:
                self.expose(plan, cell, layer, proc.out)
            for state in exposed_states(plan):
                getattr(proc, f"{state}_{identifier(layer.name)}").alias(getattr(cell, state))

    def expose(self, plan: Plan, cell: Any, layer: Layer, port: OutPort) -> None:  # noqa: ANN401
        """Connect a port to the messages of a layer, the signed sum over its relu units."""
        if not plan.graded or not layer.corners:
            cell.s_out.connect(port)
            return
        # Built sparse: a dense matrix would take gigabytes for a convolution of 18 432 units.
        sum_ = hstack([s * identity(layer.size) for s, _ in layer.corners], format="csr")
        conn = self.keep(f"{port.name}_sum", connection(sum_, plan, exponent=0, graded=True))
        cell.s_out.connect(conn.s_in)
        conn.a_out.connect(port)
        self.reset(plan, f"{port.name}_sum", [conn.a_buff])


def exposed_states(plan: Plan) -> tuple[str, ...]:
    """The Vars of a layer's neurons that the network exposes."""
    return ("bias", "sigma") if plan.graded else ("bias_mant", "v", "r")


def states_of(plan: Plan, cell: Any) -> list[Var]:  # noqa: ANN401
    """The Vars of a layer's neurons that are reset between samples."""
    return [cell.sigma, cell.act, cell.residue] if plan.graded else [cell.v, cell.r, cell.i]


def resets(plan: Plan, states: Sequence[Var]) -> list[Reset]:
    """Processes that set states to zero after every `reset_interval` steps."""
    found: list[Reset] = []
    if plan.reset_interval is None:
        return found
    for state in states:
        found.append(Reset(interval=plan.reset_interval, offset=plan.reset_interval - 1))
        found[-1].connect_var(state)
    return found


def neurons(plan: Plan, scale: Scale, layer: Layer) -> AbstractProcess:
    """The stock neurons of a layer."""
    if plan.graded:
        bias = biases(plan, layer)
        exponent = scale.message_exp + scale.state_exp
        if plan.bits is not None:
            bias = np.ldexp(integers(bias, exponent).astype(np.float64), -exponent)
        return SigmaDelta(
            shape=bias.shape,
            vth=plan.threshold,
            bias=bias,
            act_mode=ActivationMode.RELU if layer.corners else ActivationMode.UNIT,
            spike_exp=scale.message_exp,
            state_exp=scale.state_exp,
        )
    half: float | int = 0.5 if plan.bits is None else 1 << (scale.drive_exp - 1)
    mantissa: Any = layer.bias if plan.bits is None else integers(layer.bias, scale.drive_exp)
    return ATRLIF(
        shape=layer.bias.shape,
        theta=half,
        theta_0=half,
        theta_step=0,
        delta_i=1,
        delta_v=0,
        delta_theta=0,
        delta_r=0,
        bias_mant=mantissa,
        bias_exp=0 if plan.bits is None else 6,
    )


def synapses(plan: Plan, scale: Scale, edge: Edge) -> AbstractProcess:
    """The stock synapses of an edge."""
    graded = plan.graded or edge.source == plan.input
    weight = expanded(plan, edge)
    if plan.bits is None:
        return connection(weight, plan, exponent=0, graded=graded)
    fine = scale.weight_exp[edge.source, edge.target]
    if plan.graded:
        shift = scale.state_exp - fine
    else:
        shift = scale.drive_exp - fine - (scale.message_exp if graded else 0)
    return connection(nearest(weight, fine), plan, exponent=shift, graded=graded)


def nearest(weight: Weight, exponent: int) -> Weight:
    """8-bit integer weights, in multiples of 2^-exponent."""
    if issparse(weight):
        found = csr_matrix(weight)
        found.data = nearest(found.data, exponent).astype(np.float64)
        return found
    return np.clip(integers(weight, exponent), -MOST, MOST)


def connection(weight: Weight, plan: Plan, *, exponent: int, graded: bool) -> AbstractProcess:
    """`Sparse` for a sparse matrix or few weights, else `Dense`; integers count 2^exponent."""
    if not issparse(weight) and np.count_nonzero(weight) < SPARSE_BELOW * weight.size:
        weight = csr_matrix(weight)
    kind = Sparse if issparse(weight) else Dense
    bits = 24 if graded else 0
    if plan.bits is None:
        return kind(weights=weight, num_message_bits=bits)
    # Lava drops the lowest bit of weights with mixed signs, so double them and halve their unit.
    twice = (2 * weight).astype(np.int32)
    return kind(weights=twice, weight_exp=exponent - 1, num_message_bits=bits)
