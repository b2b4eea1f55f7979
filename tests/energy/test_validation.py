"""Predictions against published measurements."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from neuro_eqprop.energy.validation import Check, check, interpolate
from neuro_eqprop.hardware.profile import Overhead
from neuro_eqprop.hardware.published import Case, Line, Role
from neuro_eqprop.io.profile.load import load_profile
from neuro_eqprop.io.published_cases import case_files, read_cases
from neuro_eqprop.io.toml import FileFormatError


def published() -> dict[str, Case]:
    return {case.name: case for path in case_files() for case in read_cases(path)}


def predict(case: Case) -> Check:
    return check(case, load_profile(case.profile, case.overrides), seed=0)


@pytest.mark.parametrize("name", published())
def test_no_published_measurement_that_should_hold_fails(name: str) -> None:
    assert predict(published()[name]).holds is not False


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("truenorth-held-out-20Hz", 0.02),
        ("odin-accelerated", 0.01),
        ("odin-biological", 0.01),
        ("loihi1-scaling-2", 0.01),
        ("loihi1-scaling-4", 0.01),
        ("loihi1-scaling-6", 0.01),
        ("loihi1-scaling-8", 0.01),
    ],
)
def test_the_errors_that_were_to_be_reached(name: str, error: float) -> None:
    case = published()[name]
    assert case.tolerance == error
    assert abs(predict(case).error) <= error


def test_loihis_keyword_spotter_lies_in_its_range_and_the_range_is_not_wide() -> None:
    found = predict(published()["loihi1-kws"])
    assert found.within
    assert found.predicted.high / found.predicted.low < 2


def test_constants_of_another_paper_miss_the_spotter_and_that_is_shown() -> None:
    found = predict(published()["loihi1-kws-by-others"])
    assert found.error > 0.5
    assert not found.within
    assert found.holds is None
    assert found.validates


def test_only_predictions_validate() -> None:
    found = [predict(case) for case in published().values()]
    assert {each.case.name for each in found if each.validates} == {
        case.name for case in published().values() if case.role is Role.PREDICTION
    }
    assert sum(each.validates for each in found) >= 5


def test_a_case_that_shares_the_source_of_its_constants_is_no_prediction() -> None:
    for case in published().values():
        profile = load_profile(case.profile, case.overrides)
        used = [profile.known(f"energy.{name}") for name in case.events]
        at_rest = (
            "power.static" if case.overhead is Overhead.STATIC_AND_HOST else "power.idle_loaded"
        )
        used += [profile.known(at_rest) or profile.known("power.static")]
        sources = {quantity.source for quantity in used if quantity is not None}
        if case.source in sources or case.line is not None:
            assert case.role is Role.CONSISTENCY, case.name
        else:
            assert case.role is Role.PREDICTION, case.name


def test_the_board_that_is_predicted_is_not_the_board_of_the_constants() -> None:
    for case in published().values():
        if case.name.startswith("spinn5"):
            assert case.profile == "spinnaker1"
            assert "spinn5" in case.where


def test_a_wrong_constant_is_caught() -> None:
    case = published()["truenorth-held-out-20Hz"]
    wrong = load_profile("truenorth", {"power.static": "80mW"})
    assert check(case, wrong, seed=0).holds is False


def test_a_range_that_says_nothing_validates_nothing() -> None:
    case = replace(
        published()["spinnaker1-stromatias"], events={"synop": (0.01, 100.0)}, measured=1e-7
    )
    found = predict(case)
    assert found.within
    assert not found.validates


def test_a_measurement_is_as_certain_as_it_is() -> None:
    case = replace(published()["odin-biological"], measured=44e-6, uncertainty=2e-6)
    assert predict(case).within
    assert not predict(replace(case, uncertainty=0.0)).within


def test_a_point_on_a_line() -> None:
    found = interpolate(Line((1.0, 3.0), (10.0, 20.0), 2.0, 0.5))
    assert (found.value, found.low, found.high) == (15.0, 14.5, 15.5)


def test_a_boundary_that_a_profile_does_not_reach_is_an_error() -> None:
    case = published()["spinn5-silent"]
    wall = replace(case, boundary=published()["odin-biological"].boundary)
    with pytest.raises(ValueError, match="has nothing at chip_total"):
        predict(wall)
    with pytest.raises(ValueError, match="needs seconds"):
        predict(replace(case, seconds=0.0))


CASE = """
schema = "neuro_eqprop.cases/1"
[[case]]
name = "mine"
profile = "odin"
role = "prediction"
grade = "A"
measure = "W"
measured = 477e-6
uncertainty = 1e-6
boundary = "chip_total"
source = "me"
where = "at home"
seconds = 1.0
events = { synop = [37.0e6, 38.0e6] }
in_range = true
"""


def test_a_users_own_case_is_read(tmp_path: Path) -> None:
    path = tmp_path / "cases.toml"
    path.write_text(CASE)
    (case,) = read_cases(path)
    assert case.events == {"synop": (37e6, 38e6)}
    assert predict(case).holds is True


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('role = "prediction"', 'role = "predicted"', "known: prediction"),
        ("measured = 477e-6", "measured = -1", "negative"),
        ("measured = 477e-6", "measured = 0", "zero"),
        ("uncertainty = 1e-6\n", "", "uncertainty is missing"),
        ("synop = [37.0e6, 38.0e6]", "synops = 1", "did you mean 'energy.synop'"),
        ("[37.0e6, 38.0e6]", "[38.0e6, 37.0e6]", "is above high"),
        ("[37.0e6, 38.0e6]", "[1, 2, 3]", "lowest and the highest"),
        ("events = { synop = [37.0e6, 38.0e6] }", "", "neither events nor a line"),
        ("in_range = true", "inrange = true", "did you mean 'in_range'"),
        ("in_range = true", 'overhead = "all"', "known: loaded_idle"),
        ("cases/1", "cases/2", "schema"),
        ("in_range = true", "line = { x = [1, 1], y = [1, 2], at = 1, rounding = 0 }", "same x"),
        (
            "in_range = true",
            "line = { x = [1], y = [1, 2], at = 1, rounding = 0 }",
            "takes 2 values",
        ),
    ],
)
def test_a_broken_case_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in CASE
    path = tmp_path / "cases.toml"
    path.write_text(CASE.replace(old, new))
    with pytest.raises(FileFormatError) as error:
        read_cases(path)
    assert words in str(error.value)
