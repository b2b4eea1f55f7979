"""Joules of learning: samples counted on the emulator, placed, priced and shown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neuro_eqprop.api.model import Model
from neuro_eqprop.api.run import Run, open_run
from neuro_eqprop.chips.energy.estimate_workload import estimate_chip
from neuro_eqprop.chips.energy.event_counts import Event, events_per_sample
from neuro_eqprop.chips.energy.result import EnergyEstimate
from neuro_eqprop.chips.energy.settings import EstimateSettings
from neuro_eqprop.chips.placement import place
from neuro_eqprop.chips.profiles.load import load_profile, load_profiles
from neuro_eqprop.chips.workload import Workload, learning_shape
from neuro_eqprop.cli import main
from neuro_eqprop.html_report.contents import read_contents
from neuro_eqprop.html_report.page import render
from neuro_eqprop.networks.activations import HARD_SIGMOID, TANH
from neuro_eqprop.networks.architectures import layered, looped
from neuro_eqprop.networks.initialize import initialize
from neuro_eqprop.networks.network import Network
from neuro_eqprop.runs.checkpoint import save
from neuro_eqprop.runs.energy import estimate_energy
from neuro_eqprop.runs.learning_cost import LearningCounts, count_learning_events
from neuro_eqprop.simulators.recordings import Counts
from neuro_eqprop.spiking.codes import Code
from neuro_eqprop.spiking.make_plastic import ALWAYS
from neuro_eqprop.spiking.plasticity import PlasticityError
from neuro_eqprop.training.study import Study, make_study, write

STEPS, SAMPLES = 8, 3


def nothing(_: int) -> None:
    pass


def make_run(path: Path, network: Network, study: Study) -> Run:
    """A run as if it had been trained."""
    path.mkdir()
    (path / "study.toml").write_text(write(study))
    params = initialize(network, np.random.default_rng(0))
    save(path / "model.safetensors", Model(network, params, 2))
    return open_run(path)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    net = layered(64, (12,), 10, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
    study = make_study(hidden=(12,), epochs=2, nudging="centered")
    return make_run(tmp_path_factory.mktemp("learned") / "run", net, study)


@pytest.fixture(scope="module")
def learning(run: Run) -> LearningCounts:
    return count_learning_events(
        run, samples=SAMPLES, steps=STEPS, code=Code.RATE, progress=nothing
    )


@pytest.fixture(scope="module")
def learning_workload(learning: LearningCounts) -> Workload:
    return Workload(
        learning_shape(learning.plastic, input_name="input", bits=8),
        learning.learned.counts,
        learning.samples,
        learning.plastic.rule.schedule[0].steps,
        "rate",
        888,
    )


def priced(learning_workload: Workload, *words: str, chip: str = "loihi1") -> EnergyEstimate:
    profile = load_profiles([chip], list(words))[0]
    return estimate_chip(
        learning_workload,
        profile,
        EstimateSettings(step_seconds=1e-5),
        learning=learning_workload,
    )


def test_a_learning_sample_has_all_phases_and_a_commit(learning: LearningCounts) -> None:
    counts = learning.learned.counts
    steps = {phase: c.steps for (name, phase), c in counts.items() if name == "hidden"}
    each = {"free": STEPS // 2, "negative": STEPS, "positive": STEPS, "commit": 1}
    assert steps == {phase: SAMPLES * n for phase, n in each.items()}
    assert counts["hidden", "commit"].weight_updates > 0
    assert counts["hidden", "positive"].tag_updates > 0
    assert counts["hidden", "free"].tag_updates == 0
    assert learning.presentations == 2 * 1437


def test_what_learns_has_a_tag_and_what_comes_in_has_no_core(learning_workload: Workload) -> None:
    shapes = learning_workload.shape
    assert [g.name for g in shapes.populations if g.off_chip] == ["input", ALWAYS]
    fixed = [link.name for link in shapes.projections if not link.plastic]
    assert fixed == ["output->output"]
    hidden = next(link for link in shapes.projections if link.name == "input->hidden")
    assert (hidden.synapses, hidden.max_fan_in) == (64 * 12, 64)
    few = place(shapes, load_profile("loihi1"), tag_bits=1)
    many = place(shapes, load_profile("loihi1"), tag_bits=56)
    assert many.used["synapse memory"] > 2 * few.used["synapse memory"]


def test_events_of_a_learning_sample_are_the_counted_ones(learning_workload: Workload) -> None:
    loihi = load_profile("loihi1")
    total = sum(learning_workload.counts.values(), Counts())
    inputs = sum(
        c.trace_updates for (name, _), c in learning_workload.counts.items() if name == "input"
    )
    found = events_per_sample(
        learning_workload, place(learning_workload.shape, loihi), loihi, learning=True
    )
    assert inputs > 0
    assert found[Event.TRACE_UPDATE] == total.trace_updates / SAMPLES
    assert found[Event.TAG_UPDATE] == total.tag_updates / SAMPLES
    assert found[Event.WEIGHT_UPDATE] == total.weight_updates / SAMPLES
    assert found[Event.SYNOP] == total.synops / SAMPLES


def test_unknown_costs_of_learning_stay_unknown_until_they_are_given(
    learning_workload: Workload,
) -> None:
    found = priced(learning_workload).learning
    assert found.joules is not None
    missing = {each.name: each.amount for each in found.missing}
    assert (missing["trace update"] or 0) > 0
    charged = {term.name: term for term in found.terms}
    assert charged["tag update"].joules.value == charged["tag update"].amount * 208e-12
    more = priced(learning_workload, "loihi1.energy.trace_update=1nJ").learning
    assert more.joules is not None
    assert "trace update" not in {each.name for each in more.missing}
    expected = (missing["trace update"] or 0) * 1e-9
    assert more.joules.value - found.joules.value == pytest.approx(expected)


def test_a_learning_sample_costs_more_than_its_free_phase(learning_workload: Workload) -> None:
    both = priced(learning_workload)
    free, whole = both.inference, both.learning
    assert free.seconds is not None
    assert whole.seconds is not None
    assert whole.seconds.value == pytest.approx((STEPS // 2 + 2 * STEPS + 1) * 1e-5)
    assert free.seconds.value == pytest.approx(STEPS // 2 * 1e-5)
    assert "weight update" in {term.name for term in whole.terms}
    assert "weight update" not in {term.name for term in free.terms}


def test_a_chip_without_learning_says_so(learning_workload: Workload) -> None:
    side = priced(learning_workload, chip="truenorth").learning
    assert side.joules is None
    assert side.reason.startswith("no learning on the chip: no plasticity")


def test_what_cannot_learn_is_refused_with_the_reason(tmp_path: Path) -> None:
    net = layered(64, (4,), 10, hidden_rate=TANH, output_rate=HARD_SIGMOID)
    other = make_run(tmp_path / "tanh", net, make_study(hidden=(4,), nudging="centered"))
    with pytest.raises(ValueError, match="tanh"):
        count_learning_events(other, samples=1, steps=8, code=Code.RATE, progress=nothing)
    with pytest.raises(PlasticityError, match="cannot learn"):
        count_learning_events(other, samples=1, steps=8, code=Code.PREDICTIVE, progress=nothing)
    with pytest.raises(ValueError, match="a phase needs 2 or more"):
        count_learning_events(other, samples=1, steps=1, code=Code.GRADED, progress=nothing)


def test_a_spectral_bound_is_left_to_the_host_and_said(tmp_path: Path) -> None:
    net = looped(64, 4, 10, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID, bound=0.9)
    study = make_study(model="looped", hidden=(4,), nudging="centered")
    found = count_learning_events(
        make_run(tmp_path / "bound", net, study),
        samples=1,
        steps=8,
        code=Code.RATE,
        progress=nothing,
    )
    assert "bound of hidden->hidden" in found.note


def test_the_command_counts_prices_and_shows_learning(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["energy", str(run.path), "--samples", "2", "--steps", "8", "--profile", "loihi1"]
    words += ["--profile", "truenorth"]
    assert main([*words, "--json"]) == 0
    outcome: dict[str, Any] = json.loads(capsys.readouterr().out)
    counted = outcome["counted"]["lessons"]
    assert (counted["lessons"], counted["presentations"]) == (2, 2874)
    assert list(counted["phases"]) == ["free", "negative", "positive", "commit"]
    assert counted["phases"]["commit"]["weight_updates"] > 0
    loihi, north = outcome["profiles"]
    side = loihi["learning"]
    assert side["low"] <= side["joules"] <= side["high"]
    assert side["training"]["joules"] == 2874 * side["joules"]
    assert side["training"]["seconds"] == 2874 * side["seconds"]
    assert any(text.startswith("trace update (") for text in side["unknown"])
    assert north["learning"]["joules"] is None
    assert main(words) == 0
    assert "a training sample (one of 2874): loihi1 >= " in " ".join(
        capsys.readouterr().out.split()
    )
    assert main([*words, "--verbose"]) == 0
    shown = capsys.readouterr().out
    assert "all 2874 samples" in shown
    assert "no learning on the chip" in shown
    html = render(read_contents(run.path, {}))
    assert "the whole training of 2\u202f874 samples takes at least" in html
    assert "no plasticity" in html


def test_a_code_that_cannot_learn_is_a_reason_and_no_error(
    run: Run, learning_workload: Workload
) -> None:
    report = estimate_energy(run, ["loihi1"], samples=1, steps=8, code="predictive")
    learned = report.counted.learning
    assert learned.samples == 0
    assert report["loihi1"].learning.reason == learned.reason
    assert learned.reason.startswith("unknown: code 'predictive' cannot learn")
    found = estimate_chip(
        learning_workload,
        load_profile("loihi1"),
        EstimateSettings(),
        no_learning=learned.reason,
    )
    assert found.learning.reason == ""
    free = {key: c for key, c in learning_workload.counts.items() if key[1] == "free"}
    found = estimate_chip(
        replace(learning_workload, counts=free),
        load_profile("loihi1"),
        EstimateSettings(),
        no_learning=learned.reason,
    )
    assert found.learning.reason == learned.reason


def test_profiles_name_what_learning_is_charged_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profiles", "explain", "loihi1", "--json"]) == 0
    rows = {row["key"]: row for row in json.loads(capsys.readouterr().out)["learning"]}
    assert rows["energy.weight_update"]["value"] == pytest.approx(208e-12)
    assert "charged as a weight update" in rows["energy.tag_update"]["where"]
    assert rows["energy.trace_update"]["unknown"]
    assert main(["profiles", "explain", "truenorth"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "quantities of learning" in shown
    assert "energy.trace_update unknown one activity trace changed by learning" in shown


def test_a_run_that_learned_on_a_chip_is_counted_as_it_learned(tmp_path: Path) -> None:
    from neuro_eqprop.runs import on_chip_config as settings

    net = layered(64, (4,), 10, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
    study = make_study(hidden=(4,), nudging="centered", epochs=3, batch=1)
    made = make_run(tmp_path / "chip", net, study)
    learning = settings.OnChipConfig(code="rate", free=5, settle=4, window=3, samples=20)
    (made.path / "study.toml").write_text(settings.write(study, learning))
    found = count_learning_events(
        open_run(made.path), samples=2, steps=8, code=Code.GRADED, progress=nothing
    )
    assert found.code is Code.RATE
    assert found.presentations == 60
    assert [phase.steps for phase in found.plastic.rule.schedule] == [5, 7, 7]


@pytest.mark.parametrize("nudging", ["centered", "positive"])
@pytest.mark.parametrize("code", ["rate", "graded"])
@pytest.mark.parametrize("steps", [None, 12])
def test_energy_counts_the_phases_that_learn_runs(
    tmp_path: Path, code: str, nudging: str, steps: int | None
) -> None:
    from neuro_eqprop.runs import on_chip_config
    from neuro_eqprop.spiking.codes import find_code

    net = layered(64, (4,), 10, hidden_rate=HARD_SIGMOID, output_rate=HARD_SIGMOID)
    study = make_study(hidden=(4,), nudging=nudging)
    made = make_run(tmp_path / "run", net, study)
    lengths = on_chip_config.phase_steps(code, steps)
    learned = on_chip_config.OnChipConfig(code=code, **lengths).schedule(study)  # type: ignore[arg-type]
    counted = count_learning_events(
        made, samples=1, steps=steps, code=find_code(code), progress=nothing
    )
    assert counted.plastic.rule.schedule == learned


def test_recorded_steps_of_learning_hold_the_counted_events(learning: LearningCounts) -> None:
    counts, recorded = learning.learned.counts, learning.by_step
    for name in ("hidden", "output"):
        for event in ("spikes", "tag_updates"):
            counted = sum(getattr(c, event) for (each, _), c in counts.items() if each == name)
            assert counted > 0
            assert recorded[name, event].sum() == counted
    steps = learning.plastic.rule.steps
    tags = recorded["hidden", "tag_updates"].reshape(SAMPLES, steps, -1).sum(axis=(0, 2))
    window = learning.plastic.rule.window
    # Free 4 steps, negative and positive 8 each with their windows at the end, then the commit.
    assert np.flatnonzero(tags).tolist() == [
        *range(STEPS // 2 + STEPS - window, STEPS // 2 + STEPS),
        *range(STEPS // 2 + 2 * STEPS - window, STEPS // 2 + 2 * STEPS),
    ]
    commits = recorded["hidden", "weight_updates"].reshape(SAMPLES, steps)
    assert np.flatnonzero(commits.sum(axis=0)).tolist() == [steps - 1]


def test_learning_takes_the_slowest_core_of_each_recorded_step(
    learning: LearningCounts, learning_workload: Workload
) -> None:
    stepwise = replace(learning_workload, learning_by_step=learning.by_step)
    loihi = load_profile("loihi1")
    mean = estimate_chip(
        learning_workload, loihi, EstimateSettings(), learning=learning_workload
    ).learning
    each = estimate_chip(learning_workload, loihi, EstimateSettings(), learning=stepwise).learning
    assert "the mean step" in mean.time
    assert "each recorded step" in each.time
    # In every step one core is the slowest; the mean over steps hides that it changes.
    assert each.seconds is not None
    assert mean.seconds is not None
    assert each.seconds.value > mean.seconds.value
    assert each.joules is not None
    assert mean.joules is not None
    assert each.joules.value > mean.joules.value
