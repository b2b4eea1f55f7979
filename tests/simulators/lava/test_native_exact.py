"""The Lava process of a model sends, in a user's script, the messages of the backends."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuro_eqprop import open_run
from neuro_eqprop.api.model import Model
from neuro_eqprop.api.spiking_model import SpikingModel
from neuro_eqprop.common.arrays import Array, Ints, UnknownNameError
from neuro_eqprop.data import Dataset, load_digits
from neuro_eqprop.simulators.base import BackendError
from neuro_eqprop.spiking.ir import Graded

pytestmark = pytest.mark.lava
SAMPLES = 3


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load_digits()


@pytest.fixture(scope="module")
def model(trained_run: Path) -> Model:
    return open_run(trained_run).model


def run(spiking: SpikingModel, x: Array, steps: int) -> tuple[dict[str, Array], Ints]:
    """Messages (samples * steps, units) by layer, and the predictions."""
    from lava.magma.core.run_conditions import RunSteps
    from lava.magma.core.run_configs import Loihi2SimCfg
    from lava.proc.io.sink import RingBuffer as Sink
    from lava.proc.io.source import RingBuffer as Source

    net = spiking.to_lava(reset_interval=steps)
    source = Source(data=net.encode(x, steps))
    source.s_out.connect(net.inp)
    total = len(x) * steps
    sinks = {
        name: Sink(shape=getattr(net, name).shape, buffer=total) for name in ("s_hidden", "out")
    }
    for name, sink in sinks.items():
        getattr(net, name).connect(sink.a_in)
    try:
        net.run(condition=RunSteps(total), run_cfg=Loihi2SimCfg(select_tag=net.tag))
        found = {name: sink.data.get() for name, sink in sinks.items()}
    finally:
        net.stop()
    return {"hidden": found["s_hidden"].T, "output": found["out"].T}, net.decode(
        found["out"], steps
    )


@pytest.mark.parametrize(
    ("code", "bits"), [("graded", None), ("rate", None), ("graded", 8), ("rate", 8)]
)
def test_every_message_equals_that_of_the_emulator(
    code: str, bits: int | None, model: Model, data: Dataset
) -> None:
    spiking, steps = model.to_spiking(code=code, bits=bits), 20
    x = data.test.x[:SAMPLES]
    messages, predictions = run(spiking, x, steps)
    trace = spiking.record(x, on="emulator", steps=steps)
    for layer in ("hidden", "output"):
        expected = np.zeros((SAMPLES * steps, messages[layer].shape[1]))
        train = trace.spikes[layer]
        expected[train.step, train.unit] = train.value
        neuron = spiking.network[layer].neuron
        theta = neuron.theta if bits and isinstance(neuron, Graded) else 1.0
        np.testing.assert_array_equal(theta * messages[layer], expected)
    np.testing.assert_array_equal(predictions, spiking.run(x, steps=steps).predictions)


def test_weights_biases_and_states_can_be_read(model: Model) -> None:
    net = model.to_spiking(code="graded").to_lava(reset_interval=8)
    assert net.weights_hidden_output.shape == (10, 24)
    assert net.bias_hidden.shape == (24,)
    assert "GradedPopulation" in str(net)
    assert {row.kind: row.stock for row in net.processes()}["Dense"]


def test_a_wrong_name_an_input_of_spikes_and_an_open_port_are_refused(model: Model) -> None:
    from lava.magma.core.run_conditions import RunSteps
    from lava.magma.core.run_configs import Loihi2SimCfg

    with pytest.raises(UnknownNameError, match="exact"):
        model.to_spiking(code="graded").to_lava(neurons="exakt")
    with pytest.raises(BackendError, match="input='current'"):
        model.to_spiking(code="graded", input="graded").to_lava()
    net = model.to_spiking(code="graded").to_lava()
    with pytest.raises(ValueError, match="`inp` is not connected"):
        net.run(condition=RunSteps(2), run_cfg=Loihi2SimCfg(select_tag=net.tag))


@pytest.mark.parametrize("neurons", ["exact", "stock"])
def test_what_would_hang_a_run_is_an_error_before_it(model: Model, neurons: str) -> None:
    from lava.magma.core.run_conditions import RunSteps
    from lava.magma.core.run_configs import Loihi2HwCfg, Loihi2SimCfg
    from lava.proc.io.source import RingBuffer as Source

    spiking = model.to_spiking(code="graded", bits=8)
    for wrong in (0, -3, 2.5):
        with pytest.raises(ValueError, match="reset_interval is the number of steps"):
            spiking.to_lava(neurons=neurons, reset_interval=wrong)  # type: ignore[arg-type]
    net = spiking.to_lava(neurons=neurons, reset_interval=4)
    with pytest.raises(ValueError, match=r"x has shape \(2, 5\); the network takes"):
        net.encode(np.zeros((2, 5)), 4)
    with pytest.raises(ValueError, match="not finite"):
        net.encode(np.full((2, 64), np.nan), 4)
    with pytest.raises(ValueError, match="9 rows; `out` has 10 units"):
        net.decode(np.zeros((9, 8)), 4)
    with pytest.raises(ValueError, match=r"not \(units, samples \* steps\)"):
        net.rates(np.zeros(8), 4)
    with pytest.raises(AssertionError, match="incompatible"):  # of Lava itself
        Source(data=np.zeros((60, 8), dtype=np.int64)).s_out.connect(net.inp)
    Source(data=net.encode(np.zeros((1, 64)), 4)).s_out.connect(net.inp)
    for config in (Loihi2SimCfg(select_tag="floating_pt"), Loihi2SimCfg()):
        with pytest.raises(ValueError, match=r"tag 'fixed_pt'.*net.run_config\(\)"):
            net.run(condition=RunSteps(4), run_cfg=config)
    with pytest.raises(RuntimeError, match=r"lava-loihi|Python models only"):
        net.run(condition=RunSteps(4), run_cfg=Loihi2HwCfg(select_tag=net.tag))
    net.run(condition=RunSteps(4))  # its own configuration
    net.stop()
