"""A spiking network as JSON and arrays, and back."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from neuro_eqprop.networks.activations import HARD_SIGMOID
from neuro_eqprop.networks.architectures import layered
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.spiking.codes import CODES, Coding
from neuro_eqprop.spiking.ir import SpikingNetwork
from neuro_eqprop.spiking.lower import lower
from neuro_eqprop.spiking.quantize import quantise
from neuro_eqprop.spiking.rounding import Rounding
from neuro_eqprop.spiking.serialize import DescriptionError, describe, rebuild


def spiking_network(code: str) -> SpikingNetwork:
    rate = layered(6, (5,), 3, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
    params = initialize(rate, np.random.default_rng(0))
    return lower(rate, params, dt=1e-3, coding=Coding(CODES[code]), nudged=True)


def through_json(network: SpikingNetwork) -> SpikingNetwork:
    described = json.loads(json.dumps(describe(network), allow_nan=False))
    biases = [population.bias for population in network.populations]
    return rebuild(described, biases, [projection.weight for projection in network.projections])


@pytest.mark.parametrize("code", list(CODES))
def test_a_network_of_any_code_survives_json_with_its_digest(code: str) -> None:
    network = spiking_network(code)
    again = through_json(network)
    assert again.digest == network.digest
    assert [p.neuron for p in again.populations] == [p.neuron for p in network.populations]


def test_a_network_in_fixed_point_survives_json_with_its_units() -> None:
    network, _ = quantise(spiking_network("graded"), Rounding(8))
    again = through_json(network)
    assert again.fixed == network.fixed
    assert again.digest == network.digest


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"dt": "1"}, "'1' is no number"),
        ({"dt": True}, "True is no number"),
        ({"output": 3}, "3 is no text"),
        ({"units": {"hidden": None}}, "None is no number"),
    ],
)
def test_values_of_a_wrong_type_are_refused(change: dict[str, Any], reason: str) -> None:
    network = spiking_network("rate")
    biases = [population.bias for population in network.populations]
    weights = [projection.weight for projection in network.projections]
    with pytest.raises(DescriptionError, match=reason):
        rebuild(describe(network) | change, biases, weights)
    with pytest.raises(ValueError, match="zip"):
        rebuild(describe(network), biases[:1], weights)
