from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuro_eqprop.api.model import Model
from neuro_eqprop.api.run import Run, open_run
from neuro_eqprop.api.train import run_training
from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.data.split import DataError
from neuro_eqprop.dynamics.schedules import free_only
from neuro_eqprop.files.write import append_json as append
from neuro_eqprop.networks.activations import HARD_SIGMOID
from neuro_eqprop.networks.architectures import layered
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.runs import evaluate as evaluate_module
from neuro_eqprop.runs import workers as workers_module
from neuro_eqprop.runs.checkpoint import save
from neuro_eqprop.runs.evaluate import Evaluation, agreement
from neuro_eqprop.runs.run_folder import RunError
from neuro_eqprop.simulators.base import Backend, Feature, Result, Support
from neuro_eqprop.simulators.recordings import NOTHING, MemorySink
from neuro_eqprop.simulators.reference.simulator import Reference
from neuro_eqprop.simulators.registry import BACKENDS
from neuro_eqprop.spiking.codes import CODES, Code, Coding, LoweringError
from neuro_eqprop.spiking.lower import lower, stimulate
from neuro_eqprop.training.study import make_study, write

STUDY = make_study(hidden=(20,), epochs=3, batch=64, learning_rate=0.01)
SMALL = layered(2, (2,), 2, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)


def nothing(_: Any) -> None:  # noqa: ANN401
    pass


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("evaluated") / "run"
    run_training(STUDY, out, force=False, resume=False, on_epoch=nothing)
    return open_run(out)


class Off:
    """The reference with firing that is off by a tenth."""

    name = "off"
    support = Support({Feature.EXACT: "it adds a tenth"})

    def run(self, *given: Any, **named: Any) -> Result:  # noqa: ANN401
        result = Reference().run(*given, **named)
        return replace(result, firing={n: f + 0.1 for n, f in result.firing.items()})


def evaluated(
    run: Run,
    on: str | Backend,
    samples: int | None = 40,
    code: Code = Code.RATE,
    steps: int = 64,
    **options: Any,  # noqa: ANN401
) -> Evaluation:
    split = run.test_samples(samples)
    return run.model.evaluate(split, on=on, code=code, steps=steps, **options)


