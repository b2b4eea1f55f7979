"""`estimate_energy` on runs, simulations and counts, and its results."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import neuro_eqprop as ne
from neuro_eqprop.chips.energy.file import EnergyFileError, read_energy
from neuro_eqprop.chips.energy.result import EnergyEstimate, EnergyReport
from neuro_eqprop.chips.workload_file import write_workload
from neuro_eqprop.cli import main
from neuro_eqprop.common.arrays import UnknownNameError
from neuro_eqprop.files.write import MANIFEST
from neuro_eqprop.runs.energy import no_progress
from neuro_eqprop.runs.energy_settings import EnergySettings
from neuro_eqprop.runs.event_source import find_events


def lines_of(result: EnergyEstimate | EnergyReport) -> list[str]:
    """The lines of the table that a result prints."""
    console = Console(width=100, record=True, highlight=False, quiet=False)
    with console.capture() as printed:
        result.table(console)
    return printed.get().splitlines()


@pytest.fixture(scope="module")
def report(trained_run: Path) -> EnergyReport:
    return ne.estimate_energy(
        trained_run,
        ["loihi1", "truenorth"],
        samples=4,
        steps=8,
        explain=True,
        curve=(2, 4),
        curve_samples=10,
    )


def test_one_profile_gives_an_estimate_and_a_list_a_report(
    trained_run: Path, report: EnergyReport
) -> None:
    one = ne.estimate_energy(ne.open_run(trained_run), "loihi1", samples=4, steps=8)
    assert isinstance(one, EnergyEstimate)
    assert one.inference == report["loihi1"].inference
    assert one.learning == report["loihi1"].learning
    assert one.low is not None
    assert one.joules is not None
    assert one.high is not None
    assert one.low < one.joules < one.high
    assert (one.fits, one.chips) == (True, 1)
    few = ne.estimate_energy(
        ne.open_run(trained_run), "loihi1", samples=4, steps=8, mapping="fewest-cores"
    )
    assert few.cores == 2
    assert one.cores is not None
    assert one.cores >= 2
    assert few.joules is not None
    assert one.joules <= few.joules
    costs = {each.mapping: each for each in one.inference.mappings}
    assert costs["fewest-cores"].cores == 2
    assert costs["balanced"].cores == one.cores
    assert [each.profile for each in report] == ["loihi1", "truenorth"]
    assert (report["truenorth"].fits, report["truenorth"].bits) == (True, 1)
    with pytest.raises(UnknownNameError, match="known: loihi1"):
        report["loihi"]


def test_tables_and_reprs_are_short(report: EnergyReport) -> None:
    for result, word in ((report, "truenorth"), (report["loihi1"], "loaded above idle")):
        lines = lines_of(result)
        assert max(len(line) for line in lines) <= 100
        assert any(word in line for line in lines)
        assert len(repr(result)) < 200
        assert "<table" in result._repr_html_()


def test_a_report_is_saved_and_read_into_the_same_objects(
    report: EnergyReport, tmp_path: Path
) -> None:
    path = report.save(tmp_path / "energy.json")
    read = read_energy(path)
    assert read.to_json() == report.to_json() | {"file": str(path)}
    for mine, theirs in zip(report, read, strict=True):
        assert mine.terms == theirs.terms
        assert mine.curve == theirs.curve
        assert mine.comparisons == theirs.comparisons
        assert mine.unknown == theirs.unknown
    assert read.counted == report.counted
    content = json.loads(path.read_text())
    assert content.pop("schema") == "neuro_eqprop.energy/1"
    for chip in content["profiles"]:
        assert chip["undecided"] == chip["inference"]["undecided"]
    path.write_text(json.dumps(content))
    assert read_energy(path).to_json() == read.to_json()


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("schema", "neuro_eqprop.energy/9", "schema: 'neuro_eqprop.energy/9' is not"),
        ("profiles", 3, "profiles: expected list, got 3"),
        (
            "reference",
            [{"device": "a", "batch": "b"}],
            "reference[0]: batch: expected integer, got 'b'",
        ),
        ("counted", {"steps": -1}, "counted: steps: expected integer >= 0, got -1"),
    ],
)
def test_an_invalid_energy_file_is_refused_with_file_and_key(
    report: EnergyReport, tmp_path: Path, key: str, value: object, words: str
) -> None:
    path = report.save(tmp_path / "energy.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(EnergyFileError) as error:
        read_energy(path)
    assert str(error.value).startswith(f"{path}: ")
    assert words in str(error.value)


def test_a_simulation_is_estimated_with_its_own_counts(
    trained_run: Path, report: EnergyReport
) -> None:
    run = ne.open_run(trained_run)
    simulation = run.model.to_spiking(code="rate", input="rate").run(
        run.data.test.x[:4], on="reference", steps=8
    )
    found = ne.estimate_energy(simulation, ["loihi1"])
    mine, counted = found["loihi1"].inference, report["loihi1"].inference
    events = [(t.name, t.amount) for t in mine.terms if not t.key.startswith("power.")]
    assert events == [(t.name, t.amount) for t in counted.terms if not t.key.startswith("power.")]
    assert found["loihi1"].learning.reason == "unknown: no learning run counted"
    assert found.counted.source == "a simulation on reference"


@pytest.mark.parametrize("on", ["emulator", "reference", "snntorch"])
def test_the_run_that_is_shown_is_not_simulated_again(
    trained_run: Path, on: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ne.open_run(trained_run)
    spiking = run.model.to_spiking(code="rate", input="rate")
    simulation = spiking.run(run.data.test.x[:4], on=on, steps=8)
    emulator, ran = ne.load_backend("emulator"), list[str]()
    simulate = type(emulator).run

    def run_counted(self: Any, *given: Any, **more: Any) -> Any:  # noqa: ANN401
        ran.append("emulator")
        return simulate(self, *given, **more)

    monkeypatch.setattr(type(emulator), "run", run_counted)
    same = ne.estimate_energy(simulation, ["loihi1"], steps=8, code="rate", input="rate")
    assert (ran, same.counted.source) == ([], f"a simulation on {on}")
    synops = simulation.total.synops / simulation.samples
    assert same.counted.synops == pytest.approx(synops)
    other = ne.estimate_energy(simulation, ["loihi1"], steps=4, bits=6)
    assert ran == ["emulator"]
    assert other.counted.source == (
        f"a simulation on {on}; counted again on the emulator: steps=4, bits=6"
    )
    assert (other.counted.samples, other.counted.steps, other.counted.bits) == (4, 4, 6)
    uncounted = ne.estimate_energy(replace(simulation, counts={}), ["loihi1"])
    assert uncounted.counted.source.endswith("counted again on the emulator: it has no counts")
    with pytest.raises(ValueError, match="the simulation has its own steps and did not keep"):
        ne.estimate_energy(replace(simulation, x=None), "loihi1", steps=4)


def test_counts_of_a_file_are_estimated(trained_run: Path, tmp_path: Path) -> None:
    counted = find_events(trained_run, EnergySettings(samples=2, steps=4), no_progress)
    path = tmp_path / "counts.json"
    write_workload(path, counted.workload)
    given = ne.estimate_energy(path, "loihi1")
    steps = {name: n.sum(axis=1, keepdims=True) for name, n in counted.workload.by_step.items()}
    summed = replace(counted.workload, by_step=steps)
    direct = ne.estimate_energy(summed, ne.load_profile("loihi1"))
    assert given.inference == direct.inference
    with pytest.raises(ValueError, match="curve needs a run"):
        ne.estimate_energy(path, "loihi1", curve=(2, 4))


def test_wrong_arguments_are_refused_with_what_exists(trained_run: Path) -> None:
    with pytest.raises(UnknownNameError, match="known: loihi1"):
        ne.estimate_energy(trained_run, "loihi_1")
    with pytest.raises(ValueError, match="'gpu_k4000' is no spiking chip"):
        ne.estimate_energy(trained_run, "gpu_k4000")
    with pytest.raises(ValueError, match="profiles is empty"):
        ne.estimate_energy(trained_run, [])
    with pytest.raises(ValueError, match="no run folder"):
        ne.estimate_energy("nowhere", "loihi1")
    with pytest.raises(UnknownNameError, match="unknown clock 'tock'; known: tick, model"):
        ne.estimate_energy(trained_run, "loihi1", clock="tock")
    with pytest.raises(UnknownNameError, match="unknown setting 'stepps'; known: steps"):
        ne.estimate_energy(trained_run, "loihi1", stepps=4)
    with pytest.raises(TypeError, match="source is an int"):
        ne.estimate_energy(3, "loihi1")  # type: ignore[call-overload]
    with pytest.raises(ValueError, match=r"energy\.json is missing"):
        ne.estimate_energy(trained_run, ["loihi1"], samples=1, steps=2, beside="nowhere")


def test_a_folder_for_sanafe_is_replaced_by_force_unless_it_holds_another_file(
    tmp_path: Path,
) -> None:
    run, out = tmp_path / "run", tmp_path / "net"
    ne.train("layered", "digits", hidden=(8,), epochs=1, out=run)
    words = f"translate {run} --to sanafe --samples 1 --out {out}".split()
    assert [main(words), main(words), main([*words, "--force"])] == [0, 1, 0]
    assert {path.name for path in out.iterdir()} == {MANIFEST, "architecture.yaml", "network.yaml"}
    (out / "thesis.tex").write_text("precious")
    assert main([*words, "--force"]) == 1
    assert (out / "thesis.tex").read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net", "run"]
