"""The Hebbian update of a batch by the displacement path (`training.fast.chain`)."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from neuro_eqprop.dynamics.field import shape_input, with_padding_mask
from neuro_eqprop.dynamics.schedules import Schedule
from neuro_eqprop.networks.architectures.normalized import without_normalization
from neuro_eqprop.networks.network import Cost, Network
from neuro_eqprop.networks.operators.embedding import Embedding
from neuro_eqprop.networks.ops.protocol import Values
from neuro_eqprop.networks.ops.torch import TorchOps
from neuro_eqprop.training.fast import chain as chains
from neuro_eqprop.training.fast import layer_kernels
from neuro_eqprop.training.fast.chain import Nudge, Rest
from neuro_eqprop.training.fast.keep_last import keep_last
from neuro_eqprop.training.fast.layer_state import as_array
from neuro_eqprop.training.fast.structure import chain_of
from neuro_eqprop.training.rules.base import Batch, BatchUpdate


def update_by_displacement(
    ops: TorchOps,
    network: Network,
    params: Mapping[str, Values],
    batch: Batch,
    schedule: Schedule,
) -> BatchUpdate:
    """The contrast of the phases of a schedule: a free one, then one or two nudged ones.

    A free phase of n steps takes n half-sweeps upwards and n - 1 downwards between them; a nudged
    phase of n steps n half-sweeps downwards and n - 1 upwards between them. Nothing is read back
    from a device: there, loss, correct predictions and residual are tensors.
    """
    rest_phase, *nudged = schedule
    network, x = on_batch(ops, network, batch.x)
    chain = chain_of(ops, network, params)
    rest = chains.free(chain, x, rest_phase.steps - 1, measured=batch.measured)
    loss, correct = evaluate(ops, network, rest, batch.target)
    shifts = [
        chains.displaced(chain, rest, Nudge(batch.target, phase.beta), phase.steps)
        for phase in nudged
    ]
    gradients = chains.slopes(chain, rest, shifts, -1.0 / len(batch.x), batch.spare)
    residual = 0.0 if rest.residual is None else rest.residual
    return BatchUpdate(gradients, correct, loss, residual)


def on_batch(ops: TorchOps, network: Network, x: Values) -> tuple[Network, Values]:
    """The network without padding and input normalization, and the samples normalized for it."""
    x = shape_input(network, x)
    if takes_tokens(network):
        network = with_padding_mask(ops, network, x)
    plain, operator = plain_network(network)
    return plain, x if operator is None else operator.normalize(ops, x)


plain_network = keep_last(without_normalization)


@keep_last
def takes_tokens(network: Network) -> bool:
    """Whether the samples are token ids, of which some are padding."""
    return any(isinstance(c.operator, Embedding) for c in network.connections)


def evaluate(
    ops: TorchOps, network: Network, rest: Rest, target: torch.Tensor
) -> tuple[Values, Values]:
    """Mean cost and number of correct predictions of the free phase; tensors on a GPU."""
    output = rest.drive if rest.output is None else rest.output
    compiled = evaluate_compiled(ops, network, output, target)
    if compiled is not None:
        return compiled
    correct = (output.argmax(dim=1) == target.argmax(dim=1)).sum()
    if network.cost is Cost.CROSS_ENTROPY:
        cost = -(target * torch.log_softmax(output, dim=-1)).sum()
    else:
        cost = 0.5 * (output - target).square().sum()
    return cost / len(target), correct


def evaluate_compiled(
    ops: TorchOps, network: Network, output: torch.Tensor, target: torch.Tensor
) -> tuple[float, int] | None:
    """The same by one pass of compiled code; None where it cannot access the values."""
    if ops.numpy_view(output) is None or output.ndim != 2:
        return None
    arrays = as_array(output.contiguous()), as_array(target.contiguous())
    correct, cost = layer_kernels.evaluate(*arrays, network.cost is Cost.CROSS_ENTROPY)
    return cost / len(target), correct
