"""Fixed points of any map: what to solve, how, when to stop, what came back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, TypeAlias

import numpy as np

from neuro_eqprop.arrays import Array, Bits, Ints

State: TypeAlias = dict[str, Any]


class Map(Protocol):
    """A map on states that hold one row for each sample."""

    def __call__(self, state: State) -> State:
        """All parts at once."""
        ...

    def sweep(self, state: State, backwards: bool) -> State:
        """One part after another, from the first or from the last, each from the newest state."""
        ...

    def change(self, new: State, old: State) -> Array:
        """For each sample, how far apart two states are."""
        ...

    def choose(self, rows: Bits, yes: State, no: State) -> State:
        """`yes` in the samples that `rows` marks, `no` in the others."""
        ...


class Solver(Protocol):
    """How to take a step towards a fixed point."""

    def step(self, f: Map, state: State) -> State:
        """The next state."""
        ...


@dataclass(frozen=True, slots=True)
class Damped:
    """s <- s + damping (f(s) - s), all layers at once."""

    damping: float

    def __post_init__(self) -> None:
        if not 0.0 < self.damping <= 1.0:
            raise ValueError(f"a damping of {self.damping} does not lie in (0, 1]")

    def step(self, f: Map, state: State) -> State:
        """Part of the way to f(s)."""
        to = f(state)
        if self.damping == 1.0:
            return to
        return {name: s + self.damping * (to[name] - s) for name, s in state.items()}


@dataclass(frozen=True, slots=True)
class GaussSeidel:
    """Layer by layer, each set to its exact answer to the newest state of the others.

    Forwards carries news from the input to all layers in one sweep, backwards from the output.
    """

    backwards: bool = False

    def step(self, f: Map, state: State) -> State:
        """One sweep."""
        return f.sweep(state, self.backwards)


class Outcome(Enum):
    """How a solve ended."""

    CONVERGED = "converged"
    OUT_OF_STEPS = "ran out of steps"
    NOT_FINITE = "left the finite numbers"


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop after `max_steps`, or when no rate moves more than `tolerance` in a step.

    Each sample stops by itself, also one that leaves the finite numbers, and then keeps its state,
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
    for _ in range(stop.max_steps):
        new = solver.step(f, state)
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
    for _ in range(stop.max_steps):
        old, state = state, solver.step(f, state)
    steps = np.full(len(next(iter(start.values()))), stop.max_steps, dtype=np.int64)
    if not stop.measured:
        return Equilibrium(state, steps, np.full(len(steps), np.nan), Outcome.OUT_OF_STEPS)
    residual = f.change(state, old)
    finite = bool(np.isfinite(residual).all())
    outcome = Outcome.OUT_OF_STEPS if finite else Outcome.NOT_FINITE
    return Equilibrium(state, steps, residual, outcome)
