"""Two traces of the same samples."""

from __future__ import annotations

import doctest
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import neuro_eqprop
from neuro_eqprop.cli import main
from neuro_eqprop.dynamics.schedules import Phase, free_only
from neuro_eqprop.networks.activations import HARD_SIGMOID
from neuro_eqprop.networks.network import Connection, Layer, Network, Role
from neuro_eqprop.networks.ops.numpy import NumpyOps
from neuro_eqprop.simulators.recordings import Origin, select_samples
from neuro_eqprop.simulators.synapse_recording import Weights
from neuro_eqprop.spiking.activity import ActivityKind
from neuro_eqprop.traces import compare as compare_module
from neuro_eqprop.traces.compare import (
    MismatchError,
    compare,
    hebbian_update,
    settled_at,
)
from neuro_eqprop.traces.file import write
from neuro_eqprop.traces.metrics import pearson
from neuro_eqprop.traces.trace import Trace
from neuro_eqprop.training.rules.hebbian import hebbian


def rates(values: np.ndarray[tuple[int, int, int], np.dtype[np.float64]]) -> Trace:
    """A trace of one layer whose rates (samples, steps, units) are given."""
    samples, steps, units = values.shape
    return Trace(
        Origin("rate", "", {}, 0, "", ""),
        free_only(steps=steps, window=steps),
        {"hidden": ActivityKind.RATE},
        ("input->hidden",),
        np.arange(samples),
        np.zeros(samples, int),
        np.zeros((samples, 1)),
        {},
        {("hidden", "rate"): values.reshape(samples * steps, units)},
        {},
    )


def test_a_trace_agrees_with_itself(episode: dict[str, Trace]) -> None:
    found = compare(episode["rate"], episode["rate"])
    assert len(found.layers) == 2 * 3
    for each in found.layers:
        assert each.distance.pearson == pytest.approx(1.0)
        assert each.distance.worst == 0.0
        assert each.settled_at == each.settled_at_a
    assert [c.connection for c in found.connections] == ["input->hidden", "hidden->output"]
    assert [c.cosine for c in found.connections] == pytest.approx([1.0, 1.0])
    assert [c.sign_agreement for c in found.connections] == [1.0, 1.0]


@pytest.mark.parametrize(("kind", "near"), [("spikes", 0.05), ("graded", 0.01)])
def test_spikes_meet_rates(kind: str, near: float, episode: dict[str, Trace]) -> None:
    found = compare(episode["rate"], episode[kind])
    assert all(phase.rmse < near for _, phase in found.pooled)
    assert all(phase.pearson is not None and phase.pearson > 0.99 for _, phase in found.pooled)
    assert all(1 < layer.settled_at < 64 for layer in found.layers if layer.phase == "free")


def test_numbers_by_hand() -> None:
    a = np.array([[[0.0, 0.5, 1.0]], [[0.0, 0.0, 0.0]]])
    b = a + np.array([[[0.1, 0.0, 0.0]], [[0.0, 0.0, -0.3]]])
    (layer,) = compare(rates(a), rates(b)).layers
    assert layer.distance.rmse == pytest.approx(np.sqrt((0.01 + 0.09) / 6))
    assert layer.distance.worst == pytest.approx(0.3)
    assert layer.distance.p999 == pytest.approx(0.3 - 0.005 * 0.2)
    assert layer.distance.pearson == pytest.approx(np.corrcoef(a.ravel(), b.ravel())[0, 1])


def test_constant_rates_have_no_correlation() -> None:
    flat = rates(np.ones((2, 3, 4)))
    (layer,) = compare(flat, flat).layers
    assert layer.distance.pearson is None
    assert pearson(np.array([0.0, 1.0]), np.array([3.0, 3.0])) is None


def test_settled_is_the_step_after_the_last_one_away() -> None:
    course = np.array([0.0, 1.0, 0.5, 0.51, 0.55, 0.5, 0.5])[None, :, None]
    assert settled_at(rates(course), "hidden", "free") == 6
    assert settled_at(rates(np.ones((1, 5, 1))), "hidden", "free") == 1


def test_updates_are_those_of_the_learning_rule(episode: dict[str, Trace]) -> None:
    trace = episode["spikes"]
    layers = (
        Layer("input", (64,), HARD_SIGMOID, Role.INPUT),
        Layer("hidden", (24,), HARD_SIGMOID),
        Layer("output", (10,), HARD_SIGMOID, Role.OUTPUT),
    )
    network = Network(layers, (Connection("input", "hidden"), Connection("hidden", "output")))
    states = {
        phase.name: {name: trace.rate(name, phase.name) for name in trace.kinds}
        for phase in trace.schedule
    }
    asked = hebbian(NumpyOps(), network, trace.inputs, states=states, schedule=trace.schedule)
    for name in trace.connections:
        np.testing.assert_allclose(hebbian_update(trace, name), asked[name], atol=1e-12)


