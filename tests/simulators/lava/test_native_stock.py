"""A network of Lava's own processes, connected in a user's way, settles where the rates do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.inference import infer
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR, RELU, TANH
from neuro_eqprop.networks.architectures import layered
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.simulators.lava.export import stock_plan
from neuro_eqprop.spiking.codes import GRADED, RATE, Code, Coding
from neuro_eqprop.spiking.lower import lower

if TYPE_CHECKING:
    from neuro_eqprop.simulators.lava.native.stock.network import StockNetwork

pytestmark = pytest.mark.lava

SAMPLES = 4
NETWORKS = {
    "hard sigmoid": layered(12, (20,), 4, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID),
    "relu": layered(12, (20,), 4, hidden_rate=RELU, output_rate=LINEAR, feedback=0.1),
}


def spiking(
    network: Network, code: Code, *, bits: int | None = None, reset_interval: int | None = None
) -> tuple[StockNetwork, dict[str, Array]]:
    params = initialize(network, np.random.default_rng(3))
    params["output"] = np.array([0.1, 0.3, 0.2, 0.4])
    lowered = lower(network, params, dt=1e-3, coding=Coding(code), nudged=False)
    feeds = {"hidden": params["input->hidden"]}
    plan = stock_plan(lowered, feeds, bits=bits, reset_interval=reset_interval)
    from neuro_eqprop.simulators.lava.native.stock.network import StockNetwork

    return StockNetwork(plan), params


def run(net: StockNetwork, data: Array, steps: int, *names: str) -> list[Array]:
    from lava.magma.core.run_conditions import RunSteps
    from lava.magma.core.run_configs import Loihi2SimCfg
    from lava.proc.io.sink import RingBuffer as Sink
    from lava.proc.io.source import RingBuffer as Source

    source = Source(data=data)
    source.s_out.connect(net.inp)
    sinks = []
    for port in (getattr(net, name) for name in names):
        sinks.append(Sink(shape=port.shape, buffer=steps))
        port.connect(sinks[-1].a_in)
    try:
        net.run(condition=RunSteps(steps), run_cfg=Loihi2SimCfg(select_tag=net.tag))
        return [sink.data.get() for sink in sinks]
    finally:
        net.stop()


@pytest.mark.parametrize(
    ("name", "code", "bits", "reset"),
    [
        ("hard sigmoid", GRADED, None, True),
        ("hard sigmoid", GRADED, None, False),
        ("hard sigmoid", GRADED, 8, True),
        ("hard sigmoid", RATE, None, True),
        ("hard sigmoid", RATE, 8, True),
        ("relu", GRADED, None, True),
    ],
)
def test_stock_processes_settle_where_the_rates_do(
    name: str, code: Code, bits: int | None, reset: bool
) -> None:
    network, steps = NETWORKS[name], code.steps
    net, params = spiking(network, code, bits=bits, reset_interval=steps if reset else None)
    x = np.random.default_rng(0).random((SAMPLES, 12))
    hidden, out = run(net, net.encode(x, steps), SAMPLES * steps, "s_hidden", "out")
    found = infer(NumpyOps(), network, params, x)
    assert np.sqrt(np.mean((net.rates(hidden, steps) - found.state["hidden"]) ** 2)) < 0.02
    np.testing.assert_array_equal(net.decode(out, steps), found.drive.argmax(axis=1))


def test_the_table_lists_every_leaf_process_with_its_size() -> None:
    net, _ = spiking(NETWORKS["hard sigmoid"], GRADED, reset_interval=32)
    rows = {row.name: row for row in net.processes()}
    assert rows["hidden"].kind == "SigmaDelta"
    assert rows["hidden"].units == 40
    assert rows["hidden->output"].synapses == 40 * 8
    assert all(row.stock for row in rows.values())
    assert "SigmaDelta" in str(net)


def test_an_unconnected_input_and_wrong_samples_are_errors_before_the_run() -> None:
    from lava.magma.core.run_conditions import RunSteps
    from lava.magma.core.run_configs import Loihi2SimCfg

    net, _ = spiking(NETWORKS["hard sigmoid"], GRADED, reset_interval=8)
    with pytest.raises(ValueError, match="12"):
        net.encode(np.zeros((2, 5)), 8)
    with pytest.raises(ValueError, match="resets every 8"):
        net.encode(np.zeros((2, 12)), 9)
    with pytest.raises(ValueError, match="`inp` is not connected"):
        net.run(condition=RunSteps(8), run_cfg=Loihi2SimCfg(select_tag=net.tag))


@pytest.mark.parametrize(
    ("network", "code", "options", "reason"),
    [
        (layered(12, (9,), 4, hidden_rate=TANH, output_rate=LINEAR), GRADED, {}, "tanh"),
        (NETWORKS["hard sigmoid"], RATE, {}, "reset_interval"),
        (NETWORKS["hard sigmoid"], GRADED, {"bits": 5}, "8 bits"),
    ],
)
def test_what_stock_processes_cannot_do_is_refused_in_a_sentence(
    network: Network, code: Code, options: dict[str, int], reason: str
) -> None:
    with pytest.raises(BackendError, match=reason):
        spiking(network, code, **options)
