"""An equilibrium network made of Lava's own processes alone, as one hierarchical process.

Graded messages: the activation of a layer that clips its drive d to low..high is

    clip(d, low, high) = low + relu(d - low) - relu(d - high)

so n units become 2n `SigmaDelta` units in RELU mode, whose messages the next layer reads with
weights W and -W. Without bounds (a linear output) n units in UNIT mode suffice.

Binary spikes: `ATRLIF` with theta_0 = 1/2 and without decays integrates its drive in v, fires when
v - r reaches 1/2, and then adds 1 to r. This is a reset by subtraction at threshold 1, starting
at half the threshold, without floor and ceiling.

In fixed point, weights are integers of 8 bits times a power of two, graded messages are integers
of 2^-message_exp, and states of 2^-(message_exp + state_exp). This module needs lava-nc, NumPy and
SciPy alone.
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

from neuro_eqprop.backends.lava.native.network import (
    ExportedNetwork,
    ExportedNetworkModel,
    classes,
    message_rows,
    sample_rows,
)
from neuro_eqprop.backends.lava.native.plan import (
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
            units = layer.size * max(1, len(layer.corners)) if plan.graded else layer.size
            for state in ("bias", "sigma") if plan.graded else ("bias_mant", "v", "r"):
                setattr(self, f"{state}_{identifier(layer.name)}", Var(shape=(units,)))
        self._post_init()

    @property
    def tag(self) -> str:
        """The tag of a run configuration: `Loihi2SimCfg(select_tag=net.tag)`."""
        return "floating_pt" if self.plan.bits is None else "fixed_pt"

    def processes(self) -> tuple[Row, ...]:
        """The leaf processes: name, class, whether it is Lava's own, units, synapses."""
        found = []
        for layer in self.plan.layers:
            units = layer.size * max(1, len(layer.corners)) if self.plan.graded else layer.size
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

        Graded units add up what they receive, so each sample is sent once, as its difference to
        the sample before where nothing resets the units. Spiking units get it in every step.
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
        if self.plan.reset_interval is None:  # states go on from the sample before
            sums = (
                sums
                + np.concatenate([0 * sums[:1, :, -1], sums[:-1, :, -1].cumsum(axis=0)])[..., None]
            )
        late = sums[..., -max(1, steps // 4) :].mean(axis=2)
        return np.asarray(np.ldexp(late, -self.scale.message_exp))

    def decode(self, messages: npt.ArrayLike, steps: int) -> npt.NDArray[np.int64]:
        """Predicted classes (samples,) from the messages (classes, samples * steps) of `out`."""
        return classes(self.rates, messages, steps, self.out.shape[0])


@implements(proc=StockNetwork, protocol=LoihiProtocol)
@requires(CPU)
@tag("floating_pt", "fixed_pt")
class StockNetworkModel(ExportedNetworkModel):
    """Sub-processes of a stock network and their connections."""

    def __init__(self, proc: StockNetwork) -> None:
        super().__init__(proc)
        plan, scale = proc.plan, proc.scale
        cells: dict[str, Any] = {}
        for layer in plan.layers:
            cells[layer.name] = self.keep(
                f"{port_name(layer.name)}_cells", neurons(plan, scale, layer)
            )
        for number, edge in enumerate(plan.edges):
            joint = self.keep(f"edge_{number}", synapses(plan, scale, edge))
            joint.a_out.connect(cells[edge.target].a_in)
            if edge.source == plan.input:
                proc.inp.connect(joint.s_in)
            else:
                cells[edge.source].s_out.connect(joint.s_in)
            self.reset(plan, f"edge_{number}", [joint.a_buff])
        for layer in plan.layers:
            cell, port = cells[layer.name], getattr(proc, port_name(layer.name))
            self.expose(plan, cell, layer, port)
            if layer.name == plan.output:
                self.expose(plan, cell, layer, proc.out)
            states = (
                [cell.sigma, cell.act, cell.residue] if plan.graded else [cell.v, cell.r, cell.i]
            )
            self.reset(plan, port_name(layer.name), states)
            for state in ("bias", "sigma") if plan.graded else ("bias_mant", "v", "r"):
                getattr(proc, f"{state}_{identifier(layer.name)}").alias(getattr(cell, state))

    def expose(self, plan: Plan, cell: Any, layer: Layer, port: OutPort) -> None:  # noqa: ANN401
        """Connect a port to the messages of a layer; relu units are added up with their signs."""
        if not plan.graded or not layer.corners:
            cell.s_out.connect(port)
            return
        # Sparse from the start: the dense matrix of a convolution's 18 432 units has gigabytes.
        sum_ = hstack([s * identity(layer.size) for s, _ in layer.corners], format="csr")
        joint = self.keep(f"{port.name}_sum", connection(sum_, plan, exponent=0, graded=True))
        cell.s_out.connect(joint.s_in)
        joint.a_out.connect(port)
        self.reset(plan, f"{port.name}_sum", [joint.a_buff])

    def reset(self, plan: Plan, name: str, states: Sequence[Var]) -> None:
        """Put states back to zero after every `reset_interval` steps."""
        for number, process in enumerate(resets(plan, states)):
            self.keep(f"{name}_reset_{number}", process)


def resets(plan: Plan, states: Sequence[Var]) -> list[Reset]:
    """Processes that put states back to zero after every `reset_interval` steps."""
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
    """Integer weights of 8 bits, in multiples of 2^-exponent."""
    if issparse(weight):
        found = csr_matrix(weight)
        found.data = nearest(found.data, exponent).astype(np.float64)
        return found
    return np.clip(integers(weight, exponent), -MOST, MOST)


def connection(weight: Weight, plan: Plan, *, exponent: int, graded: bool) -> AbstractProcess:
    """`Sparse` for a sparse matrix or few weights, else `Dense`; integers times 2^exponent."""
    if not issparse(weight) and np.count_nonzero(weight) < SPARSE_BELOW * weight.size:
        weight = csr_matrix(weight)
    kind = Sparse if issparse(weight) else Dense
    bits = 24 if graded else 0
    if plan.bits is None:
        return kind(weights=weight, num_message_bits=bits)
    # Lava drops the last bit of weights of both signs: twice the weight, half the exponent.
    twice = (2 * weight).astype(np.int32)
    return kind(weights=twice, weight_exp=exponent - 1, num_message_bits=bits)
