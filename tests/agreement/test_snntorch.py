"""What the snnTorch backend does beside the step: exact equality, batches, manners, its absence."""

from __future__ import annotations

import sys
from typing import cast

import numpy as np
import pytest
import torch

from neuro_eqprop.simulators.base import Backend, BackendError
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.simulators.snntorch.modules import Net, SpikingLayer
from neuro_eqprop.simulators.snntorch.simulator import SnnTorch
from neuro_eqprop.simulators.testing import CASES, check_case, draw_case
from neuro_eqprop.simulators.testing.case import Case, run_case

NAMED = {case.name: case for case in CASES}


@pytest.mark.snntorch
@pytest.mark.parametrize(
    "case",
    [
        NAMED["leaky decays"],
        NAMED["graded tanh"],
        NAMED["nudge"],
        *(draw_case(7, n) for n in range(4)),
    ],
    ids=lambda case: case.name,
)
def test_every_bit_is_that_of_the_reference(case: Case) -> None:
    want, got = run_case(load_backend("reference"), case), run_case(load_backend("snntorch"), case)
    for mine, right in zip(got.recordings, want.recordings, strict=True):
        for name in right.spikes:
            assert np.array_equal(mine.spikes[name], right.spikes[name])
        for key in right.signals:
            assert np.array_equal(mine.signals[key], right.signals[key])
    for name in want.result.messages:
        assert got.result.messages[name].dtype == np.int64
        assert np.array_equal(got.result.messages[name], want.result.messages[name])
        assert np.array_equal(got.result.firing[name], want.result.firing[name])
        assert np.array_equal(got.result.drive[name], want.result.drive[name])


@pytest.mark.snntorch
@pytest.mark.parametrize("batch", [1, 3, 4, 5])
def test_batches_change_nothing(batch: int) -> None:
    check_case(cast(Backend, SnnTorch(batch=batch)), NAMED["samples start from rest"])


@pytest.mark.snntorch
def test_nothing_is_left_behind() -> None:
    import snntorch
    import torch

    neurons = len(snntorch.SpikingNeuron.instances)
    before = torch.get_rng_state(), torch.is_grad_enabled(), torch.get_default_dtype()
    check_case(load_backend("snntorch"), NAMED["nudge"])
    after = torch.get_rng_state(), torch.is_grad_enabled(), torch.get_default_dtype()
    assert torch.equal(before[0], after[0])
    assert before[1:] == after[1:]
    assert len(snntorch.SpikingNeuron.instances) == neurons


@pytest.mark.snntorch
def test_neurons_are_those_of_snntorch() -> None:
    import snntorch

    case = NAMED["nudge"]
    net = Net(case.network, case.stimulus)
    kinds = [type(module) for module in net.modules()]
    assert kinds.count(SpikingLayer) == kinds.count(snntorch.Leaky) == 2


def test_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "snntorch", None)
    for module in ("simulator", "modules"):
        monkeypatch.delitem(sys.modules, f"neuro_eqprop.simulators.snntorch.{module}", False)
    with pytest.raises(BackendError, match="pip install 'snntorch"):
        load_backend("snntorch")


@pytest.mark.snntorch
@pytest.mark.parametrize("name", ["leaky decays", "nudge"])
def test_weights_and_states_stay_on_the_device(name: str) -> None:
    """On torch's meta device, which computes shapes only: a copy to the host would fail."""
    case = NAMED[name]
    with torch.no_grad(), torch.device("meta"):
        net = Net(case.network, case.stimulus)
        before = [id(weight) for weight in net.weights]
        for _ in range(4):
            net(0.25)
    assert before == [id(weight) for weight in net.weights]
    for layer in net.populations.values():
        held = (layer.drive, layer.message, layer.held)
        assert {tensor.device.type for tensor in held} == {"meta"}


@pytest.mark.snntorch
def test_a_device_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(BackendError, match="torch has no device 'nowhere'"):
        SnnTorch().on_device("nowhere")
    assert SnnTorch().on_device("cpu") == SnnTorch()