def test_few_samples_are_compared_with_rates_from_numpy_which_equal_those_of_torch(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = evaluated(run, "emulator").to_dict()
    monkeypatch.setattr(evaluate_module, "SMALL", 0)
    many = evaluated(run, "emulator").to_dict()
    for name, value in many.items():
        if name not in ("seconds", "compile_seconds"):
            assert few[name] == (
                pytest.approx(value, rel=1e-9) if isinstance(value, float) else value
            )


def test_torch_and_numpy_rates_agree(run: Run) -> None:
    rate, exact = evaluated(run, "rate", None), evaluated(run, "numpy", None)
    assert exact.samples == 360
    assert exact.agreement == 1.0
    assert exact.rmse < 1e-6  # both settled to 1e-6, by different libraries
    assert exact.accuracy == exact.rate_accuracy == rate.rate_accuracy
    assert rate.agreement > 0.99
    assert (rate.pearson or 0.0) > 0.99999
    assert (rate.code, rate.steps, rate.spikes_per_neuron) == (None, None, None)


@pytest.mark.parametrize("code", list(CODES.values()), ids=lambda code: str(code.name))
def test_spikes_are_evaluated_as_by_hand(run: Run, code: Code) -> None:
    outcome = evaluated(run, "reference", code=code, steps=48)
    network, coding = run.model.network, Coding(code)
    params = {name: value.astype(np.float64) for name, value in run.model.params.items()}
    x, y = run.data.test.x[:40], run.data.test.y[:40]
    window = 36 if code is Code.RATE else 12
    result = Reference().run(
        lower(network, params, dt=1e-3, coding=coding, nudged=True),
        stimulate(network, params, x, target=None, coding=coding),
        free_only(steps=48, window=window),
        record=NOTHING,
        sink=MemorySink(),
    )
    answers = result.drive["output"][:, 0].argmax(axis=1)
    assert outcome.accuracy == float(np.mean(answers == y))
    sent = sum(int(messages.sum()) for messages in result.messages.values())
    assert outcome.spikes_per_neuron == pytest.approx(sent / (30 * 40))
    assert outcome.host_macs_per_sample == np.count_nonzero(params["input->hidden"])
    assert outcome.agreement > 0.9
    assert (outcome.pearson or 0.0) > 0.99
    assert (outcome.code, outcome.steps, outcome.bits) == (code.name, 48, None)


def test_the_error_to_the_reference_is_given_for_a_backend_object_that_is_not_exact(
    run: Run,
) -> None:
    assert evaluated(run, "emulator", 5).error_to_reference is None
    found = evaluated(run, Off(), 5)
    assert found.on == "off"
    assert found.error_to_reference == pytest.approx(0.1)


def test_chunks_change_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    whole = evaluated(run, "reference")
    small = replace(BACKENDS["reference"], chunk=7)
    monkeypatch.setattr(workers_module, "BACKENDS", {"reference": small})
    parts = evaluated(run, "reference", progress=seen.append)
    assert seen == [7, 7, 7, 7, 7, 5]
    assert replace(whole, seconds=0.0) == replace(parts, seconds=0.0)


def test_more_steps_bring_spikes_closer(run: Run) -> None:
    errors = [evaluated(run, "reference", steps=steps).rmse for steps in (16, 64, 256)]
    assert errors[0] > 2 * errors[1] > 4 * errors[2]


def test_agreement_is_read_from_the_drive_not_from_tied_rates() -> None:
    rates = {"hidden": np.array([[0.1, 0.2]]), "output": np.array([[0.0, 0.0]])}
    drive, other = np.array([[-0.2, -0.1]]), np.array([[-0.1, -0.2]])
    assert agreement(SMALL, (rates, drive), (rates, drive))["agreement"] == 1.0
    assert agreement(SMALL, (rates, drive), (rates, other))["agreement"] == 0.0


def test_errors_are_pooled_over_samples_and_units() -> None:
    rng = np.random.default_rng(0)
    one = {"hidden": rng.random((50, 2)), "output": rng.random((50, 2))}
    gaps = {name: rng.normal(0, 0.1, rates.shape) for name, rates in one.items()}
    two = {name: rates + gaps[name] for name, rates in one.items()}
    found = agreement(SMALL, (one, one["output"]), (two, two["output"]))
    flat = [np.concatenate([side["hidden"].ravel(), side["output"].ravel()]) for side in (one, two)]
    assert found["rmse"] == pytest.approx(float(np.sqrt(np.mean((flat[0] - flat[1]) ** 2))))
    assert found["p999"] == pytest.approx(float(np.quantile(np.abs(flat[0] - flat[1]), 0.999)))
    assert found["pearson"] == pytest.approx(float(np.corrcoef(flat)[0, 1]))


def test_rates_that_do_not_vary_have_no_correlation() -> None:
    still = {"hidden": np.zeros((3, 2)), "output": np.zeros((3, 2))}
    assert agreement(SMALL, (still, still["output"]), (still, still["output"]))["pearson"] is None


def test_too_many_samples_are_refused(run: Run) -> None:
    with pytest.raises(ValueError, match="'digits' has 360 test samples, not 361"):
        run.test_samples(361)
    assert len(run.test_samples()) == 360


def test_an_unknown_place_lists_the_known_ones(run: Run) -> None:
    with pytest.raises(UnknownNameError, match="unknown backend 'refrence'; known: reference"):
        evaluated(run, "refrence")


def test_a_network_that_cannot_be_lowered_names_its_layer(tmp_path: Path) -> None:
    study = make_study(hidden=(4,), epochs=1, batch=512, activation="tanh", output="linear")
    run_training(study, tmp_path / "run", force=False, resume=False, on_epoch=nothing)
    run = open_run(tmp_path / "run")
    with pytest.raises(LoweringError, match="layer 'hidden' has activation 'tanh'"):
        evaluated(run, "reference")
    assert evaluated(run, "reference", code=Code.GRADED, steps=8).samples == 40


def test_events_are_counted(run: Run) -> None:
    counted = run.model.to_spiking(code="rate").run(run.data.test.x, on="emulator", steps=16)
    assert (counted.samples, counted.steps) == (360, 16)
    assert counted.dense_macs == 64 * 20 + 20 * 10
    assert sum(c.updates_active + c.updates_idle for c in counted.counts.values()) == (
        360 * 16 * (20 + 10)
    )


def test_a_model_of_other_data_is_refused(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(write(STUDY))
    params = initialize(SMALL, np.random.default_rng(0))
    save(tmp_path / "model.safetensors", Model(SMALL, params, 1))
    run = open_run(tmp_path)
    with pytest.raises(RunError, match="goes from 2 to 2 units, but 'digits' has 64"):
        run.evaluate()


def test_a_run_opens_without_its_data(run: Run, tmp_path: Path) -> None:
    """Model, history, spikes and exports need no data; a sentence says what is missing."""
    copy = tmp_path / "run"
    shutil.copytree(run.path, copy)
    text = (copy / "study.toml").read_text()
    (copy / "study.toml").write_text(text.replace('"digits"', '"/nowhere/gone.npz"'))
    opened = open_run(copy)
    assert "Run(" in repr(opened)
    assert "gone.npz" in opened._repr_html_()
    assert len(opened.history) == len(run.history)
    graph = opened.model.to_spiking(code="graded").to_nir()
    assert graph.nodes
    with pytest.raises(DataError, match=r"gone\.npz"):
        opened.evaluate()


def test_a_line_that_is_no_json_is_not_written(tmp_path: Path) -> None:
    append(tmp_path / "lines", {"a": 1})
    with pytest.raises(ValueError, match="JSON"):
        append(tmp_path / "lines", {"a": float("nan")})
    assert (tmp_path / "lines").read_text() == '{"a": 1}\n'


def test_few_bits_are_evaluated_in_fixed_point(run: Run) -> None:
    both = [evaluated(run, on, bits=8) for on in ("reference", "emulator")]
    for result in both:
        assert (result.bits, result.overflows) == (8, 0)
        assert result.agreement >= 0.95
        assert (result.pearson or 0.0) > 0.99
    same = ("accuracy", "agreement", "rmse", "spikes_per_neuron", "synops_per_sample")
    assert [getattr(both[0], key) for key in same] == [getattr(both[1], key) for key in same]
    float_side = evaluated(run, "emulator")
    assert float_side.bits is float_side.overflows is None
    assert float_side.rmse != both[1].rmse


def test_bits_are_refused_where_there_are_none(run: Run) -> None:
    with pytest.raises(ValueError, match="`bits` is for spikes, and on='numpy' settles rates"):
        evaluated(run, "numpy", 4, steps=8, bits=8)
    with pytest.raises(ValueError, match="1 to 24 bits"):
        evaluated(run, "emulator", 4, steps=8, bits=25)
