"""Fixed points of any map: what to solve, how, when to stop, what came back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, TypeAlias

import numpy as np

from neuro_eqprop.arrays import Array, Bits, Ints

State: TypeAlias = dict[str, Any]
Memory: TypeAlias = list[tuple[State, State]]
"""Past steps of one solve, for solvers that look back: f(s) and f(s) - s, newest last."""


class Map(Protocol):
    """A map on states that hold one row for each sample."""

    def __call__(self, state: State) -> State:
        """All parts at once."""
        ...

    def sweep(self, state: State, backwards: bool, damping: float) -> State:
        """One part after another, from the first or from the last, each from the newest state.

        Each goes the part `damping` of its way.
        """
        ...

    def change(self, new: State, old: State) -> Array:
        """For each sample, how far apart two states are."""
        ...

    def dots(self, a: State, b: State) -> Array:
        """For each sample, the scalar product of two states, the first conjugated."""
        ...

    def choose(self, rows: Bits, yes: State, no: State) -> State:
        """`yes` in the samples that `rows` marks, `no` in the others."""
        ...

    def mix(self, parts: Array, states: list[State]) -> State:
        """For each sample, the sum of states, each times its part (samples, states)."""
        ...


class Solver(Protocol):
    """How to take a step towards a fixed point."""

    def step(self, f: Map, state: State, memory: Memory | None = None) -> State:
        """The next state; a solver that looks back adds to `memory`, empty at first."""
        ...


@dataclass(frozen=True, slots=True)
class Damped:
    """s <- s + damping (f(s) - s), all layers at once."""

    damping: float

    def __post_init__(self) -> None:
        if not 0.0 < self.damping <= 1.0:
            raise ValueError(f"a damping of {self.damping} does not lie in (0, 1]")

    def step(self, f: Map, state: State, memory: Memory | None = None) -> State:
        """Part of the way to f(s)."""
        to = f(state)
        if self.damping == 1.0:
            return to
        return {name: s + self.damping * (to[name] - s) for name, s in state.items()}


@dataclass(frozen=True, slots=True)
class GaussSeidel:
    """Layer by layer, each set to its exact answer to the newest state of the others.

    Forwards carries news from the input to all layers in one sweep, backwards from the output. With
    a `damping` below one each goes only that part of the way, which calms loops and attention.
    """

    backwards: bool = False
    damping: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.damping <= 1.0:
            raise ValueError(f"a damping of {self.damping} does not lie in (0, 1]")

    def step(self, f: Map, state: State, memory: Memory | None = None) -> State:
        """One sweep."""
        return f.sweep(state, self.backwards, self.damping)


Inner: TypeAlias = Damped | GaussSeidel


@dataclass(frozen=True, slots=True)
class Anderson:
    """The mix of the last `depth` steps that would have moved least, of each sample by itself.

    With g_k = f(s_k) - s_k, the weights a (summing to one) minimise |sum a_k g_k|, and the next
    state is sum a_k f(s_k). Pays where f contracts; elsewhere it can do harm. Of complex states the
    weights are complex.
    """

    inner: Inner = GaussSeidel()
    depth: int = 4
    ridge: float = 1e-10

    def step(self, f: Map, state: State, memory: Memory | None = None) -> State:
        """The mix of what `memory` keeps and this step."""
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
        return f.mix(a / a.sum(axis=1, keepdims=True), [there for there, _ in kept])


class Outcome(Enum):
    """How a solve ended."""

    CONVERGED = "converged"
    OUT_OF_STEPS = "ran out of steps"
    NOT_FINITE = "diverged (NaN or inf)"


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop after `max_steps`, or when no rate moves more than `tolerance` in a step.

    Each sample stops by itself, also one that diverges, and then keeps its state,
    so that its answer does not depend on its company. Without a tolerance, exactly `max_steps` are
    taken, and the last is measured unless even that is too much (the residual is then no number).
    """

    tolerance: float | None
    max_steps: int
    measured: bool = True

    def __post_init__(self) -> None:
        if self.max_steps < 1:
            raise ValueError(f"{self.max_steps} steps are too few; take at least one")
        if self.tolerance is not None and not self.tolerance > 0:
            raise ValueError(f"a tolerance must be above zero, not {self.tolerance}")


@dataclass(frozen=True, slots=True)
class Equilibrium:
    """Where a solve ended: the state, and of each sample the steps taken and the last change."""

    state: State
    steps: Ints
    residual: Array
    outcome: Outcome

    def __str__(self) -> str:
        worst = float(np.max(self.residual))
        return f"{self.outcome.value} after {int(self.steps.max())} steps, last change {worst:.1e}"


def solve(f: Map, start: State, solver: Solver, stop: Stop) -> Equilibrium:
    """Iterate from `start` until `stop` says so."""
    if stop.tolerance is None:
        return march(f, start, solver, stop)
    state = start
    residual = np.full(len(next(iter(start.values()))), np.inf)
    steps = np.zeros(len(residual), dtype=np.int64)
    moving = np.ones(len(residual), dtype=bool)
    memory: Memory = []
    for _ in range(stop.max_steps):
        new = solver.step(f, state, memory)
        change = f.change(new, state)
        state = new if moving.all() else f.choose(moving, new, state)
        residual = np.where(moving, change, residual)
        steps += moving
        moving = moving & np.isfinite(change) & (change > stop.tolerance)
        if not moving.any():
            break
    outcome = Outcome.OUT_OF_STEPS if moving.any() else Outcome.CONVERGED
    if not np.isfinite(residual).all():
        outcome = Outcome.NOT_FINITE
    return Equilibrium(state, steps, residual, outcome)


def march(f: Map, start: State, solver: Solver, stop: Stop) -> Equilibrium:
    """Take exactly so many steps."""
    state = old = start
    memory: Memory = []
    for _ in range(stop.max_steps):
        old, state = state, solver.step(f, state, memory)
    return counted(f, state, old, stop)


def counted(f: Map, state: State, old: State, stop: Stop) -> Equilibrium:
    """Where exactly so many steps ended, the last of them from `old`."""
    return marched(state, f.change(state, old) if stop.measured else np.empty(0), stop)


def marched(state: State, residual: Array, stop: Stop) -> Equilibrium:
    """Where exactly so many steps ended, with a last change of `residual` if that is measured."""
    steps = np.full(len(next(iter(state.values()))), stop.max_steps, dtype=np.int64)
    if not stop.measured:
        return Equilibrium(state, steps, np.full(len(steps), np.nan), Outcome.OUT_OF_STEPS)
    finite = bool(np.isfinite(residual).all())
    outcome = Outcome.OUT_OF_STEPS if finite else Outcome.NOT_FINITE
    return Equilibrium(state, steps, residual, outcome)
