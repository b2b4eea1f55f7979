"""The step of `neuro_eqprop.spiking.ir` as torch modules.

Spiking populations use snnTorch's `Leaky`. snnTorch has no sigma-delta neuron, so a graded
population is a module of this package.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import snntorch
import torch
from torch import Tensor, nn

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.networks.activations import Activation
from neuro_eqprop.simulators.step_recorder import Step
from neuro_eqprop.spiking.ir import (
    Gain,
    Graded,
    Neuron,
    Reset,
    Spiking,
    SpikingNetwork,
    Stimulus,
)
from neuro_eqprop.spiking.synapses import (
    ConvolutionSynapses,
    DiagonalSynapses,
    SparseSynapses,
    Synapses,
)


def tensor(array: Array) -> Tensor:
    """A float64 tensor with a copy of the array."""
    return torch.tensor(np.ascontiguousarray(array), dtype=torch.float64)


def activate(activation: Activation, u: Tensor) -> Tensor:
    """rho(u), bit-identical on all backends."""
    return torch.from_numpy(activation.value(u.cpu().numpy())).to(u.device)


def leaky(neuron: Spiking) -> nn.Module:
    """snnTorch's `Leaky`; it fires strictly above its threshold, set to the next float below."""
    below = np.nextafter(neuron.threshold, -np.inf)
    with torch.device("cpu"):  # it looks at the values of its parameters
        module: nn.Module = snntorch.Leaky(
            beta=torch.tensor(1 - neuron.voltage_decay, dtype=torch.float64),
            threshold=torch.tensor(below, dtype=torch.float64),
            surrogate_disable=True,
            reset_mechanism="none",
        )
    # snnTorch keeps a reference to every neuron in a class attribute, which would leak memory.
    snntorch.SpikingNeuron.instances.remove(module)
    return module.to(torch.empty(0).device)


class SpikingLayer(nn.Module):
    """A spiking population: snnTorch's `Leaky` with the reset and the limits of the neuron.

    snnTorch's own reset acts one step late, and again while the voltage stays above threshold.
    """

    def __init__(self, neuron: Spiking, samples: int, size: int) -> None:
        super().__init__()
        self.neuron = neuron
        self.leaky = leaky(neuron)
        self.u = torch.zeros(samples, size, dtype=torch.float64)
        self.voltage = torch.full_like(self.u, neuron.resting_voltage)
        self.drive = self.message = self.held = torch.zeros_like(self.u)

    def forward(self, one: Tensor, by_beta: Tensor, outside: Tensor, beta: float) -> None:
        """One step."""
        neuron = self.neuron
        self.u = (1 - neuron.current_decay) * self.u + (one + beta * by_beta)
        self.drive = self.u + outside
        fired, v = self.leaky(self.drive, self.voltage)
        after = v - neuron.threshold if neuron.reset is Reset.SUBTRACT else torch.zeros_like(v)
        self.voltage = torch.where(fired > 0, after, v).clamp(neuron.floor, neuron.ceiling)
        self.message = self.held = fired.double()


class GradedLayer(nn.Module):
    """A graded population."""

    def __init__(self, neuron: Graded, samples: int, size: int) -> None:
        super().__init__()
        self.neuron = neuron
        nothing = torch.zeros(samples, size, dtype=torch.float64)
        self.g_one = self.g_beta = self.state = nothing
        self.drive = self.message = self.held = nothing

    def forward(self, one: Tensor, by_beta: Tensor, outside: Tensor, beta: float) -> None:
        """One step."""
        neuron = self.neuron
        self.g_one = self.g_one + one
        self.g_beta = self.g_beta + by_beta
        self.drive = (self.g_one + beta * self.g_beta) + outside
        aim = activate(neuron.activation, self.drive)
        self.state = self.state + neuron.damping * (aim - self.state)
        self.message = neuron.theta * torch.round((self.state - self.held) / neuron.theta)
        self.held = self.held + self.message


