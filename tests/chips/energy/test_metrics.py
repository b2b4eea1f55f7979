"""Figures for engineers: layers, phases, duty cycle, sensitivity, limits, files, supply."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import neuro_eqprop as ne
from neuro_eqprop.chips.energy.csv_file import COLUMNS, write_csv
from neuro_eqprop.chips.energy.dense_reference import likely, probability_less
from neuro_eqprop.chips.energy.figures import plot_pareto, save_figure
from neuro_eqprop.chips.energy.interval import Interval
from neuro_eqprop.chips.energy.metrics import duty_cycle
from neuro_eqprop.chips.energy.pareto import Point, pareto_front
from neuro_eqprop.chips.energy.result import EnergyReport
from neuro_eqprop.chips.energy.term_colours import COLOURS, colour_of
from neuro_eqprop.chips.profiles.load import load_profile, load_profiles
from neuro_eqprop.chips.profiles.schema import ProfileError
from neuro_eqprop.chips.quantities import parse_amount
from neuro_eqprop.cli import main


@pytest.fixture(scope="module")
def report(trained_run: Path) -> EnergyReport:
    return ne.estimate_energy(
        trained_run, ["loihi1", "truenorth", "akida1000"], samples=2, steps=8, rate="10Hz"
    )


def test_layers_and_phases_add_up_to_the_nominal_joules(report: EnergyReport) -> None:
    for use in ("inference", "learning"):
        found = getattr(report["loihi1"], use)
        assert sum(found.layers.values()) == pytest.approx(found.joules.value, rel=0.02)
        assert found.layers["hidden"] > found.layers["input"] >= 0
    learning = report["loihi1"].learning
    assert learning.joules is not None
    phases = learning.phases
    assert list(phases) == ["free", "negative", "positive", "commit"]
    assert sum(phases.values()) == pytest.approx(learning.joules.value, rel=0.02)


def test_frames_per_second_and_joule_are_the_inverses(report: EnergyReport) -> None:
    chip = report["loihi1"]
    assert chip.seconds is not None
    assert chip.joules is not None
    found = chip.to_json()["inference"]
    assert found["frames_per_second"] == pytest.approx(1 / chip.seconds)
    assert found["frames_per_joule"] == pytest.approx(1 / chip.joules)
    halves = found["sensitivity"]
    assert sum(row["share"] for row in halves.values()) == pytest.approx(1)
    for row in halves.values():
        assert row["joules_if_halved"] == pytest.approx(chip.joules * (1 - row["share"] / 2))


def test_average_power_falls_to_that_at_rest_and_a_slow_chip_says_so() -> None:
    loihi = load_profile("loihi1")
    idle = duty_cycle(loihi, 1e-6, joules=1e-3, seconds=0.01, chips=1)
    assert idle.watts == pytest.approx(96.3e-3, rel=1e-3)
    half = duty_cycle(loihi, 50.0, joules=1e-3, seconds=0.01, chips=2)
    assert half.watts == pytest.approx(50 * 1e-3 + 0.5 * 2 * 96.3e-3)
    assert half.keeps_up is True
    slow = duty_cycle(loihi, 200.0, joules=1e-3, seconds=0.01, chips=1)
    assert (slow.watts, slow.keeps_up) == (None, False)
    assert "at most 100 samples a second" in slow.note
    assert duty_cycle(loihi, 1.0, joules=1.0, seconds=None, chips=1).keeps_up is None


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [("10Hz", "Hz", 10.0), ("5ms", "s", 5e-3), ("1mJ", "J", 1e-3), ("0.9V", "V", 0.9), (3, "J", 3)],
)
def test_amounts_with_units_are_read(text: str, dimension: str, value: float) -> None:
    assert parse_amount(text, dimension) == pytest.approx(value)


@pytest.mark.parametrize("text", ["ten", "-1Hz", "0Hz", "infHz", "5ms"])
def test_wrong_amounts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a quantity|above zero"):
        parse_amount(text, "Hz")


def test_limits_fail_the_command_and_name_the_chip(
    capsys: pytest.CaptureFixture[str], make_run: Callable[[Path], Path], tmp_path: Path
) -> None:
    words = [
        "energy",
        str(make_run(tmp_path / "run")),
        "--samples",
        "2",
        "--steps",
        "8",
        "--profile",
        "loihi1",
    ]
    assert main([*words, "--fail-above", "1J", "--fail-slower", "1s", "--json"]) == 0
    assert "failure" not in json.loads(capsys.readouterr().out)
    assert main([*words, "--fail-above", "1nJ", "--json"]) == 1
    assert "above 1 nJ" in json.loads(capsys.readouterr().out)["failure"]
    assert main([*words, "--fail-slower", "1ns"]) == 1
    assert "above 1 ns" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main([*words, "--rate", "10W"])
    assert "is not a quantity" in capsys.readouterr().err


def test_a_single_chip_without_joules_exceeds_every_limit(report: EnergyReport) -> None:
    akida = replace(report, estimates=(report["akida1000"],))
    assert akida.exceeding(joules=1.0) == ("akida1000: unknown, above 1 J",)
    assert report.exceeding(joules=1.0) == ()


def test_the_csv_file_has_a_row_for_each_chip_and_use(report: EnergyReport, tmp_path: Path) -> None:
    path = write_csv(report, tmp_path / "energy.csv")
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert tuple(rows[0]) == COLUMNS
    assert [(row["profile"], row["use"]) for row in rows[:2]] == [
        ("loihi1", "inference"),
        ("loihi1", "learning"),
    ]
    assert float(rows[0]["joules"]) == report["loihi1"].joules
    assert rows[-1]["joules"] == ""
    assert float(rows[0]["average_watts"]) > 0


def test_every_term_has_its_own_colour_in_all_figures() -> None:
    pages = [page for page, _ in COLOURS.values()]
    assert len(set(pages)) == len(pages)
    assert colour_of("synop") == COLOURS["synop"][0]


def test_no_point_of_the_front_is_beaten_and_every_other_is() -> None:
    def point(accuracy: float, joules: float, seconds: float) -> Point:
        return Point("rate", 8, accuracy, joules, joules, joules, seconds=seconds)

    good, fast, cheap, bad = point(0.9, 2, 2), point(0.9, 3, 1), point(0.8, 1, 2), point(0.8, 2, 2)
    assert pareto_front([bad, good, fast, cheap]) == [cheap, good, fast]


def test_the_pareto_front_over_chips_is_a_table_and_a_figure(
    capsys: pytest.CaptureFixture[str], trained_run: Path, tmp_path: Path
) -> None:
    found = ne.estimate_energy(
        trained_run,
        ["loihi1", "odin"],
        samples=2,
        steps=4,
        pareto=True,
        pareto_steps=(2, 4),
        pareto_bits=(8, 3),
        curve_samples=4,
    )
    points = [each for chip in found for each in chip.curve]
    assert {each.bits for each in points} == {8, 3}
    assert {each.steps for each in points} == {2, 4}
    assert {each.profile for each in points} == {"loihi1", "odin"}
    found.show()
    lines = capsys.readouterr().out.partition("Pareto front of")[2].splitlines()
    rows = [line for line in lines if any(f" {name} " in line for name in ("loihi1", "odin"))]
    assert len(rows) == len(points)
    assert sum(row.startswith("*") for row in rows) == len(pareto_front(points))
    assert max(map(len, rows)) <= 100
    assert save_figure(plot_pareto(found), tmp_path / "front.svg").is_file()
    with pytest.raises(ValueError, match="no known ending"):
        save_figure(plot_pareto(found), tmp_path / "front.doc")


def test_the_joules_of_learning_stop_at_the_target_accuracy(trained_run: Path) -> None:
    run = ne.open_run(trained_run)
    best = max(row["test_accuracy"] for row in run.history)
    found = ne.estimate_energy(run, ["loihi1"], samples=2, steps=8, target=best)
    assert found.training is not None
    assert 0 < found.training.samples <= (found.counted.learning.presentations or 0)
    assert {each.device for each in found.training.dense} >= {"cortex_m33", "gap9"}
    assert found["loihi1"].learning.samples == found.training.samples
    with pytest.raises(ValueError, match="lower the target"):
        ne.estimate_energy(run, ["loihi1"], samples=2, steps=8, target=1.0)


def test_costs_follow_the_square_of_the_supply_where_a_law_is_known() -> None:
    truenorth = load_profile("truenorth")
    high = truenorth.at_supply(1.05)
    for key in ("energy.synop", "power.static"):
        before, after = truenorth.known(key), high.known(key)
        assert before is not None
        assert after is not None
        assert after.value / before.value == pytest.approx((1.05 / 0.8) ** 2)
    assert high.known("time.tick") == truenorth.known("time.tick")
    assert "supply 0.8 V -> 1.05 V" in high.overridden[-1]
    with pytest.raises(ValueError, match=r"between 0\.7 and 1\.05 V"):
        truenorth.at_supply(2.0)
    with pytest.raises(ValueError, match="no law"):
        load_profile("odin").at_supply(0.6)


def test_a_tick_without_its_time_and_inherited_notes(tmp_path: Path) -> None:
    text = Path(load_profiles(["tianjic"])[0].file)
    source = Path("hardware_profiles") / text.name
    broken = tmp_path / "broken.toml"
    lines = [line for line in source.read_text().splitlines() if not line.startswith("tick")]
    broken.write_text("\n".join(lines))
    with pytest.raises(ProfileError, match=r"time\.tick: timing is 'tick'"):
        load_profile(broken)
    mine = tmp_path / "mine.toml"
    mine.write_text(
        'schema = "neuro_eqprop.profile/1"\nextends = "loihi1"\nname = "mine"\ntitle = "mine"\n'
    )
    assert load_profile(mine).notes == ()


def test_a_crossbar_row_is_charged_for_every_spike(trained_run: Path) -> None:
    found = ne.estimate_energy(trained_run, ["odin"], samples=2, steps=8, bits=4)
    synops = next(term for term in found["odin"].terms if term.name == "synop")
    assert synops.amount == pytest.approx(256 * found.counted.spikes)


def test_truenorth_takes_one_bit_and_one_target_core(trained_run: Path) -> None:
    found = ne.estimate_energy(trained_run, ["truenorth"], samples=2, steps=8, bits=1)["truenorth"]
    assert found.placement is not None
    assert found.placement.violations == ()
    assert found.joules is not None
    updates = next(term for term in found.terms if term.name == "neuron update")
    assert updates.amount > 0.9 * 8 * 2**20
    wide = ne.estimate_energy(trained_run, ["truenorth"], samples=2, steps=8, bits=8)["truenorth"]
    assert "use bits=1" in wide.inference.reason
    auto = ne.estimate_energy(trained_run, ["truenorth"], samples=2, steps=8)["truenorth"]
    assert (auto.bits, auto.joules) == (1, found.joules)
    assert auto.accuracy is not None


def test_likelihood_follows_from_both_ranges() -> None:
    low, high = Interval(1.0, 0.8, 1.25, 1.0), Interval(2.0, 1.6, 2.5, 2.0)
    assert probability_less(low, low) == pytest.approx(0.5)
    assert probability_less(low, high) > 0.99
    assert probability_less(high, low) < 0.01
    assert [likely(p) for p in (0.99, 0.9, 0.7, 0.5)] == [
        "likely",
        "likely",
        "rather likely",
        "open",
    ]
