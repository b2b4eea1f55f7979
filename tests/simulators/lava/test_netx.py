"""Files that lava-dl's own reader loads and runs."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import h5py
import numpy as np
import pytest

from neuro_eqprop.dynamics.inference import infer
from neuro_eqprop.networks.activations import HARD_SIGMOID
from neuro_eqprop.networks.architectures import feed_forward, layered
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.lava.export import stock_plan
from neuro_eqprop.simulators.lava.netx import MESSAGE_BITS, simulate_netx, write_netx
from neuro_eqprop.spiking.codes import GRADED, RATE, Coding
from neuro_eqprop.spiking.lower import lower

RECURRENT = layered(12, (20,), 4, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
NETWORKS = {"recurrent": RECURRENT, "feed-forward": feed_forward(RECURRENT)}
STEPS, SAMPLES = 32, 6


@pytest.fixture
def netx(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """lava-dl's reader; its package `slayer`, which imports OpenCV, is not needed here."""
    package = "lava.lib.dl.slayer"
    for name in (package, f"{package}.neuron", f"{package}.neuron.rf"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(sys.modules[f"{package}.neuron.rf"], "neuron_params", dict, raising=False)
    return import_module("lava.lib.dl.netx.hdf5")


@pytest.mark.lava
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NETWORKS)
def test_lava_dl_runs_the_file_and_predicts_what_the_rates_do(
    name: str, netx: ModuleType, tmp_path: Path
) -> None:
    from lava.magma.core.run_conditions import RunSteps
    from lava.magma.core.run_configs import Loihi2SimCfg
    from lava.proc.io.sink import RingBuffer as Sink
    from lava.proc.io.source import RingBuffer as Source

    network, path = NETWORKS[name], tmp_path / "net.net"
    params = initialize(network, np.random.default_rng(3))
    params["output"] = np.array([0.1, 0.3, 0.2, 0.4])
    lowered = lower(network, params, dt=1e-3, coding=Coding(GRADED), nudged=False)
    coding = write_netx(stock_plan(lowered, {"hidden": params["input->hidden"]}), path)
    x = np.random.default_rng(0).random((SAMPLES, 12))
    net = netx.Network(net_config=str(path), input_message_bits=MESSAGE_BITS)
    source = Source(data=coding.encode(x, STEPS))
    sink = Sink(shape=net.out.shape, buffer=SAMPLES * STEPS)
    source.s_out.connect(net.inp)
    net.out.connect(sink.a_in)
    try:
        net.run(condition=RunSteps(SAMPLES * STEPS), run_cfg=Loihi2SimCfg(select_tag="fixed_pt"))
        messages = sink.data.get()
    finally:
        net.stop()
    np.testing.assert_array_equal(simulate_netx(path, coding.encode(x, STEPS)), messages)
    found = infer(NumpyOps(), network, params, x)
    assert np.abs(coding.rates(messages, STEPS) - found.state["output"]).max() < 0.05
    np.testing.assert_array_equal(coding.decode(messages, STEPS), found.drive.argmax(axis=1))
    with h5py.File(path) as file:
        text = file.attrs["readme"]
    names: dict[str, Any] = {}
    exec(text[text.index("import h5py") : text.index("A sample is sent")], names)
    np.testing.assert_array_equal(
        names["decode"](path, messages, STEPS), coding.decode(messages, STEPS)
    )


def written(network: Network, path: Path) -> None:
    params = initialize(network, np.random.default_rng(0))
    lowered = lower(network, params, dt=1e-3, coding=Coding(GRADED), nudged=False)
    write_netx(stock_plan(lowered, {"hidden": params["input->hidden"]}), path)


def test_the_file_holds_integer_weights_of_every_relu_unit(tmp_path: Path) -> None:
    written(RECURRENT, tmp_path / "net.net")
    with h5py.File(tmp_path / "net.net") as file:
        layer = file["layer/1"]
        assert layer["type"][()] == b"dense_rec"
        assert layer["weight"].shape == (48, 12)
        assert layer["weight_rec"].shape == (48, 48)
        assert layer["weight"].dtype.kind == "i"
    assert [path.name for path in tmp_path.iterdir()] == ["net.net"]


def test_binary_spikes_are_refused(tmp_path: Path) -> None:
    params = initialize(RECURRENT, np.random.default_rng(0))
    lowered = lower(RECURRENT, params, dt=1e-3, coding=Coding(RATE), nudged=False)
    plan = stock_plan(lowered, {"hidden": params["input->hidden"]}, reset_interval=8)
    with pytest.raises(BackendError, match="use code 'graded'"):
        write_netx(plan, tmp_path / "net.net")
