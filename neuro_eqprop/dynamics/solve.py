"""Fixed-point solvers: the map, the solver, the stopping rule and the result."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, TypeAlias

import numpy as np

from neuro_eqprop.common.arrays import Array, Bits, Ints

State: TypeAlias = dict[str, Any]
Memory: TypeAlias = list[tuple[State, State]]
"""Past steps of a solve for Anderson mixing: pairs of f(s) and f(s) - s, newest last."""


class Map(Protocol):
    """A map on states; every array of a state has one row for each sample."""

    def __call__(self, state: State) -> State:
        """f(s), all layers updated at once (Jacobi)."""
        ...

    def sweep(self, state: State, backwards: bool, damping: float) -> State:
        """Update one layer after another from the newest state (Gauss-Seidel).

        `backwards` starts at the last layer; `damping` scales each update.
        """
        ...

    def change(self, new: State, old: State) -> Array:
        """The largest difference of two states, for each sample."""
        ...

    def dots(self, a: State, b: State) -> Array:
        """The scalar product of two states for each sample; the first is conjugated."""
        ...

    def choose(self, rows: Bits, yes: State, no: State) -> State:
        """`yes` for the samples where `rows` is true, `no` for the others."""
        ...

    def mix(self, parts: Array, states: list[State]) -> State:
        """The weighted sum of states for each sample; `parts` has the shape (samples, states)."""
        ...


class Solver(Protocol):
    """One step of a fixed-point iteration."""

    def step(self, f: Map, state: State, memory: Memory | None = None) -> State:
        """The next state; a solver that uses past steps appends to `memory`."""
        ...


@dataclass(frozen=True, slots=True)
class Damped:
    """s <- s + damping (f(s) - s), all layers at once (synchronous)."""

    damping: float

    def __post_init__(self) -> None:
        if not 0.0 < self.damping <= 1.0:
            raise ValueError(f"damping must be in (0, 1], not {self.damping}")

    def step(self, f: Map, state: State, memory: Memory | None = None) -> State:
        """One damped step."""
        to = f(state)
        if self.damping == 1.0:
            return to
        return {name: s + self.damping * (to[name] - s) for name, s in state.items()}


@dataclass(frozen=True, slots=True)
class GaussSeidel:
    """A Gauss-Seidel sweep: each layer in turn is set to f of the newest state.

    A forward sweep propagates the input through all layers, a backward sweep the nudge of the
    output. A `damping` below one scales each update, which stabilises loops and attention.
    """

    backwards: bool = False
    damping: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.damping <= 1.0:
            raise ValueError(f"damping must be in (0, 1], not {self.damping}")

    def step(self, f: Map, state: State, memory: Memory | None = None) -> State:
        """One sweep."""
        return f.sweep(state, self.backwards, self.damping)


Inner: TypeAlias = Damped | GaussSeidel


@dataclass(frozen=True, slots=True)
class Anderson:
    """Anderson acceleration over the last `depth` steps, for each sample separately.

    With g_k = f(s_k) - s_k, the weights a (summing to one) minimise |sum a_k g_k|, and the next
    state is sum a_k f(s_k) (Anderson 1965; Walker & Ni 2011). It helps where f contracts and can
    diverge elsewhere. Complex states have complex weights.
    """

    inner: Inner = GaussSeidel()
    depth: int = 4
    ridge: float = 1e-10

    def step(self, f: Map, state: State, memory: Memory | None = None) -> State:
        """The accelerated step."""
        kept = [] if memory is None else memory
        to = self.inner.step(f, state)
        kept.append((to, {name: to[name] - state[name] for name in state}))
        del kept[: -self.depth]
        if len(kept) == 1:
            return to
        gram = np.stack([[f.dots(a, b) for _, b in kept] for _, a in kept]).transpose(2, 0, 1)
        gram = gram.astype(np.result_type(gram, np.float64))
        scale = np.trace(gram, axis1=1, axis2=2)[:, None, None] + 1e-300
        ones = np.ones((len(gram), len(kept), 1))
        a = np.linalg.solve(gram / scale + self.ridge * np.eye(len(kept)), ones)[..., 0]
        return f.mix(a / a.sum(axis=1, keepdims=True), [image for image, _ in kept])


class SolveStatus(Enum):
    """How a solve ended, over all samples."""

    CONVERGED = "converged"
    OUT_OF_STEPS = "ran out of steps"
    NOT_FINITE = "diverged (NaN or inf)"


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop a sample after `max_steps`, or when no rate changes by more than `tolerance` in a step.

    Each sample stops separately and then keeps its state, so its result does not depend on the rest
    of the batch. Without a tolerance exactly `max_steps` are taken; the last change is measured if
    `measured`, else the residual is NaN.
    """

    tolerance: float | None
    max_steps: int
    measured: bool = True

    def __post_init__(self) -> None:
        if self.max_steps < 1:
            raise ValueError(f"max_steps must be at least one, not {self.max_steps}")
        if self.tolerance is not None and not self.tolerance > 0:
            raise ValueError(f"tolerance must be above zero, not {self.tolerance}")


@dataclass(frozen=True, slots=True)
class Equilibrium:
    """The result of a solve: the state, and for each sample the steps and the last change."""

    state: State
    steps: Ints
    residual: Array
    status: SolveStatus

    def __str__(self) -> str:
        worst = float(np.max(self.residual))
        return f"{self.status.value} after {int(self.steps.max())} steps, last change {worst:.1e}"


def solve(f: Map, start: State, solver: Solver, stop: Stop) -> Equilibrium:
    """Iterate `solver` on `f` from `start` until `stop`."""
    if stop.tolerance is None:
        return solve_fixed_steps(f, start, solver, stop)
    state = start
    residual = np.full(next(iter(start.values())).shape[0], np.inf)
    steps = np.zeros(len(residual), dtype=np.int64)
    active = np.ones(len(residual), dtype=bool)
    memory: Memory = []
    for _ in range(stop.max_steps):
        new = solver.step(f, state, memory)
        change = f.change(new, state)
        state = new if active.all() else f.choose(active, new, state)
        residual = np.where(active, change, residual)
        steps += active
        active = active & np.isfinite(change) & (change > stop.tolerance)
        if not active.any():
            break
    status = SolveStatus.OUT_OF_STEPS if active.any() else SolveStatus.CONVERGED
    if not np.isfinite(residual).all():
        status = SolveStatus.NOT_FINITE
    return Equilibrium(state, steps, residual, status)


def solve_fixed_steps(f: Map, start: State, solver: Solver, stop: Stop) -> Equilibrium:
    """Take exactly `stop.max_steps` steps."""
    state = old = start
    memory: Memory = []
    for _ in range(stop.max_steps):
        old, state = state, solver.step(f, state, memory)
    return fixed_steps_result(state, f.change(state, old) if stop.measured else np.empty(0), stop)


def fixed_steps_result(state: State, residual: Array, stop: Stop) -> Equilibrium:
    """The result after `stop.max_steps` steps; `residual` is used if `stop.measured`."""
    steps = np.full(next(iter(state.values())).shape[0], stop.max_steps, dtype=np.int64)
    if not stop.measured:
        return Equilibrium(state, steps, np.full(len(steps), np.nan), SolveStatus.OUT_OF_STEPS)
    finite = bool(np.isfinite(residual).all())
    status = SolveStatus.OUT_OF_STEPS if finite else SolveStatus.NOT_FINITE
    return Equilibrium(state, steps, residual, status)