def test_opposite_updates_are_seen(episode: dict[str, Trace]) -> None:
    trace = episode["rate"]
    swapped = tuple(replace(phase, beta=-phase.beta) for phase in trace.schedule)
    turned = replace(trace, schedule=swapped)
    np.testing.assert_allclose(
        hebbian_update(turned, "input->hidden"), -hebbian_update(trace, "input->hidden")
    )


def test_without_a_nudge_there_are_no_updates() -> None:
    assert compare(rates(np.ones((1, 2, 1))), rates(np.ones((1, 2, 1)))).connections == ()


def test_traces_of_different_lengths_of_phase_compare(episode: dict[str, Trace]) -> None:
    short = rates(np.full((1, 2, 1), 0.5))
    assert compare(short, rates(np.full((1, 9, 1), 0.5))).layers[0].distance.worst == 0.0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"index": np.array([2, 3])}, "different samples: 0, 1 and 2, 3"),
        ({"label": np.array([0, 2])}, "different labels"),
        ({"kinds": {"other": ActivityKind.RATE}}, "layers with rates: hidden and none"),
        ({"schedule": (Phase("nudged", 0.5, 3, 1),)}, "different phases"),
        ({"inputs": np.ones((2, 1))}, "not the same inputs"),
        ({"signals": {("hidden", "rate"): np.ones((6, 5))}}, "4 and 5 units"),
    ],
)
def test_what_differs_is_named(changed: dict[str, object], message: str) -> None:
    a = rates(np.ones((2, 3, 4)))
    with pytest.raises(MismatchError, match=message):
        compare(a, replace(a, **changed))  # type: ignore[arg-type]


def test_shared_samples_and_phases_are_compared_and_noted(episode: dict[str, Trace]) -> None:
    whole = episode["rate"]
    part = select_samples(episode["spikes"], [4, 1])
    found = compare(whole, part)
    assert found.samples == 2
    assert [each.sample for each in found.by_sample] == [101] * 3 + [104] * 3
    assert "2 samples are in both traces, and compared" in found.notes
    expected = compare(select_samples(whole, [1, 4]), select_samples(episode["spikes"], [1, 4]))
    assert found.layers == expected.layers
    assert found.connections == expected.connections
    free = replace(
        whole,
        schedule=whole.schedule[:1],
        signals={
            k: v.reshape(6, 192, -1)[:, :64].reshape(384, -1) for k, v in whole.signals.items()
        },
    )
    found = compare(free, episode["spikes"])
    assert {each.phase for each in found.layers} == {"free"}
    assert found.connections == ()
    assert "phases in both traces, and compared: free" in found.notes


def test_each_sample_has_its_own_agreement_and_update(episode: dict[str, Trace]) -> None:
    found = compare(episode["rate"], episode["spikes"])
    assert len(found.by_sample) == 6 * 3
    squares = [each.distance.rmse**2 for each in found.by_sample if each.phase == "positive"]
    pooled = dict(found.pooled)["positive"]
    assert np.sqrt(np.mean(squares)) == pytest.approx(pooled.rmse)
    total = sum(hebbian_update(episode["rate"], "hidden->output", k) for k in range(6))
    np.testing.assert_allclose(total, hebbian_update(episode["rate"], "hidden->output"))
    last = select_samples(episode["rate"], [5]), select_samples(episode["spikes"], [5])
    expected = {each.connection: each for each in compare(*last).connections}
    for each in found.sample_updates[-2:]:
        assert each.sample == 105
        cosine = expected[each.agreement.connection].cosine
        assert each.agreement.cosine == pytest.approx(cosine)


