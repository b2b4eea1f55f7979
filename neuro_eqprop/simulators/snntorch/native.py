"""A spiking network as a torch module with trainable weights and snnTorch's surrogate gradients.

The module runs the step of `neuro_eqprop.spiking.ir` and sends the same spikes and messages as the
backends do. The backward pass is backpropagation through time. A spike has the slope of a surrogate
function (Neftci, Mostafa & Zenke 2019); the rounding of weights and graded messages has slope one
(straight-through estimator; Bengio, Léonard & Courville 2013).

The parameters are those of the rate network: a connection that acts in both directions keeps one
weight, so a fine-tuned module goes back to a `Model` with `from_snntorch`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from snntorch import surrogate as surrogates
from torch import Tensor, nn

from neuro_eqprop.common.arrays import Array, type_name
from neuro_eqprop.dynamics.schedules import tail
from neuro_eqprop.networks.network import Cost, DirectedEdge, Network, Role
from neuro_eqprop.networks.operators import DelayedFeedback
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.spiking.codes import GRADED, RATE, Coding, LoweringError
from neuro_eqprop.spiking.ir import Graded, Spiking
from neuro_eqprop.spiking.rounding import Rounding, round_weight

Surrogate: TypeAlias = Callable[[Tensor], Tensor]
"""A step function of (voltage - threshold) with a surrogate slope, as in `snntorch.surrogate`."""
"""The provenance of a model that `from_snntorch` returns."""
FINEST = 2.0**-12
"""Finest scale of quantised weights."""


class LayerState(NamedTuple):
    """State of a layer between two steps; arrays (batch, *layer)."""

    memory: Tensor
    """Membrane voltage of a spiking layer; sum of the input received so far of a graded one."""
    rate: Tensor
    """State x of a graded layer; zero for a spiking one."""
    sent: Tensor
    """Sum of the messages sent so far of a graded layer; zero for a spiking one."""
    message: Tensor
    """Spikes or messages of the last step."""


class SpikingOutput(NamedTuple):
    """Result of a forward pass."""

    logits: Tensor
    """Mean drive of the output over the readout window, shape (batch, classes)."""
    messages: Mapping[str, Tensor]
    """Spikes or graded messages by layer, shape (steps, batch, *layer)."""
    state: dict[str, LayerState]
    """State after the last step, to continue from."""


class SpikingModule(nn.Module):
    """A spiking network that runs, learns and is saved like any torch module.

    Parameters
    ----------
    network : Network
        The rate network.
    params : mapping of str to array
        Its weights and biases.
    coding : Coding
        Code `rate` or `graded` with its constants.
    bits : int, optional
        Weights are rounded to integers of few bits times a power of two in every forward pass
        (quantisation-aware training); None keeps them on the grid of the coding.
    surrogate : callable, optional
        A function of `snntorch.surrogate`.
    dtype : torch.dtype, optional
        `torch.float64` sends the same spikes as the backends.

    Examples
    --------
    >>> import neuro_eqprop as ne, torch
    >>> model = ne.train("layered", "digits", hidden=(16,), epochs=1)
    >>> module = model.to_spiking(code="graded").to_snntorch()
    >>> logits, messages, state = module(torch.rand(5, 64), steps=16)
    >>> logits.shape, messages["hidden"].shape
    (torch.Size([5, 10]), torch.Size([16, 5, 16]))

    """

    def __init__(
        self,
        network: Network,
        params: Mapping[str, Array],
        coding: Coding,
        *,
        bits: int | None = None,
        surrogate: Surrogate | None = None,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        super().__init__()
        check_support(network, coding)
        self.network, self.coding, self.bits = network, coding, bits
        self.neurons = {layer.name: coding.neuron(layer) for layer in network.moving}
        if surrogate is not None and not callable(surrogate):
            raise TypeError(
                f"surrogate is {type_name(surrogate)}; give a function of snntorch.surrogate, such "
                f"as fast_sigmoid()"
            )
        self.fire = surrogate or surrogates.fast_sigmoid(slope=25)
        self.values = nn.ParameterDict(
            {name: nn.Parameter(torch.tensor(value, dtype=dtype)) for name, value in params.items()}
        )

    def extra_repr(self) -> str:
        """Layers, code and bits, for `print(module)`."""
        layers = ", ".join(f"{layer.name}: {layer.size}" for layer in self.network.layers)
        return f"{layers}, code={self.coding.code.name!r}, bits={self.bits}"

    @property
    def ops(self) -> TorchOps:
        """Operations in the precision and on the device of the parameters."""
        first = next(iter(self.values.values()))
        return TorchOps(first.dtype, str(first.device))

    def forward(
        self, x: Tensor, steps: int = 32, state: dict[str, LayerState] | None = None
    ) -> SpikingOutput:
        """Run the network for some steps with the input x held constant.

        Parameters
        ----------
        x : Tensor, shape (batch, features) or (batch, *input shape)
        steps : int
            Steps of the simulation.
        state : dict, optional
            State to continue from; None starts at rest.

        Returns
        -------
        SpikingOutput
            Logits, messages by layer, and the state after the last step.
        """
        ops, weights = self.ops, self.rounded_weights()
        outside = self.input_drive(ops, weights, x.to(ops.dtype))
        state = self.rest(ops, len(x)) if state is None else dict(state)
        sent: dict[str, list[Tensor]] = {name: [] for name in state}
        window, total = tail(steps, self.coding.tail), None
        for step in range(steps):
            arriving = {name: self.arriving(ops, weights, name, state) for name in state}
            drives = {}
            for name in state:
                drives[name], state[name] = self.advance(
                    name, state[name], arriving[name], outside[name]
                )
                sent[name].append(state[name].message)
            if step >= steps - window:
                drive = drives[self.network.output.name]
                total = drive if total is None else total + drive
        logits = torch.as_tensor(total) / window
        return SpikingOutput(logits, {n: torch.stack(m) for n, m in sent.items()}, state)

    def rest(self, ops: TorchOps, batch: int) -> dict[str, LayerState]:
        """State at the start of a sample: voltages at half the threshold, all else zero."""
        found = {}
        for layer in self.network.moving:
            zero = ops.zeros((batch, *layer.shape))
            cell = self.neurons[layer.name]
            start = zero + cell.threshold / 2 if isinstance(cell, Spiking) else zero
            found[layer.name] = LayerState(start, zero, zero, zero)
        return found

    def input_drive(
        self, ops: TorchOps, weights: Mapping[str, Tensor], x: Tensor
    ) -> dict[str, Tensor]:
        """Bias plus the current that the input brings to each layer."""
        x = x.reshape(len(x), *self.network.input.shape)
        found: dict[str, Tensor] = {}
        for layer in self.network.moving:
            current = ops.zeros((len(x), *layer.shape))
            for c in self.network.connections:
                if c.target == layer.name and self.network[c.source].role is Role.INPUT:
                    # The host computes this current; in floating point only the sum is rounded.
                    weight = self.values[c.name] if self.bits is None else weights[c.name]
                    current = current + c.operator.forward(ops, weight, x, ops.zeros((1,)))
            found[layer.name] = weights[layer.name] + round_through(current, self.coding.grid)
        return found

    def rounded_weights(self) -> dict[str, Tensor]:
        """Weights and biases on the grid of the coding, or weights of few bits."""
        found = {}
        connections = {c.name for c in self.network.connections}
        for name, value in self.values.items():
            if self.bits is None or name not in connections:
                found[name] = round_through(value, self.coding.grid)
                continue
            array = value.detach().cpu().numpy().astype(np.float64)
            flat = array.reshape(len(array), -1)
            near = round_weight(flat, Rounding(self.bits), finest=FINEST).weight.reshape(
                array.shape
            )
            found[name] = straight_through(value, torch.tensor(near).to(value))
        return found

    def arriving(
        self,
        ops: TorchOps,
        weights: Mapping[str, Tensor],
        name: str,
        state: Mapping[str, LayerState],
    ) -> Tensor:
        """Sum of weight times message over the connections into a layer."""
        layer = self.network[name]
        total = ops.zeros((len(state[name].message), *layer.shape))
        for edge in self.network.incoming[name]:
            if not sends_back(self.network, edge):
                continue
            operator, weight = edge.connection.operator, weights[edge.connection.name]
            message = state[edge.source].message
            if edge.back is None:
                total = operator.forward(ops, weight, message, total)
            else:
                back = (
                    weight
                    if edge.back == 1.0
                    else round_through(edge.back * weight, self.coding.grid)
                )
                total = operator.backward(ops, back, message, total, gain=1.0, shape=edge.shape)
        return torch.as_tensor(total)

    def advance(
        self, name: str, before: LayerState, arriving: Tensor, outside: Tensor
    ) -> tuple[Tensor, LayerState]:
        """Drive and state of a layer after one step (equations in `neuro_eqprop.spiking.ir`)."""
        cell = self.neurons[name]
        if isinstance(cell, Graded):
            memory = before.memory + arriving
            drive = memory + outside
            aim = self.ops.activate(self.network[name].activation, drive.clone())
            rate = before.rate + cell.damping * (aim - before.rate)
            message = round_through(rate - before.sent, cell.theta)
            return drive, LayerState(memory, rate, before.sent + message, message)
        assert isinstance(cell, Spiking)
        drive = arriving + outside
        voltage = before.memory + drive
        # snnTorch's surrogates fire strictly above zero; `ir` also fires at the threshold.
        below = float(np.nextafter(cell.threshold, -np.inf))
        spike = self.fire(voltage - below).to(voltage.dtype)
        voltage = (voltage - cell.threshold * spike).clamp(cell.floor, cell.ceiling)
        return drive, LayerState(voltage, before.rate, before.sent, spike)


class StraightThrough(torch.autograd.Function):
    """The second argument, with the gradient of the first."""

    @staticmethod
    def forward(ctx: object, values: Tensor, near: Tensor) -> Tensor:
        """The rounded values."""
        return near.clone()

    @staticmethod
    def backward(ctx: object, *slope: Tensor) -> tuple[Tensor, None]:
        """The gradient of `values`: slope one."""
        return slope[0], None


def straight_through(values: Tensor, near: Tensor) -> Tensor:
    """`near`, with the gradient of `values`."""
    apply: Any = StraightThrough.apply  # torch 2.15 has types for it, 2.13 has none
    return torch.as_tensor(apply(values, near))


def round_through(values: Tensor, grid: float) -> Tensor:
    """The nearest multiples of `grid`, ties to even, with slope one."""
    return straight_through(values, torch.round(values.detach() / grid) * grid)


def sends_back(network: Network, edge: DirectedEdge) -> bool:
    """Whether an edge carries messages; an output with cross-entropy has no feedback."""
    reads = network.cost is Cost.CROSS_ENTROPY and edge.source == network.output.name
    return edge.back is None or not reads


def check_support(network: Network, coding: Coding) -> None:
    """Raise LoweringError for a network or code that the module does not support."""
    if coding.code not in (RATE, GRADED):
        raise LoweringError(
            f"code {coding.code.name!r} has no torch module; use code 'rate' or 'graded'"
        )
    for connection in network.connections:
        if not connection.operator.linear or isinstance(connection.operator, DelayedFeedback):
            raise LoweringError(
                f"connection {connection.name!r} is not linear or has delays, which the torch "
                f"module does not run; use the backend 'snntorch' or 'emulator'"
            )


def trained_parameters(module: SpikingModule) -> dict[str, Array]:
    """The weights and biases of a module; with `bits` rounded to them."""
    if not isinstance(module, SpikingModule):
        raise TypeError(
            f"from_snntorch takes the module of SpikingModel.to_snntorch, not "
            f"{type_name(module)}; from_torch converts other modules"
        )
    given = module.rounded_weights() if module.bits is not None else dict(module.values.items())
    return {name: value.detach().cpu().numpy().astype(np.float64) for name, value in given.items()}
