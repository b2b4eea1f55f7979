"""Every model with linear connections settles as spikes where it settles as rates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neuro_eqprop.common.arrays import Array
from neuro_eqprop.dynamics.inference import infer
from neuro_eqprop.dynamics.schedules import free_only, tail
from neuro_eqprop.networks.activations import HARD_SIGMOID, LINEAR, TANH
from neuro_eqprop.networks.architectures import (
    Block,
    convolutional,
    feed_forward,
    modern,
    modern_notes,
    multiscale,
    toroidal,
    transformer,
)
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.networks.operators import Attention, AttentionKind
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.simulators.emulator.simulator import Emulator
from neuro_eqprop.simulators.nir.read import from_nir
from neuro_eqprop.simulators.nir.write import to_nir
from neuro_eqprop.simulators.recordings import NOTHING, MemorySink
from neuro_eqprop.simulators.reference.simulator import Reference
from neuro_eqprop.simulators.registry import load_backend
from neuro_eqprop.spiking.codes import Code, Coding, LoweringError
from neuro_eqprop.spiking.lower import lower, stimulate
from neuro_eqprop.spiking.quantize import quantise
from neuro_eqprop.spiking.rounding import Rounding

NETWORKS: dict[str, tuple[Network, Code]] = {
    "conv": (
        convolutional(
            (1, 8, 8), (3,), 4, kernel=3, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID
        ),
        Code.RATE,
    ),
    "conv two": (
        convolutional((2, 10, 10), (3, 4), 4, kernel=3, hidden_rate=TANH, output_rate=LINEAR),
        Code.GRADED,
    ),
    "toroidal": (
        toroidal(6, 9, 4, hidden_rate=TANH, output_rate=LINEAR, bound=0.9),
        Code.GRADED,
    ),
    "modern": (
        modern(6, 8, 4, memory=12, hidden_rate=TANH, output_rate=LINEAR, bound=0.8),
        Code.GRADED,
    ),
    "multiscale": (
        multiscale(6, 8, 4, hidden_rate=TANH, output_rate=LINEAR, bound=0.9),
        Code.GRADED,
    ),
    "tokens without attention": (
        transformer((5, 3), Block(6, 7, None, 0.7, 1.0), 4, patch=1),
        Code.GRADED,
    ),
}
NETWORKS["feed forward"] = (feed_forward(NETWORKS["modern"][0]), Code.GRADED)


def problem(network: Network) -> tuple[dict[str, Array], Array]:
    rng = np.random.default_rng(4)
    params = initialize(network, rng)
    params |= {layer.name: rng.normal(0.1, 0.2, layer.bias) for layer in network.moving}
    return params, rng.random((4, network.input.size))


@pytest.mark.parametrize("kind", NETWORKS)
def test_spikes_settle_where_rates_do(kind: str) -> None:
    network, code = NETWORKS[kind]
    params, x = problem(network)
    coding = Coding(code, theta=2.0**-9)
    spikes = lower(network, params, dt=1e-3, coding=coding, nudged=False)
    given = stimulate(network, params, x, target=None, coding=coding)
    steps = 400 if code is Code.RATE else 80
    schedule = free_only(steps=steps, window=tail(steps, coding.tail))
    slow, fast = (
        backend.run(spikes, given, schedule, record=NOTHING, sink=MemorySink())
        for backend in (Reference(), Emulator())
    )
    wanted = infer(NumpyOps(), network, params, x).state
    for layer in network.moving:
        seen = slow.firing[layer.name][:, 0].reshape(wanted[layer.name].shape)
        assert np.array_equal(slow.firing[layer.name], fast.firing[layer.name])
        assert np.abs(seen - wanted[layer.name]).max() < 0.02, layer.name
    assert max(np.ptp(rates) for rates in wanted.values()) > 0.1


@pytest.mark.parametrize(
    "on",
    [
        "emulator",
        pytest.param("snntorch", marks=pytest.mark.snntorch),
        pytest.param("brian2", marks=pytest.mark.brian2),
        pytest.param("lava", marks=[pytest.mark.lava, pytest.mark.slow]),
        "a file",
    ],
)
@pytest.mark.parametrize("kind", ["conv", "conv two", "toroidal"])
def test_kernels_means_and_delayed_identities_are_the_same_spikes_everywhere(
    kind: str, on: str, tmp_path: Path
) -> None:
    network, code = NETWORKS[kind]
    params, x = problem(network)
    coding, schedule = Coding(code), free_only(steps=20, window=15)
    plain = lower(network, params, dt=1e-3, coding=coding, nudged=False)
    given = stimulate(network, params, x[:2], target=None, coding=coding)
    whole = on in ("emulator", "lava", "a file")
    for spikes in (plain, quantise(plain, Rounding(8))[0]) if whole else (plain,):
        same = spikes
        if on == "a file":
            to_nir(spikes, tmp_path / "net.nir")
            same = from_nir(tmp_path / "net.nir")
        simulator = load_backend("reference" if on == "a file" else on)
        found = simulator.run(same, given, schedule, record=NOTHING, sink=MemorySink())
        wanted = Reference().run(spikes, given, schedule, record=NOTHING, sink=MemorySink())
        for name, sent in wanted.messages.items():
            assert np.array_equal(found.messages[name], sent)
            assert np.array_equal(found.firing[name], wanted.firing[name])
        assert min(sent.sum() for sent in wanted.messages.values()) > 0


def test_an_echo_is_three_projections_with_their_delays() -> None:
    network = NETWORKS["toroidal"][0]
    params, _ = problem(network)
    spikes = lower(network, params, dt=1e-3, coding=Coding(Code.GRADED), nudged=False)
    loops = [p for p in spikes.projections if p.source == p.target]
    assert [p.delay for p in loops] == [1, 1, 2, 3]
    strength = [np.diag(p.weight)[0] / params["hidden->hidden#echo"][0] for p in loops[1:]]
    np.testing.assert_allclose(strength, [0.9, 0.81, 0.729], atol=0.02)


@pytest.mark.parametrize(
    ("network", "name", "kind"),
    [
        (
            transformer(
                (4, 3), Block(4, 4, Attention(AttentionKind.LINEAR, 1, 0.1), 0.7, 1.0), 3, patch=1
            ),
            "tokens->tokens",
            "attention",
        ),
        (
            modern_notes(4, 5, 3, memory=6, hidden_rate=TANH, bound=0.5),
            "hidden->memory",
            "layernorm",
        ),
    ],
    ids=["attention", "layer norm"],
)
def test_what_no_synapse_does_is_refused_by_name(network: Network, name: str, kind: str) -> None:
    params, _ = problem(network)
    with pytest.raises(LoweringError, match=f"{name}.*{kind}"):
        lower(network, params, dt=1e-3, coding=Coding(Code.GRADED), nudged=False)


def test_an_output_that_only_reads_cannot_be_nudged_as_spikes() -> None:
    network = NETWORKS["tokens without attention"][0]
    params, _ = problem(network)
    with pytest.raises(LoweringError, match="squared error"):
        lower(network, params, dt=1e-3, coding=Coding(Code.GRADED), nudged=True)
