"""A rate network as a torch module: a layer whose output is an equilibrium.

Forward, the module settles to s = f(s; x, theta) without a graph. Backward, it solves the adjoint
equation of `dynamics.adjoint`, as deep equilibrium models do (Bai, Kolter & Koltun 2019).
The memory of a backward pass does not depend on the number of settling steps.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.adjoint import PLAIN, AdjointMap, NotSettledError
from neuro_eqprop.dynamics.field import Field, State, field
from neuro_eqprop.dynamics.solve import Anderson, GaussSeidel, SolveStatus, Stop, solve
from neuro_eqprop.networks.network import Network, check_parameters
from neuro_eqprop.networks.ops.torch import TorchOps

SETTLED = Stop(1e-6, 1000)
"""Default stop of both solves; the tolerance of the adjoint is relative to the gradient."""
MIXED = Anderson(PLAIN, depth=6)
"""Solver of the adjoint. Plain iteration would be too slow where the eigenvalues of J come near
one, and diverge where one lies below minus one."""
ALL = "all layers"
"""Key of the flat state: the rates of all layers, concatenated."""


class EquilibriumLayer(nn.Module):
    """A rate network whose forward pass settles and whose backward pass is the implicit gradient.

    Parameters
    ----------
    network : Network
        The description; the input layer has the shape of one sample.
    params : mapping of str to array
        Weights by connection and biases by layer, copied into trainable `nn.Parameter`s.
    stop : Stop, optional
        Tolerance and largest number of steps of the forward solve and of the adjoint.
    damping : float, optional
        Damping factor in (0, 1] of a Gauss-Seidel sweep of the forward solve.
    dtype : torch.dtype, optional
        Precision of the parameters; `torch.float64` for `torch.autograd.gradcheck`.

    Examples
    --------
    >>> import neuro_eqprop as ne, torch
    >>> model = ne.train("layered", "digits", hidden=(16,), epochs=1)
    >>> layer = model.to_torch()
    >>> net = torch.nn.Sequential(torch.nn.Linear(20, 64), layer, torch.nn.Linear(10, 3))
    >>> net(torch.zeros(5, 20)).shape
    torch.Size([5, 3])
    """

    def __init__(
        self,
        network: Network,
        params: Mapping[str, Array],
        *,
        stop: Stop = SETTLED,
        damping: float = 1.0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        check_parameters(network, params)
        self.network, self.stop, self.damping = network, stop, damping
        self.values = nn.ParameterDict(
            {name: nn.Parameter(torch.tensor(value, dtype=dtype)) for name, value in params.items()}
        )

    def extra_repr(self) -> str:
        """Layers and sizes, for `print(module)`."""
        return ", ".join(f"{layer.name}: {layer.size}" for layer in self.network.layers)

    def forward(self, x: Tensor) -> Tensor:
        """The drive (pre-activation) of the output at equilibrium.

        Parameters
        ----------
        x : Tensor, shape (batch, features) or (batch, *input shape)

        Returns
        -------
        Tensor, shape (batch, outputs)
            Use it as logits; its arg max is the predicted class.
        """
        at, state = self.equilibrium(x)
        return torch.as_tensor(at.drive(self.network.output.name, state))

    def settle(self, x: Tensor) -> State:
        """Rates (batch, *layer) of every layer at equilibrium, differentiable."""
        return self.equilibrium(x)[1]

    def equilibrium(self, x: Tensor) -> tuple[Field, State]:
        """The field on x and its equilibrium, attached to the graph of x and the parameters."""
        params = self.tied()
        first = next(iter(self.values.values()))
        ops = TorchOps(first.dtype, str(first.device))
        at = field(ops, self.network, params, x)
        with torch.no_grad():
            free = field(ops, self.network, {k: p.detach() for k, p in params.items()}, x.detach())
            found = solve(free, free.zero_state(), GaussSeidel(damping=self.damping), self.stop)
        if found.status is SolveStatus.NOT_FINITE or (
            self.stop.tolerance is not None and found.status is not SolveStatus.CONVERGED
        ):
            raise NotSettledError(
                f"the network has not settled ({found}); give `stop` more steps, use `damping` "
                f"below one, or bound the weights"
            )
        if not torch.is_grad_enabled():
            return at, found.state
        return at, self.attached(at, free, found.state)

    def tied(self) -> dict[str, Tensor]:
        """The parameters by name; the weight of a symmetric loop is its symmetric part."""
        params: dict[str, Tensor] = dict(self.values.items())
        for c in self.network.connections:
            if c.loops and c.symmetric and c.operator.matrix:
                params[c.name] = (params[c.name] + params[c.name].T) / 2
        return params

    def attached(self, at: Field, free: Field, state: State) -> State:
        """The equilibrium, attached to the graph by one application of f.

        A hook replaces the gradient that arrives there by the solution of the adjoint equation.
        """
        names = list(state)
        shapes = {name: state[name].shape for name in names}

        def split(flat: Tensor) -> State:
            parts = torch.split(flat, [shapes[n][1:].numel() for n in names], dim=1)
            return {n: part.reshape(shapes[n]) for n, part in zip(names, parts, strict=True)}

        def joined(values: State) -> Tensor:
            return torch.cat([values[n].flatten(1) for n in names], dim=1)

        point = joined(state).detach().requires_grad_()
        with torch.enable_grad():
            image = joined(free(split(point)))
        new = joined(at(split(point.detach())))

        def pull_back(pull: Tensor | None) -> Tensor | None:
            if pull is None:  # nothing depends on it
                return None
            # Scaled to one: the squares of small residuals underflow in float32.
            size = pull.abs().max().clamp_min(torch.finfo(pull.dtype).tiny)
            source = {ALL: pull / size}
            adjoint = AdjointMap(free, {ALL: image}, {ALL: point}, source)
            found: Tensor = adjoint.solve(self.stop, MIXED)[ALL]
            return size * found

        if new.requires_grad:
            new.register_hook(pull_back)  # type: ignore[no-untyped-call]
        return split(new)
