from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuro_eqprop.common.arrays import Array, Bits
from neuro_eqprop.dynamics.solve import (
    Anderson,
    Damped,
    Equilibrium,
    GaussSeidel,
    Solver,
    SolveStatus,
    State,
    Stop,
    solve,
)

SOLVERS: list[Solver] = [Damped(1.0), Damped(0.4), GaussSeidel(), GaussSeidel(backwards=True)]


@dataclass(frozen=True)
class Affine:
    """s <- A s + c on two parts of three units each, with a row of c for each sample."""

    matrix: Array
    shift: Array

    def __call__(self, state: State) -> State:
        whole = self.image(state)
        return {"a": whole[:, :3], "b": whole[:, 3:]}

    def image(self, state: State) -> Array:
        # Not as a product of matrices: that may round a row differently in other company.
        rows = np.concatenate([state["a"], state["b"]], axis=1)
        products = (rows[:, None, :] * self.matrix).sum(axis=2)
        return np.asarray(products + self.shift)

    def sweep(self, state: State, backwards: bool, damping: float) -> State:
        newest = dict(state)
        for name in ("b", "a") if backwards else ("a", "b"):
            newest[name] = newest[name] + damping * (self(newest)[name] - newest[name])
        return newest

    def mix(self, parts: Array, states: list[State]) -> State:
        rows = [parts[:, k, None] for k in range(len(states))]
        return {n: sum(r * s[n] for r, s in zip(rows, states, strict=True)) for n in states[0]}

    def change(self, new: State, old: State) -> Array:
        moved = [np.abs(new[k] - old[k]).max(axis=1) for k in new]
        return np.asarray(np.max(moved, axis=0))

    def dots(self, a: State, b: State) -> Array:
        return np.asarray(sum((a[k].conj() * b[k]).sum(axis=1) for k in a))

    def choose(self, rows: Bits, yes: State, no: State) -> State:
        return {k: np.where(rows[:, None], yes[k], no[k]) for k in yes}

    def zero_state(self) -> State:
        return {"a": np.zeros((len(self.shift), 3)), "b": np.zeros((len(self.shift), 3))}

    def answer(self) -> Array:
        return np.asarray(np.linalg.solve(np.eye(6) - self.matrix, self.shift.T).T)


def affine(seed: int, *, samples: int, norm: float) -> Affine:
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(6, 6))
    matrix = (matrix + matrix.T) / 2
    # Shifts of very different size: the samples need different numbers of steps. Small enough
    # that float64 resolves changes of 1e-12.
    sizes = 10.0 ** rng.uniform(-5, 1, (samples, 1))
    return Affine(norm * matrix / np.linalg.norm(matrix, 2), sizes * rng.normal(size=(samples, 6)))


def whole(found: Equilibrium) -> Array:
    return np.concatenate([found.state["a"], found.state["b"]], axis=1)


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@settings(derandomize=True, deadline=None, max_examples=15)
@given(seed=st.integers(0, 10_000))
def test_a_contraction_settles_at_its_fixed_point(solver: Solver, seed: int) -> None:
    f = affine(seed, samples=4, norm=0.8)
    # A state of thousands cannot come to rest within 1e-12: it is rounded to 5e-13 in each step.
    tolerance = max(1e-12, 16 * float(np.spacing(np.abs(f.answer()).max())))
    found = solve(f, f.zero_state(), solver, Stop(tolerance, 2000))
    assert found.status is SolveStatus.CONVERGED
    assert np.abs(whole(found) - f.answer()).max() < 1e-9
    assert (found.residual <= tolerance).all()


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@settings(derandomize=True, deadline=None, max_examples=15)
@given(seed=st.integers(0, 10_000))
def test_a_sample_settles_alike_alone_and_in_company(solver: Solver, seed: int) -> None:
    f, stop = affine(seed, samples=5, norm=0.8), Stop(1e-6, 500)
    together = solve(f, f.zero_state(), solver, stop)
    assert len(set(together.steps.tolist())) > 1
    for k in range(5):
        one = Affine(f.matrix, f.shift[k : k + 1])
        alone = solve(one, one.zero_state(), solver, stop)
        assert np.array_equal(whole(alone)[0], whole(together)[k])
        assert alone.steps[0] == together.steps[k]
        assert alone.residual[0] == together.residual[k]


def test_a_sample_that_explodes_leaves_the_others_in_peace() -> None:
    f = affine(0, samples=3, norm=0.8)
    f.shift[1] = np.nan
    found = solve(f, f.zero_state(), Damped(1.0), Stop(1e-10, 500))
    assert found.status is SolveStatus.NOT_FINITE
    assert np.isnan(found.residual[1])
    assert found.steps[1] == 1
    calm = [0, 2]
    assert np.abs(whole(found)[calm] - f.answer()[calm]).max() < 1e-7


