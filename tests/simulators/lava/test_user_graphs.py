"""Exported networks in a user's own graph: whoever starts the run, whatever the input."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import neuro_eqprop as ne
from neuro_eqprop.api.model import Model
from neuro_eqprop.api.spiking_model import SpikingModel
from neuro_eqprop.common.arrays import Array
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR, RELU
from neuro_eqprop.networks.architectures import layered
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.simulators.base import BackendError

pytestmark = pytest.mark.lava
STEPS = 12


def model_of(feedback: float = 1.0, features: int = 8, hidden: int = 10) -> Model:
    network = layered(
        features,
        (hidden,),
        4,
        hidden_rate=HARD_SIGMOID,
        output_rate=HARD_SIGMOID,
        feedback=feedback,
    )
    params = initialize(network, np.random.default_rng(5))
    return Model(network, params)


@pytest.fixture(scope="module")
def model() -> Model:
    return model_of()


@pytest.fixture
def stopped() -> Iterator[Callable[[Any], Any]]:
    """Registers networks that are stopped after the test."""
    kept: list[Any] = []

    def keep(net: Any) -> Any:  # noqa: ANN401
        kept.append(net)
        return net

    yield keep
    for net in kept:
        if net.runtime is not None:
            net.stop()


def source_of(data: Array) -> Any:  # noqa: ANN401
    from lava.proc.io.source import RingBuffer

    return RingBuffer(data=data)


def run(net: Any, data: Array, steps: int) -> Array:  # noqa: ANN401
    """The messages of `out` in `steps` steps."""
    from lava.magma.core.run_conditions import RunSteps
    from lava.proc.io.sink import RingBuffer as Sink

    source_of(data).s_out.connect(net.inp)
    sink = Sink(shape=net.out.shape, buffer=steps)
    net.out.connect(sink.a_in)
    try:
        net.run(RunSteps(steps), timeout=60)
        return np.asarray(sink.data.get())
    finally:
        net.stop()


def messages_of(spiking: SpikingModel, x: Array) -> Array:
    """What the output sends on the emulator (steps, units)."""
    train = spiking.record(x, steps=STEPS).spikes["output"]
    found = np.zeros((len(x) * STEPS, 4))
    found[train.step, train.unit] = train.value
    return found


@pytest.mark.parametrize("reach", [(0, 256), (0, 65536), (-300, 1)])
def test_in_fixed_point_any_range_of_the_input_gives_the_messages_of_the_emulator(
    reach: tuple[int, int], model: Model
) -> None:
    spiking = model.to_spiking(code="graded", bits=8)
    x = np.random.default_rng(0).integers(*reach, (2, 8)).astype(np.float64)
    net = spiking.to_lava(reset_interval=STEPS, inputs=x)
    sent = run(net, net.encode(x, STEPS), 2 * STEPS)
    np.testing.assert_array_equal(net.out_scale * sent.T, messages_of(spiking, x))


def test_samples_between_two_steps_of_the_input_keep_their_currents(model: Model) -> None:
    spiking = model.to_spiking(code="rate", bits=8)
    net = spiking.to_lava(reset_interval=STEPS)
    x = np.random.default_rng(1).random((50, 8))
    rounded = net.encode(x, STEPS)[:, ::STEPS].T * net.inp_scale
    np.testing.assert_array_equal(net.currents(rounded), net.currents(x))
    wide = spiking.to_lava(reset_interval=STEPS, inputs=1e8 * x)
    with pytest.raises(ValueError, match="another input current"):
        wide.encode(1e8 * x + 1 / 3, STEPS)


@pytest.mark.parametrize("neurons", ["exact", "stock"])
def test_input_that_does_not_fit_is_refused(neurons: str, model: Model) -> None:
    spiking = model.to_spiking(code="graded", bits=8)
    net = spiking.to_lava(neurons=neurons, reset_interval=STEPS)
    with pytest.raises(ValueError, match=r"to_lava\(inputs=x\)"):
        net.encode(np.full((1, 8), 3e4), STEPS)
    inputs = np.full((1, 8), 200.0)
    net = spiking.to_lava(neurons=neurons, reset_interval=STEPS, inputs=inputs)
    net.encode(inputs, STEPS)


@pytest.mark.parametrize("feedback", [1.0, 0.1, 0.01, 0.001])
def test_weak_feedback_leaves_messages_their_bits(feedback: float) -> None:
    model = model_of(feedback)
    spiking = model.to_spiking(code="graded", bits=8)
    net = spiking.to_lava(neurons="stock", reset_interval=32)
    assert net.scale.message_exp >= 8
    x = np.random.default_rng(2).random((3, 8))
    rates = net.rates(run(net, net.encode(x, 32), 3 * 32), 32)
    np.testing.assert_allclose(rates, model.equilibrium(x).state["output"], atol=0.03)


def test_a_drive_that_leaves_no_bits_for_messages_is_refused(model: Model) -> None:
    spiking = model.to_spiking(code="graded", bits=8)
    with pytest.raises(BackendError, match="24 bits leave messages"):
        spiking.to_lava(neurons="stock", reset_interval=8, inputs=np.full((1, 8), 1e6))


@pytest.mark.parametrize("starter", ["source", "network", "sink", "neighbor"])
@pytest.mark.parametrize(
    ("neurons", "bits", "tag"),
    [("exact", 8, None), ("stock", 8, None), ("stock", None, "fixed_pt")],
)
def test_a_wrong_configuration_is_one_error_whoever_starts(
    neurons: str, bits: int | None, tag: str | None, starter: str, model: Model
) -> None:
    from lava.magma.core.run_conditions import RunSteps
    from lava.magma.core.run_configs import Loihi2SimCfg
    from lava.proc.io.sink import RingBuffer as Sink
    from lava.proc.lif.process import LIF

    spiking = model.to_spiking(code="graded", bits=bits)
    net = spiking.to_lava(neurons=neurons, reset_interval=STEPS)
    source, sink = source_of(net.encode(np.zeros((1, 8)), STEPS)), Sink(shape=(4,), buffer=STEPS)
    neighbor = LIF(shape=(4,))
    source.s_out.connect(net.inp)
    net.out.connect([sink.a_in, neighbor.a_in])
    started = {"source": source, "network": net, "sink": sink, "neighbor": neighbor}[starter]
    config = Loihi2SimCfg() if tag is None else Loihi2SimCfg(select_tag=tag)
    with pytest.raises(ValueError, match=r"process models with tag .*net.run_config\(\)"):
        started.run(condition=RunSteps(STEPS), run_cfg=config)


@pytest.mark.parametrize("code", ["graded", "rate", "paired"])
def test_decode_gives_the_predictions_of_a_simulation_ties_included(code: str) -> None:
    model = model_of()
    # Large biases, with which several outputs are at their bound.
    params = {**model.params, "output": np.array([2.0, 2.1, 1.9, 2.1])}
    spiking = Model(model.network, params).to_spiking(code=code)
    x = np.random.default_rng(3).random((6, 8))
    net = spiking.to_lava(reset_interval=STEPS)
    decoded = net.decode(run(net, net.encode(x, STEPS), 6 * STEPS), STEPS)
    np.testing.assert_array_equal(decoded, spiking.run(x, steps=STEPS).predictions)


@pytest.mark.parametrize("bits", [None, 8])
@pytest.mark.parametrize("neurons", ["exact", "stock"])
def test_one_network_feeds_another_in_its_unit(
    neurons: str, bits: int | None, model: Model
) -> None:
    from lava.magma.core.run_conditions import RunSteps
    from lava.proc.io.sink import RingBuffer as Sink

    steps, second_model = 48, model_of(features=4)
    first = model.to_spiking(code="graded", bits=bits).to_lava(
        neurons=neurons, reset_interval=steps
    )
    second = second_model.to_spiking(code="graded", bits=bits).to_lava(
        neurons=neurons, reset_interval=steps, source=first
    )
    assert second.inp_scale == first.out_scale
    x = np.random.default_rng(4).random((1, 8))
    source_of(first.encode(x, steps)).s_out.connect(first.inp)
    first.out.connect(second.inp)
    sink = Sink(shape=(4,), buffer=steps)
    second.out.connect(sink.a_in)
    try:
        second.run(RunSteps(steps))
        rates = second.rates(sink.data.get(), steps)
    finally:
        second.stop()
    between = model.equilibrium(x).state["output"]
    np.testing.assert_allclose(rates, second_model.equilibrium(between).state["output"], atol=0.05)


@pytest.mark.parametrize("neurons", ["exact", "stock"])
def test_a_current_into_a_layer_acts_as_its_bias(neurons: str, model: Model) -> None:
    from lava.magma.core.run_conditions import RunSteps

    steps, more = 40, np.linspace(-0.5, 0.5, 10)
    x = np.random.default_rng(6).random((1, 8))
    net = model.to_spiking(code="graded").to_lava(neurons=neurons, reset_interval=steps)
    source_of(net.encode(x, steps)).s_out.connect(net.inp)
    current = np.repeat(more[:, None], steps, axis=1)
    if neurons == "stock":  # sums what it receives
        current[:, 1:] = 0.0
    source_of(current).s_out.connect(net.i_hidden)
    reader = net.events("output", steps=steps)
    assert any("hidden" in row.name and row.units == 0 for row in net.processes())
    try:
        net.run(RunSteps(steps))
        events = reader.read()
    finally:
        net.stop()
    params = {**model.params, "hidden": model.params["hidden"] + more}
    wanted = Model(model.network, params).equilibrium(x).state["output"][0]
    state = np.bincount(events.unit, weights=events.value, minlength=4)
    np.testing.assert_allclose(state, wanted, atol=0.03)


def test_events_are_steps_and_units(model: Model) -> None:
    from lava.magma.core.run_conditions import RunSteps

    spiking, x = model.to_spiking(code="rate"), np.random.default_rng(7).random((2, 8))
    net = spiking.to_lava(reset_interval=STEPS)
    source_of(net.encode(x, STEPS)).s_out.connect(net.inp)
    reader = net.events("hidden", steps=2 * STEPS)
    with pytest.raises(ValueError, match="no layer 'hiden'"):
        net.events("hiden", steps=2)
    try:
        net.run(RunSteps(2 * STEPS))
        events = reader.read()
    finally:
        net.stop()
    train = spiking.record(x, steps=STEPS).spikes["hidden"]
    order = np.lexsort((train.unit, train.step))
    np.testing.assert_array_equal(events.t, train.step[order])
    np.testing.assert_array_equal(events.unit, train.unit[order])


def test_events_of_a_camera_become_frames(model: Model) -> None:
    net = model.to_spiking(code="rate").to_lava()
    events = [[0, 0, 0, 1], [1500, 1, 1, 0], [1600, 1, 1, 0], [3100, 0, 1, 1]]
    data = net.encode_events(events, 4, shape=(2, 2, 2), step_time=1000)
    assert data.shape == (8, 4)
    found = [tuple(place) for place in np.argwhere(data)]
    assert found == [(3, 1), (4, 0), (6, 3)]
    assert data[3, 1] == 2
    fields = np.dtype([("x", "u2"), ("y", "u2"), ("t", "i8"), ("p", "?")])
    camera = np.array([(x, y, t, p) for t, x, y, p in events], fields)
    np.testing.assert_array_equal(
        net.encode_events(camera, 4, shape=(2, 2, 2), step_time=1000), data
    )
    with pytest.raises(ValueError, match=r"shape \(4, 3\), not \(events, 4\)"):
        net.encode_events([row[:3] for row in events], 4, shape=(2, 2, 2))
    with pytest.raises(ValueError, match="event 3 lies outside 2 x 2 pixels and 3 steps"):
        net.encode_events(events, 3, shape=(2, 2, 2), step_time=1000)
    with pytest.raises(ValueError, match="no input of 8"):
        net.encode_events(events, 4, shape=(3, 3))


def test_a_stopped_network_is_not_started_again(
    model: Model, stopped: Callable[[Any], Any]
) -> None:
    from lava.magma.core.run_conditions import RunSteps

    net = model.to_spiking(code="graded").to_lava(reset_interval=STEPS)
    with net as same:
        assert same is net
        source_of(net.encode(np.zeros((1, 8)), STEPS)).s_out.connect(net.inp)
        net.run(RunSteps(2))
        net.run(RunSteps(2))
    with pytest.raises(RuntimeError, match="make its processes anew"):
        net.run(RunSteps(2))


def test_wrong_targets_are_refused(model: Model) -> None:
    net = model.to_spiking(code="graded").to_lava(learning=True, beta=0.3)
    x = np.zeros((2, 8))
    for y, reason in (
        ([0, 4], "holds 4, which is no class number"),
        ([0, 1.5], "holds 1.5"),
        ([0, np.nan], "not finite"),
        ([0, 1, 2], "y has shape"),
    ):
        with pytest.raises(ValueError, match=reason):
            net.encode(x, y)


@pytest.mark.parametrize("trouble", ["raises", "sleeps", "is silent"])
def test_a_run_that_stands_still_is_ended_and_the_process_is_named(
    trouble: str, stopped: Callable[[Any], Any]
) -> None:
    from lava.magma.core.run_conditions import RunSteps
    from lava.magma.core.run_configs import Loihi2SimCfg

    from neuro_eqprop.lava import watch
    from tests.simulators.lava.troubled.process import Troubled, Waiting

    ill, after = Troubled(trouble=trouble, name="ill"), Waiting(name="after")
    ill.s_out.connect(after.a_in)
    error, named = (RuntimeError, "ill") if trouble == "raises" else (TimeoutError, "ill")
    named = "after" if trouble == "is silent" else named
    with pytest.raises(error, match=rf"{named} \("):
        watch(after, timeout=3).run(RunSteps(5), Loihi2SimCfg())


def test_watch_is_public() -> None:
    from neuro_eqprop.lava import watch

    assert callable(watch)
    assert "process" in str(watch.__doc__)
    assert ne.__version__


@pytest.mark.parametrize("code", ["graded", "rate"])
def test_the_check_of_stock_ranges_repeats_what_lava_sends(code: str, model: Model) -> None:
    from neuro_eqprop.simulators.lava.ranges import StockStates

    steps, x = 20, np.random.default_rng(8).random((2, 8))
    net = model.to_spiking(code=code, bits=8).to_lava(neurons="stock", reset_interval=steps)
    data = net.encode(x, steps)
    sent = np.stack([each["output"] for each in StockStates(net).run(data, steps)], axis=1)
    if code == "graded":  # each unit is two
        sent = sent[..., :4] - sent[..., 4:]
    wanted = run(net, data, 2 * steps).T.reshape(2, steps, 4)
    # What the port adds up arrives a step later.
    late = int(code == "graded")
    np.testing.assert_array_equal(sent[:, : steps - late], wanted[:, late:])


@pytest.mark.parametrize("neurons", ["exact", "stock"])
def test_the_check_counts_what_leaves_24_bits(neurons: str, model: Model) -> None:
    spiking = model.to_spiking(code="graded", bits=8)
    x = np.random.default_rng(9).random((2, 8))
    net = spiking.to_lava(neurons=neurons, reset_interval=8, inputs=1000 * x)
    ranges = net.check(x)
    assert [each.layer for each in ranges] == ["hidden", "output"]
    assert all(each.fits and 0 < each.largest <= (each.worst or 0) for each in ranges)
    if neurons == "exact":
        net = spiking.to_lava(reset_interval=8, inputs=1e6 * x)
        wide = net.check(1e6 * x)
        assert wide[0].largest > 100 * ranges[0].largest
    linear = layered(8, (6,), 4, hidden_rate=RELU, output_rate=LINEAR)
    unbounded = Model(linear, initialize(linear, np.random.default_rng(0))).to_spiking(
        code="graded", bits=8
    )
    found = unbounded.to_lava(neurons=neurons, reset_interval=8).check(x)
    assert [each.worst for each in found] == [None, None]
    with pytest.raises(ValueError, match="use bits=8"):
        model.to_spiking(code="graded").to_lava(neurons=neurons, reset_interval=8).check(x)


def test_the_budget_on_a_chip_is_that_of_the_energy_estimate(model: Model) -> None:
    net = model.to_spiking(code="graded", bits=8).to_lava()
    budget = net.budget("loihi2")
    assert [row.layer for row in budget.layers] == ["hidden", "output"]
    hidden, output = budget.layers
    assert (hidden.fan_in, output.fan_in, output.weight_bits, output.delay) == (4, 10, 8, 1)
    assert hidden.memory_bits > 0
    assert budget.limits["weight_bits"] == 8
    assert "limit of" in repr(budget)
    assert budget.to_json()["layers"][0]["layer"] == "hidden"