def torch_synapses(synapses: Synapses) -> Callable[[Tensor], Tensor]:
    """A function x -> W x for each row of x, with the torch operation for these synapses."""
    if isinstance(synapses, DiagonalSynapses):
        diagonal = tensor(synapses.diagonal)
        return lambda x: x * diagonal
    if isinstance(synapses, ConvolutionSynapses):
        return torch_convolution(synapses)
    if isinstance(synapses, SparseSynapses):
        columns = torch.tensor(synapses.indices.astype(np.int64))
        heads, data = torch.tensor(synapses.indptr), tensor(synapses.data)
        with warnings.catch_warnings():  # torch calls its sparse CSR tensors a beta
            warnings.simplefilter("ignore", UserWarning)
            matrix = torch.sparse_csr_tensor(heads, columns, data, size=synapses.shape)
        return lambda x: (matrix @ x.T).T
    weight = tensor(synapses.dense())
    return lambda x: nn.functional.linear(x, weight)


def torch_convolution(synapses: ConvolutionSynapses) -> Callable[[Tensor], Tensor]:
    """Sum pooling and `conv2d`, or `conv_transpose2d` and the transpose of the pooling."""
    kernel, pool, margin = tensor(synapses.kernel), synapses.pool, synapses.padding
    _, high, wide = synapses.pooled
    ends = (slice(margin, margin + high), slice(margin, margin + wide))

    def forwards(x: Tensor) -> Tensor:
        image = x.reshape(-1, *synapses.image)
        if pool > 1:
            image = nn.functional.avg_pool2d(image, pool, divisor_override=1)
        made = nn.functional.conv2d(image, kernel, stride=synapses.stride, padding=margin)
        return made.flatten(1)

    def backwards(y: Tensor) -> Tensor:
        made = y.reshape(-1, *synapses.output)
        image = nn.functional.conv_transpose2d(made, kernel, stride=synapses.stride)
        image = nn.functional.pad(image, (0, wide + margin, 0, high + margin))
        image = image[:, :, ends[0], ends[1]]
        if pool > 1:
            image = image.repeat_interleave(pool, 2).repeat_interleave(pool, 3)
        return image.flatten(1)

    return backwards if synapses.transposed else forwards


Layer: TypeAlias = SpikingLayer | GradedLayer
"""Both have `drive`, `message` and `held`; the mean of `held` is the firing."""
LAYERS: Mapping[type[Neuron], Callable[..., Layer]] = {Spiking: SpikingLayer, Graded: GradedLayer}


class Net(nn.Module):
    """A network at rest, with all samples as the batch, on the default device of torch."""

    def __init__(self, network: SpikingNetwork, stimulus: Stimulus) -> None:
        super().__init__()
        self.network = network
        self.populations: dict[str, Layer] = {}
        self.given: dict[str, tuple[Tensor, Tensor]] = {}
        for population in network.populations:
            name, neuron = population.name, population.neuron
            shape = (stimulus.samples, population.size)
            self.populations[name] = LAYERS[type(neuron)](neuron, *shape)
            nothing = np.zeros(shape)
            current = population.bias + stimulus.current.get(name, nothing)
            self.given[name] = (tensor(current), tensor(stimulus.pull.get(name, nothing)))
        self.layers = nn.ModuleList(self.populations.values())
        self.weights = [torch_synapses(projection.synapses) for projection in network.projections]
        longest = max((projection.delay for projection in network.projections), default=1)
        self.past: deque[dict[str, Tensor]] = deque(maxlen=longest)

    def arriving(self, target: str, gain: Gain) -> Tensor:
        """Input to a population in this step by the projections of one gain."""
        total = torch.zeros_like(self.populations[target].message)
        for projection, weight in zip(self.network.projections, self.weights, strict=True):
            here = projection.target == target and projection.gain is gain
            if here and projection.delay <= len(self.past):
                total = total + weight(self.past[-projection.delay][projection.source])
        return total

    def last(self, name: str) -> Step:
        """What a population did in the last step."""
        layer, variable = self.populations[name], self.network[name].neuron.variable
        values = {each: getattr(layer, each).cpu().numpy() for each in ("drive", variable)}
        return Step(layer.message.cpu().numpy(), layer.held.cpu().numpy(), values)

    def forward(self, beta: float) -> None:
        """One step of every population."""
        inputs = {
            name: (self.arriving(name, Gain.ONE), self.arriving(name, Gain.BETA))
            for name in self.populations
        }
        for name, layer in self.populations.items():
            current, pull = self.given[name]
            layer(*inputs[name], current + beta * pull, beta)
        self.past.append({name: layer.message for name, layer in self.populations.items()})