def test_a_sample_that_has_stopped_does_not_start_again() -> None:
    # The first step is smaller than the tolerance, the next would be large.
    slow_start = Affine(3.0 * np.eye(6), np.array([np.full(6, 1e-4), np.full(6, 1e-2)]))
    found = solve(slow_start, slow_start.zero_state(), Damped(1.0), Stop(2e-4, 4))
    assert found.steps.tolist() == [1, 4]
    assert np.array_equal(whole(found)[0], np.full(6, 1e-4))


def test_running_out_of_steps_is_reported() -> None:
    f = affine(0, samples=3, norm=0.8)
    found = solve(f, f.zero_state(), Damped(1.0), Stop(1e-12, 4))
    assert found.status is SolveStatus.OUT_OF_STEPS
    assert found.steps.tolist() == [4, 4, 4]
    assert "ran out of steps after 4 steps" in str(found)


@pytest.mark.parametrize("tolerance", [None, 1e-9])
def test_divergence_is_reported(tolerance: float | None) -> None:
    f = affine(0, samples=2, norm=1e6)
    with np.errstate(all="ignore"):
        found = solve(f, f.zero_state(), Damped(1.0), Stop(tolerance, 200))
    assert found.status is SolveStatus.NOT_FINITE


def test_without_a_tolerance_all_steps_are_taken() -> None:
    f = affine(0, samples=2, norm=0.1)
    found = solve(f, f.zero_state(), GaussSeidel(), Stop(None, 60))
    assert found.steps.tolist() == [60, 60]
    assert found.status is SolveStatus.OUT_OF_STEPS
    assert found.residual.max() < 1e-12
    assert np.abs(whole(found) - f.answer()).max() < 1e-9


def test_the_residual_is_the_last_change() -> None:
    f = affine(1, samples=3, norm=0.8)
    for tolerance in (None, 1e-300):
        found = solve(f, f.zero_state(), Damped(0.5), Stop(tolerance, 7))
        before = solve(f, f.zero_state(), Damped(0.5), Stop(tolerance, 6))
        assert np.array_equal(found.residual, f.change(found.state, before.state))


def test_the_start_is_left_as_it_was() -> None:
    f = affine(0, samples=2, norm=0.5)
    start = f.zero_state()
    solve(f, start, Damped(0.5), Stop(1e-6, 50))
    assert not start["a"].any()


@pytest.mark.parametrize(("tolerance", "steps"), [(1e-3, 0), (0.0, 5), (-1.0, 5), (np.nan, 5)])
def test_an_impossible_stop_is_refused(tolerance: float, steps: int) -> None:
    with pytest.raises(ValueError, match=r"at least one|above zero"):
        Stop(tolerance, steps)


@pytest.mark.parametrize("damping", [0.0, -0.5, 1.5, np.nan])
def test_an_impossible_damping_is_refused(damping: float) -> None:
    for kind in (Damped, lambda d: GaussSeidel(damping=d)):
        with pytest.raises(ValueError, match="damping"):
            kind(damping)


def test_damped_sweeps_arrive_at_the_same_place() -> None:
    f = affine(0, samples=3, norm=0.6)
    found = solve(f, f.zero_state(), GaussSeidel(damping=0.7), Stop(1e-12, 300))
    assert found.status is SolveStatus.CONVERGED
    np.testing.assert_allclose(whole(found), f.answer(), rtol=1e-8)


def test_anderson_arrives_sooner_at_the_same_place() -> None:
    f = affine(2, samples=5, norm=0.95)
    plain = solve(f, f.zero_state(), GaussSeidel(), Stop(1e-9, 500))
    mixed = solve(f, f.zero_state(), Anderson(), Stop(1e-9, 500))
    np.testing.assert_allclose(whole(mixed), f.answer(), rtol=1e-6, atol=1e-7)
    assert mixed.status is SolveStatus.CONVERGED
    assert (mixed.steps < 0.7 * plain.steps).all()


def test_anderson_of_a_sample_does_not_depend_on_its_company() -> None:
    f = affine(2, samples=4, norm=0.9)
    alone = Affine(f.matrix, f.shift[2:3])
    one = solve(alone, alone.zero_state(), Anderson(), Stop(None, 9))
    all_four = solve(f, f.zero_state(), Anderson(), Stop(None, 9))
    np.testing.assert_allclose(whole(one)[0], whole(all_four)[2], rtol=1e-9)


def test_anderson_arrives_where_states_are_complex() -> None:
    f = affine(2, samples=3, norm=0.95)
    f = Affine(f.matrix, f.shift * np.exp(1j * np.arange(6)))
    start = {name: part.astype(complex) for name, part in f.zero_state().items()}
    plain = solve(f, start, GaussSeidel(), Stop(1e-9, 500))
    mixed = solve(f, start, Anderson(), Stop(1e-9, 500))
    np.testing.assert_allclose(whole(mixed), f.answer(), rtol=1e-6, atol=1e-7)
    assert mixed.status is SolveStatus.CONVERGED
    assert (mixed.steps < 0.7 * plain.steps).all()
