from __future__ import annotations

import numpy as np
import pytest

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR, RELU, TANH, Activation, box
from neuro_eqprop.networks.architectures import layered, looped
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.spiking.codes import Code, Coding, LoweringError
from neuro_eqprop.spiking.ir import Gain, Graded, Reset, Spiking
from neuro_eqprop.spiking.lower import lower, snap, stimulate

RATE, GRADED = Coding(Code.RATE), Coding(Code.GRADED)
CODINGS = pytest.mark.parametrize("coding", [RATE, GRADED], ids=lambda c: str(c.code.name))


def chain(hidden: Activation = HARD_SIGMOID, output: Activation = HARD_SIGMOID) -> Network:
    return layered(4, (6, 5), 3, hidden_rate=hidden, output_rate=output)


def loop() -> Network:
    return looped(4, 6, 3, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID, bound=0.9)


def params_of(network: Network) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    drawn = initialize(network, rng)
    return drawn | {layer.name: rng.normal(size=layer.shape) for layer in network.moving}


@pytest.mark.parametrize(
    ("hidden", "output", "layer"),
    [
        (TANH, HARD_SIGMOID, "hidden1"),
        (RELU, HARD_SIGMOID, "hidden1"),
        (box(4.0), HARD_SIGMOID, "hidden1"),
        (HARD_SIGMOID, LINEAR, "output"),
        (HARD_SIGMOID, TANH, "output"),
    ],
    ids=["tanh", "relu", "box", "linear output", "tanh output"],
)
def test_rate_code_refuses_what_it_cannot_carry(
    hidden: Activation, output: Activation, layer: str
) -> None:
    network = chain(hidden, output)
    at_fault = network[layer].activation.name
    with pytest.raises(LoweringError, match=rf"layer '{layer}' has activation '{at_fault}'") as e:
        lower(network, params_of(network), dt=1e-3, coding=RATE, nudged=True)
    assert "use code 'graded'" in str(e.value)


@pytest.mark.parametrize("hidden", [TANH, RELU, box(4.0), LINEAR], ids=lambda a: str(a.name))
def test_graded_code_carries_any_activation(hidden: Activation) -> None:
    network = chain(hidden, LINEAR)
    made = lower(network, params_of(network), dt=1e-3, coding=GRADED, nudged=True)
    neuron = made["hidden1"].neuron
    assert isinstance(neuron, Graded)
    assert neuron.activation == hidden


def test_rate_code_integrates_and_subtracts() -> None:
    made = lower(chain(), params_of(chain()), dt=1e-3, coding=RATE, nudged=True)
    for population in made.populations:
        neuron = population.neuron
        assert isinstance(neuron, Spiking)
        assert (neuron.current_decay, neuron.voltage_decay) == (1.0, 0.0)
        assert (neuron.threshold, neuron.reset, neuron.floor) == (1.0, Reset.SUBTRACT, -1.0)


@CODINGS
@pytest.mark.parametrize("network", [chain(), loop()], ids=["layered", "looped"])
def test_weights_biases_and_currents_lie_on_the_grid(network: Network, coding: Coding) -> None:
    params = params_of(network)
    made = lower(network, params, dt=1e-3, coding=coding, nudged=True)
    x = np.random.default_rng(1).random((5, 4))
    stimulus = stimulate(network, params, x, target=np.full((5, 3), 1 / 3), coding=coding)
    arrays = [p.weight for p in made.projections] + [p.bias for p in made.populations]
    arrays += [*stimulus.current.values(), *stimulus.pull.values()]
    for array in arrays:
        multiples = array / coding.grid
        assert np.array_equal(multiples, np.rint(multiples))
    for connection in network.connections:
        if connection.source != "input":
            weight = next(
                p.weight
                for p in made.projections
                if p.name == connection.name and p.gain is Gain.ONE
            )
            assert np.abs(weight - params[connection.name]).max() <= coding.grid / 2


def test_feedback_is_the_transpose() -> None:
    made = lower(chain(), params_of(chain()), dt=1e-3, coding=RATE, nudged=True)
    weight = {p.name: p.weight for p in made.projections if p.gain is Gain.ONE}
    assert set(weight) == {
        "hidden1->hidden2",
        "hidden2->hidden1",
        "hidden2->output",
        "output->hidden2",
    }
    assert np.array_equal(weight["hidden1->hidden2"], weight["hidden2->hidden1"].T)
    assert np.array_equal(weight["hidden2->output"], weight["output->hidden2"].T)


def test_feedback_is_scaled_and_on_the_grid() -> None:
    network = layered(4, (6,), 3, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID, feedback=0.3)
    made = lower(network, params_of(network), dt=1e-3, coding=RATE, nudged=True)
    weight = {p.name: p.weight for p in made.projections if p.gain is Gain.ONE}
    back = weight["output->hidden"]
    assert np.abs(back - 0.3 * weight["hidden->output"].T).max() <= RATE.grid / 2
    assert np.array_equal(back / RATE.grid, np.rint(back / RATE.grid))


@CODINGS
def test_a_network_that_is_not_nudged_has_no_synapses_for_it(coding: Coding) -> None:
    made = lower(chain(), params_of(chain()), dt=1e-3, coding=coding, nudged=False)
    assert all(p.gain is Gain.ONE for p in made.projections)


def test_a_loop_acts_once_and_symmetrically() -> None:
    made = lower(loop(), params_of(loop()), dt=1e-3, coding=RATE, nudged=True)
    loops = [p for p in made.projections if p.name == "hidden->hidden"]
    assert len(loops) == 1
    assert np.array_equal(loops[0].weight, loops[0].weight.T)


@CODINGS
def test_the_nudge_is_a_pull_and_a_self_projection_by_beta(coding: Coding) -> None:
    made = lower(chain(), params_of(chain()), dt=1e-3, coding=coding, nudged=True)
    gated = [p for p in made.projections if p.gain is Gain.BETA]
    assert [p.name for p in gated] == ["output->output"]
    assert np.array_equal(gated[0].weight, -np.eye(3))
    assert made.output == "output"


def test_samples_become_currents_worked_out_on_the_host() -> None:
    network, x = chain(), np.random.default_rng(1).random((5, 4))
    params, y = params_of(network), np.eye(3)[[0, 1, 2, 0, 1]]
    free = stimulate(network, params, x, target=None, coding=RATE)
    assert set(free.current) == {"hidden1"}
    assert free.pull == {}
    assert np.abs(free.current["hidden1"] - x @ params["input->hidden1"].T).max() <= RATE.grid / 2
    assert free.host_macs == 24
    nudged = stimulate(network, params, x, target=y, coding=RATE)
    assert np.array_equal(nudged.pull["output"], y)


def test_parameters_are_checked_before_they_become_spikes() -> None:
    spoiled = params_of(chain()) | {"output": np.full(3, np.nan)}
    with pytest.raises(ValueError, match="'output' holds values that are not finite"):
        lower(chain(), spoiled, dt=1e-3, coding=RATE, nudged=True)
    with pytest.raises(ValueError, match="not finite"):
        stimulate(chain(), params_of(chain()), np.full((1, 4), np.nan), target=None, coding=RATE)


def test_snap_goes_to_the_nearest_multiple() -> None:
    assert snap(np.array([0.1, -0.1, 0.24, 0.26]), 0.25).tolist() == [0.0, 0.0, 0.25, 0.25]


def test_each_code_is_read_over_its_own_tail() -> None:
    assert (RATE.tail, GRADED.tail) == (0.75, 0.25)
