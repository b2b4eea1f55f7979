from __future__ import annotations

import os

import pytest

import neuro_eqprop as ne
from neuro_eqprop.simulators.lava import cores
from neuro_eqprop.simulators.lava.cores import one_core
from neuro_eqprop.spiking.ir import SpikingNetwork

HERE = {3, 5}


@pytest.fixture(scope="module")
def network() -> SpikingNetwork:
    return ne.train("layered", "digits", hidden=(4,), epochs=1, batch=512).to_spiking().network


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cores, with names that no other test takes."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: HERE)
    monkeypatch.setattr(os, "getuid", lambda: -os.getpid())


def test_runs_side_by_side_take_different_cores_as_long_as_there_are_some(
    network: SpikingNetwork,
) -> None:
    with one_core(network) as one, one_core(network) as two, one_core(network) as three:
        assert one is not None
        assert two is not None
        assert three is not None
        assert one | two == HERE
        assert three <= HERE
    with one_core(network) as again:
        assert again == one


def test_a_large_network_takes_all_cores(
    network: SpikingNetwork, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cores, "MOST_SYNAPSES", 10)
    with one_core(network) as free:
        assert free is None
