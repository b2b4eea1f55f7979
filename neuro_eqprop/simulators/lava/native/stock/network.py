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
from scipy.sparse import csr_matrix, hstack, identity, issparse, vstack

from neuro_eqprop.simulators.lava.native.network import ExportedNetworkModel, StreamedNetwork
from neuro_eqprop.simulators.lava.native.plan import (
    SPARSE_BELOW,
    STATE_BITS,
    Array,
    Row,
    StockEdge,
    StockLayer,
    StockPlan,
    StockScale,
    Weight,
    biases,
    changes,
    current_port,
    edge_exponent,
    expanded,
    identifier,
    integers,
    largest_drive,
    nearest,
    port_name,
    scale_of,
    state_exponent,
    unit_count,
)


class StockNetwork(StreamedNetwork):
    """A network of `lava.proc` processes with ports `inp`, `out`, `s_<layer>` and `i_<layer>`.

    `inp` takes one value for each feature in each step (see `encode`): to graded units its change.
    `out` sends messages or spikes of the output layer. `i_<layer>`, which may be left open, takes a
    current for each unit in units of `inp_scale`, to graded units its change; it arrives one step
    later. Biases and states are Vars under names such as `bias_<layer>` and `sigma_<layer>`
    (code graded), or `bias_mant_<layer>`, `v_<layer>` and `r_<layer>`, with the units that
    `processes()` lists.
    """

    def __init__(self, plan: StockPlan, name: str | None = None) -> None:
        super().__init__(plan=plan, name=name)
        self.plan, self.scale = plan, scale_of(plan)
        self.inp_scale = 2.0**-self.scale.input_exp
        self.out_scale = 2.0**-self.scale.message_exp if plan.graded else 1.0
        self.inp = InPort(shape=(plan.features,))
        self.out = OutPort(shape=(plan[plan.output].size,))
        for layer in plan.layers:
            setattr(self, port_name(layer.name), OutPort(shape=(layer.size,)))
            setattr(self, current_port(layer.name), InPort(shape=(layer.size,)))
            for state in exposed_states(plan):
                shape = (unit_count(plan, layer),)
                setattr(self, f"{state}_{identifier(layer.name)}", Var(shape=shape))
        self._post_init()

    @property
    def tag(self) -> str:
        """The tag of a run configuration: `Loihi2SimCfg(select_tag=net.tag)`."""
        return "floating_pt" if self.plan.bits is None else "fixed_pt"

    def processes(self) -> tuple[Row, ...]:
        """The leaf processes: name, class, whether it is Lava's own, units, synapses.

        Those of ports are listed when a port is connected.
        """
        plan, found = self.plan, list[Row]()
        for layer in plan.layers:
            kind = "SigmaDelta" if plan.graded else "ATRLIF"
            found.append(Row(layer.name, kind, True, unit_count(plan, layer), 0))
            found += self.reset_rows(layer.name, ("sigma", "act", "residue"), ("v", "r", "i"))
        matrices = [(f"{e.source}->{e.target}", expanded(plan, e)) for e in plan.edges]
        for layer in plan.layers:
            matrices += [(port.name, signed_sum(layer)) for port in self.summed(layer)]
            if self.injected(layer):
                matrices.append((current_port(layer.name), copies(plan, layer)))
        for name, weight in matrices:
            count = int(weight.count_nonzero() if issparse(weight) else np.count_nonzero(weight))
            sparse = issparse(weight) or count < SPARSE_BELOW * weight.size
            found.append(Row(name, "Sparse" if sparse else "Dense", True, 0, count))
            found += self.reset_rows(name, ("input",), ("input",))
        return tuple(found)

    def reset_rows(self, name: str, graded: Sequence[str], spiking: Sequence[str]) -> list[Row]:
        """The processes that reset states between samples."""
        if self.plan.reset_interval is None:
            return []
        states = graded if self.plan.graded else spiking
        return [Row(f"{name} {state} reset", "Reset", True, 0, 0) for state in states]

    def summed(self, layer: StockLayer) -> list[OutPort]:
        """The connected ports of a layer whose messages are a sum over relu units."""
        ports = [getattr(self, port_name(layer.name))]
        if layer.name == self.plan.output:
            ports.append(self.out)
        pairs = self.plan.graded and layer.corners
        return [port for port in ports if pairs and port.out_connections]

    def injected(self, layer: StockLayer) -> bool:
        """Whether the port for a current of the layer is connected."""
        return bool(getattr(self, current_port(layer.name)).in_connections)

    def rounded(self, rows: Array) -> npt.NDArray[Any]:
        """Values of the input in units of `inp`; raises ValueError if a state could overflow."""
        if self.fixed:
            plan, scale = self.plan, self.scale
            exponent = state_exponent(plan, scale) + (0 if plan.graded else 6)
            steps = 1 if plan.graded else plan.reset_interval or 1
            drive, room = largest_drive(plan, rows), 2.0 ** (STATE_BITS - exponent) / steps
            if drive > room:
                raise ValueError(
                    f"with these samples drives reach {drive:.3g}, and the states of this network "
                    f"hold {room:.3g}; give samples at export: to_lava(inputs=x)"
                )
        return super().rounded(rows)

    def sent(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Graded units sum their input, so that a source sends its changes."""
        return changes(rows, self.plan.reset_interval) if self.plan.graded else rows


class StockGraph(ExportedNetworkModel):
    """The neurons and synapses of a plan as sub-processes, with resets between samples."""

    cells: dict[str, Any]
    """The neurons by layer."""
    synapses: list[Any]
    """The synapses of each edge."""

    def build(self, plan: StockPlan, scale: StockScale) -> None:
        """Make the sub-processes and connect them."""
        self.cells, self.synapses = {}, []
        for number, layer in enumerate(plan.layers):
            cell = self.keep(f"cells_{number}", neurons(plan, scale, layer), layer.name)
            self.cells[layer.name] = cell
            self.reset(plan, f"cells_{number}", states_of(plan, cell))
        for number, edge in enumerate(plan.edges):
            name = f"{edge.source}->{edge.target}"
            conn = self.keep(f"edge_{number}", synapses(plan, scale, edge), name)
            conn.a_out.connect(self.cells[edge.target].a_in)
            if edge.source != plan.input:
                self.cells[edge.source].s_out.connect(conn.s_in)
            self.reset(plan, f"edge_{number}", [conn.a_buff])
            self.synapses.append(conn)

    def reset(self, plan: StockPlan, name: str, states: Sequence[Var]) -> None:
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
        plan, scale = proc.plan, proc.scale
        self.build(plan, scale)
        for edge, conn in zip(plan.edges, self.synapses, strict=True):
            if edge.source == plan.input:
                proc.inp.connect(conn.s_in)
        for layer in plan.layers:
            cell, summed = self.cells[layer.name], proc.summed(layer)
            ports = [getattr(proc, port_name(layer.name))]
            ports += [proc.out] if layer.name == plan.output else []
            for port in ports:
                if port in summed:
                    weight = signed_sum(layer)
                    self.join(plan, f"{port.name}_sum", weight, 0, (cell.s_out, port))
                elif not plan.graded or not layer.corners:
                    cell.s_out.connect(port)
            if proc.injected(layer):
                port = getattr(proc, current_port(layer.name))
                exponent = state_exponent(plan, scale) - scale.input_exp
                self.join(plan, port.name, copies(plan, layer), exponent, (port, cell.a_in))
            for state in exposed_states(plan):
                getattr(proc, f"{state}_{identifier(layer.name)}").alias(getattr(cell, state))

    def join(
        self, plan: StockPlan, name: str, weight: Weight, exponent: int, ends: tuple[Any, Any]
    ) -> None:
        """Connect two ports through synapses."""
        conn = self.keep(name, connection(weight, plan, exponent=exponent, graded=True))
        ends[0].connect(conn.s_in)
        conn.a_out.connect(ends[1])
        self.reset(plan, name, [conn.a_buff])


def signed_sum(layer: StockLayer) -> Weight:
    """Weights from the relu units of a layer to its units."""
    # Built sparse: a dense matrix would take gigabytes for a convolution of 18 432 units.
    return hstack([s * identity(layer.size) for s, _ in layer.corners], format="csr")


def copies(plan: StockPlan, layer: StockLayer) -> Weight:
    """Weights from the units of a layer to its neurons, of which a unit may have two."""
    return vstack([identity(layer.size)] * (unit_count(plan, layer) // layer.size), format="csr")


def exposed_states(plan: StockPlan) -> tuple[str, ...]:
    """The Vars of a layer's neurons that the network exposes."""
    return ("bias", "sigma") if plan.graded else ("bias_mant", "v", "r")


def states_of(plan: StockPlan, cell: Any) -> list[Var]:  # noqa: ANN401
    """The Vars of a layer's neurons that are reset between samples."""
    return [cell.sigma, cell.act, cell.residue] if plan.graded else [cell.v, cell.r, cell.i]


def resets(plan: StockPlan, states: Sequence[Var]) -> list[Reset]:
    """Processes that set states to zero after every `reset_interval` steps."""
    found: list[Reset] = []
    if plan.reset_interval is None:
        return found
    for state in states:
        found.append(Reset(interval=plan.reset_interval, offset=plan.reset_interval - 1))
        found[-1].connect_var(state)
    return found


def neurons(plan: StockPlan, scale: StockScale, layer: StockLayer) -> AbstractProcess:
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


def synapses(plan: StockPlan, scale: StockScale, edge: StockEdge) -> AbstractProcess:
    """The stock synapses of an edge."""
    graded = plan.graded or edge.source == plan.input
    weight = expanded(plan, edge)
    if plan.bits is None:
        return connection(weight, plan, exponent=0, graded=graded)
    fine = scale.weight_exp[edge.source, edge.target]
    shift = edge_exponent(plan, scale, edge)
    return connection(nearest(weight, fine), plan, exponent=shift, graded=graded)


def connection(weight: Weight, plan: StockPlan, *, exponent: int, graded: bool) -> AbstractProcess:
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
