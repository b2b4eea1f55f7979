"""The adjoint equation at an equilibrium, for gradients by the implicit function theorem.

With s = f(s; theta) and J = df/ds there, the gradient of a cost C is

    dC/dtheta = a . df/dtheta + the direct dependence of C on theta,    a = J^T a + dC/ds

(Almeida 1987; Pineda 1987; Bai, Kolter & Koltun 2019). `neuro_eqprop.training.gradients`
and `neuro_eqprop.dynamics.to_torch` both solve it here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from neuro_eqprop.common.arrays import Array, Bits
from neuro_eqprop.dynamics.field import Field, State
from neuro_eqprop.dynamics.solve import Damped, Solver, SolveStatus, Stop, solve

PLAIN = Damped(1.0)
"""The iteration a <- J^T a + dC/ds itself."""


class NotSettledError(ValueError):
    """The network or its adjoint did not converge; gradients would be wrong."""


@dataclass(frozen=True)
class AdjointMap:
    """a -> J^T a + source, with J = d images / d inputs; a map for `dynamics.solve`."""

    free: Field
    """The field whose equilibrium it is; it combines states of all samples."""
    images: State
    """f(s), with its autograd graph."""
    inputs: State
    """s, the leaves of that graph."""
    source: State
    """dC/ds."""

    def __call__(self, state: State) -> State:
        """J^T a + source, with a the state."""
        through = [name for name, image in self.images.items() if image.requires_grad]
        back: Sequence[Tensor | None] = [None] * len(self.inputs)
        if through:
            back = torch.autograd.grad(
                [self.images[name] for name in through],
                list(self.inputs.values()),
                [state[name] for name in through],
                retain_graph=True,
                allow_unused=True,
            )
        return {
            name: s if b is None else s + b
            for (name, s), b in zip(self.source.items(), back, strict=True)
        }

    def sweep(self, state: State, backwards: bool, damping: float) -> State:
        """All layers at once: the product with J^T has no order of layers."""
        return Damped(damping).step(self, state)

    def change(self, new: State, old: State) -> Array:
        """The largest change relative to the largest component, equal for all samples."""
        largest = max(1e-30, *(float(each.abs().max()) for each in new.values()))
        return np.full(self.free.batch, self.free.change(new, old).max() / largest)

    def dots(self, a: State, b: State) -> Array:
        """The scalar product of two states for each sample."""
        return self.free.dots(a, b)

    def choose(self, rows: Bits, yes: State, no: State) -> State:
        """`yes` for the samples where `rows` is true, `no` for the others."""
        return self.free.choose(rows, yes, no)

    def mix(self, parts: Array, states: list[State]) -> State:
        """The weighted sum of states for each sample."""
        return self.free.mix(parts, states)

    def solve(self, stop: Stop, solver: Solver = PLAIN) -> State:
        """The solution a.

        It stops when no component changes by more than the tolerance times the largest component;
        without a tolerance it takes `stop.max_steps` steps.

        Raises
        ------
        NotSettledError
            If a has not converged within the steps of `stop`.
        """
        found = solve(self, self.source, solver, stop)
        if stop.tolerance is None or found.status is SolveStatus.CONVERGED:
            return found.state
        raise NotSettledError(
            f"the adjoint has not settled ({found}); give `stop` more steps or bound the weights"
        )
