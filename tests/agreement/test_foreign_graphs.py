"""Drawn NIR graphs of other frameworks: equal spikes on every simulator, and in snnTorch itself."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.common.arrays import Array, UnknownNameError
from neuro_eqprop.simulators.nir.assume import PRESETS, Assumptions, find_assumptions
from neuro_eqprop.simulators.nir.document import NirError
from neuro_eqprop.spiking.ir import Reset

nir = pytest.importorskip("nir")
STEPS, SAMPLES, DT = 24, 2, 1e-4
FEW, MANY = 3, 60
LEAKS = (0.0625, 0.125, 0.25, 0.5)


def dyadic(rng: np.random.Generator, *shape: int, mean: float = 0.1, spread: float = 0.5) -> Array:
    """Weights whose sums are exact in any order."""
    return np.asarray(np.rint(64 * rng.normal(mean, spread, shape)) / 64)


def neurons(rng: np.random.Generator, kind: str, size: int) -> Any:  # noqa: ANN401
    """A neuron node with values of its own for some neurons."""
    leak = rng.choice(LEAKS, size if rng.random() < 0.5 else 1) * np.ones(size)
    given = {"v_threshold": np.ones(size), "v_reset": np.zeros(size)}
    if rng.random() < 0.5:
        given["v_reset"] = np.full(size, rng.choice([-0.5, -1.0]))
    if kind == "IF":
        return nir.IF(r=np.full(size, 1 / DT), **given)
    leaky = {"r": 1 / leak, "v_leak": np.zeros(size)}
    if kind == "LIF":
        return nir.LIF(tau=DT / leak, **leaky, **given)
    fade = rng.choice(LEAKS, size)
    return nir.CubaLIF(tau_syn=DT / fade, tau_mem=DT / leak, w_in=1 / fade, **leaky, **given)


def drawn(seed: int) -> tuple[Any, Assumptions]:
    """A graph, and what is assumed about it."""
    rng = np.random.default_rng(seed)
    delay = int(rng.integers(0, 3))
    assume = Assumptions(DT, delay=delay, start=0.0, strict=bool(rng.random() < 0.5))
    kinds = [str(rng.choice(["IF", "LIF", "CubaLIF"])) for _ in range(int(rng.integers(1, 4)))]
    if "CubaLIF" in kinds:
        assume = replace(assume, spikes=True)
    nodes: dict[str, Any] = {"input": nir.Input(np.array([1, 4, 4]))}
    path = ["input"]

    def add(name: str, node: Any) -> None:  # noqa: ANN401
        nodes[name] = node
        path.append(name)

    weight = dyadic(rng, 2, 1, 3, 3, mean=0.2)
    add("conv", nir.Conv2d((4, 4), weight, 1, 1, 1, 1, dyadic(rng, 2)))
    if rng.random() < 0.5:
        add("pool", nir.SumPool2d(np.array([2, 2]), np.array([2, 2]), np.array([0, 0])))
    size = 8 if "pool" in nodes else 32
    shape = (2, 2, 2) if "pool" in nodes else (2, 4, 4)
    add("flatten", nir.Flatten({"input": np.array(shape)}, 0, -1))
    for number, kind in enumerate(kinds):
        if number:
            fresh = int(rng.integers(3, 7))
            linear = nir.Affine(dyadic(rng, fresh, size), dyadic(rng, fresh, spread=0.2))
            add(f"affine{number}", linear)
            size = fresh
        add(f"cells{number}", neurons(rng, kind, size))
    nodes["output"] = nir.Output(np.array([size]))
    edges = list(pairwise([*path, "output"]))
    if rng.random() < 0.5:
        nodes["loop"] = nir.Linear(dyadic(rng, size, size, mean=-0.2, spread=0.3))
        edges += [(path[-1], "loop"), ("loop", path[-1])]
    return nir.NIRGraph(nodes, edges, type_check=False), assume


def spikes(model: Any, x: Array, on: str) -> Array:  # noqa: ANN401
    """What the output sends (samples * steps, units)."""
    name = model.network.output
    train = model.record(x, on=on, steps=STEPS).spikes[name]
    found = np.zeros((len(x) * STEPS, model.network[name].size))
    found[train.step, train.unit] = train.value
    return found


def seeds(full: bool) -> list[int]:
    """Seeds of the graphs that are drawn: a few of all, which the test prints."""
    chosen = random.Random(os.environ["NEURO_EQPROP_TEST_SEED"]).sample(range(1000), FEW)
    return list(range(MANY)) if full else chosen


@pytest.mark.lava
@pytest.mark.brian2
def test_drawn_graphs_send_the_same_spikes_on_every_simulator(
    request: pytest.FixtureRequest,
) -> None:
    active = 0
    for seed in seeds(bool(request.config.getoption("--full", default=False))):
        print("graph of seed", seed)
        graph, assume = drawn(seed)
        model = ne.from_nir(graph, assume)
        x = np.rint(64 * np.random.default_rng(seed).random((SAMPLES, 16))) / 64
        wanted = spikes(model, x, "reference")
        active += bool(wanted.any())
        for on in ("emulator", "brian2", "lava"):
            np.testing.assert_array_equal(spikes(model, x, on), wanted, err_msg=f"{seed} on {on}")
    assert active


def chain(rng: np.random.Generator, kind: str, *, loop: bool) -> Any:  # noqa: ANN401
    """A graph that snnTorch reads."""
    leak, size = 0.125, 8
    given = {"v_leak": np.zeros(size), "v_threshold": np.ones(size), "v_reset": np.zeros(size)}
    if kind == "LIF":
        cells = nir.LIF(tau=np.full(size, DT / leak), r=np.full(size, 1 / leak), **given)
    else:
        cells = nir.CubaLIF(
            tau_syn=np.full(size, DT / 0.5),
            tau_mem=np.full(size, DT / leak),
            r=np.full(size, 1 / leak),
            w_in=np.full(size, 2.0),
            **given,
        )
    nodes = {
        "input": nir.Input(np.array([6])),
        "a": nir.Affine(dyadic(rng, size, 6), dyadic(rng, size, spread=0.1)),
        "b.lif": cells,
        "c": nir.Affine(dyadic(rng, 4, size), dyadic(rng, 4, spread=0.1)),
        "d": nir.LIF(
            tau=np.full(4, DT / 0.25),
            r=np.full(4, 4.0),
            v_leak=np.zeros(4),
            v_threshold=np.ones(4),
            v_reset=np.zeros(4),
        ),
        "output": nir.Output(np.array([4])),
    }
    edges = list(pairwise(nodes))
    if loop:
        nodes["b.w"] = nir.Linear(dyadic(rng, size, size, mean=-0.1, spread=0.3))
        edges += [("b.lif", "b.w"), ("b.w", "b.lif")]
    return nir.NIRGraph(nodes, edges)


@pytest.mark.snntorch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["LIF", "CubaLIF"])
def test_snntorch_itself_sends_the_spikes_that_its_preset_gives(
    kind: str,
    tmp_path: Any,  # noqa: ANN401
) -> None:
    path, assume = tmp_path / "chain.nir", find_assumptions("snntorch")
    nir.write(path, chain(np.random.default_rng(3), kind, loop=False))
    assume = replace(assume, spikes=kind == "CubaLIF")
    check = ne.check_nir(path, only=["snntorch"], samples=3, steps=40, assume=assume)
    own = [found for found in check.findings if found.reader == "snntorch"]
    assert check.to_json()["events"] > 20
    assert [found.equal for found in own] == [1.0], own


def test_every_door_of_a_foreign_graph() -> None:
    graph = chain(np.random.default_rng(5), "LIF", loop=True)
    model = ne.from_nir(graph, assume="snntorch")
    x = np.rint(64 * np.random.default_rng(1).random((2, 6))) / 64
    run = model.run(x, steps=STEPS)
    assert {name: rates.shape for name, rates in run.rates.items()} == {
        "b.lif": (2, 8),
        "d": (2, 4),
    }
    again = ne.from_nir(model.to_nir())
    assert again.network.digest == model.network.digest
    np.testing.assert_array_equal(again.run(x, steps=STEPS).predictions, run.predictions)
    for refused in (
        lambda: model.record(x, phases=True),
        model.to_snntorch,
        lambda: model.to_lava(learning=True),
    ):
        with pytest.raises(NirError, match=r"phases|trained here"):
            refused()


def test_what_cannot_be_run_names_the_node() -> None:
    nodes = {
        "input": nir.Input(np.array([2])),
        "cells": nir.IF(np.full(2, 1 / DT), np.ones(2)),
        "more": nir.IF(np.full(2, 1 / DT), np.ones(2)),
        "w": nir.Linear(np.eye(2)),
        "output": nir.Output(np.array([2])),
    }
    edges = list(pairwise(["input", "cells", "more", "output"]))
    loop = nir.NIRGraph(nodes, [*edges, ("more", "w"), ("w", "cells")])
    with pytest.raises(NirError, match=r"'cells', 'more'.*read it with delay=1"):
        ne.from_nir(loop, Assumptions(DT, delay=0, start=0.0))
    ne.from_nir(loop, Assumptions(DT, delay=1, start=0.0))
    nodes["w"] = nir.Linear(np.ones((3, 3)))
    with pytest.raises(NirError, match="'w' does not fit"):
        ne.from_nir(
            nir.NIRGraph(nodes, [*edges, ("more", "w"), ("w", "cells")], type_check=False),
            Assumptions(DT),
        )
    nodes["cells"] = nir.IF(np.full(2, 1 / DT), np.ones(2), np.full(2, -1.0))
    plain = nir.NIRGraph(nodes, edges, type_check=False)
    with pytest.raises(NirError, match="'cells' resets to -1, not by subtraction"):
        ne.from_nir(plain, Assumptions(DT, reset=Reset.SUBTRACT))
    with pytest.raises(UnknownNameError, match="nobody"):
        ne.from_nir(plain, assume="nobody")


def test_a_preset_that_its_framework_has_not_confirmed_says_so() -> None:
    assert set(PRESETS) == {"snntorch", "norse", "spikingjelly", "sinabs", "rockpool", "lava-dl"}
    graph = chain(np.random.default_rng(5), "LIF", loop=False)
    with pytest.warns(UserWarning, match="sinabs itself: its neurons send several spikes"):
        ne.from_nir(graph, assume="sinabs")