def test_command_prints_the_fields_of_the_contract(
    episode: dict[str, Trace], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = tmp_path / "a.h5", tmp_path / "b.h5"
    write(a, episode["rate"], overwrite=False)
    write(b, episode["spikes"], overwrite=False)
    assert main(["compare", str(a), str(b), "--json"]) == 0
    outcome = json.loads(capsys.readouterr().out)
    wanted = {"layer", "phase", "pearson", "rmse", "p999", "worst", "settled_at"}
    assert all(wanted <= set(layer) for layer in outcome["layers"])
    assert {"connection", "cosine", "sign_agreement"} == set(outcome["connections"][0])
    assert main(["compare", str(a), str(b)]) == 0
    shown = capsys.readouterr().out
    assert "hidden->output" in shown
    assert max(len(line) for line in shown.splitlines()) <= 100


def test_command_refuses_a_foreign_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.h5").write_text("no")
    assert main(["compare", str(tmp_path / "a.h5"), str(tmp_path / "b.h5")]) == 1
    assert "is no HDF5 file" in capsys.readouterr().err


def test_changes_that_were_made_are_compared(episode: dict[str, Trace]) -> None:
    spikes = episode["spikes"]
    before = spikes.weights["hidden->output"].before
    step = np.ones_like(before)
    one = replace(spikes, weights={"hidden->output": Weights(before, before + step)})
    step[0] = -1.0
    other = replace(spikes, weights={"hidden->output": Weights(before, before + 0.5 * step)})
    (learned,) = compare(one, other).learned
    assert learned.connection == "hidden->output"
    assert learned.cosine == pytest.approx(0.8)
    assert learned.sign_agreement == pytest.approx(0.9)
    assert compare(spikes, one).learned == ()


def test_runs_that_learned_are_compared_by_their_changes(episode: dict[str, Trace]) -> None:
    bare = replace(episode["spikes"], spikes={}, signals={})
    with pytest.raises(MismatchError, match="no layer has rates, or weights that changed"):
        compare(bare, bare)
    moved = {n: replace(w, after=w.before + 0.1) for n, w in bare.weights.items()}
    learned = replace(bare, weights=moved)
    found = compare(learned, learned)
    assert (found.layers, found.pooled, found.connections) == ((), (), ())
    assert [(each.connection, each.sign_agreement) for each in found.learned] == [
        ("input->hidden", 1.0),
        ("hidden->output", 1.0),
    ]


def test_paths_strings_and_traces_compare_alike(episode: dict[str, Trace], tmp_path: Path) -> None:
    a, b = episode["rate"].save(tmp_path / "a.h5"), episode["spikes"].save(tmp_path / "b.h5")
    found = neuro_eqprop.compare(a, str(b))
    for other in (
        neuro_eqprop.compare(episode["rate"], episode["spikes"]),
        neuro_eqprop.compare(neuro_eqprop.open_trace(a), neuro_eqprop.open_trace(b)),
    ):
        assert other.layers == found.layers
        assert other.connections == found.connections
    assert (found.a, found.b) == (str(a), str(b))
    assert found.notes == ()
    assert len(repr(found)) < 400
    assert "<th>layer</th>" in found._repr_html_()
    lines = found.table().splitlines()
    assert len(lines) == 1 + 2 * 3 + 1 + 1 + 2
    assert max(map(len, lines)) <= 100
    assert found.to_json()["layers"][0]["pearson"] == found.layers[0].distance.pearson


def test_a_value_that_cannot_be_computed_has_a_reason(
    episode: dict[str, Trace], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    varied = rates(np.random.default_rng(0).random((2, 3, 4)))
    flat = rates(np.ones((2, 3, 4)))
    found = compare(varied, flat)
    assert found.layers[0].distance.reason == "rates of b are constant"
    assert "rates of b are constant" in found.table()
    assert found.to_json()["layers"][0]["reason"] == "rates of b are constant"
    assert "reason" not in compare(varied, varied).to_json()["layers"][0]
    assert found.notes == (
        "no Hebbian updates: the traces have no nudged phases (record with phases)",
    )
    still = replace(
        episode["rate"],
        signals={k: np.zeros_like(v) for k, v in episode["rate"].signals.items()},
    )
    (first, _) = compare(episode["rate"], still).connections
    assert (first.cosine, first.sign_agreement) == (None, None)
    assert first.reason == "weight change of b is zero"
    paths = [str(episode["rate"].save(tmp_path / "a.h5")), str(still.save(tmp_path / "b.h5"))]
    assert main(["compare", *paths]) == 0
    assert "weight change of b is zero" in capsys.readouterr().out


def test_layers_that_only_one_trace_recorded_are_named(episode: dict[str, Trace]) -> None:
    part = replace(
        episode["rate"],
        signals={k: v for k, v in episode["rate"].signals.items() if k[0] == "output"},
    )
    found = compare(episode["rate"], part)
    assert found.notes == (
        "not recorded in both traces: hidden",
        "no Hebbian updates of input->hidden, hidden->output: an end is unknown",
    )


def test_the_examples_of_the_docstrings_run(episode: dict[str, Trace]) -> None:
    known = {"example_rates": episode["rate"], "example_spikes": episode["spikes"]}
    done = doctest.testmod(compare_module, extraglobs=known)
    assert done.attempted
    assert not done.failed
