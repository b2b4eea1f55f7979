from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.networks.activations import HARD_SIGMOID, TANH
from neuro_eqprop.networks.architectures import layered, looped
from neuro_eqprop.networks.initialize import INITIAL_COUPLING, initialize
from neuro_eqprop.networks.network import (
    Connection,
    Layer,
    Network,
    Role,
    check_parameters,
)

RATES: dict[str, Any] = {"hidden_rate": HARD_SIGMOID, "output_rate": HARD_SIGMOID}


def test_layers_take_names_as_well_as_objects() -> None:
    layer = Layer("hidden", 5, "hard_sigmoid", "output")
    assert layer == Layer("hidden", (5,), HARD_SIGMOID, Role.OUTPUT)
    assert replace(layer, shape=(2, 3)).size == 6
    with pytest.raises(ValueError, match="unknown activation 'rleu'; known: relu"):
        Layer("hidden", 5, "rleu")
    with pytest.raises(ValueError, match="unknown role of a layer 'inputt'; known: input"):
        Layer("hidden", 5, "relu", "inputt")
    with pytest.raises(TypeError, match="activation of layer 'hidden' is None; give a name"):
        Layer("hidden", 5, None)  # type: ignore[arg-type]


def test_an_operator_by_name_is_refused() -> None:
    wrong = Connection("input", "hidden1", "dense")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="operator of connection 'input->hidden1' is a str"):
        replace(two_hidden(), connections=(wrong,))


def test_the_repr_of_a_network_is_short() -> None:
    assert repr(two_hidden()) == "Network(input 6, hidden1 5, hidden2 4, output 3; 3 connections)"


def two_hidden(bound: float | None = None) -> Network:
    return layered(6, (5, 4), 3, **RATES, bound=bound, feedback=1.0)


def loop(bound: float | None = 0.9) -> Network:
    return looped(6, 7, 3, **RATES, bound=bound)


def test_layered_is_a_chain() -> None:
    network = two_hidden(0.6)
    assert [layer.name for layer in network.layers] == ["input", "hidden1", "hidden2", "output"]
    assert [layer.role for layer in network.layers] == [
        Role.INPUT,
        Role.HIDDEN,
        Role.HIDDEN,
        Role.OUTPUT,
    ]
    assert network.parameters() == {
        "input->hidden1": (5, 6),
        "hidden1->hidden2": (4, 5),
        "hidden2->output": (3, 4),
        "hidden1": (5,),
        "hidden2": (4,),
        "output": (3,),
    }
    assert [c.bound for c in network.connections] == [None, 0.6, 0.6]
    assert [network.feeds_back(c) for c in network.connections] == [False, True, True]


def test_looped_joins_its_hidden_layer_to_itself() -> None:
    network = loop()
    connection = next(c for c in network.connections if c.loops)
    assert (connection.name, connection.bound) == ("hidden->hidden", 0.9)
    assert not network.feeds_back(connection)


@pytest.mark.parametrize("network", [two_hidden(), two_hidden(0.3), loop(0.2), loop(None)])
def test_initial_parameters_fit_and_start_small(network: Network) -> None:
    params = initialize(network, np.random.default_rng(0))
    check_parameters(network, params)
    for connection in network.connections:
        weight = params[connection.name]
        if connection.source != "input":
            wanted = min(INITIAL_COUPLING, connection.bound or INITIAL_COUPLING)
            assert np.linalg.norm(weight, 2) == pytest.approx(wanted)
        if connection.loops:
            assert np.array_equal(weight, weight.T)
    assert not any(params[layer.name].any() for layer in network.moving)


def test_the_same_generator_gives_the_same_start() -> None:
    one, two, other = (initialize(loop(), np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert all(np.array_equal(one[name], two[name]) for name in one)
    assert not np.array_equal(one["input->hidden"], other["input->hidden"])


X, H, Y = (
    Layer("x", (2,), TANH, Role.INPUT),
    Layer("h", (3,), TANH),
    Layer("y", (2,), TANH, Role.OUTPUT),
)


@pytest.mark.parametrize(
    ("layers", "connections", "reason"),
    [
        ((X, H, H, Y), (), "not unique"),
        ((H, Y), (), "exactly one input"),
        ((X, H), (), "exactly one output"),
        ((X, Y, replace(Y, name="z")), (), "exactly one output"),
        ((X, replace(H, shape=(0,)), Y), (), "'h' has no units"),
        ((X, replace(H, stiffness=0.0), Y), (), "'h': stiffness must be above zero"),
        ((X, replace(H, stiffness=np.nan), Y), (), "'h': stiffness must be above zero"),
        ((X, H, Y), (Connection("x", "g"),), "no layer 'g'"),
        ((X, H, Y), (Connection("h", "x"),), "input layer as its target"),
        (
            (X, H, Y),
            (Connection("h", "y"), Connection("h", "y")),
            "connection names are not unique",
        ),
        ((X, H, Y), (Connection("h", "y", bound=0.0),), "bound must be above zero"),
        ((X, replace(H, shape=(3, 1)), Y), (Connection("x", "h"),), "needs a target of shape"),
    ],
)
def test_what_is_no_network_is_refused(
    layers: tuple[Layer, ...], connections: tuple[Connection, ...], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        Network(layers, connections)


def test_a_layer_is_found_by_its_name_only() -> None:
    assert loop()["hidden"].size == 7
    with pytest.raises(KeyError):
        loop()["nowhere"]


def test_layered_needs_a_hidden_layer() -> None:
    with pytest.raises(ValueError, match="at least one hidden"):
        layered(4, (), 2, **RATES, bound=None, feedback=1.0)


def spoiled(name: str, value: Array | None) -> dict[str, Array]:
    params = initialize(loop(), np.random.default_rng(0))
    if value is None:
        del params[name]
    else:
        params[name] = value
    return params


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("output", None, r"missing \['output'\]"),
        ("more", np.zeros(3), r"extra \['more'\]"),
        ("hidden->output", np.zeros((7, 3)), "shape"),
        ("hidden", np.full(7, np.nan), "'hidden' holds values that are not finite"),
        ("hidden->hidden", np.triu(np.ones((7, 7))), "not a symmetric matrix"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(
    name: str, value: Array | None, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        check_parameters(loop(), spoiled(name, value))
