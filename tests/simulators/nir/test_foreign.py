"""Nodes of foreign graphs against their equations."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.api.from_nir import NirModel
from neuro_eqprop.common.arrays import Array
from neuro_eqprop.simulators.nir.assume import Assumptions
from neuro_eqprop.simulators.nir.document import NirError

nir = pytest.importorskip("nir")
DT, STEPS = 1e-3, 16
SYNC = Assumptions(DT, delay=1, start=0.0)


def graph(*named: tuple[str, Any], size: int, shape: tuple[int, ...], loops: Any = ()) -> Any:  # noqa: ANN401
    nodes = {
        "input": nir.Input(np.array(shape)),
        **dict(named),
        "output": nir.Output(np.array([size])),
    }
    names = list(nodes)
    edges = [*pairwise(names), *loops]
    return nir.NIRGraph(nodes, edges, type_check=False)


def integrators(size: int, **values: Any) -> Any:  # noqa: ANN401
    return nir.IF(r=np.full(size, 1 / DT), v_threshold=np.ones(size), **values)


def foreign(made: Any, assume: Assumptions) -> NirModel:  # noqa: ANN401
    """The model of a graph of another framework."""
    model = ne.from_nir(made, assume)
    assert isinstance(model, NirModel)
    return model


def spikes(model: Any, x: Array) -> Array:  # noqa: ANN401
    """What the output sends (steps, units) for one sample."""
    name = model.network.output
    train = model.record(x[None], on="reference", steps=STEPS).spikes[name]
    found = np.zeros((STEPS, model.network[name].size), dtype=bool)
    found[train.step, train.unit] = True
    return found


def integrated(current: Array) -> Array:
    """Spikes of integrators that are reset to zero."""
    v, found = np.zeros(current.size), []
    for _ in range(STEPS):
        v = v + current
        found.append(v >= 1)
        v = np.where(found[-1], 0.0, v)
    return np.array(found)


@pytest.mark.parametrize(
    ("node", "shape", "wanted"),
    [
        (
            lambda: nir.Conv1d(
                6, np.array([[[0.5, 0.25]], [[-0.25, 1.0]]]), 2, 0, 1, 1, np.full(2, 0.125)
            ),
            (1, 6),
            lambda x: np.ravel(
                [
                    [0.5 * x[k] + 0.25 * x[k + 1] + 0.125 for k in (0, 2, 4)],
                    [-0.25 * x[k] + x[k + 1] + 0.125 for k in (0, 2, 4)],
                ]
            ),
        ),
        (
            lambda: nir.AvgPool2d(np.array([2, 2]), np.array([2, 2]), np.array([0, 0])),
            (1, 4, 4),
            lambda x: x.reshape(2, 2, 2, 2).mean(axis=(1, 3)).ravel(),
        ),
        (
            lambda: nir.SumPool2d(np.array([2, 2]), np.array([2, 2]), np.array([0, 0])),
            (1, 4, 4),
            lambda x: x.reshape(2, 2, 2, 2).sum(axis=(1, 3)).ravel(),
        ),
        (lambda: nir.Scale(np.array([0.5, 2.0, -1.0])), (3,), lambda x: x * [0.5, 2.0, -1.0]),
    ],
)
def test_linear_nodes_give_the_currents_of_their_equations(
    node: Any,  # noqa: ANN401
    shape: tuple[int, ...],
    wanted: Any,  # noqa: ANN401
) -> None:
    x = np.rint(16 * np.random.default_rng(0).random(int(np.prod(shape)))) / 16
    current = wanted(x)
    flat = nir.Flatten({"input": np.array(shape)}, 0, -1)
    made = graph(
        ("node", node()),
        ("flat", flat),
        ("n", integrators(current.size)),
        size=current.size,
        shape=shape,
    )
    np.testing.assert_array_equal(spikes(ne.from_nir(made, SYNC), x), integrated(current))


def test_delays_thresholds_and_graphs_within_a_graph() -> None:
    delay = nir.Delay(np.array([1, 3]) * DT)
    inner = nir.NIRGraph(
        {"input": nir.Input(np.array([2])), "d": delay, "output": nir.Output(np.array([2]))},
        [("input", "d"), ("d", "output")],
    )
    made = graph(
        ("n", integrators(2)),
        ("inner", inner),
        ("step", nir.Threshold(np.array([0.5, 0.5]))),
        size=2,
        shape=(2,),
    )
    x = np.array([0.5, 0.25])
    first, found = integrated(x), spikes(ne.from_nir(made, SYNC), x)
    for unit, late in enumerate((2, 4)):  # its delay, and the step of each edge
        np.testing.assert_array_equal(found[late:, unit], first[:-late, unit])
        assert not found[:late, unit].any()


def test_constants_of_each_neuron_and_a_reset_below_zero() -> None:
    leak, back = np.array([0.5, 0.25, 0.5]), np.array([0.0, -0.5, -1.0])
    rest, top = np.array([0.0, 0.5, 0.25]), np.array([1.0, 1.5, 1.0])
    cells = nir.LIF(tau=DT / leak, r=np.ones(3), v_leak=rest, v_threshold=top, v_reset=back)
    made = graph(("n", cells), size=3, shape=(3,))
    x = np.array([3.0, 4.0, 2.0])
    model = ne.from_nir(made, SYNC)
    v, wanted = np.zeros(3), []
    for _ in range(STEPS):
        v = v + leak * (rest - v + x)
        wanted.append(v >= top)
        v = np.where(wanted[-1], back, v)
    # Time constants that differ make several populations, which one more joins.
    late = 1
    np.testing.assert_array_equal(spikes(model, x)[late:], np.array(wanted)[:-late])
    assert model.run(x[None], steps=STEPS).rates["n"].shape == (1, 3)


def test_a_readout_integrates_and_does_not_fire() -> None:
    readout = nir.LI(tau=np.full(2, 4 * DT), r=np.full(2, 4.0), v_leak=np.zeros(2))
    weight = np.array([[1.0, 0.0], [0.5, 0.5]])
    made = graph(
        ("n", integrators(2)), ("w", nir.Linear(weight)), ("o", readout), size=2, shape=(2,)
    )
    model, x = ne.from_nir(made, SYNC), np.array([0.5, 0.25])
    trace = model.record(x[None], on="reference", steps=STEPS, record=["o:voltage"])
    v, sent = np.zeros(2), np.vstack([np.zeros((1, 2)), integrated(x)[:-1]])
    for step in range(STEPS):
        v = 0.75 * v + weight @ sent[step]
        np.testing.assert_allclose(trace.signals["o", "voltage"][step], v)
    assert not trace.spikes["o"].step.size


def test_nodes_that_are_not_supported_are_named() -> None:
    made = graph(
        ("odd", nir.Sequence if hasattr(nir, "Sequence") else nir.I(np.ones(2))), size=2, shape=(2,)
    )
    with pytest.raises(NirError, match="its node 'odd' is a"):
        ne.from_nir(made, SYNC)


def test_the_energy_of_a_foreign_graph_is_estimated() -> None:
    made = graph(("w", nir.Linear(np.eye(3))), ("n", integrators(3)), size=3, shape=(3,))
    model = ne.from_nir(made, SYNC)
    run = model.run(np.full((2, 3), 0.5), steps=STEPS)
    assert (ne.estimate_energy(run, "loihi1").joules or 0) > 0
    assert [row.layer for row in model.budget("loihi2").layers] == ["n"]


def test_an_output_of_weights_is_a_readout_that_sums_them() -> None:
    weight, bias = np.array([[1.0, -1.0], [0.5, 0.25], [0.0, 2.0]]), np.array([0.125, 0.0, 0.25])
    made = graph(("n", integrators(2)), ("w", nir.Affine(weight, bias)), size=3, shape=(2,))
    model, x = foreign(made, replace(SYNC, delay=0)), np.array([0.5, 0.25])
    trace = model.record(x[None], on="reference", steps=STEPS, record=["output:drive"])
    wanted = integrated(x)[:-1] @ weight.T + bias
    np.testing.assert_array_equal(trace.signals["output", "drive"][model.latency :], wanted)
    assert not trace.spikes["output"].step.size


def test_a_flatten_before_the_output_leaves_its_neurons_the_output() -> None:
    cells = nir.IF(r=np.full((1, 1, 2), 1 / DT), v_threshold=np.ones((1, 1, 2)))
    flat = nir.Flatten({"input": np.array([1, 1, 2])}, 0, -1)
    model = ne.from_nir(graph(("n", cells), ("f", flat), size=2, shape=(1, 1, 2)), SYNC)
    assert model.network.output == "n"


def test_values_for_all_neurons_and_an_axis_of_samples_as_frameworks_write_them() -> None:
    weight = np.array([[0.5, 0.25], [1.0, 0.5], [0.25, 0.0]])
    one = nir.LIF(
        tau=np.array(4 * DT), r=np.array(4.0), v_leak=np.zeros(()), v_threshold=np.ones(())
    )
    many = nir.LIF(
        tau=np.full(3, 4 * DT), r=np.full(3, 4.0), v_leak=np.zeros(3), v_threshold=np.ones(3)
    )
    made = [
        graph(("w", nir.Linear(weight)), ("n", cells), size=3, shape=shape)
        for cells, shape in ((one, (1, 2)), (many, (2,)))
    ]
    first, second = (ne.from_nir(each, SYNC).network for each in made)
    assert first.digest == second.digest


def test_time_constants_of_single_precision_are_the_decays_that_they_were_made_of() -> None:
    step, leak = np.float32(1e-4), np.array([0.125, 0.25], np.float32)
    cells = nir.LIF(
        tau=step / leak, r=1 / leak, v_leak=np.zeros(2), v_threshold=np.ones(2, np.float32)
    )
    model = ne.from_nir(graph(("n", cells), size=2, shape=(2,)), "snntorch")
    neurons: list[Any] = [p.neuron for p in model.network.populations[:2]]
    assert sorted(each.voltage_decay for each in neurons) == [0.125, 0.25]
    np.testing.assert_array_equal(model.input_weights["n[0]"].sum(), 1.0)


@pytest.mark.parametrize("start", ["reset", "leak"])
def test_a_sample_starts_where_the_framework_starts_it_in_later_layers_too(start: str) -> None:
    leak, back, rest = 0.5, -0.5, -0.25
    late = nir.LIF(
        tau=np.full(2, DT / leak),
        r=np.full(2, 1 / leak),
        v_leak=np.full(2, rest),
        v_threshold=np.ones(2),
        v_reset=np.full(2, back),
    )
    made = graph(
        ("n", integrators(2)), ("w", nir.Linear(np.eye(2))), ("o", late), size=2, shape=(2,)
    )
    model, x = foreign(made, replace(SYNC, delay=0, start=start)), np.array([0.75, 0.5])
    v, wanted = np.full(2, back if start == "reset" else rest), []
    for sent in integrated(x):
        v = v + leak * (rest - v) + sent
        wanted.append(v >= 1)
        v = np.where(wanted[-1], back, v)
    found = spikes(model, x)[model.latency :]
    np.testing.assert_array_equal(found, np.array(wanted)[: len(found)])


def test_any_names_and_a_step_that_the_graph_states() -> None:
    weight = nir.Linear(np.eye(2))
    made = graph(
        ("on", integrators(2)), ("w", weight), ("a.b", integrators(2)), ("v", weight),
        ("a_b", integrators(2)), size=2, shape=(2,),
    )  # fmt: skip
    made.nodes["source"] = made.nodes.pop("input")
    made.nodes["input"] = made.nodes.pop("on")
    new = {"input": "source", "on": "input"}
    made.edges = [(new.get(a, a), new.get(b, b)) for a, b in made.edges]
    made.metadata["dt"] = DT
    model = ne.from_nir(made, replace(SYNC, dt=0.5))
    ports = {"".join(c if c.isalnum() else "_" for c in p.name) for p in model.network.populations}
    assert model.network.dt == DT
    assert len(ports) == 3
    assert spikes(model, np.ones(2)).any()


def test_an_input_that_is_filtered_arrives_as_spikes_and_says_so() -> None:
    values = {"r": np.full(2, 4.0), "w_in": np.full(2, 2.0), "v_leak": np.zeros(2)}
    cells = nir.CubaLIF(
        tau_syn=np.full(2, 2 * DT), tau_mem=np.full(2, 4 * DT), v_threshold=np.ones(2), **values
    )
    made = graph(("n", cells), size=2, shape=(2,))
    with pytest.warns(UserWarning, match="arrives as spikes.*'n' filters"):
        model = ne.from_nir(made, SYNC)
    assert spikes(model, np.array([0.5, 1.0])).any()
    with pytest.raises(NirError, match=r"rates of 0\.\.1"):
        model.run(np.array([[0.5, 2.0]]))
    with pytest.raises(NirError, match="'n' filters"):
        ne.from_nir(made, replace(SYNC, spikes=False))


def test_an_unknown_start_is_refused() -> None:
    with pytest.raises(ValueError, match="rest"):
        Assumptions(DT, start="rest")
